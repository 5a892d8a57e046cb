//! Mounting: serving a volume, ending a mount, disks that come and go meanwhile, and transactions.

pub mod arguments;
pub mod attach;
pub mod kept;
pub mod mount;
pub mod mount_helper;
pub mod sends;
pub mod server;
pub mod session;
pub mod tx;
pub mod umount;
pub mod up;
pub mod views;

//! Mounting: serving a volume, ending a mount, and disks that come and go meanwhile.

pub mod arguments;
pub mod attach;
pub mod mount;
pub mod mount_helper;
pub mod session;
pub mod umount;
pub mod up;
pub mod views;

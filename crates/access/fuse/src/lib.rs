//! FUSE: a volume as a directory of the host.
//!
//! Keeps true: a mount that ends in any orderly way has everything saved, and one that does not is
//! recognised and taken away by the next mount. The FUSE crate is known to what stands
//! right beside `adaptor`, the volume only as a [`FileSystem`](onode_fs::FileSystem); there is no
//! logic of files here.
#![forbid(unsafe_code)]

mod adaptor;
mod keeper;
mod mountpoint;
mod opening;
mod options;
mod request;
mod scrubber;
mod serving;
mod session;
mod transport;

pub use mountpoint::{
    Mounted, TYPE_NAME, all_mounts, detach, is_dead, is_disconnected, mount_of, mounted_at, no_mount, our_mount_at,
    prepare, release, remount,
};
pub use options::{Atime, IoUring, Options};
pub use request::counts::Requests;
pub use request::counts::in_service::ServedRequest;
pub use serving::{SEND_VIEW, VIEW_PREFIX, Views};
pub use session::{Ending, Mount};
pub use transport::Transport;

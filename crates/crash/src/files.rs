//! The file level: calls of the host file system on a flash device, in both write modes.

pub mod brim;
pub mod calls;
pub mod cases;
pub mod limited;
pub mod look;
pub mod program;
pub mod state;
pub mod workload;
pub mod worth;

pub use state::{FileState, NodeKind};
pub use workload::{FILE_WORKLOADS, FileWorkload};

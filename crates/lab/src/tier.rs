//! What a file system on a fast and a big disk costs, beside ext2 and xfs on the same models of
//! disks.
//!
//! Nothing here is timed: all times are virtual, of the disks of paper 4 as [`Disk`] has them. What
//! ext2 and xfs ask of a disk was recorded once ([`record`]) and is played on the models. So every
//! figure is the same in every run and on every machine.

mod devices;
mod figures;
mod files;
mod model;
mod own;
pub mod record;
mod recording;
mod recordings;
pub mod replacement;
mod series;
pub mod space_use;
mod workload;

pub use figures::{Options, groups, measure};
pub use files::Files;
pub use model::{Disk, Phase, Requests, replay};
pub use recording::{Done, Event, Recording};
pub use recordings::Recordings;
pub use series::{Series, series};

use onode::{Class, Error};

/// The file systems of the kernel that are compared with.
pub const PEERS: [&str; 2] = ["ext2", "xfs"];

fn failed(what: &str, error: impl ToString) -> Error {
    Error::new(Class::General, what, error.to_string())
}

/// The file of a peer's workload, without its extension.
fn recording_name(peer: &str, workload: &str) -> String {
    format!("{peer}-{workload}")
}

//! The facade: one line names a device, and out comes a mounted volume.
//!
//! This is the only crate that names every device. It keeps two promises: an image that is not
//! ours, damaged, newer or in use is reported as such and left byte for byte as it was, and every
//! error is one sentence for people with a hint and a class ([`Error`]). It holds no policy of its
//! own: names and files are the business of `onode_fs`, objects that of the devices.
//!
//! | folder | what it holds |
//! |---|---|
//! | `volume` | a mounted volume: its files, its health, its faces as block devices |
//! | `open` | from a spec to a device, and what is refused on the way |
//! | `spec` | the line that names a device; sizes |
//! | `host` | what the computer gives: random bytes, time, memory |
#![forbid(unsafe_code)]

mod error;
mod host;
mod open;
mod spec;
mod volume;

pub use error::{Class, Error, Result};
pub use host::budget::{cache_bytes, memory_limit};
pub use host::clock::SystemClock;
pub use host::random_bytes;
pub use onode_flash::policy::WearPolicy;
pub use onode_fs::{Attributes, FileSystem, FileType, InodeNumber};
pub use onode_object::{Compression, Condition, Health, Severity};
pub use onode_spaces::{Kind as SpaceKind, SpaceInfo};
pub use volume::face::BlockFace;
pub use volume::file::{Entry, File, ReadDir, Walk};
/// Objects, for programs that use the device below the files: [`Volume::device`].
pub mod object {
    pub use onode_object::{
        AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction,
    };
}
pub use open::memory::MappedSpace;
pub use open::spaces::Spaces;
pub use open::{medium, memory};
pub use spec::size::{exact_size, human_size, parse_size};
pub use spec::{Fast, Medium, Memory, Policies, Section, Shape, Spec, Tiers, wear_of};
pub use volume::{CreateOptions, Inodes, MountOptions, Volume, open_device, repair_files};

/// The examples of the front page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct FrontPage;

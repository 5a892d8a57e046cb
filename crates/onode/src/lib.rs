//! The facade: one line names a device, and out comes a mounted volume.
//!
//! This is the only crate that names every device. It keeps two promises: an image that is not
//! ours, damaged, newer or in use is reported as such and left byte for byte as it was, and every
//! error is one sentence for people with a hint and a class ([`Error`]). It holds no policy of its
//! own: names and files are the business of `onode_fs`, objects that of the devices.
#![forbid(unsafe_code)]

mod beside;
mod budget;
mod clock;
mod device;
mod distinct;
mod error;
mod face;
mod file;
mod finder;
mod health;
mod host;
pub mod medium;
pub mod memory;
mod missing;
mod nand;
mod partition;
mod raw;
mod region;
mod signature;
mod size;
mod spaces;
mod spec;
mod tiers;
mod volume;

pub use budget::{cache_bytes, memory_limit};
pub use clock::SystemClock;
pub use error::{Class, Error, Result};
pub use face::BlockFace;
pub use file::{Entry, File, ReadDir, Walk};
pub use host::random_bytes;
pub use onode_flash::policy::WearPolicy;
pub use onode_fs::{Attributes, FileSystem, FileType, InodeNumber};
pub use onode_media::spaces::{Kind as SpaceKind, SpaceInfo};
pub use onode_object::{Condition, Health, Severity};
/// Objects, for programs that use the device below the files: [`Volume::device`].
pub mod object {
    pub use onode_object::{
        AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction,
    };
}
pub use size::{exact_size, human_size, parse_size};
pub use spaces::{MappedSpace, Spaces};
pub use spec::{Fast, Medium, Memory, Section, Shape, Spec, Tiers, wear_of};
pub use volume::{CreateOptions, Inodes, MountOptions, Volume, open_device, repair_files};

/// The examples of the front page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct FrontPage;

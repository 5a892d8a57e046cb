//! The facade: one line names a device, and out comes a mounted volume.
//!
//! This is the only crate that names every device. It keeps two promises: an image that is not
//! ours, damaged, newer or in use is reported as such and left byte for byte as it was, and every
//! error is one sentence for people with a hint and a class ([`Error`]). It holds no policy of its
//! own: names and files are the business of `onode_fs`, objects that of the devices.
//!
//! | folder | what it holds |
//! |---|---|
//! | `volume` | a mounted volume: files, health, snapshots, streams, faces as block devices |
//! | `open` | from a spec to a device, and what is refused on the way |
//! | `spec` | the line that names a device; sizes |
//! | `host` | what the computer gives: random bytes, time, memory |
//!
//! A build has the devices of its features, and all of them by default. Without any only `ram:` is
//! there. A spec of a device that a build lacks is refused with [`Class::Usage`] and the feature to
//! enable.
//!
//! | feature | specs and what comes with them |
//! |---|---|
//! | `flash` | `flash:`, `flash+scm:` (the memory beside flash needs no `scm`), bare paths; policies, dumps |
//! | `scm` | `scm:`; memory blocks of programs ([`Volume::open_memory`]), spaces ([`Spaces`]) |
//! | `tier` | `tier:` |
//! | `compression` | content compressed with LZ4 or Zstandard; without it a volume that has such is refused |
//! | `pool` | `pool:`; members that come and go ([`pool`]) |
//! | `transactions` | transactions of users ([`Volume::begin`]) |
//! | `encryption` | volumes encrypted with AES-256-GCM-SIV ([`keys`]); without it they are refused |
//!
//! Snapshots ([`Snapshots`]) are in every build: one that kept nothing for them would spoil them.
#![forbid(unsafe_code)]

mod error;
mod host;
mod open;
mod spec;
mod volume;

pub use error::{Class, Error, Result};
pub use host::budget::{cache_bytes, memory_limit, write_cache_bytes};
pub use host::clock::SystemClock;
#[cfg(any(feature = "flash", feature = "tier"))]
pub use host::devices;
pub use host::random_bytes;
pub use onode_base::size::{exact_size, human_size, parse_size};
#[cfg(feature = "flash")]
pub use onode_flash::policy::WearPolicy;
pub use onode_fs::{Attributes, Explanation, FileSystem, FileType, GivenHint, Hint, InodeNumber, Origin};
pub use onode_fs::{Quota, QuotaCount, QuotaLimits, QuotaSubject, QuotaUse};
pub use onode_object::{Compression, Condition, Health, Settings, Severity};
pub use onode_services::{CloneInfo, Snapshot, SnapshotId, StreamBase, StreamHeader};
#[cfg(feature = "scm")]
pub use onode_spaces::{Kind as SpaceKind, SpaceInfo};
#[cfg(feature = "scm")]
pub use open::scm::memory::{self, MappedSpace};
#[cfg(feature = "scm")]
pub use open::scm::spaces::Spaces;
pub use spec::Spec;
#[cfg(feature = "flash")]
pub use spec::flash::{Beside, Flash, Medium, Parity, Policies, Shape, wear_of};
#[cfg(feature = "scm")]
pub use spec::memory::Memory;
#[cfg(feature = "pool")]
pub use spec::pool::PoolSpec;
pub use spec::ram::Ram;
#[cfg(feature = "tier")]
pub use spec::tiers::{Fast, Section, Tiers};
pub use volume::face::BlockFace;
pub use volume::file::{Entry, File, ReadDir, Walk};
pub use volume::snapshots::Snapshots;
pub use volume::snapshots::clones::Clones;
pub use volume::transfer::receive::{ReceiveOptions, ReceivedStream, receive};
pub use volume::transfer::roll_back::{RolledBack, roll_back};
pub use volume::transfer::send::SendStream;
pub use volume::upkeep::Upkeep;
pub use volume::{CreateOptions, FirstFiles, Inodes, MountOptions, Volume, open_device, repair_files};

#[cfg(feature = "encryption")]
pub use volume::keys;

#[cfg(feature = "transactions")]
pub use volume::transactions::{
    ChangedFile, EXPIRY_SECONDS, TRANSACTIONS_MAX, TransactionInUse, TransactionInfo, TransactionOptions, Transactions,
    UserTransaction,
};

/// Pools: members, and how they stand.
#[cfg(feature = "pool")]
pub mod pool {
    pub use crate::open::pool::{PoolMemberState, PoolMemberStatus, add, rebuild, remove, status};
}

/// Objects, for programs that use the device below the files: [`Volume::device`].
pub mod object {
    pub use onode_object::{
        AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction,
    };
}

/// What lies on a medium below its objects: check, repair and, of flash, dumps, without a mount.
pub mod medium {
    pub use crate::open::device::check_medium;
    #[cfg(feature = "flash")]
    pub use crate::open::flash::dump::*;
    #[cfg(feature = "flash")]
    pub use crate::open::flash::pages::{PagesDump, SpareArea, dump_pages};
    pub use crate::open::medium::{MediumFinding, MediumRepaired, MediumReport};
    pub use crate::volume::snapshots::lost::repair_medium;
}

/// The examples of the front page.
#[cfg(all(doctest, feature = "flash"))]
#[doc = include_str!("../README.md")]
struct FrontPage;

/// The program in the tour of those who write one.
#[cfg(all(doctest, feature = "flash", feature = "transactions"))]
#[doc = include_str!("../../../docs/tours/program.md")]
struct Tour;

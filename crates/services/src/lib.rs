//! Services over any object device: an object device that wraps an object device.
//!
//! [`Compressed`] keeps content in fewer bytes, [`Encrypted`] keeps all that a host gives it
//! secret, [`Authenticated`] tells what somebody else put on the medium, [`Pool`] keeps everything
//! on several devices, [`Versioned`] keeps what was, [`Staged`] makes many changes happen together.
//! [`Sending`] and [`Receiving`] carry states of objects from one device to another. They know
//! objects, and neither a medium nor a file; the wrapped device sees ordinary objects, so no format
//! below changes. Nothing here reads a clock, draws a random number or starts a thread.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "compression", feature = "encryption")),
    allow(dead_code, reason = "each service needs a part of what they share")
)]

#[cfg(feature = "encryption")]
mod authenticated;
#[cfg(feature = "compression")]
mod compressed;
#[cfg(feature = "encryption")]
mod encrypted;
mod life;
mod plan;
mod pool;
mod ranges;
mod shards;
mod snapshots;
mod staged;
mod stream;
mod turn;

#[cfg(feature = "encryption")]
pub use authenticated::{Anchor, Authenticated, NOT_AUTHENTIC};
#[cfg(feature = "compression")]
pub use compressed::Compressed;
#[cfg(feature = "encryption")]
pub use encrypted::{Cost, Encrypted, KeyHeader, KeySlot, MasterKey, Secret, Session, SlotKind, SlotSettings};
#[cfg(feature = "encryption")]
pub use encrypted::{DirectoryKey, DirectoryKeys, KEY_FILE_BYTES_MIN, LABEL_BYTES_MAX, NewSlot, SLOTS_MAX};
pub use pool::{MEMBERS_MAX, Mended, Pool, PoolLabel, PoolMember, PoolMemberState, PoolMemberStatus};
pub use snapshots::{
    CloneDevice, CloneInfo, Dropped, NewSnapshot, SNAPSHOT_NAME_BYTES_MAX, SNAPSHOTS_MAX, Snapshot, SnapshotId,
    SnapshotView, Versioned,
};
pub use staged::{ChangedEntry, ChangedObject, MergeOf, Rules, Staged, View};
pub use stream::{
    Applied, Differences, Keep, Received, Receiving, Sending, StreamBase, StreamHeader, growth_of_going_back, rekeyed,
};

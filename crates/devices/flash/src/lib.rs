//! The log-structured flash device of paper 1 (sections III.B and IV): an `ObjectDevice` over raw
//! NAND.
//!
//! The medium is a few superblock erase blocks followed by *segments*, runs of erase blocks that
//! are written front to back and erased whole. Four streams fill segments side by side: the
//! **journal** (commit records, with the tails and small contents of writes packed into the same
//! pages), **data** (whole pages of content), **cold** (what the cleaner moved) and **index**
//! (nodes of the wandering B+tree and the segment table, written at checkpoints).
//!
//! What it keeps true:
//! * A commit is one record; it is durable when the page that holds its end is programmed.
//! * Everything that the newest superblock refers to stays untouched until the next superblock is
//!   on the medium. So a mount is that superblock plus a replay of the journal behind it, whatever
//!   was being done at the crash, and can itself be cut at any point.
//! * A page is programmed only into a segment erased in the same session; nothing is ever appended
//!   to a segment that was open at a crash.
//! * Every page carries a checksum bound to its place and to the segment's sequence number, every
//!   tree node one in its parent: torn, stale and misdirected pages are errors, never data.
//! * On a volume made with parity every page belongs to a row with one to three pages of
//!   Reed-Solomon parity in other erase blocks: so many lost ones are found again, and moved.
//!
//! Compression and encryption are services above it.
//!
//! | folder | what it holds |
//! |---|---|
//! | `device` | the object interface, and the order of locks |
//! | `core` | the parts behind the device's lock |
//! | `volume` | log, index and checkpoints, as the cleaner has them |
//! | `tools` | check, repair, dumps, figures, health |
//! | `recover` | from the flash to a mounted volume |
//! | `commit` | transactions, group commit, checkpoints, access times |
//! | `cleaner` | victims, moving, wear levelling, the pace |
//! | `index` | where things are: the tree, or a memory beside the flash; reads |
//! | `log` | streams, journal, records |
//! | `space` | segments, pins, room |
//! | `medium` | pages, superblocks, layout, formats |
//! | `policy` | placement, victims and wear as pure functions |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod cleaner;
mod commit;
mod core;
mod device;
mod index;
mod log;
mod medium;
pub mod options;
pub mod policy;
mod recover;
mod space;
mod tools;
mod volume;

pub use device::FlashDevice;
pub use index::beside::{FindMemory, MemoryOptions, MountPath};
pub use index::bpram::MemoryUse;
pub use index::bpram::mount::{BYTES_MIN as MEMORY_BYTES_MIN, superblock_of};
pub use medium::{format, layout};
pub use options::{FormatOptions, MountOptions, Policies};
pub use tools::check::{CheckOptions, check};
pub use tools::repair::{RepairOptions, repair};
pub use tools::{check, dump, repair};

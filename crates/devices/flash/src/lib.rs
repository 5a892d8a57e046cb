//! The log-structured flash device of paper 1 (sections III.B and IV): an `ObjectDevice` over raw NAND.
//!
//! The medium is a few superblock erase blocks followed by *segments*, runs of erase blocks that are
//! written front to back and erased whole. Four streams fill segments side by side: the **journal**
//! (commit records, with the tails and small contents of writes packed into the same pages), **data**
//! (whole pages of content), **cold** (what the cleaner moved) and **index** (nodes of the wandering
//! B+tree and the segment table, written at checkpoints).
//!
//! What it keeps true:
//! * A commit is one record; it is durable when the page that holds its end is programmed.
//! * Everything that the newest superblock refers to stays untouched until the next superblock is on
//!   the medium. So a mount is that superblock plus a replay of the journal behind it, whatever was
//!   being done at the crash, and can itself be cut at any point.
//! * A page is programmed only into a segment erased in the same session; nothing is ever appended to
//!   a segment that was open at a crash.
//! * Every page carries a checksum bound to its place and to the segment's sequence number, every tree
//!   node one in its parent: torn, stale and misdirected pages are errors, never data.
//!
//! What it does not do yet: parity, compression, encryption.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod access;
mod apply;
mod attach;
mod beside;
mod bpram;
pub mod check;
mod checkpoint;
mod cleaner;
mod commit;
mod compact;
mod core;
mod costliest;
mod deferred;
mod device;
pub mod dump;
mod echo;
mod errors;
mod failing;
pub mod format;
mod gather;
mod health;
mod index;
mod inspect;
mod items;
mod joining;
pub mod layout;
mod levelling;
mod log;
mod mount;
pub mod options;
mod pace;
mod page;
mod pages;
mod patch;
mod pins;
mod placing;
mod plan;
pub mod policy;
mod read;
mod record;
pub mod repair;
mod replay;
mod ring;
mod room;
mod segments;
mod stall;
mod store;
mod sync;
mod tight;
mod tree;

pub use attach::FindMemory;
pub use beside::{MemoryOptions, MountPath};
pub use bpram::MemoryUse;
pub use bpram::mount::BYTES_MIN as MEMORY_BYTES_MIN;
pub use bpram::mount::superblock_of;
pub use check::{CheckOptions, check};
pub use device::FlashDevice;
pub use options::{FormatOptions, MountOptions};
pub use repair::{RepairOptions, repair};

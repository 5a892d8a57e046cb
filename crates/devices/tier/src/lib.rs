//! A fast and a big disk as one object device (paper 4).
//!
//! The big disk has everything that is needed to mount; the fast disk is a verified copy of some of
//! it and carries a second log. Whatever is read from the fast disk is checked against checksums
//! that lie on the big one.
//!
//! What it keeps true:
//! * A fast disk that is lost, stale, swapped, wiped or lying never gives wrong bytes, and never
//!   takes an acknowledged byte with it in the class `safe`.
//! * Nothing that the last durable checkpoint refers to is ever overwritten, so that a mount is
//!   that checkpoint plus a replay of the log behind it, and can itself be cut at any point.
//!
//! What it does not do: redundancy. A big disk that is lost is lost.
//!
//! | folder | what it holds |
//! |---|---|
//! | `device` | the object interface, options, the fast disk attached and detached |
//! | `core` | the state behind its lock: the parts, and who is lent which of them |
//! | `tools` | health, figures, scrubs, whether the state agrees with itself |
//! | `recover` | from the disks to a mounted volume; what is missing, what is dropped by consent |
//! | `commit` | transactions, room, checkpoints, superblocks, who brings something to the big disk |
//! | `content` | content without a place yet, reads, copies on request |
//! | `index` | the copy-on-write tree, and how its nodes get into memory |
//! | `log` | records and rings |
//! | `space` | free blocks, extents, pins |
//! | `fast` | the fast disk: sections, copies, its own log |
//! | `disks` | each disk behind its lock; what waits for the big one |
//! | `medium` | what a superblock says, layout, errors |
//! | `policy` | which content leaves the fast disk first |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod commit;
mod content;
mod core;
mod device;
mod disks;
pub mod fast;
mod index;
mod log;
mod medium;
pub mod policy;
mod recover;
mod space;
mod tools;

pub use device::TierDevice;
pub use device::attach::FindDisks;
pub use device::options::{FormatOptions, MountOptions, NewFast};
pub use recover::salvaged::Salvaged;

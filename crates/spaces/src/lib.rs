//! The driver of storage-class memory (paper 2, section III): one memory, divided into named
//! spaces.
//!
//! A [`Region`] is a [`Pmem`](onode_media::Pmem) with a partition table. Each [`Space`] of it is a
//! `Pmem` again, so that a boot image, plain memory, a traditional file system and the SCM manager
//! live side by side. Keeps true: spaces never overlap, a new space reads as zeros, and every
//! change of the table is there wholly or not at all after a power cut. It does not know what a
//! space holds. `docs/format/scm-region.md` describes the bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod format;
mod layout;
mod open;
mod place;
mod region;
mod table;
#[cfg(test)]
mod tests;

pub use format::MAGIC;
pub use region::{KnownSpace, LENGTH_MIN, Region, Space, is_region};
pub use table::{Kind, NAME_MAX, SpaceInfo};

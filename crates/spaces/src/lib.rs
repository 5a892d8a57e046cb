//! The driver of storage-class memory (paper 2, section III): one memory, divided into named
//! spaces.
//!
//! A [`Region`] is a [`Pmem`](crate::Pmem) with a partition table; each [`Space`] of it is a `Pmem`
//! again, so that a boot image, plain memory, a traditional file system and the SCM manager live
//! side by side. It keeps true: spaces never overlap, a new space reads as zeros, and every change
//! of the table is there wholly or not at all after a power cut. It does not know what a space
//! holds. `docs/format/scm-region.md` describes the bytes.

mod format;
mod place;
mod region;
mod restore;
mod space;
mod table;
#[cfg(test)]
mod tests;

pub use format::MAGIC;
pub use region::{LENGTH_MIN, Region, is_region};
pub use space::Space;
pub use table::{Kind, NAME_MAX, SpaceInfo};

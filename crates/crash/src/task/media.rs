//! Kinds of media, and of devices on them.

use crate::kind::beside::PREFIX;
use crate::kind::geometry::{self, DISKS_SHAPES, MEMORY_SHAPES, MemoryShape, SHAPES};
use crate::kind::{authenticated, compressed, encrypted, keyed, pool, snapshots, transacted};
use onode_scm::Mode;

/// The memory of a shape with that prefix, if it is one.
fn memory_with(prefix: &str, shape: &str) -> Option<MemoryShape> {
    geometry::memory_by_name(shape.strip_prefix(prefix)?)
}

/// Kinds of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// NAND, with the flash device on it.
    Nand,
    /// Byte-addressable memory, with the device of storage-class memory on it.
    Scm,
    /// NAND with the flash device, and its index in a memory beside it.
    Beside,
    /// A fast and a big disk, with the device of both on them.
    Tier,
    /// NAND, memory, or two disks, with compression over their device.
    Compressed,
    /// The same with encryption over their device.
    Encrypted,
    /// The same, with all objects in a directory with a key.
    Keyed,
    /// NAND, memory that one process at a time uses, or two disks, with authentication and
    /// encryption over their device.
    Authenticated,
    /// NAND and a memory, with a pool over the devices on them.
    Pool,
    /// NAND, memory, or two disks, with transactions of users on their device.
    Transacted,
    /// NAND, alone or beside a memory, memory that one process at a time uses, or two disks, with
    /// snapshots of their device.
    Snapshots,
}

impl Media {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Nand,
        Self::Scm,
        Self::Beside,
        Self::Tier,
        Self::Compressed,
        Self::Encrypted,
        Self::Keyed,
        Self::Authenticated,
        Self::Pool,
        Self::Transacted,
        Self::Snapshots,
    ];

    /// The kinds that services are explored over. Flash beside a memory stores content as flash.
    const WRAPPED: [Self; 3] = [Self::Nand, Self::Scm, Self::Tier];
    /// Those that there can be snapshots of. They change how content is stored.
    const KEPT: [Self; 4] = [Self::Nand, Self::Scm, Self::Beside, Self::Tier];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nand => "nand",
            Self::Scm => "scm",
            Self::Beside => "beside",
            Self::Tier => "tier",
            Self::Compressed => "compressed",
            Self::Encrypted => "encrypted",
            Self::Keyed => "keyed",
            Self::Authenticated => "authenticated",
            Self::Pool => "pool",
            Self::Transacted => "tx",
            Self::Snapshots => "snap",
        }
    }

    /// The names of the shapes of this kind.
    #[must_use]
    pub fn shapes(self) -> Vec<String> {
        match self {
            Self::Nand => SHAPES.iter().map(|shape| shape.name.into()).collect(),
            Self::Scm => MEMORY_SHAPES.iter().map(|shape| shape.name.into()).collect(),
            Self::Beside => SHAPES.iter().map(|shape| format!("{PREFIX}{}", shape.name)).collect(),
            Self::Tier => DISKS_SHAPES.iter().map(|shape| shape.name.into()).collect(),
            Self::Compressed => Self::prefixed(&Self::WRAPPED, compressed::PREFIX),
            Self::Encrypted => Self::prefixed(&Self::WRAPPED, encrypted::PREFIX),
            Self::Keyed => Self::prefixed(&Self::WRAPPED, keyed::PREFIX),
            Self::Transacted => Self::prefixed(&Self::WRAPPED, transacted::PREFIX),
            Self::Authenticated => Self::exclusive(&Self::WRAPPED, authenticated::PREFIX),
            // What is kept has to be durable before what it is kept of is overwritten.
            Self::Snapshots => Self::exclusive(&Self::KEPT, snapshots::PREFIX),
            // What a pool records of changes takes half of what is left on the smallest.
            Self::Pool => {
                let shapes = SHAPES.iter().filter(|shape| shape.name != "tiny");
                shapes.map(|shape| format!("{}{}", pool::PREFIX, shape.name)).collect()
            }
        }
    }

    fn prefixed(media: &[Self], prefix: &str) -> Vec<String> {
        media.iter().flat_map(|media| media.shapes()).map(|shape| format!("{prefix}{shape}")).collect()
    }

    /// The same, with memory as one process at a time uses it, which is in one mode.
    fn exclusive(media: &[Self], prefix: &str) -> Vec<String> {
        let mut shapes = Self::prefixed(media, prefix);
        shapes.retain(|shape| memory_with(prefix, shape).is_none_or(|memory| memory.mode == Mode::Atomic));
        shapes
    }

    /// The kind of the medium with this shape.
    #[must_use]
    pub fn of_shape(name: &str) -> Self {
        if name.starts_with(compressed::PREFIX) {
            Self::Compressed
        } else if name.starts_with(encrypted::PREFIX) {
            Self::Encrypted
        } else if name.starts_with(keyed::PREFIX) {
            Self::Keyed
        } else if name.starts_with(authenticated::PREFIX) {
            Self::Authenticated
        } else if name.starts_with(pool::PREFIX) {
            Self::Pool
        } else if name.starts_with(transacted::PREFIX) {
            Self::Transacted
        } else if name.starts_with(snapshots::PREFIX) {
            Self::Snapshots
        } else if name.starts_with(PREFIX) {
            Self::Beside
        } else if geometry::memory_by_name(name).is_some() {
            Self::Scm
        } else if geometry::disks_by_name(name).is_some() {
            Self::Tier
        } else {
            Self::Nand
        }
    }
}

//! Which erase blocks hold superblocks.

use crate::medium::format::{FEATURE_FAR_SUPERBLOCKS, FEATURE_FEW_SUPERBLOCKS, FEATURE_MANY_SUPERBLOCKS};
use core::ops::Range;
use onode_media::Geometry;

/// Which erase blocks hold superblocks: each superblock stands at the start and at the end of the
/// medium, so that what destroys one end leaves the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperblockBlocks {
    /// Blocks of the medium.
    blocks: u32,
    /// Blocks at the start.
    head: u32,
    /// Blocks at the end; none on tiny media, and on volumes made before superblocks stood there,
    /// too.
    tail: u32,
}

/// The ends of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where block 0 is.
    Start,
    /// Where the last block is.
    Far,
}

impl End {
    /// Both, the one that is written first before the other.
    pub const ALL: [Self; 2] = [Self::Start, Self::Far];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Start => Self::Far,
            Self::Far => Self::Start,
        }
    }
}

impl SuperblockBlocks {
    /// Fewer blocks are too few for superblocks at both ends.
    const LEAST_BLOCKS: u32 = 64;
    /// With so many blocks there are three at each end, which wear out more slowly than two. Each
    /// is looked at by a mount.
    const MANY_BLOCKS: u32 = 1024;
    /// Blocks at the end of a large medium that may be bad: chips often keep their own table of bad
    /// blocks in the last four.
    const SPARE: u32 = 4;

    /// Those of a new volume.
    #[must_use]
    pub const fn of_new(shape: &Geometry) -> Self {
        let (head, tail) = match shape.blocks {
            ..Self::LEAST_BLOCKS => (2, 0),
            Self::LEAST_BLOCKS..Self::MANY_BLOCKS => (2, 2),
            _ => return Self::many(shape),
        };
        Self { blocks: shape.blocks, head, tail }
    }

    /// Those of a large medium, and of a volume that was made on one and is smaller now.
    #[must_use]
    pub const fn many(shape: &Geometry) -> Self {
        Self { blocks: shape.blocks, head: 3, tail: 3 + Self::SPARE }
    }

    /// Those of a volume whose superblocks are at the start alone: four, on tiny media two.
    #[must_use]
    pub const fn at_start(shape: &Geometry) -> Self {
        Self { blocks: shape.blocks, head: if shape.blocks >= Self::LEAST_BLOCKS { 4 } else { 2 }, tail: 0 }
    }

    /// Two at each end of a medium for which that is few: those of a volume that has grown.
    #[must_use]
    pub const fn few(shape: &Geometry, at_both_ends: bool) -> Self {
        Self { blocks: shape.blocks, head: 2, tail: if at_both_ends { 2 } else { 0 } }
    }

    /// Those of a volume with these incompatible features.
    #[must_use]
    pub const fn of_features(shape: &Geometry, incompatible: u32) -> Self {
        let is_far = incompatible & FEATURE_FAR_SUPERBLOCKS != 0;
        match (incompatible & FEATURE_FEW_SUPERBLOCKS != 0, is_far) {
            (true, _) => Self::few(shape, is_far),
            (false, true) if incompatible & FEATURE_MANY_SUPERBLOCKS != 0 => Self::many(shape),
            (false, true) => Self::of_new(shape),
            (false, false) => Self::at_start(shape),
        }
    }

    /// The incompatible features that say where they are.
    #[must_use]
    pub const fn features(&self, shape: &Geometry) -> u32 {
        let far = if self.at_both_ends() { FEATURE_FAR_SUPERBLOCKS } else { 0 };
        if self.is_like(&Self::of_features(shape, far)) {
            far
        } else if self.is_like(&Self::many(shape)) {
            far | FEATURE_MANY_SUPERBLOCKS
        } else {
            far | FEATURE_FEW_SUPERBLOCKS
        }
    }

    const fn is_like(&self, other: &Self) -> bool {
        self.head == other.head && self.tail == other.tail
    }

    /// Whether a volume on a medium of this shape can say that they are where they are.
    #[must_use]
    pub fn can_be_told(&self, shape: &Geometry) -> bool {
        Self::of_features(shape, self.features(shape)) == *self
    }

    /// The same on a medium of so many blocks.
    #[must_use]
    pub const fn on(self, blocks: u32) -> Self {
        Self { blocks, ..self }
    }

    /// Blocks of the medium.
    #[must_use]
    pub const fn medium_blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether superblocks stand at both ends.
    #[must_use]
    pub const fn at_both_ends(&self) -> bool {
        self.tail > 0
    }

    /// The first block behind those at the start.
    #[must_use]
    pub const fn first_other(&self) -> u32 {
        self.head
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.head + self.tail
    }

    /// So many of those at one end are in use; what is more stands in for bad ones.
    #[must_use]
    pub const fn in_use(&self) -> usize {
        self.head as usize
    }

    /// Those at one end, in the order in which they are used.
    #[must_use]
    pub const fn at(&self, end: End) -> Range<u32> {
        match end {
            End::Start => 0..self.head,
            End::Far => self.blocks - self.tail..self.blocks,
        }
    }

    /// Those at both ends.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<> {
        self.at(End::Start).chain(self.at(End::Far))
    }

    /// The end at which `block` is.
    #[must_use]
    pub const fn end_of(&self, block: u32) -> End {
        if block < self.head { End::Start } else { End::Far }
    }
}

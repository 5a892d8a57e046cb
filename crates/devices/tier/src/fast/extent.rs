//! Where in a section content goes: blocks handed out and given back, no disk.
//!
//! A *section* is a row of *extents* of equal size. Two schemes fill them:
//! * [`exact`]: runs of exactly as many blocks as asked for; small content shares an extent, and
//!   with a *stripe* the extents of a stripe are filled one after another, so that they can be
//!   written in one go.
//! * [`paper`]: extents divided into segments and sub-segments of powers of two, as paper 4 defines
//!   them.
//!
//! What both keep true: no block is handed out twice, and what is given back is found again.

mod bits;
pub mod exact;
pub mod paper;

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Blocks in a row, counted from the start of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The first block.
    pub start: u64,
    /// How many.
    pub blocks: u32,
}

impl Run {
    /// The block behind the last.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.start + self.blocks as u64
    }
}

/// A scheme of allocation for one section.
pub trait Allocate: Send {
    /// Blocks for new content, in its order. `None`, and nothing is changed, if there is no room.
    fn allocate(&mut self, blocks: u32) -> Option<Vec<Run>>;

    /// Takes blocks from `end` on, right behind content that ends there, for what is appended to
    /// it; how many there were, at most `blocks`.
    fn extend(&mut self, end: u64, blocks: u32) -> u32;

    /// Gives blocks back. Those that were not in use stay so.
    fn free(&mut self, run: Run);

    /// Says that blocks are in use already, at a mount; false, and nothing is changed, if that
    /// cannot be.
    fn take(&mut self, run: Run) -> bool;

    /// Blocks in all that can be handed out: those of whole units.
    fn blocks(&self) -> u64;

    /// Blocks in use.
    fn used(&self) -> u64;

    /// Blocks that could be handed out now, in units that hold something and in clean ones.
    fn room(&self) -> u64;

    /// Blocks of the unit that is emptied as one.
    fn unit_blocks(&self) -> u32;

    /// Blocks in use in the unit of that number.
    fn live(&self, unit: u32) -> u32;

    /// Takes no more into units before the last `kept` that were opened: what collects writes has
    /// written them.
    fn seal(&mut self, kept: usize);
}

/// The schemes that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Exact runs inside open extents.
    #[default]
    Exact,
    /// Segments and sub-segments of paper 4.
    Paper,
}

impl Scheme {
    /// The scheme that a superblock names.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Exact),
            1 => Some(Self::Paper),
            _ => None,
        }
    }

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Paper => "paper",
        }
    }

    /// The scheme of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Exact, Self::Paper].into_iter().find(|scheme| scheme.name() == name)
    }

    /// An empty section of `blocks` with extents of `extent_blocks`, a power of two. Exact
    /// allocation fills whole stripes of `stripe_blocks` in order; without stripes (0 or 1) it uses
    /// every hole.
    #[must_use]
    pub fn build(self, blocks: u64, extent_blocks: u32, stripe_blocks: u32) -> Box<dyn Allocate> {
        match self {
            Self::Exact => Box::new(exact::Exact::new(blocks, extent_blocks, stripe_blocks)),
            Self::Paper => Box::new(paper::Paper::new(blocks, extent_blocks, paper::SMALL_EXTENT_BLOCKS)),
        }
    }
}

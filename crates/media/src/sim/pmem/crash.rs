//! Power cuts of the simulated memory: when they can be, and what of the unfenced may survive one.

use super::cells::Cells;
use alloc::vec::Vec;

/// What survives of the lines that are stored to and not fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Survival {
    /// Nothing that need not.
    Nothing,
    /// All: what programs saw.
    Everything,
    /// Of the lines in order of address those whose bit is set, as programs saw them; of the others
    /// nothing.
    Lines(u64),
    /// Drawn from this seed: a line not at all, whole, or each of its aligned 8 bytes by themselves
    /// with any of the values that they had.
    Words(u64),
}

/// What a cut leaves of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// What is durable.
    Durable,
    /// What programs saw.
    Visible,
    /// Of each of its aligned 8 bytes by themselves any of the values that they had, drawn from
    /// this seed.
    Words(u64),
}

/// A line of which a power cut may leave more than one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnfencedLine {
    /// Where it begins.
    pub address: u64,
    /// Whether a fence would make it durable as it is.
    pub is_flushed: bool,
}

/// Something that happens to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Bytes of one line, or one word, are stored.
    Store {
        /// Where.
        at: u64,
        /// How many bytes.
        length: u64,
    },
    /// Lines are flushed.
    Flush {
        /// Where.
        at: u64,
        /// How many bytes.
        length: u64,
    },
    /// A fence.
    Fence,
    /// The memory grows.
    Grow {
        /// To how many bytes.
        length: u64,
    },
}

/// The memory right before an event.
pub struct Moment<'a> {
    event: Event,
    number: u64,
    cells: &'a Cells,
}

impl<'a> Moment<'a> {
    pub(super) const fn new(event: Event, number: u64, cells: &'a Cells) -> Self {
        Self { event, number, cells }
    }

    /// What is about to happen.
    #[must_use]
    pub const fn event(&self) -> Event {
        self.event
    }

    /// How many events were before; with the argument of [`cut_after`](super::SimPmem::cut_after) a
    /// run can be cut here.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Lines of which a cut now may leave more than one content, in order of address.
    #[must_use]
    pub fn unfenced_lines(&self) -> Vec<UnfencedLine> {
        self.cells.unfenced_lines()
    }

    /// What is there after a power cut now.
    #[must_use]
    pub fn crash_image(&self, survival: Survival) -> Vec<u8> {
        self.cells.crash_image(survival)
    }
}

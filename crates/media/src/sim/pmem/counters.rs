//! Counts of what was done to byte-addressable memory: the currency of flush budgets.

use alloc::vec::Vec;

/// Counts since the start or a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmemCounters {
    /// Loads: of a word, or of a range at once.
    pub loads: u64,
    /// Bytes loaded.
    pub bytes_loaded: u64,
    /// Stores: of a word or of a part of a line.
    pub stores: u64,
    /// Bytes stored.
    pub bytes_stored: u64,
    /// Lines flushed, each time counted.
    pub lines_flushed: u64,
    /// Lines flushed, each counted once.
    pub distinct_lines_flushed: u64,
    /// Lines flushed that nobody had stored to since their last flush: a waste.
    pub clean_lines_flushed: u64,
    /// Fences.
    pub fences: u64,
    /// Virtual time that all of it took.
    pub virtual_nanoseconds: u64,
}

/// A set of lines.
#[derive(Default)]
pub(super) struct FlushedLines {
    bits: Vec<u64>,
}

impl FlushedLines {
    pub(super) fn insert(&mut self, line: u64) {
        let word = super::index(line / 64);
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (line % 64);
    }

    pub(super) fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

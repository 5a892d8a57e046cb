//! One large file in calls of 4 KiB: written, read, rewritten and read in random order.
//!
//! Only the named phase is measured; the file is made before if the phase needs one.

use crate::stream::Operation;
use onode_base::Prng;

const CALL_BYTES: u64 = 4096;
const NAME: &str = "large";

/// What is done with the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Written from front to back.
    #[default]
    Write,
    /// Read from front to back.
    Read,
    /// As many calls as it has pieces, each to a random piece.
    Rewrite,
    /// The same, reading.
    RandomRead,
}

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeFile {
    /// What is measured.
    pub phase: Phase,
    /// Size of the file.
    pub bytes: u64,
    /// From which the random order follows.
    pub seed: u64,
}

impl Default for LargeFile {
    /// 60 MB, as in paper 1.
    fn default() -> Self {
        Self { phase: Phase::Write, bytes: 60 << 20, seed: 42 }
    }
}

impl LargeFile {
    /// The operations.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let calls = self.bytes / CALL_BYTES;
        let mut prng = Prng::new(self.seed);
        let write = |index: u64| Operation::Write(NAME.to_owned(), index * CALL_BYTES, CALL_BYTES);
        let read = |index: u64| Operation::ReadPart(NAME.to_owned(), index * CALL_BYTES, CALL_BYTES);
        let mut all = vec![Operation::Create(NAME.to_owned(), 0)];
        if self.phase != Phase::Write {
            all.extend((0..calls).map(write));
        }
        all.push(Operation::Measure);
        match self.phase {
            Phase::Write => all.extend((0..calls).map(write)),
            Phase::Read => all.extend((0..calls).map(read)),
            Phase::Rewrite => all.extend((0..calls).map(|_| write(prng.below(calls)))),
            Phase::RandomRead => all.extend((0..calls).map(|_| read(prng.below(calls)))),
        }
        all
    }
}

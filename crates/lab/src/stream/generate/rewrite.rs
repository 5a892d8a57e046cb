//! A volume filled with files of 1 MiB, of which pieces of 4 KiB are rewritten by a distribution.
//!
//! The stream of pieces is that of the page-level laboratory. The first half of the rewriting
//! brings the volume into a steady state; counting begins with the second half.

use crate::stream::Operation;
use crate::stream::pattern::Pattern;

const PIECE_BYTES: u64 = 4096;
const FILE_PIECES: u64 = 256;

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Which pieces are written how often.
    pub pattern: Pattern,
    /// Bytes of the files.
    pub bytes: u64,
    /// From which the order follows.
    pub seed: u64,
    /// Pieces rewritten in all; `None` is eight times as many as there are.
    pub operations: Option<u64>,
}

impl Rewrite {
    /// The operations.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let pieces = u32::try_from(self.bytes / PIECE_BYTES).unwrap_or(u32::MAX).max(1);
        let count = self.operations.unwrap_or(8 * u64::from(pieces));
        let writes = self.pattern.writes(pieces, usize::try_from(count).unwrap_or(usize::MAX), self.seed);
        let name = |piece: u64| (piece / FILE_PIECES).to_string();
        let mut all = Vec::new();
        for first in (0..u64::from(pieces)).step_by(FILE_PIECES as usize) {
            let of_file = FILE_PIECES.min(u64::from(pieces) - first);
            all.push(Operation::Create(name(first), of_file * PIECE_BYTES));
        }
        let half = writes.len() / 2;
        for (index, piece) in writes.into_iter().map(u64::from).enumerate() {
            if index == half {
                all.push(Operation::Measure);
            }
            all.push(Operation::Write(name(piece), piece % FILE_PIECES * PIECE_BYTES, PIECE_BYTES));
        }
        all
    }
}

//! A volume that is used for long: files of all sizes that come, grow, are changed and go, while it
//! stays about as full as it is.
//!
//! Sizes are spread evenly over powers of two, from 512 bytes to 1 MiB, so most files are small and
//! most bytes are in large ones. First the volume is filled; counting begins with the changes.

use crate::stream::Operation;
use onode_base::Prng;

const LEAST_BYTES: u64 = 512;
const DOUBLINGS: u64 = 11;
const PIECE_BYTES: u64 = 4096;

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    /// Bytes of the files.
    pub bytes: u64,
    /// From which everything follows.
    pub seed: u64,
    /// Changes.
    pub operations: u64,
}

struct State {
    prng: Prng,
    all: Vec<Operation>,
    files: Vec<(String, u64)>,
    bytes: u64,
    last: u64,
}

impl Aging {
    /// The operations.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let mut state = State { prng: Prng::new(self.seed), all: Vec::new(), files: Vec::new(), bytes: 0, last: 0 };
        while state.create(self.bytes) {}
        state.all.push(Operation::Measure);
        for _ in 0..self.operations {
            match state.prng.below(10) {
                0..4 => state.rewrite(),
                4..6 => state.append(self.bytes),
                _ => {
                    if !state.create(self.bytes) {
                        state.delete();
                    }
                }
            }
        }
        state.all
    }
}

impl State {
    /// A new file, if it fits in `limit`.
    fn create(&mut self, limit: u64) -> bool {
        let least = LEAST_BYTES << self.prng.below(DOUBLINGS);
        let size = least + self.prng.below(least);
        if self.bytes + size > limit {
            return false;
        }
        self.last += 1;
        self.bytes += size;
        self.files.push((self.last.to_string(), size));
        self.all.push(Operation::Create(self.last.to_string(), size));
        true
    }

    fn delete(&mut self) {
        if self.files.is_empty() {
            return;
        }
        let (name, size) = self.files.swap_remove(self.prng.below(self.files.len() as u64) as usize);
        self.bytes -= size;
        self.all.push(Operation::Delete(name));
    }

    fn append(&mut self, limit: u64) {
        let more = 1 + self.prng.below(PIECE_BYTES);
        let one = self.prng.below(self.files.len() as u64) as usize;
        if self.bytes + more > limit {
            return self.delete();
        }
        if let Some((name, size)) = self.files.get_mut(one) {
            *size += more;
            self.bytes += more;
            self.all.push(Operation::Append(name.clone(), more));
        }
    }

    /// Writes a piece again, or all of a file that is smaller.
    fn rewrite(&mut self) {
        let one = self.prng.below(self.files.len() as u64) as usize;
        if let Some((name, size)) = self.files.get(one) {
            let pieces = size.div_ceil(PIECE_BYTES);
            let offset = self.prng.below(pieces) * PIECE_BYTES;
            self.all.push(Operation::Write(name.clone(), offset, PIECE_BYTES.min(size - offset)));
        }
    }
}

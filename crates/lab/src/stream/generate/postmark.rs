//! Small files that come, grow, are read and go, after the description of PostMark (Katcher, 1997).
//!
//! First the files are made; then each transaction is a create or delete, and a read or append, of
//! a random file; at the end all that is left is deleted.

use crate::stream::Operation;
use onode_base::Prng;

const LEAST_BYTES: u64 = 500;
const MOST_BYTES: u64 = 10_000;

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostMark {
    /// From which everything follows.
    pub seed: u64,
    /// Files at the start.
    pub files: u64,
    /// Transactions.
    pub transactions: u64,
    /// Of ten reads or appends, so many are reads.
    pub reads_in_ten: u64,
}

impl Default for PostMark {
    fn default() -> Self {
        Self { seed: 42, files: 1000, transactions: 40_000, reads_in_ten: 1 }
    }
}

impl PostMark {
    /// The operations.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let mut prng = Prng::new(self.seed);
        let mut all = Vec::new();
        let mut files = Vec::new();
        let mut last = 0;
        for _ in 0..self.files {
            create(&mut all, &mut files, &mut last, &mut prng);
        }
        for _ in 0..self.transactions {
            if files.is_empty() || prng.chance(1, 2) {
                create(&mut all, &mut files, &mut last, &mut prng);
            } else {
                let gone = pick(&files, &mut prng);
                all.push(Operation::Delete(files.swap_remove(gone)));
            }
            let one = pick(&files, &mut prng);
            if let Some(name) = files.get(one) {
                all.push(if prng.chance(self.reads_in_ten, 10) {
                    Operation::Read(name.clone())
                } else {
                    Operation::Append(name.clone(), 1 + prng.below(LEAST_BYTES * 5))
                });
            }
        }
        all.extend(files.into_iter().map(Operation::Delete));
        all
    }
}

fn pick(files: &[String], prng: &mut Prng) -> usize {
    prng.below(files.len() as u64) as usize
}

fn create(all: &mut Vec<Operation>, files: &mut Vec<String>, last: &mut u64, prng: &mut Prng) {
    *last += 1;
    let name = last.to_string();
    all.push(Operation::Create(name.clone(), LEAST_BYTES + prng.below(MOST_BYTES - LEAST_BYTES)));
    files.push(name);
}

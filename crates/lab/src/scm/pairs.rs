//! The loops: blocks that are allocated, touched and released, timed in batches of which the median
//! counts.
#![allow(clippy::disallowed_methods, reason = "the lab measures how long things take")]

use onode_base::Prng;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// Sizes of blocks, each a row.
pub const SIZES: [u64; 5] = [32, 512, 4 << 10, 64 << 10, 128 << 10];
/// Operations timed together.
const BATCH: usize = 1000;

/// What hands out blocks to one thread.
pub trait Blocks {
    /// A block.
    type Block;

    /// A block of so many bytes, the first of which was written to.
    fn allocate(&mut self, bytes: u64) -> Self::Block;

    /// The end of it.
    fn release(&mut self, block: Self::Block);
}

/// Nanoseconds an operation, for one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Allocating a block and releasing it at once.
    pub pair: f64,
    /// Allocating one of many.
    pub allocate: f64,
    /// Releasing one of many, in no order.
    pub release: f64,
    /// A pair while another thread does the same.
    pub pair_of_two: f64,
}

impl Times {
    /// The better of two rounds in each respect.
    pub fn best(self, other: Self) -> Self {
        Self {
            pair: self.pair.min(other.pair),
            allocate: self.allocate.min(other.allocate),
            release: self.release.min(other.release),
            pair_of_two: self.pair_of_two.min(other.pair_of_two),
        }
    }
}

fn nanoseconds_each(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / BATCH as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn pairs(blocks: &mut impl Blocks, bytes: u64, batches: usize) -> f64 {
    let one_batch = |_| {
        nanoseconds_each(|| {
            for _ in 0..BATCH {
                let block = blocks.allocate(black_box(bytes));
                blocks.release(black_box(block));
            }
        })
    };
    median((0..batches).map(one_batch).collect())
}

fn many(blocks: &mut impl Blocks, bytes: u64, batches: usize) -> (f64, f64) {
    let mut prng = Prng::new(bytes);
    let (mut allocating, mut releasing) = (Vec::new(), Vec::new());
    // The first batch touches memory for the first time.
    for batch in 0..=batches {
        let mut held = Vec::with_capacity(BATCH);
        let allocated = nanoseconds_each(|| held.extend((0..BATCH).map(|_| blocks.allocate(black_box(bytes)))));
        for last in (1..held.len()).rev() {
            held.swap(last, prng.below(last as u64 + 1) as usize);
        }
        let released = nanoseconds_each(|| held.drain(..).for_each(|block| blocks.release(block)));
        if batch > 0 {
            allocating.push(allocated);
            releasing.push(released);
        }
    }
    (median(allocating), median(releasing))
}

/// Times blocks of `bytes` that `open` hands out; each thread opens its own.
pub fn measure<B: Blocks>(open: &(impl Fn() -> B + Sync), bytes: u64, batches: usize) -> Times {
    let mut blocks = open();
    let pair = pairs(&mut blocks, bytes, batches);
    let (allocate, release) = many(&mut blocks, bytes, batches.div_ceil(8));
    drop(blocks);
    let start = Barrier::new(2);
    let one_thread = || {
        let mut blocks = open();
        pairs(&mut blocks, bytes, batches.div_ceil(8));
        start.wait();
        pairs(&mut blocks, bytes, batches)
    };
    let pair_of_two = std::thread::scope(|scope| {
        let other = scope.spawn(one_thread);
        let own = one_thread();
        other.join().map_or(f64::NAN, |theirs| (own + theirs) / 2.0)
    });
    Times { pair, allocate, release, pair_of_two }
}

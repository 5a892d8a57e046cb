//! Two threads with caches, and blocks that one allocates and the other releases.

use super::memory::Memory;
use super::model::fresh;
use crate::space::allocator::{Allocator, Classes};
use onode_base::Prng;
use onode_media::Pmem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::vec::Vec;

fn work(allocator: &Allocator<Memory>, seed: u64, away: &Sender<u64>, here: &Receiver<u64>) {
    let mut prng = Prng::new(seed);
    let mut cache = allocator.cache();
    let mut blocks: Vec<(u64, u64)> = Vec::new();
    for turn in 0..20_000_u64 {
        if prng.chance(1, 2) && blocks.len() < 200 {
            let order = 3 + prng.below(12);
            let bytes = 1 + prng.below(1 << order);
            if let Some(at) = allocator.allocate_cached(&mut cache, bytes) {
                let tag = seed << 32 | turn;
                allocator.table.pmem.store(at + allocator.usable_bytes(bytes) - 8, tag);
                allocator.table.pmem.store(at, tag);
                blocks.push((at, bytes));
            }
        } else if let Some((at, bytes)) = blocks.pop() {
            let tag = allocator.table.pmem.load(at);
            assert_eq!(tag >> 32, seed, "another thread wrote to {at}");
            assert_eq!(allocator.table.pmem.load(at + allocator.usable_bytes(bytes) - 8), tag);
            if prng.chance(1, 8) {
                away.send(at).unwrap();
            } else {
                allocator.release_cached(&mut cache, at).unwrap();
            }
        }
        while let Ok(at) = here.try_recv() {
            allocator.release_cached(&mut cache, at).unwrap();
        }
    }
    for (at, _) in blocks {
        allocator.release_cached(&mut cache, at).unwrap();
    }
    allocator.drain(&mut cache);
}

#[test]
fn two_threads_share_blocks_and_lose_none() {
    let allocator = fresh(700 << 12, 4 << 10, Classes::Halves);
    let ((to_first, first), (to_second, second)) = (channel(), channel());
    std::thread::scope(|scope| {
        let (one, other) = (&allocator, &allocator);
        let one = scope.spawn(move || {
            work(one, 1, &to_second, &first);
            first
        });
        let other = scope.spawn(move || {
            work(other, 2, &to_first, &second);
            second
        });
        for rest in [one.join().unwrap(), other.join().unwrap()] {
            rest.try_iter().for_each(|at| allocator.try_release(at).unwrap());
        }
    });
    allocator.check().unwrap();
    assert_eq!(allocator.free_bytes(), allocator.capacity_bytes());
}

/// After the death of a process counts are made anew; a mount beside it was told that a memory with
/// 248 MiB free is full.
#[test]
fn counts_that_are_made_anew_refuse_nobody() {
    let allocator = fresh(700 << 12, 4 << 10, Classes::Halves);
    let all = allocator.capacity_bytes();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2_000 {
                allocator.reconcile(&[]).unwrap();
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            assert!(allocator.has_free(all));
            assert_eq!(allocator.free_bytes(), all);
        }
    });
}

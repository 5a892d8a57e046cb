//! Random sequences against a map of intervals: no overlap, right sizes, nothing lost, claims make
//! the same again.

use super::memory::Memory;
use crate::space::allocator::{Allocator, Classes, SMALLEST_BLOCK_BYTES};
use onode_base::Prng;
use std::collections::BTreeMap;
use std::vec::Vec;

/// Live blocks: start, then bytes requested.
type Model = BTreeMap<u64, u64>;

pub fn fresh(bytes: u64, chunk_bytes: u64, classes: Classes) -> Allocator<Memory> {
    // Not at the start of the memory, and not all of it.
    let memory = Memory::garbage(bytes + 2 * chunk_bytes, &mut Prng::new(7));
    let allocator = Allocator::attach_with(memory, chunk_bytes, bytes, chunk_bytes, classes).expect("a layout");
    allocator.reset();
    allocator
}

fn size(prng: &mut Prng, chunk_bytes: u64, capacity: u64) -> u64 {
    match prng.below(10) {
        0..=5 => 1 + prng.below(chunk_bytes / 2),
        6 | 7 => 1 + prng.below(chunk_bytes * 4),
        8 => 1 << prng.below(17),
        _ => 1 + prng.below(capacity / 4),
    }
}

fn insert(allocator: &Allocator<Memory>, model: &mut Model, at: u64, bytes: u64) {
    let usable = allocator.usable_bytes(bytes);
    assert!(usable >= bytes.max(SMALLEST_BLOCK_BYTES));
    if let Some((before, old)) = model.range(..at + usable).next_back() {
        assert!(before + allocator.usable_bytes(*old) <= at, "blocks {before} and {at} overlap");
    }
    assert_eq!(allocator.block_of(at + usable - 1), Some((at, usable)));
    model.insert(at, bytes);
}

fn any(prng: &mut Prng, model: &Model) -> Option<(u64, u64)> {
    let index = prng.below(model.len().max(1) as u64) as usize;
    model.iter().nth(index).map(|(at, bytes)| (*at, *bytes))
}

fn step(allocator: &Allocator<Memory>, model: &mut Model, prng: &mut Prng, chunk_bytes: u64) {
    let capacity = allocator.capacity_bytes();
    match (prng.below(20), any(prng, model)) {
        (0..=8, _) | (_, None) => {
            let bytes = size(prng, chunk_bytes, capacity);
            let largest = allocator.largest_free();
            match allocator.allocate(bytes) {
                Some(at) => insert(allocator, model, at, bytes),
                None => {
                    assert!(allocator.usable_bytes(bytes) > largest || largest < chunk_bytes, "{bytes} of {largest}")
                }
            }
        }
        (9..=16, Some((at, bytes))) => {
            model.remove(&at);
            allocator.release(at, bytes);
        }
        (17 | 18, Some((at, bytes))) => {
            let wanted = bytes + prng.below(chunk_bytes * 6);
            if allocator.try_extend(at, bytes, wanted) {
                model.remove(&at);
                insert(allocator, model, at, wanted);
            }
        }
        (_, Some((at, bytes))) => {
            let chunks = allocator.usable_bytes(bytes) / chunk_bytes;
            if chunks > 0 {
                let from = prng.below(chunks);
                let to = from + 1 + prng.below(chunks - from);
                allocator.release_part(at + from * chunk_bytes, (to - from) * chunk_bytes);
                model.remove(&at);
                for (first, last) in [(0, from), (to, chunks)] {
                    if first < last {
                        insert(allocator, model, at + first * chunk_bytes, (last - first) * chunk_bytes);
                    }
                }
            }
        }
    }
}

fn assert_agrees(allocator: &Allocator<Memory>, model: &Model) {
    allocator.check().unwrap();
    for (at, bytes) in model {
        let usable = allocator.usable_bytes(*bytes);
        assert_eq!(allocator.block_of(*at), Some((*at, usable)));
        assert_eq!(allocator.block_of(at + usable / 2), Some((*at, usable)));
    }
}

#[test]
fn random_sequences_keep_the_intervals_of_a_model() {
    let mut seed = 1;
    for classes in [Classes::Halves, Classes::PureBuddy] {
        for (chunk_bytes, chunks) in [(4 << 10, 13), (4 << 10, 300), (16 << 10, 65), (64 << 10, 40)] {
            let allocator = fresh(chunks * chunk_bytes, chunk_bytes, classes);
            let (mut model, mut prng) = (Model::new(), Prng::new(seed));
            seed += 1;
            for turn in 0..6000 {
                step(&allocator, &mut model, &mut prng, chunk_bytes);
                if turn % 250 == 0 {
                    assert_agrees(&allocator, &model);
                }
            }
            assert_agrees(&allocator, &model);
            for (at, bytes) in model {
                allocator.release(at, bytes);
            }
            allocator.check().unwrap();
            assert_eq!(allocator.free_bytes(), allocator.capacity_bytes());
            assert_eq!(allocator.largest_free(), allocator.capacity_bytes());
        }
    }
}

#[test]
fn claims_make_the_same_again() {
    for seed in 0..20 {
        let chunk_bytes = 4 << 10;
        let allocator = fresh(80 * chunk_bytes, chunk_bytes, Classes::Halves);
        let (mut model, mut prng) = (Model::new(), Prng::new(seed));
        for _ in 0..500 {
            step(&allocator, &mut model, &mut prng, chunk_bytes);
        }
        let free = allocator.free_bytes();
        allocator.reset();
        let mut blocks: Vec<_> = model.iter().collect();
        for index in (1..blocks.len()).rev() {
            blocks.swap(index, prng.below(index as u64 + 1) as usize);
        }
        for (at, bytes) in &blocks {
            assert_eq!(allocator.claim(**at, **bytes), Ok(()));
        }
        assert_agrees(&allocator, &model);
        assert_eq!(allocator.free_bytes(), free);
        for (at, bytes) in blocks {
            assert!(allocator.claim(*at, *bytes).is_err(), "two owners of {at}");
        }
        assert_agrees(&allocator, &model);
        for _ in 0..500 {
            step(&allocator, &mut model, &mut prng, chunk_bytes);
        }
        assert_agrees(&allocator, &model);
    }
}

#[test]
fn the_whole_area_is_one_block_if_wanted() {
    for chunks in [9, 13, 64, 100] {
        let allocator = fresh(chunks << 12, 4 << 10, Classes::Halves);
        let all = allocator.capacity_bytes();
        assert_eq!(allocator.largest_free(), all);
        let at = allocator.allocate(all).expect("the whole area");
        assert_eq!((allocator.free_bytes(), allocator.largest_free()), (0, 0));
        assert_eq!(allocator.allocate(1), None);
        allocator.check().unwrap();
        allocator.release(at, all);
        assert_eq!(allocator.free_bytes(), all);
        allocator.check().unwrap();
    }
}

#[test]
fn an_exhausted_area_merges_back_to_one_run() {
    // Three chunks are cut from four: the fourth is left to others.
    for (bytes, percent) in [(32, 97), (48, 97), (100, 97), (1000, 97), (2048, 97), (4096, 97), (9000, 72)] {
        let allocator = fresh(130 << 12, 4 << 10, Classes::Halves);
        let mut blocks = Vec::new();
        while let Some(at) = allocator.allocate(bytes) {
            blocks.push(at);
        }
        allocator.check().unwrap();
        let used = blocks.len() as u64 * allocator.usable_bytes(bytes);
        assert!(used * 100 > allocator.capacity_bytes() * percent, "{bytes}: only {used} bytes were had");
        // Every other one first: the worst order for merging.
        for odd in [1, 0] {
            blocks.iter().skip(odd).step_by(2).for_each(|at| allocator.release(*at, bytes));
            allocator.check().unwrap();
        }
        assert_eq!(allocator.largest_free(), allocator.capacity_bytes());
    }
}

#[test]
fn sizes_are_rounded_by_a_third_at_most() {
    for (classes, percent) in [(Classes::Halves, 150), (Classes::PureBuddy, 200)] {
        let allocator = fresh(16 << 16, 64 << 10, classes);
        for bytes in 32..=12 << 10 {
            assert!(allocator.usable_bytes(bytes) * 100 <= bytes * percent, "{bytes}");
        }
    }
    let allocator = fresh(16 << 16, 64 << 10, Classes::Halves);
    let sizes = [1, 32, 33, 49, 65, 97, 12_289, 16_385, 24_577, 32_768, 32_769, 65_536, 65_537];
    let usable = sizes.map(|bytes| allocator.usable_bytes(bytes));
    let expected = [32, 32, 48, 64, 96, 128, 16_384, 32_768, 32_768, 32_768, 65_536, 65_536, 131_072];
    assert_eq!(usable, expected);
}

#[test]
fn attaching_changes_nothing() {
    let memory = Memory::new(40 << 12);
    let allocator = Allocator::attach(&memory, 0, 40 << 12, 4 << 10).unwrap();
    allocator.reset();
    let at = allocator.allocate(100).unwrap();
    let again = Allocator::attach(&memory, 0, 40 << 12, 4 << 10).unwrap();
    assert_eq!(again.block_of(at), Some((at, 128)));
    assert_eq!(again.free_bytes(), allocator.free_bytes());
    again.check().unwrap();
}

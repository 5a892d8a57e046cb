//! Numbers from a damaged medium and addresses from a broken program: an error each, and nothing
//! lost.

use super::memory::Memory;
use super::model::fresh;
use crate::space::allocator::{Allocator, Claim, Classes, Misuse};
use onode_base::Prng;

const CHUNK: u64 = 4 << 10;

#[test]
fn areas_that_cannot_be_are_refused() {
    let memory = Memory::new(64 << 12);
    let layouts = [
        (0, 64 << 12, 0),
        (0, 64 << 12, 2048),
        (0, 64 << 12, 12_288),
        (0, 64 << 12, 128 << 10),
        (100, 32 << 12, CHUNK),
        (0, 0, CHUNK),
        (0, CHUNK, CHUNK),
        (0, u64::MAX, CHUNK),
        (u64::MAX - CHUNK + 1, 2 * CHUNK, CHUNK),
        (CHUNK, 64 << 12, CHUNK),
    ];
    for (start, bytes, chunk_bytes) in layouts {
        assert!(Allocator::attach(&memory, start, bytes, chunk_bytes).is_err(), "{start}, {bytes}, {chunk_bytes}");
        Allocator::<&Memory>::table_bytes(bytes, chunk_bytes);
    }
    assert!(Allocator::attach(&memory, 0, 64 << 12, CHUNK).is_ok());
    assert!(Allocator::<&Memory>::table_bytes(64 << 12, CHUNK).is_multiple_of(CHUNK));
}

#[test]
fn claims_of_any_numbers_are_answered() {
    let allocator = fresh(40 * CHUNK, CHUNK, Classes::Halves);
    let at = allocator.allocate(allocator.capacity_bytes()).unwrap();
    allocator.reset();
    assert_eq!(allocator.claim(at, 64), Ok(()));
    let cases = [
        (at, 64, Claim::Overlap),
        (at + 64, 32, Claim::OtherClass),
        (at + 32, 64, Claim::Misaligned),
        (at, CHUNK, Claim::Overlap),
        (at + 8, CHUNK, Claim::Misaligned),
        (0, 64, Claim::OutOfArea),
        (u64::MAX, u64::MAX, Claim::OutOfArea),
        (at, u64::MAX, Claim::OutOfArea),
        (at + CHUNK, 1 << 40, Claim::OutOfArea),
    ];
    for (at, bytes, why) in cases {
        assert_eq!(allocator.claim(at, bytes), Err(why), "{at}, {bytes}");
        allocator.check().unwrap();
    }
    assert_eq!(allocator.claim(at + 2 * CHUNK, 5 * CHUNK - 1), Ok(()));
    assert_eq!(allocator.claim(at + 4 * CHUNK, 64), Err(Claim::Overlap));
    assert_eq!(allocator.claim(at + 6 * CHUNK, 2 * CHUNK), Err(Claim::Overlap));
    let mut prng = Prng::new(3);
    for _ in 0..20_000 {
        let near = prng.chance(3, 4);
        let at = if near { prng.below(43 * CHUNK) & !(prng.below(64)) } else { prng.next_u64() };
        let bytes = if near { 1 << prng.below(16) } else { prng.next_u64() };
        let free = allocator.free_bytes();
        let claimed = allocator.claim(at, bytes);
        assert_eq!(claimed.is_ok(), free != allocator.free_bytes());
    }
    allocator.check().unwrap();
}

#[test]
fn a_double_free_and_a_wild_pointer_are_told_apart() {
    let allocator = fresh(40 * CHUNK, CHUNK, Classes::Halves);
    let (small, other) = (allocator.allocate(64).unwrap(), allocator.allocate(64).unwrap());
    let run = allocator.allocate(5 * CHUNK).unwrap();
    let free = allocator.free_bytes();
    for (at, why) in [
        (0, Misuse::OutOfArea),
        (u64::MAX, Misuse::OutOfArea),
        (small + 8, Misuse::Wild),
        (other + 64, Misuse::DoubleFree),
        (run + 8, Misuse::Wild),
        (run + 3 * CHUNK, Misuse::Wild),
        (run + 4 * CHUNK, Misuse::Wild),
    ] {
        assert_eq!(allocator.try_release(at), Err(why), "{at}");
        assert_eq!(allocator.publish(at), Err(why), "{at}");
    }
    assert_eq!(allocator.free_bytes(), free);
    assert_eq!(allocator.block_of(run + 4 * CHUNK + 77), Some((run, 5 * CHUNK)));
    assert_eq!(allocator.block_of(other + 64), None);
    assert_eq!(allocator.block_of(0), None);
    for at in [small, other, run] {
        assert_eq!(allocator.try_release(at), Ok(()));
        assert_eq!(allocator.try_release(at), Err(Misuse::DoubleFree));
        assert_eq!(allocator.block_of(at), None);
    }
    assert_eq!(allocator.free_bytes(), allocator.capacity_bytes());
    allocator.check().unwrap();
}

/// An area with the lease of a process.
fn joined() -> Allocator<Memory> {
    let mut allocator = fresh(200 * CHUNK, CHUNK, Classes::Halves);
    let process = crate::space::allocator::Process { id: 1, started: 1 };
    assert_eq!(allocator.join(process, |_| false), Some(1));
    allocator
}

#[test]
fn a_cache_finds_double_frees_and_published_blocks() {
    let allocator = joined();
    let mut cache = allocator.cache();
    for bytes in [32, 100, 2048, 4096, 3 * CHUNK, 40 * CHUNK] {
        let at = allocator.allocate_cached(&mut cache, bytes).unwrap();
        assert_eq!(allocator.release_cached(&mut cache, at + 8), Err(Misuse::Wild));
        allocator.publish(at).unwrap();
        assert_eq!(allocator.release_cached(&mut cache, at), Err(Misuse::Published));
        assert_eq!(allocator.unpublish(at), Ok(true));
        assert_eq!(allocator.release_cached(&mut cache, at), Ok(()));
        assert_eq!(allocator.release_cached(&mut cache, at), Err(Misuse::DoubleFree));
    }
    assert_eq!(allocator.release_cached(&mut cache, 3), Err(Misuse::OutOfArea));
    allocator.drain(&mut cache);
    assert_eq!(allocator.free_bytes(), allocator.capacity_bytes());
    allocator.check().unwrap();
}

#[test]
fn blocks_come_back_last_in_first_out_whatever_sizes_came_between() {
    let allocator = joined();
    let mut cache = allocator.cache();
    let sizes = [32, 3 * CHUNK, 32, 100, CHUNK, CHUNK];
    let blocks = sizes.map(|bytes| allocator.allocate_cached(&mut cache, bytes).unwrap());
    for at in blocks {
        assert_eq!(allocator.release_cached(&mut cache, at), Ok(()));
        assert_eq!(allocator.release_cached(&mut cache, at), Err(Misuse::DoubleFree));
    }
    for (bytes, at) in sizes.into_iter().zip(blocks).rev() {
        assert_eq!(allocator.allocate_cached(&mut cache, bytes), Some(at));
    }
    blocks.into_iter().for_each(|at| allocator.release_cached(&mut cache, at).unwrap());
    for at in blocks {
        assert_eq!(allocator.release_cached(&mut cache, at), Err(Misuse::DoubleFree));
    }
    allocator.drain(&mut cache);
    assert_eq!(allocator.free_bytes(), allocator.capacity_bytes());
    allocator.check().unwrap();
}

#[test]
fn a_full_cache_is_no_full_area() {
    let allocator = fresh(40 * CHUNK, CHUNK, Classes::Halves);
    let mut cache = allocator.cache();
    let mut blocks = std::vec::Vec::new();
    while let Some(at) = allocator.allocate_cached(&mut cache, 100) {
        blocks.push(at);
    }
    assert_eq!(allocator.free_bytes(), 0);
    blocks.iter().for_each(|at| allocator.release_cached(&mut cache, *at).unwrap());
    assert!(allocator.free_bytes() < allocator.capacity_bytes(), "the cache holds some of them");
    assert!(allocator.allocate_cached(&mut cache, allocator.capacity_bytes()).is_some());
    allocator.check().unwrap();
}

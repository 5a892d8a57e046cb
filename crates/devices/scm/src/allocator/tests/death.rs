//! A process dies at every store that it makes; another one takes the lock over, sweeps, and finds nothing lost.

use super::memory::{Died, Memory};
use crate::allocator::{Allocator, Process};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;
use std::vec::Vec;

const CHUNK: u64 = 4 << 10;
const AREA: u64 = 48 * CHUNK;
const VICTIM: Process = Process { id: 10, started: 1 };
const SURVIVOR: Process = Process { id: 20, started: 1 };

fn attach(memory: &Memory) -> Allocator<&Memory> {
    Allocator::attach(memory, 0, AREA, CHUNK).expect("a layout")
}

fn join(memory: &Memory, process: Process, dead: fn(Process) -> bool) -> Allocator<&Memory> {
    let mut allocator = attach(memory);
    allocator.join(process, dead).expect("a free slot");
    allocator
}

/// What the victim does until it dies; blocks that it published, as a log would name them.
fn life(victim: &Allocator<&Memory>, shared: &[u64], published: &mut BTreeMap<u64, u64>) {
    let mut cache = victim.cache();
    let small: Vec<u64> = (0..40).filter_map(|_| victim.allocate_cached(&mut cache, 100)).collect();
    let run = victim.allocate(5 * CHUNK).expect("room");
    let other = victim.allocate(3 * CHUNK).expect("room");
    for (at, bytes) in [(small[3], 128), (other, 3 * CHUNK)] {
        // The log names it first; the survivor publishes what the log names.
        published.insert(at, bytes);
        victim.publish(at).expect("a live block");
    }
    small.iter().filter(|at| **at != small[3]).for_each(|at| victim.release_cached(&mut cache, *at).expect("live"));
    victim.release_part(run + CHUNK, 2 * CHUNK);
    victim.try_extend(run, CHUNK, 2 * CHUNK);
    victim.release(run + 3 * CHUNK, 2 * CHUNK);
    let big = victim.allocate(7 * CHUNK).expect("room");
    victim.try_extend(big, 7 * CHUNK, 9 * CHUNK);
    victim.release_part(big, 3 * CHUNK);
    for at in shared {
        victim.try_release(*at).expect("a volatile block of the survivor");
    }
    victim.allocate(12 * CHUNK).expect("room");
    victim.drain(&mut cache);
}

#[test]
fn no_store_at_which_a_process_dies_loses_or_doubles_a_block() {
    let mut deaths = 0;
    for stores in 0.. {
        let memory = Memory::new(AREA);
        attach(&memory).reset();
        let survivor = join(&memory, SURVIVOR, |process| process == VICTIM || process.started == 0);
        let kept: Vec<(u64, u64)> = [64, 1000, 2 * CHUNK]
            .into_iter()
            .map(|bytes| (survivor.allocate(bytes).unwrap(), survivor.usable_bytes(bytes)))
            .collect();
        let shared: Vec<u64> = [64, 3 * CHUNK].into_iter().map(|bytes| survivor.allocate(bytes).unwrap()).collect();
        let mut published = BTreeMap::new();
        memory.die_after(stores);
        let end = catch_unwind(AssertUnwindSafe(|| {
            let victim = join(&memory, VICTIM, |_| false);
            life(&victim, &shared, &mut published);
        }));
        memory.live();
        if let Err(payload) = &end {
            let why = payload.downcast_ref::<String>();
            assert!(payload.is::<Died>(), "after {stores} stores: {why:?}");
        }
        // The survivor works on, in whatever state the lock is.
        let new = survivor.allocate(300).unwrap();
        survivor.check().unwrap_or_else(|why| panic!("after {stores} stores: {why}"));
        for at in published.keys() {
            survivor.publish(*at).unwrap_or_else(|why| panic!("after {stores} stores: {at} is {why:?}"));
        }
        survivor.sweep_dead();
        assert_eq!(survivor.dead_leases(), []);
        survivor.check().unwrap_or_else(|why| panic!("after {stores} stores: {why}"));
        for (at, bytes) in kept.iter().chain([(new, 384)].iter()).copied().chain(published.clone()) {
            assert_eq!(survivor.block_of(at), Some((at, bytes)), "after {stores} stores");
            survivor.unpublish(at).unwrap();
            survivor.release(at, bytes);
        }
        for at in &shared {
            // The victim may have been as far as that.
            let _ = survivor.try_release(*at);
        }
        assert_eq!(survivor.free_bytes(), survivor.capacity_bytes(), "after {stores} stores");
        survivor.check().unwrap();
        if end.is_ok() {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 300, "the victim died only {deaths} times");
}

#[test]
fn leases_run_out_and_come_back() {
    let memory = Memory::new(AREA);
    attach(&memory).reset();
    let process = |id| Process { id, started: 5 };
    let holders: Vec<_> = (1..4).map(|id| join(&memory, process(id), |_| false)).collect();
    let mut late = attach(&memory);
    assert_eq!(late.join(process(9), |process| process.id == 2), None);
    assert_eq!(late.dead_leases(), [2]);
    assert_eq!(holders[0].holder(2), Some(process(2)));
    let block = holders[1].allocate(64).unwrap();
    assert_eq!(late.sweep_dead(), 1);
    assert_eq!(late.block_of(block), None);
    assert_eq!(late.join(process(9), |_| false), Some(2));
    assert_eq!((late.lease(), late.holder(2)), (2, Some(process(9))));
    let block = late.allocate(64).unwrap();
    late.publish(block).unwrap();
    late.leave();
    assert_eq!(holders[0].block_of(block), Some((block, 64)));
    holders[0].check().unwrap();
}

//! A process dies at every store that it makes; another one takes the lock over, sweeps, and finds
//! nothing lost.

use super::memory::{Died, Memory};
use crate::space::allocator::{Allocator, Process};
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

/// What the victim does until it dies, `None` if there is no room; blocks that it published, as a
/// log would name them.
fn life(victim: &Allocator<&Memory>, shared: &[u64], published: &mut BTreeMap<u64, u64>) -> Option<()> {
    let mut cache = victim.cache();
    let small: Vec<u64> = (0..40).filter_map(|_| victim.allocate_cached(&mut cache, 100)).collect();
    let run = victim.allocate(5 * CHUNK)?;
    let other = victim.allocate(3 * CHUNK)?;
    for (at, bytes) in [(small[3], 128), (other, 3 * CHUNK)] {
        // The log names it first; the survivor publishes what the log names.
        published.insert(at, bytes);
        victim.publish(at).expect("a live block");
    }
    small.iter().filter(|at| **at != small[3]).for_each(|at| victim.release_cached(&mut cache, *at).expect("live"));
    victim.release_part(run + CHUNK, 2 * CHUNK);
    victim.try_extend(run, CHUNK, 2 * CHUNK);
    victim.release(run + 3 * CHUNK, 2 * CHUNK);
    let big = victim.allocate(7 * CHUNK)?;
    victim.try_extend(big, 7 * CHUNK, 9 * CHUNK);
    victim.release_part(big, 3 * CHUNK);
    for at in shared {
        victim.try_release(*at).expect("a volatile block of the survivor");
    }
    victim.allocate(12 * CHUNK)?;
    victim.drain(&mut cache);
    Some(())
}

#[test]
fn no_store_at_which_a_process_dies_loses_or_doubles_a_block() {
    let mut deaths = 0;
    for stores in 0.. {
        let memory = Memory::new(AREA);
        attach(&memory).reset();
        let survivor = join(&memory, SURVIVOR, |process| process == VICTIM);
        let kept: Vec<(u64, u64)> = [64, 1000, 2 * CHUNK]
            .into_iter()
            .map(|bytes| (survivor.allocate(bytes).unwrap(), survivor.usable_bytes(bytes)))
            .collect();
        let shared: Vec<u64> = [64, 3 * CHUNK].into_iter().map(|bytes| survivor.allocate(bytes).unwrap()).collect();
        let mut published = BTreeMap::new();
        memory.die_after(stores);
        let end = catch_unwind(AssertUnwindSafe(|| {
            let victim = join(&memory, VICTIM, |_| false);
            life(&victim, &shared, &mut published)
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
            survivor.release(at, bytes);
        }
        for at in &shared {
            // The victim may have been as far as that.
            let _ = survivor.try_release(*at);
        }
        assert_eq!(survivor.free_bytes(), survivor.capacity_bytes(), "after {stores} stores");
        survivor.check().unwrap();
        if let Ok(done) = end {
            assert_eq!(done, Some(()), "there is room for all of it");
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 300, "the victim died only {deaths} times");
}

/// The survivor of the first death dies, too: while it takes the lock over, rebuilds or sweeps. A
/// third one finishes.
#[test]
fn a_take_over_that_dies_itself_is_finished_by_the_next() {
    let mut deaths = 0;
    // Spread over the life of the victim, so that it dies within all kinds of changes.
    for stores in (5..360).step_by(19) {
        for more in (0..).step_by(7) {
            let memory = Memory::new(AREA);
            attach(&memory).reset();
            let third = join(&memory, Process { id: 30, started: 1 }, |process| process.id < 30);
            let kept = third.allocate(1000).unwrap();
            let shared: Vec<u64> = [64, 3 * CHUNK].into_iter().map(|bytes| third.allocate(bytes).unwrap()).collect();
            let mut published = BTreeMap::new();
            memory.die_after(stores);
            let victim =
                catch_unwind(AssertUnwindSafe(|| life(&join(&memory, VICTIM, |_| false), &shared, &mut published)));
            assert!(victim.is_err(), "the victim outlived {stores} stores");
            memory.die_after(more);
            let second = catch_unwind(AssertUnwindSafe(|| {
                let second = join(&memory, SURVIVOR, |process| process.id == VICTIM.id);
                published.keys().for_each(|at| second.publish(*at).expect("the log names it"));
                second.sweep_dead();
                second.allocate(300);
            }));
            memory.live();
            let what = std::format!("after {stores} and {more} stores");
            published.keys().for_each(|at| third.publish(*at).unwrap_or_else(|why| panic!("{what}: {at} is {why:?}")));
            third.sweep_dead();
            third.check().unwrap_or_else(|why| panic!("{what}: {why}"));
            for (at, bytes) in published.iter().chain([(&kept, &1024)]) {
                assert_eq!(third.block_of(*at), Some((*at, *bytes)), "{what}");
                third.release(*at, *bytes);
            }
            for at in &shared {
                let _ = third.try_release(*at);
            }
            assert_eq!(third.free_bytes(), third.capacity_bytes(), "{what}");
            if second.is_ok() {
                break;
            }
            deaths += 1;
        }
    }
    assert!(deaths > 500, "the second died only {deaths} times");
}

/// A process works on while another dies at some store, many times, and both use caches.
#[test]
fn a_living_process_works_on_beside_one_that_dies() {
    let memory = Memory::new(AREA);
    attach(&memory).reset();
    let survivor = join(&memory, SURVIVOR, |process| process.id == VICTIM.id);
    let mut cache = survivor.cache();
    let mut prng = onode_base::Prng::new(11);
    let mut held: BTreeMap<u64, u64> = BTreeMap::new();
    for round in 0..600 {
        memory.die_after(prng.below(400));
        let victim = catch_unwind(AssertUnwindSafe(|| {
            let victim = join(&memory, VICTIM, |_| false);
            life(&victim, &[], &mut BTreeMap::new())
        }));
        memory.live();
        if let Err(payload) = victim {
            assert!(payload.is::<Died>(), "round {round}: {:?}", payload.downcast_ref::<String>());
        }
        for _ in 0..20 {
            let bytes = 1 + prng.below(3 * CHUNK);
            if let Some(at) = survivor.allocate_cached(&mut cache, bytes) {
                let usable = survivor.usable_bytes(bytes);
                if let Some((before, size)) = held.range(..at + usable).next_back() {
                    assert!(before + size <= at, "round {round}: {at} and {before} overlap");
                }
                held.insert(at, usable);
            }
            while held.len() > 12 {
                let (at, _) = held.pop_first().unwrap();
                survivor.release_cached(&mut cache, at).unwrap();
            }
        }
        for lease in survivor.dead_leases() {
            // The log of this life is empty: what the victim published belongs to no one.
            survivor.sweep(lease);
        }
        survivor.check().unwrap_or_else(|why| panic!("round {round}: {why}"));
        for (at, bytes) in &held {
            assert_eq!(survivor.block_of(*at), Some((*at, *bytes)), "round {round}");
        }
        // Published blocks of dead processes would pile up: the device would delete their objects.
        let orphans: Vec<(u64, u64)> =
            blocks_of(&survivor).into_iter().filter(|(at, _)| !held.contains_key(at)).collect();
        for (at, bytes) in orphans {
            if survivor.is_published(at) == Ok(true) {
                survivor.release(at, bytes);
            }
        }
    }
    survivor.drain(&mut cache);
    held.keys().for_each(|at| survivor.try_release(*at).unwrap());
    assert_eq!(survivor.free_bytes(), survivor.capacity_bytes());
}

/// All live blocks.
fn blocks_of(allocator: &Allocator<&Memory>) -> Vec<(u64, u64)> {
    let all = (0..AREA).step_by(32).filter_map(|at| allocator.block_of(at));
    all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

#[test]
fn a_block_taken_back_from_a_file_is_freed_by_no_sweep_of_another_lease() {
    let memory = Memory::new(AREA);
    attach(&memory).reset();
    let device = attach(&memory);
    let of_device = device.allocate(64).unwrap();
    let victim = join(&memory, VICTIM, |_| false);
    let survivor = join(&memory, SURVIVOR, |process| process == VICTIM);
    let (small, run) = (victim.allocate(100).unwrap(), victim.allocate(2 * CHUNK).unwrap());
    [small, run].iter().for_each(|at| victim.publish(*at).unwrap());
    assert_eq!(survivor.unpublish(small), Ok(false), "a sweep of the victim would free it");
    assert_eq!(survivor.unpublish(run), Ok(true));
    assert_eq!(survivor.unpublish(of_device), Ok(true));
    assert_eq!(survivor.sweep_dead(), 1);
    survivor.check().unwrap();
    for (at, bytes) in [(small, 128), (run, 2 * CHUNK), (of_device, 64)] {
        assert_eq!(survivor.block_of(at), Some((at, bytes)));
    }
    assert_eq!(survivor.unpublish(small), Ok(true), "it is the device's now");
    drop(survivor);
    device.sweep(2);
    assert_eq!(device.free_bytes(), device.capacity_bytes());
    device.check().unwrap();
}

#[test]
fn leases_run_out_and_come_back() {
    let memory = Memory::new(AREA);
    attach(&memory).reset();
    let process = |id| Process { id, started: 5 };
    let holders: Vec<_> = (1..4).map(|id| join(&memory, process(id), |_| false)).collect();
    let mut late = attach(&memory);
    for (id, started) in [(0, 0), (1 << 24, 0), (1, 1 << 40)] {
        assert_eq!(late.join(Process { id, started }, |_| false), None);
    }
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

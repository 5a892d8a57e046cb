//! The simulated memory forgets what its model says, and nothing else.

use super::*;
use crate::sim::PmemLatency;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;

fn memory() -> SimPmem {
    SimPmem::new(4096, PmemOptions::default())
}

fn word(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(image[at..at + 8].try_into().unwrap())
}

/// All values that a word can have after a cut now.
fn survivors(memory: &SimPmem, at: usize) -> BTreeSet<u64> {
    (0..400).map(|seed| word(&memory.crash_image(Survival::Words(seed)), at)).collect()
}

#[test]
fn only_a_flush_and_a_fence_make_durable() {
    let memory = memory();
    memory.store(64, 1);
    assert_eq!((memory.load(64), word(&memory.durable_image(), 64)), (1, 0));
    memory.fence().unwrap();
    assert_eq!(memory.durable_image(), vec![0; 4096], "a fence without a flush");
    memory.flush(64, 8);
    assert_eq!(survivors(&memory, 64), BTreeSet::from([0, 1]), "a flush without a fence");
    memory.fence().unwrap();
    assert_eq!(word(&memory.durable_image(), 64), 1);
    assert_eq!((memory.unfenced_lines(), memory.image()), (vec![], memory.durable_image()));
}

#[test]
fn a_store_after_the_flush_is_not_covered_by_the_fence() {
    let memory = memory();
    memory.store(0, 1);
    memory.store(0, 2);
    memory.flush(0, 8);
    memory.store(0, 3);
    memory.store(8, 4);
    assert_eq!(survivors(&memory, 0), BTreeSet::from([0, 1, 2, 3]));
    memory.fence().unwrap();
    assert_eq!(survivors(&memory, 0), BTreeSet::from([2, 3]));
    assert_eq!(survivors(&memory, 8), BTreeSet::from([0, 4]));
    assert_eq!(memory.mark_commit(), [UnfencedLine { address: 0, is_flushed: false }]);
    memory.flush(8, 1);
    assert_eq!(memory.mark_commit(), [UnfencedLine { address: 0, is_flushed: true }]);
    memory.fence().unwrap();
    assert_eq!(memory.mark_commit(), []);
}

#[test]
fn lines_survive_by_mask_and_words_tear_by_themselves() {
    let memory = memory();
    for line in 0..3 {
        memory.write(line * 64, &[line as u8 + 1; 64]);
    }
    let some = memory.crash_image(Survival::Lines(0b101));
    assert_eq!((some[0], some[63], some[64], some[127], some[128]), (1, 1, 0, 0, 3));
    assert_eq!(memory.crash_image(Survival::Everything), memory.image());
    let pairs: BTreeSet<_> = (0..200)
        .map(|seed| {
            let image = memory.crash_image(Survival::Words(seed));
            (image[0], image[8])
        })
        .collect();
    assert_eq!(pairs, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
    // Less than a word never tears, and the rest of the word stays.
    let memory = SimPmem::from_image(vec![7; 64], PmemOptions::default());
    memory.write(6, &[9; 4]);
    assert_eq!(survivors(&memory, 0), BTreeSet::from([0x0707_0707_0707_0707, 0x0909_0707_0707_0707]));
}

#[test]
fn each_line_can_be_told_its_fate() {
    let memory = memory();
    for line in 0..3 {
        memory.write(line * 64, &[line as u8 + 1; 64]);
    }
    memory.flush(64, 64);
    let mut asked = Vec::new();
    let image = memory.crash_image_by(|line| {
        asked.push((line.address, line.is_flushed));
        match line.address {
            0 => Fate::Durable,
            64 => Fate::Visible,
            _ => Fate::Words(7),
        }
    });
    assert_eq!(asked, [(0, false), (64, true), (128, false)]);
    assert_eq!((image[0], image[64], image[127]), (0, 2, 2));
    let words: BTreeSet<u8> = image[128..192].chunks(8).map(|word| word[0]).collect();
    assert_eq!(words, BTreeSet::from([0, 3]), "words tear by themselves");
}

#[test]
fn a_cut_freezes_what_survives_and_fails_fences() {
    for events in 0..5 {
        let memory = memory();
        memory.cut_after(events);
        memory.store(0, 1);
        memory.flush(0, 8);
        let fence = memory.fence();
        memory.store(0, 2);
        let grown = memory.grow(8192);
        assert_eq!(fence.is_ok(), events > 2, "cut before event {events}");
        assert_eq!(grown.is_ok(), events > 4);
        assert_eq!(memory.is_cut(), events < 5, "event {events}");
        let expected: &[u64] = match events {
            0 => &[0],
            1 | 2 => &[0, 1],
            3 => &[1],
            _ => &[1, 2],
        };
        assert_eq!(survivors(&memory, 0), expected.iter().copied().collect(), "cut before event {events}");
        assert_eq!(memory.load(0), 2, "a program sees its own stores");
    }
}

#[test]
fn the_observer_sees_every_point_of_one_run_like_runs_that_are_cut() {
    let run = |memory: &SimPmem| {
        memory.write(8, b"twenty bytes of text");
        memory.flush(8, 20);
        let _ = memory.fence();
        memory.write(256, &[5; 300]);
        memory.flush(256, 300);
        let _ = memory.fence();
        let _ = memory.compare_exchange(0, 0, 9);
    };
    let memory = memory();
    let seen = Arc::new(Mutex::<_, rank::Free>::new(Vec::new()));
    let sink = Arc::clone(&seen);
    memory.observe(Box::new(move |moment| {
        sink.lock().push((moment.number(), moment.crash_image(Survival::Words(moment.number()))));
    }));
    run(&memory);
    assert!(memory.stop_observing().is_some());
    let seen = core::mem::take(&mut *seen.lock());
    // Three words, a fence, five lines, a fence, a word.
    assert_eq!(seen.len(), 3 + 1 + 5 + 1 + 1);
    for (number, image) in seen {
        let memory = SimPmem::new(4096, PmemOptions::default());
        memory.cut_after(number);
        run(&memory);
        assert!(memory.is_cut());
        assert_eq!(memory.crash_image(Survival::Words(number)), image, "event {number}");
    }
}

#[test]
fn counters_tell_budgets_and_waste() {
    let memory = memory();
    memory.write(60, &[1; 8]);
    memory.flush(60, 8);
    memory.flush(0, 1);
    memory.fence().unwrap();
    memory.store(0, 1);
    memory.flush(0, 8);
    memory.fence().unwrap();
    let counters = memory.counters();
    assert_eq!((counters.stores, counters.bytes_stored), (3, 16));
    assert_eq!((counters.lines_flushed, counters.distinct_lines_flushed), (4, 2));
    assert_eq!((counters.clean_lines_flushed, counters.fences), (1, 2));
    assert_eq!(counters.virtual_nanoseconds, 3 * 70);
    memory.reset_counters();
    memory.load(0);
    assert_eq!(
        memory.counters(),
        PmemCounters { loads: 1, bytes_loaded: 8, virtual_nanoseconds: 70, ..Default::default() }
    );
    memory.reset_counters();
    memory.write(0, &[3; 64]);
    memory.flush(0, 64);
    assert_eq!(memory.counters().clean_lines_flushed, 0);
}

#[test]
fn latencies_are_those_of_the_papers() {
    let time = |latency| {
        let memory = SimPmem::new(4096, PmemOptions { latency, ..PmemOptions::default() });
        memory.write(0, &[1; 512]);
        let stored = memory.counters().virtual_nanoseconds;
        memory.read(0, &mut [0; 512]);
        (stored, memory.counters().virtual_nanoseconds - stored)
    };
    assert_eq!(time(PmemLatency::PRAM), (64 * 180, 64 * 68));
    assert_eq!(time(PmemLatency::MRAM), (64 * 35, 64 * 35));
    assert_eq!(time(PmemLatency::FERAM_BOARD), (128 * 55, 128 * 55));
}

#[test]
fn with_durable_caches_a_cut_finds_what_was_seen() {
    let memory = SimPmem::new(128, PmemOptions { domain: Domain::Fence, ..PmemOptions::default() });
    memory.cut_after(2);
    memory.write(0, &[1; 24]);
    let left = memory.crash_image(Survival::Words(1));
    assert_eq!((left[15], left[16]), (1, 0), "a write is cut between words");
    assert_eq!(memory.unfenced_lines(), []);
}

#[test]
fn growth_keeps_what_is_there_and_has_a_limit() {
    let memory = SimPmem::new(100, PmemOptions { grows_to: 512, ..PmemOptions::default() });
    assert_eq!(memory.length(), 128);
    memory.store(120, 3);
    memory.grow(300).unwrap();
    assert_eq!((memory.length(), memory.load(120), memory.load(312)), (320, 3, 0));
    assert_eq!(memory.grow(513).unwrap_err().kind, MediaErrorKind::HostFull);
    memory.grow(64).unwrap();
    assert_eq!(memory.length(), 320);
}

#[test]
fn a_failed_fence_promises_nothing_and_the_next_one_all() {
    let memory = memory();
    memory.fail_fence_after(1);
    memory.fence().unwrap();
    memory.store(0, 1);
    memory.flush(0, 8);
    assert_eq!(memory.fence().unwrap_err().kind, MediaErrorKind::Host);
    assert_eq!(survivors(&memory, 0), BTreeSet::from([0, 1]));
    memory.fence().unwrap();
    assert_eq!(survivors(&memory, 0), BTreeSet::from([1]));
}

#[test]
fn exempt_ranges_are_not_reported() {
    let memory = memory();
    memory.exempt(0..64);
    memory.store(0, 1);
    memory.store(64, 1);
    assert_eq!(memory.mark_commit(), [UnfencedLine { address: 64, is_flushed: false }]);
}

#[test]
#[should_panic(expected = "of 4096")]
fn one_past_the_end_panics() {
    memory().write(4090, &[0; 7]);
}

#[test]
#[should_panic(expected = "multiple of 8")]
fn words_are_aligned() {
    memory().store(4, 1);
}

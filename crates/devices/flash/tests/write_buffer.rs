//! Volumes whose memory is a write buffer, too: the conformance suite, what a sync costs, and what
//! each way of a mount has.

use crate::common;
use crate::common::pair::{Look, Pair, look, memory, put, used};
use crate::common::{LARGE, SMALL, TINY};
use onode_base::{ErrorKind, Prng};
use onode_flash::policy::Placement;
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions, MountPath, Policies};
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{Geometry, Nand as _, SimPmem};
use onode_object::ObjectDevice;
use std::sync::Arc;

const BUFFERED: MemoryOptions = MemoryOptions { rebuild: false, spill: false, buffer: true, log_bytes: None };

onode_object::conformance!(pages_of_2_kib, |bytes| Pair::holding(SMALL, bytes, BUFFERED));

fn programs(pair: &Pair) -> u64 {
    pair.nand.with(|nand| nand.counters().unwrap().total().programs)
}

#[test]
fn a_synced_small_write_programs_no_page_of_its_own() {
    let cost = |beside| {
        let pair = Pair::on(Geometry { blocks: 128, ..SMALL }, 128 << 10, beside);
        let object = put(pair.device(), None, 0, 10);
        let before = programs(&pair);
        for step in 1..=400 {
            put(pair.device(), Some(object), 10 * step, 10);
        }
        programs(&pair) - before
    };
    let (with, without) = (cost(BUFFERED), cost(MemoryOptions::default()));
    assert!(without >= 400, "{without} programs");
    // Records of some 40 bytes share pages of 2 KiB.
    assert!(with <= 24, "{with} programs, {without} without the buffer");
}

/// Cuts after each of `steps` synced writes, by turns with nothing and with some of what was not
/// fenced, and expects every one of them.
fn cut_after_each(geometry: Geometry, steps: u64, log_bytes: Option<u64>) {
    let mut pair = Pair::on(geometry, 256 << 10, MemoryOptions { log_bytes, ..BUFFERED });
    let (mut prng, mut objects) = (Prng::new(11), Vec::new());
    for step in 0..steps {
        let object = if prng.below(3) == 0 || objects.is_empty() {
            objects.push(put(pair.device(), None, 0, prng.below(700) as usize + 1));
            continue;
        } else {
            objects[prng.below(objects.len() as u64) as usize]
        };
        let most = if prng.below(6) == 0 { 9000 } else { 300 };
        put(pair.device(), Some(object), prng.below(2000), prng.below(most) as usize + 1);
        let seen = look(pair.device());
        pair.cut(if step % 2 == 0 { Survival::Nothing } else { Survival::Words(step) });
        assert_eq!(pair.mount(), MountPath::Behind, "step {step}");
        assert!(look(pair.device()) == seen, "step {step}");
        pair.agrees();
    }
}

#[test]
fn what_was_synced_is_there_after_any_cut() {
    cut_after_each(Geometry { blocks: 96, ..SMALL }, 60, None);
    cut_after_each(Geometry { blocks: 512, ..TINY }, 60, Some(4 << 10));
    cut_after_each(Geometry { blocks: 96, ..LARGE }, 40, Some(64 << 10));
}

/// Content that the cleaner moved lets what users write after it end within a page, though they
/// write whole ones: the end waits for its page to fill, and the buffer has no copy of it.
#[test]
fn what_was_synced_behind_what_the_cleaner_moved_is_there_after_any_cut() {
    let pages = Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 8, blocks: 128, chips: 1 };
    let (nand, memory) = (common::Shared::new(pages), memory(256 << 10));
    let policies = Policies { placement: Some(Placement::Split), ..Policies::default() };
    let (format, mount) = (FormatOptions { policies, ..FormatOptions::default() }, MountOptions::default());
    let device = FlashDevice::format_beside(nand.clone(), memory.clone(), &format, &mount, &BUFFERED).unwrap();
    let pair = Pair { nand, memory, device: Some(device), beside: BUFFERED, crashes: 0 };
    let mut prng = Prng::new(5);
    let objects: Vec<_> = (0..44).map(|_| put(pair.device(), None, 0, 3000)).collect();
    let mut cleaned = 0;
    for step in 0..1500 {
        let object = objects[prng.below(44) as usize];
        put(pair.device(), Some(object), prng.below(2000), prng.below(1200) as usize + 1);
        let (nand, image) = (pair.nand.with(|nand| nand.clone()), pair.memory.crash_image(Survival::Nothing));
        let seen = look(pair.device());
        let memory = Arc::new(SimPmem::from_image(image, PmemOptions::default()));
        let mut cut = Pair { nand: common::Shared::holding(nand), memory, device: None, beside: BUFFERED, crashes: 0 };
        assert_eq!(cut.mount(), MountPath::Behind, "step {step}");
        assert!(look(cut.device()) == seen, "step {step}");
        let counters = pair.device().inspect().map(|inspect| inspect.counters()).unwrap_or_default();
        cleaned = counters.iter().find(|(name, _)| name == "segments_cleaned").map_or(0, |(_, count)| *count);
    }
    assert!(cleaned > 40, "{cleaned} segments were cleaned");
}

/// The flash alone is a state that there was, which nobody gets without consent.
#[test]
fn without_its_memory_the_volume_is_an_earlier_one() {
    let pair = Pair::on(Geometry { blocks: 96, ..SMALL }, 128 << 10, BUFFERED);
    let mut states: Vec<Vec<Look>> = vec![look(pair.device())];
    let mut prng = Prng::new(4);
    let mut objects = vec![put(pair.device(), None, 0, 100)];
    states.push(look(pair.device()));
    for step in 0..120 {
        let object = objects[prng.below(objects.len() as u64) as usize];
        match prng.below(3) {
            0 => objects.push(put(pair.device(), None, 0, prng.below(200) as usize + 1)),
            _ => {
                put(pair.device(), Some(object), prng.below(500), prng.below(5000) as usize + 1);
            }
        }
        states.push(look(pair.device()));
        if step % 30 == 17 {
            let (nand, image) = (pair.nand.with(|nand| nand.clone()), pair.memory.image());
            let mut alone = Pair {
                nand: common::Shared::holding(nand),
                memory: memory(image.len() as u64),
                device: None,
                beside: BUFFERED,
                crashes: 0,
            };
            for read_only in [true, false] {
                let options = MountOptions { read_only, ..MountOptions::default() };
                let refused = alone.try_mount(&options).err().map(|error| error.kind);
                assert_eq!(refused, Some(ErrorKind::Loss), "step {step}");
            }
            let consent = MountOptions { accept_loss: true, ..MountOptions::default() };
            assert!(matches!(alone.try_mount(&consent), Ok(MountPath::Rebuilt(_))));
            let told = alone.device().health().conditions;
            assert!(told.iter().any(|one| one.code == "loss-accepted"), "{told:?}");
            let found = look(alone.device());
            let at = states.iter().rposition(|state| *state == found).expect("a state that there never was");
            assert!(states.len() - at < 40, "{at} of {}", states.len());
            alone.agrees();
        }
    }
}

/// What was closed in order needs no memory.
#[test]
fn a_lost_memory_of_a_closed_volume_loses_nothing() {
    let mut pair = used(96, 128 << 10, 60, BUFFERED);
    let seen = look(pair.device());
    pair.device().close().unwrap();
    pair.memory = memory(128 << 10);
    assert!(matches!(pair.mount(), MountPath::Rebuilt(_)));
    assert_eq!(look(pair.device()), seen);
    let told = pair.device().health().conditions;
    assert!(told.iter().any(|one| one.code == "memory-rebuilt"), "{told:?}");
}

/// A torn index does not take the write buffer with it.
#[test]
fn a_damaged_memory_still_gives_what_its_buffer_has() {
    for steps in [5, 80, 300] {
        let mut pair = used(96, 128 << 10, steps, BUFFERED);
        put(pair.device(), None, 0, 33);
        let seen = look(pair.device());
        pair.device = None;
        let mut torn = pair.memory.image();
        for blob in (128..torn.len() / 8 * 7).step_by(32) {
            torn[blob + 17] ^= u8::from(torn[blob] != 0 && torn[blob + 1] == 0xb7);
        }
        pair.memory = Arc::new(SimPmem::from_image(torn, PmemOptions::default()));
        assert!(matches!(pair.mount(), MountPath::Rebuilt(_)));
        assert_eq!(look(pair.device()), seen, "{steps} steps");
        pair.agrees();
    }
}

#[test]
fn a_mount_may_turn_the_buffer_on_and_off() {
    let mut pair = used(96, 128 << 10, 40, MemoryOptions::default());
    let seen = look(pair.device());
    pair.device().close().unwrap();
    pair.beside = BUFFERED;
    assert!(matches!(pair.mount(), MountPath::Rebuilt(_)), "the memory has no room set apart yet");
    assert!(pair.device().memory_use().unwrap().log_bytes > 0);
    put(pair.device(), None, 0, 5);
    pair.cut(Survival::Nothing);
    pair.beside = MemoryOptions::default();
    assert_eq!(pair.mount(), MountPath::Behind);
    assert_eq!(look(pair.device()).len(), seen.len() + 1);
    let before = programs(&pair);
    put(pair.device(), None, 0, 5);
    assert!(programs(&pair) > before);
    pair.agrees();
}

#[test]
fn a_memory_without_room_for_a_buffer_is_refused() {
    let nand = common::Shared::new(Geometry { blocks: 96, ..LARGE });
    let (format, mount) = Default::default();
    let made = FlashDevice::format_beside(nand, memory(16 << 10), &format, &mount, &BUFFERED);
    assert_eq!(made.err().map(|error| error.kind), Some(ErrorKind::Invalid));
}

/// A memory that fails takes nothing along: the flash gets what only the buffer had.
#[test]
fn a_memory_that_fails_at_a_sync_loses_nothing() {
    for fences in 0..6 {
        let pair = used(96, 128 << 10, 20, BUFFERED);
        pair.memory.fail_fence_after(fences);
        for _ in 0..8 {
            put(pair.device(), None, 0, 40);
        }
        let seen = look(pair.device());
        let Pair { nand, memory: last, .. } = pair;
        let image = last.crash_image(Survival::Nothing);
        let mount = |rebuild| {
            let memory = SimPmem::from_image(image.clone(), PmemOptions::default());
            let beside = MemoryOptions { rebuild, ..BUFFERED };
            let options = MountOptions::default();
            let mounted = FlashDevice::mount_beside(nand.clone(), memory, &options, &beside, &mut |_| {});
            mounted.and_then(|(device, _)| device.confirm().map(|()| device))
        };
        // As the facade does.
        let device = mount(false).or_else(|_| mount(true)).unwrap();
        assert_eq!(look(&device), seen, "{fences} fences");
    }
}

/// Where the entries of the newest page of the write buffer in `image` begin.
fn newest_entries(image: &[u8]) -> Vec<usize> {
    let figure = |at: usize, bytes: usize| {
        let mut figure = [0; 8];
        figure[..bytes].copy_from_slice(&image[at..at + bytes]);
        u64::from_le_bytes(figure) as usize
    };
    let anchor = [0, 64].into_iter().max_by_key(|at| figure(at + 24, 4)).unwrap();
    let (begin, slot, slots) = (figure(anchor + 36, 8), figure(anchor + 44, 4), figure(anchor + 48, 4));
    let entries = |number: usize| {
        let (mut at, end, mut found) = (begin + number * slot, begin + (number + 1) * slot, Vec::new());
        while at + 32 <= end && figure(at, 8) > 0 {
            let bytes = figure(at + 20, 4) + figure(at + 24, 4);
            let goes_on = found.last().is_none_or(|last| figure(at, 8) == figure(*last, 8) + 1);
            if !goes_on || at + 32 + bytes > end {
                break;
            }
            found.push(at);
            at = (at + 32 + bytes).next_multiple_of(8);
        }
        found
    };
    let first = |entries: &Vec<usize>| entries.first().map(|at| figure(*at, 8));
    (0..slots).map(entries).max_by_key(first).unwrap()
}

/// A flipped bit in the write buffer left a volume that was read-only with consent, too, and that
/// no repair took without dropping more.
#[test]
fn what_a_damaged_write_buffer_has_behind_the_damage_is_given_up_with_consent() {
    let pair = Pair::on(Geometry { blocks: 96, ..SMALL }, 128 << 10, BUFFERED);
    let (mut states, mut damaged) = (vec![look(pair.device())], 0);
    let object = put(pair.device(), None, 0, 100);
    states.push(look(pair.device()));
    for step in 0..60 {
        put(pair.device(), Some(object), 10 * step, 30 + 40 * (step % 7) as usize);
        states.push(look(pair.device()));
        let (nand, mut image) = (pair.nand.with(|nand| nand.clone()), pair.memory.crash_image(Survival::Nothing));
        let entries = newest_entries(&image);
        let Some(at) = entries.len().checked_sub(3).map(|at| entries[at]) else { continue };
        image[at + 40] ^= 1;
        damaged += 1;
        let memory = Arc::new(SimPmem::from_image(image, PmemOptions::default()));
        let mut cut = Pair { nand: common::Shared::holding(nand), memory, device: None, beside: BUFFERED, crashes: 0 };
        for read_only in [true, false] {
            let options = MountOptions { read_only, ..MountOptions::default() };
            let refused = cut.try_mount(&options).err();
            assert_eq!(refused.map(|error| error.kind), Some(ErrorKind::Loss), "step {step}");
        }
        cut.try_mount(&MountOptions { accept_loss: true, ..MountOptions::default() }).unwrap();
        assert!(states.contains(&look(cut.device())), "step {step}: a state that there never was");
        assert!(cut.device().health().conditions.iter().any(|one| one.code == "loss-accepted"), "step {step}");
        // It goes on, through a crash and a close.
        put(cut.device(), None, 0, 50);
        let seen = look(cut.device());
        cut.cut(Survival::Nothing);
        cut.mount();
        assert!(look(cut.device()) == seen, "step {step}");
        cut.device().close().unwrap();
        assert_eq!(cut.mount(), MountPath::Memory);
        assert!(look(cut.device()) == seen, "step {step}");
        cut.agrees();
    }
    assert!(damaged > 20, "{damaged} were damaged");
}

/// A memory that is too short for the write buffer is told from what is wrong with the flash, after
/// the consent that its loss needs, and before anything is changed.
#[test]
fn a_memory_too_short_for_its_write_buffer_is_told() {
    let pair = Pair::on(Geometry { blocks: 96, ..LARGE }, 64 << 10, BUFFERED);
    put(pair.device(), None, 0, 100);
    let whole = pair.memory.crash_image(Survival::Nothing);
    let before = programs(&pair);
    let mount = |bytes: usize, accept_loss| {
        let memory = SimPmem::from_image(whole[..bytes].to_vec(), PmemOptions::default());
        let options = MountOptions { accept_loss, ..MountOptions::default() };
        let mounted = FlashDevice::mount_beside(pair.nand.clone(), memory, &options, &BUFFERED, &mut |_| {});
        mounted.err().map(|error| error.kind)
    };
    for bytes in [8 << 10, 16 << 10, 32 << 10, (64 << 10) - 64] {
        assert_eq!(mount(bytes, false), Some(ErrorKind::Loss), "{bytes} bytes");
    }
    assert_eq!(mount(16 << 10, true), Some(ErrorKind::PartNeeded));
    assert_eq!(programs(&pair), before);
}

/// A memory of another volume that has no room for a write buffer, or is damaged, was filled for
/// this one.
#[test]
fn a_memory_of_another_volume_is_left_alone_whatever_is_wrong_with_it() {
    let theirs = memory(128 << 10);
    let (format, mount) = (FormatOptions { uuid: [9; 16], ..FormatOptions::default() }, MountOptions::default());
    let nand = common::Shared::new(Geometry { blocks: 96, ..SMALL });
    FlashDevice::format_beside(nand, theirs.clone(), &format, &mount, &MemoryOptions::default()).unwrap();
    let mut pair = used(96, 128 << 10, 40, BUFFERED);
    pair.device().close().unwrap();
    let before = theirs.image();
    pair.memory = Arc::new(SimPmem::from_image(before.clone(), PmemOptions::default()));
    let refused = pair.try_mount(&MountOptions::default()).err();
    assert_eq!(refused.map(|error| error.kind), Some(ErrorKind::WrongPart));
    assert!(pair.memory.image() == before);
}

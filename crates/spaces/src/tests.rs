//! Spaces never overlap, read as zeros at first, survive power cuts at every event, and no damage
//! is believed.

use super::*;
use crate::layout::{ENTRY_BYTES, HEADERS, PAGE_BYTES};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use onode_media::error::{MediaErrorKind, Result};
use onode_media::pmem::Pmem;
use onode_media::sim::{PmemOptions, SimPmem, Survival};

type SimRegion = Region<Arc<SimPmem>>;

const UUID: [u8; 16] = [7; 16];

fn memory(bytes: Vec<u8>) -> Arc<SimPmem> {
    Arc::new(SimPmem::from_image(bytes, PmemOptions::default()))
}

fn fresh(length: usize) -> SimRegion {
    Region::format(memory(vec![0; length]), UUID, true).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<SimRegion> {
    Region::open(memory(bytes))
}

fn kind_of<T>(result: Result<T>) -> MediaErrorKind {
    result.map(|_| ()).unwrap_err().kind
}

fn names(region: &SimRegion) -> Vec<String> {
    region.list().into_iter().map(|space| space.name).collect()
}

fn bytes_of(space: &Space<Arc<SimPmem>>) -> Vec<u8> {
    let mut bytes = vec![0; space.length() as usize];
    space.read(0, &mut bytes);
    bytes
}

fn fill(space: &Space<Arc<SimPmem>>, seed: u64) {
    let mut bytes = vec![0; space.length() as usize];
    Prng::new(seed).fill(&mut bytes);
    space.write_through(0, &bytes);
    space.fence().unwrap();
}

#[test]
fn spaces_are_memories_of_their_own() {
    let region = fresh(256 << 10);
    let one = region.create("one", Kind::Memory, 10_000).unwrap();
    let two = region.create("two", Kind::FileSystem, 4096).unwrap();
    assert_eq!((one.length(), two.length(), one.kind(), two.name()), (12_288, 4096, Kind::Memory, "two"));
    fill(&one, 1);
    assert_eq!(bytes_of(&two), vec![0; 4096]);
    fill(&two, 2);
    two.store(8, 5);
    assert_eq!((two.load(8), two.compare_exchange(8, 5, 6), two.clone().load(8)), (5, Ok(5), 6));
    two.zero(0, 8);
    assert_eq!((two.load(0), region.pmem().load(two.start() + 8)), (0, 6));
    two.flush(0, 16);
    two.fence().unwrap();
    let (image, listed) = (bytes_of(&one), region.list());
    let again = open(region.pmem().durable_image()).unwrap();
    assert_eq!((again.list(), again.uuid(), again.warning()), (listed, UUID, None));
    assert_eq!(bytes_of(&again.space("one").unwrap()), image);
    assert_eq!(again.space("two").unwrap().load(8), 6);
    assert!(is_region(again.pmem()));
}

#[test]
#[should_panic(expected = "of 4096 of space one")]
fn one_past_the_end_of_a_space_panics() {
    fresh(256 << 10).create("one", Kind::Memory, 4096).unwrap().write(4095, &[0; 2]);
}

#[test]
#[should_panic(expected = "may only be read")]
fn a_store_to_an_image_panics() {
    fresh(256 << 10).create_image("boot", Kind::Boot, b"code").unwrap().store(0, 1);
}

#[test]
fn images_are_there_and_read_only() {
    let region = fresh(256 << 10);
    let boot = region.create_image("boot", Kind::Boot, b"code").unwrap();
    assert_eq!((&bytes_of(&boot)[..6], boot.is_read_only()), (&b"code\0\0"[..], true));
    assert_eq!(kind_of(boot.grow(8192)), MediaErrorKind::ReadOnly);
    drop(boot);
    assert_eq!(kind_of(region.resize("boot", 8192)), MediaErrorKind::ReadOnly);
    region.remove("boot").unwrap();
    assert_eq!(bytes_of(&region.create("x", Kind::Memory, 4096).unwrap()), vec![0; 4096]);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let region = fresh(64 << 10);
    for name in ["", ".", "..", "a/b", "a b", "-a", "n\u{e4}me", "a234567890123456789012345678901-", "x\n"] {
        assert_eq!(kind_of(region.create(name, Kind::Boot, 1)), MediaErrorKind::Invalid, "{name:?}");
    }
    let longest = "a23456789012345678901234567890-";
    region.create(longest, Kind::Boot, 1).unwrap();
    assert_eq!(kind_of(region.create(longest, Kind::Boot, 1)), MediaErrorKind::Exists);
    assert_eq!(kind_of(region.create("none", Kind::Boot, 0)), MediaErrorKind::Invalid);
    assert_eq!(kind_of(region.create("huge", Kind::Boot, u64::MAX)), MediaErrorKind::Invalid);
    assert_eq!(kind_of(region.create("big", Kind::Boot, 64 << 10)), MediaErrorKind::NoSpace);
    let missing = region.remove("b").unwrap_err();
    assert_eq!((missing.kind, missing.detail), (MediaErrorKind::NoSuchSpace, format!("'b'; there are {longest}")));
    assert_eq!(kind_of(region.space("b")), MediaErrorKind::NoSuchSpace);
    let used = region.space(longest).unwrap();
    assert_eq!(kind_of(region.remove(longest)), MediaErrorKind::InUse);
    used.grow(8192).unwrap();
    assert_eq!(kind_of(region.resize(longest, 4096)), MediaErrorKind::InUse);
    drop(used);
    region.resize(longest, 4096).unwrap();
    region.remove(longest).unwrap();
    assert_eq!(names(&region), [""; 0]);
    assert_eq!(kind_of(Region::format(memory(vec![0; 60 << 10]), UUID, true)), MediaErrorKind::Invalid);
}

#[test]
fn the_whole_region_can_be_used_and_the_list_grows() {
    let region = fresh(1 << 20);
    let free = region.free_bytes();
    assert_eq!((free, region.largest_free()), ((1 << 20) - 16_384, (1 << 20) - 16_384));
    drop(region.create("all", Kind::Memory, free).unwrap());
    assert_eq!((region.free_bytes(), region.largest_free()), (0, 0));
    assert_eq!(kind_of(region.create("more", Kind::Memory, 1)), MediaErrorKind::NoSpace);
    region.remove("all").unwrap();
    // More entries than a page of the list has room for, twice over; gaps are used again.
    let mut made = 0;
    while region.create(&format!("s{made}"), Kind::Memory, 4096).is_ok() {
        made += 1;
    }
    assert_eq!((made, region.free_bytes()), (246, 0), "two lists of 16 KiB");
    for number in (0..made).step_by(2) {
        region.remove(&format!("s{number}")).unwrap();
    }
    let again = open(region.pmem().durable_image()).unwrap();
    assert_eq!(again.list(), region.list());
    assert_eq!((again.list().len(), again.largest_free()), (123, 4096));
}

#[test]
fn large_regions_align_to_large_pages() {
    let region = fresh(64 << 20);
    assert_eq!(region.alignment(), 2 << 20);
    let starts: Vec<u64> =
        ["a", "b"].iter().map(|name| region.create(name, Kind::Memory, 4096).unwrap().start()).collect();
    assert_eq!(starts, [2 << 20, 4 << 20]);
}

#[test]
fn growth_reaches_the_memory() {
    let region = fresh(64 << 10);
    let last = region.create("last", Kind::Manager, 40 << 10).unwrap();
    last.store(0, 1);
    last.grow(200 << 10).unwrap();
    assert_eq!((last.length(), last.load(0), last.load((200 << 10) - 8)), (200 << 10, 1, 0));
    assert_eq!(region.length(), region.pmem().length());
    region.grow(1 << 20).unwrap();
    assert_eq!(region.length(), 1 << 20);
    region.grow(0).unwrap();
    let first = region.create("first", Kind::Manager, 4096).unwrap();
    assert_eq!(kind_of(last.grow(500 << 10)), MediaErrorKind::NoSpace);
    drop((first, last));
    region.resize("last", 500 << 10).unwrap();
    let moved = region.space("last").unwrap();
    assert!(moved.start() > region.space("first").unwrap().start());
    assert_eq!((moved.load(0), moved.load((500 << 10) - 8)), (1, 0));
}

#[test]
fn a_space_grows_where_those_behind_it_can_go_elsewhere() {
    let region = fresh(1 << 20);
    for (name, length) in [("grows", 512 << 10), ("small", 8192), ("image", 128 << 10)] {
        fill(&region.create(name, Kind::Manager, length).unwrap(), length);
    }
    drop(region.create_image("boot", Kind::Boot, &[0xa5; 13_000]).unwrap());
    let before = region.list();
    let start_of = |name: &str| region.list().into_iter().find(|space| space.name == name).unwrap().start;
    // More than there is, whatever is moved.
    assert_eq!(kind_of(region.resize("grows", 1000 << 10)), MediaErrorKind::NoSpace);
    assert_eq!(region.list(), before);
    region.grow(2 << 20).unwrap();
    // No part is that long, but behind it there is room for the others.
    assert!(region.largest_free() < 1536 << 10);
    {
        let held = region.space("small").unwrap();
        assert_eq!(kind_of(region.resize("grows", 1536 << 10)), MediaErrorKind::InUse);
        assert_eq!(start_of("small"), held.start(), "a space in use stays");
    }
    region.resize("grows", 1536 << 10).unwrap();
    assert_eq!(start_of("grows"), before[0].start);
    let mut image = region.pmem().durable_image();
    for round in 0..2 {
        let region = open(image.clone()).unwrap();
        for (name, bytes, length) in
            [("grows", 512 << 10, 1536 << 10), ("small", 8192, 8192), ("image", 128 << 10, 128 << 10)]
        {
            let mut expected = vec![0; length as usize];
            Prng::new(bytes).fill(&mut expected[..bytes as usize]);
            assert!(bytes_of(&region.space(name).unwrap()) == expected, "round {round}: {name}");
        }
        assert_eq!(bytes_of(&region.space("boot").unwrap())[..13_000], [0xa5; 13_000]);
        image = region.pmem().durable_image();
    }
}

/// A region with two spaces that hold something, and bytes in between that did.
fn used() -> Vec<u8> {
    let region = fresh(192 << 10);
    for (name, length) in [("a", 8192), ("gone", 12_288), ("b", 8192)] {
        fill(&region.create(name, Kind::Memory, length).unwrap(), length);
    }
    region.remove("gone").unwrap();
    assert_eq!(region.pmem().mark_commit(), []);
    region.pmem().durable_image()
}

/// Everything that can be said of a region with the spaces of [`used`]; panics if it is neither
/// before nor after.
fn check_cut(image: Vec<u8>, before: &[SpaceInfo], after: &[SpaceInfo], when: &str) {
    let region = open(image).unwrap_or_else(|error| panic!("{when}: {error}"));
    let list = region.list();
    assert!(list == before || list == after, "{when}: {list:?}");
    for (name, seed) in [("a", 8192), ("b", 8192)] {
        let Ok(space) = region.space(name) else { continue };
        let mut expected = vec![0; 8192];
        Prng::new(seed).fill(&mut expected);
        let found = bytes_of(&space);
        let kept = found.len().min(8192);
        assert!(found[..kept] == expected[..kept] && found[kept..].iter().all(|byte| *byte == 0), "{when}: {name}");
    }
    for info in list.iter().filter(|info| info.name == "new" || info.name == "c") {
        let found = bytes_of(&region.space(&info.name).unwrap());
        let written = if info.read_only { 13_000 } else { 0 };
        let right = found.iter().enumerate().all(|(at, byte)| *byte == if at < written { 0xa5 } else { 0 });
        assert!(right, "{when}: {} is not what it was made to be", info.name);
    }
    while region.largest_free() > 0 {
        let name = format!("probe{}", region.list().len());
        let Ok(probe) = region.create(&name, Kind::Memory, region.largest_free()) else { break };
        assert!(bytes_of(&probe).iter().all(|byte| *byte == 0), "{when}: a new space has old bytes");
    }
    assert_eq!(open(region.pmem().durable_image()).unwrap().list(), region.list(), "{when}");
}

fn cut_everywhere(name: &str, start: Vec<u8>, change: impl Fn(&SimRegion)) -> u64 {
    let before = open(start.clone()).unwrap().list();
    let after = {
        let region = open(start.clone()).unwrap();
        change(&region);
        region.list()
    };
    assert_ne!(before, after, "{name} changes nothing");
    let region = open(start).unwrap();
    let checked = Arc::new(Mutex::<_, rank::Free>::new(0));
    let (count, expected, of) = (Arc::clone(&checked), after.clone(), name.to_string());
    region.pmem().observe(Box::new(move |moment| {
        let number = moment.number();
        // The table without what it tells of, and the other way round.
        let lines = moment.unfenced_lines();
        let of_table = lines.iter().filter(|line| line.address < 16_384).count().min(63);
        let table = (1 << of_table) - 1;
        let drawn = [Survival::Words(number), Survival::Words(!number)];
        let choices = [Survival::Nothing, Survival::Everything, Survival::Lines(table), Survival::Lines(!table)];
        let choices = choices.into_iter().chain(drawn);
        for choice in choices {
            let when = format!("{of}, event {number}, {choice:?}");
            check_cut(moment.crash_image(choice), &before, &expected, &when);
            *count.lock() += 1;
        }
    }));
    change(&region);
    region.pmem().stop_observing();
    assert_eq!(region.pmem().mark_commit(), [], "{name}");
    check_cut(region.pmem().durable_image(), &after, &after, name);
    *checked.lock()
}

/// Lets one space grow that needs the other one out of the way, with a cut at every event: in
/// between that one was moved.
fn cut_on_the_way(start: Vec<u8>, before: &[SpaceInfo], length: u64, states: &mut u64) {
    let whole = open(start.clone()).unwrap();
    whole.resize("a", length).unwrap();
    let after = whole.list();
    let mut between = after.clone();
    between[0].length = before[0].length;
    assert!(between != before && between[0].start == before[0].start, "{after:?}");
    let region = open(start).unwrap();
    let (counted, old, new) = (Arc::new(Mutex::<_, rank::Free>::new(0)), before.to_vec(), after.clone());
    let count = Arc::clone(&counted);
    region.pmem().observe(Box::new(move |moment| {
        let number = moment.number();
        for choice in [Survival::Nothing, Survival::Everything, Survival::Words(number), Survival::Words(!number)] {
            let when = format!("out of the way, event {number}, {choice:?}");
            let image = moment.crash_image(choice);
            let found = open(image.clone()).unwrap_or_else(|error| panic!("{when}: {error}")).list();
            check_cut(image, if found == between { &between } else { &old }, &new, &when);
            *count.lock() += 1;
        }
    }));
    region.resize("a", length).unwrap();
    region.pmem().stop_observing();
    check_cut(region.pmem().durable_image(), &after, &after, "out of the way");
    *states += *counted.lock();
}

#[test]
fn every_change_is_there_wholly_or_not_at_all_after_a_cut_at_any_event() {
    let mut states = 0;
    states += cut_everywhere("create", used(), |region| drop(region.create("new", Kind::FileSystem, 20_000).unwrap()));
    states += cut_everywhere("create in between", used(), |region| drop(region.create("c", Kind::Boot, 4096).unwrap()));
    states += cut_everywhere("image", used(), |region| {
        drop(region.create_image("new", Kind::Boot, &[0xa5; 13_000]).unwrap());
    });
    states += cut_everywhere("remove", used(), |region| region.remove("a").unwrap());
    states += cut_everywhere("grow in place", used(), |region| region.resize("a", 16_384).unwrap());
    states += cut_everywhere("grow in use", used(), |region| region.space("b").unwrap().grow(300 << 10).unwrap());
    states += cut_everywhere("move", used(), |region| region.resize("a", 40_960).unwrap());
    // "a" can lie nowhere else, and "b" goes out of its way.
    let way = open(used()).unwrap();
    drop(way.create("filler", Kind::Memory, way.largest_free() - 16_384).unwrap());
    let before = way.list();
    cut_on_the_way(way.pmem().durable_image(), &before, 28_672, &mut states);
    states += cut_everywhere("shrink", used(), |region| region.resize("b", 4096).unwrap());
    let full = open(used()).unwrap();
    full.grow(600 << 10).unwrap();
    for number in 0..PAGE_BYTES as usize / ENTRY_BYTES - 2 {
        drop(full.create(&format!("s{number}"), Kind::Memory, 4096).unwrap());
    }
    states += cut_everywhere("longer list", full.pmem().durable_image(), |region| {
        drop(region.create("new", Kind::Memory, 4096).unwrap());
    });
    assert!(states > 4_000, "{states}");
}

#[test]
fn one_damaged_copy_costs_nothing_and_is_mended_by_the_next_change() {
    let image = used();
    let listed = open(image.clone()).unwrap().list();
    for (copy, at) in [(0, 0), (0, 9), (0, 100), (1, 4096), (1, 4200), (0, 8192), (0, 8192 + 127), (1, 12_288 + 64)] {
        let mut damaged = image.clone();
        damaged[at] ^= 0x40;
        let region = open(damaged).unwrap();
        assert_eq!(region.list(), listed, "byte {at} of copy {copy}");
        assert!(region.warning().unwrap().starts_with("one of two copies of the table is lost"));
        // The good copy is not touched before the lost one is durable.
        let good = HEADERS[1 - copy] as usize;
        let sound = image[good..good + 128].to_vec();
        region.pmem().observe(Box::new(move |moment| {
            let now = moment.crash_image(Survival::Everything);
            assert!(now[good..good + 128] == sound || open(now).unwrap().list().len() == 1);
        }));
        region.remove("a").unwrap();
        assert_eq!(region.warning(), None);
        let mut other = region.pmem().durable_image();
        other[good] ^= 1;
        assert_eq!(names(&open(other).unwrap()), ["b"]);
    }
}

#[test]
fn what_is_no_region_or_not_whole_is_told() {
    assert_eq!(kind_of(open(vec![0; 1 << 16])), MediaErrorKind::NotAnImage);
    assert_eq!(kind_of(open(vec![0; 64])), MediaErrorKind::NotAnImage);
    assert_eq!(kind_of(open(vec![0xff; 1 << 16])), MediaErrorKind::NotAnImage);
    assert!(!is_region(&SimPmem::new(1 << 16, PmemOptions::default())));
    let image = used();
    let mut both = image.clone();
    both[200] ^= 1;
    both[4096 + 20] ^= 1;
    both[30] ^= 1;
    assert_eq!(kind_of(open(both.clone())), MediaErrorKind::Damaged);
    assert!(is_region(&memory(both)));
    let short = open(image[..128 << 10].to_vec()).map(|_| ()).unwrap_err();
    assert_eq!(short.kind, MediaErrorKind::Damaged);
    assert!(short.detail.ends_with("it was cut short"), "{short}");
    let mut newer = image;
    for at in HEADERS {
        newer[at as usize + 8] = 2;
    }
    assert_eq!(kind_of(open(newer)), MediaErrorKind::NewerFormat);
}

#[test]
fn no_byte_from_a_medium_panics_or_makes_spaces_overlap() {
    let image = used();
    let mut prng = Prng::new(11);
    let mut opened = 0;
    for _ in 0..3_000 {
        let mut bytes = image.clone();
        // Both headers with the same nonsense and a right checksum: the checks of the fields have
        // to find it.
        let field = 8 + prng.below(116) as usize;
        let value = if prng.chance(1, 2) { prng.next_u64() as u8 } else { 0xff };
        for at in HEADERS {
            let header = &mut bytes[at as usize..at as usize + 128];
            header[field] = value;
            let crc = onode_base::checksum::crc32c(&header[..124]).to_le_bytes();
            header[124..].copy_from_slice(&crc);
        }
        if let Ok(region) = open(bytes) {
            opened += 1;
            let mut end = 0;
            let mut list = region.list();
            list.sort_by_key(|space| space.start);
            for space in list {
                assert!(space.start >= end && space.start + space.length <= region.length());
                end = space.start + space.length;
            }
            let _ = region.create("new", Kind::Memory, 4096);
            let _ = region.resize("a", 65_536);
        }
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn a_failed_fence_ends_all_changes() {
    let region = open(used()).unwrap();
    region.pmem().fail_fence_after(1);
    assert_eq!(kind_of(region.remove("a")), MediaErrorKind::Host);
    assert_eq!(kind_of(region.remove("a")), MediaErrorKind::Host);
    assert_eq!(names(&region), ["a", "b"]);
}

/// What the image of a name holds.
fn image_of(name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 5000 + 100 * name.len()];
    Prng::new(u64::from(onode_base::checksum::crc32c(name.as_bytes()))).fill(&mut bytes);
    bytes
}

fn change_at_random(region: &SimRegion, prng: &mut Prng) {
    let name = format!("n{}", prng.below(12));
    let length = (1 + prng.below(8)) << 12;
    // What cannot be is refused; what was done is seen in the list.
    let _ = match prng.below(5) {
        0 => region.create_image(&name, Kind::Boot, &image_of(&name)).map(drop),
        1 => region.create(&name, Kind::Memory, length).map(drop),
        2 => region.remove(&name),
        3 => region.resize(&name, length),
        _ => region.grow((192 << 10) + length),
    };
}

#[test]
fn random_changes_and_cuts_keep_every_space_whole() {
    let mut prng = Prng::new(5);
    let mut image = fresh(192 << 10).pmem().durable_image();
    let (mut before, mut after) = (0, 0);
    for round in 0..200_u64 {
        let region = open(image.clone()).unwrap();
        let cut = prng.below(900);
        region.pmem().cut_after(cut);
        let mut last = image;
        let mut choices = prng.clone();
        while !region.pmem().is_cut() {
            last = region.pmem().durable_image();
            choices = prng.clone();
            change_at_random(&region, &mut prng);
        }
        image = region.pmem().crash_image(Survival::Words(round));
        // The same change, not cut.
        let whole = open(last.clone()).unwrap();
        change_at_random(&whole, &mut choices);
        let (found, old) = (open(image.clone()).unwrap(), open(last).unwrap().list());
        let list = found.list();
        // What had to go out of the way may lie elsewhere already.
        let what = |list: &[SpaceInfo]| -> Vec<(u64, u64)> { list.iter().map(|one| (one.id, one.length)).collect() };
        assert!(what(&list) == what(&old) || list == whole.list(), "round {round}, cut at {cut}: {list:?}");
        if old != whole.list() {
            before += u64::from(list == old);
            after += u64::from(list != old);
        }
        for info in list {
            let bytes = bytes_of(&found.space(&info.name).unwrap());
            let expected = if info.read_only { image_of(&info.name) } else { Vec::new() };
            let (held, rest) = bytes.split_at(expected.len());
            assert!(held == expected && rest.iter().all(|byte| *byte == 0), "round {round}: {}", info.name);
        }
    }
    assert!(before > 20 && after > 10, "{before} cut before, {after} after");
}

//! What touches the mapped bytes, alone: under Miri, which finds undefined behaviour and data races
//! in it, too.

use super::*;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

const PAGE: u64 = 4096;

/// A file of so many bytes that has no name; Miri maps none.
fn file(bytes: u64) -> File {
    if cfg!(miri) {
        return File::open("/dev/null").unwrap();
    }
    let file = rustix::fs::memfd_create("onode-mapping-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(bytes).unwrap();
    file
}

fn mapping(bytes: u64) -> Mapping {
    let mapping = Mapping::reserve(4 * PAGE, bytes, PAGE).unwrap();
    mapping.extend(&file(bytes), bytes, Access::Shared(libc::MAP_SHARED)).unwrap();
    mapping
}

#[test]
fn words_bytes_and_lines_are_views_of_one_memory() {
    let mapping = mapping(PAGE);
    mapping.store(8, 0x0807_0605_0403_0201);
    let mut bytes = [0; 11];
    mapping.read(6, &mut bytes);
    assert_eq!(bytes, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    mapping.write(13, &[0xaa; 6]);
    assert_eq!(mapping.load(8), 0xaaaa_aa05_0403_0201);
    assert_eq!(mapping.compare_exchange(16, 1, 2), Err(0x00aa_aaaa));
    assert_eq!(mapping.compare_exchange(16, 0x00aa_aaaa, 2), Ok(0x00aa_aaaa));
    mapping.zero(9, 2);
    let words = mapping.words(8, 2);
    assert_eq!(words[0].load(Ordering::Acquire), u64::from_le(0xaaaa_aa05_0400_0001));
    words[1].store(7_u64.to_le(), Ordering::Release);
    assert_eq!(mapping.load(16), 7);
    if cfg!(miri) {
        // It knows no instructions that pass the caches.
        return;
    }
    let lines: Vec<u8> = (0..128).collect();
    mapping.stream(PAGE - 128, &lines);
    let mut found = [0; 128];
    mapping.read(PAGE - 128, &mut found);
    assert_eq!(found[..], lines);
}

#[test]
fn nothing_outside_is_touched() {
    let mapping = mapping(PAGE);
    assert_eq!((mapping.length(), mapping.load(PAGE - 8)), (PAGE, 0));
    let calls: [(&str, &dyn Fn()); 10] = [
        ("load", &|| _ = black_box(mapping.load(PAGE))),
        ("load far away", &|| _ = black_box(mapping.load(u64::MAX - 7))),
        ("load between", &|| _ = black_box(mapping.load(4))),
        ("store", &|| mapping.store(PAGE, 1)),
        ("store between", &|| mapping.store(PAGE - 4, 1)),
        ("exchange", &|| _ = black_box(mapping.compare_exchange(PAGE, 0, 1))),
        ("read", &|| mapping.read(PAGE - 3, &mut [0; 4])),
        ("write", &|| mapping.write(PAGE - 3, &[0; 4])),
        ("words", &|| _ = black_box(mapping.words(PAGE - 8, 2))),
        ("words without end", &|| _ = black_box(mapping.words(8, u64::MAX / 4))),
    ];
    for (what, call) in calls {
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "{what}");
    }
    mapping.read(PAGE, &mut []);
}

#[test]
fn what_is_mapped_stays_where_it_is_as_the_memory_grows() {
    let file = file(3 * PAGE);
    let mapping = Mapping::reserve(4 * PAGE, PAGE, PAGE).unwrap();
    let access = Access::Shared(libc::MAP_SHARED);
    mapping.extend(&file, PAGE, access).unwrap();
    mapping.store(PAGE - 8, 5);
    let word = &mapping.words(PAGE - 8, 1)[0];
    mapping.extend(&file, 3 * PAGE, access).unwrap();
    word.fetch_add(1_u64.to_le(), Ordering::AcqRel);
    mapping.store(3 * PAGE - 8, 9);
    assert_eq!((mapping.load(PAGE - 8), mapping.load(3 * PAGE - 8)), (6, 9));
    assert!(mapping.extend(&file, 8 * PAGE, access).is_err(), "there is no room");
    assert_eq!(mapping.length(), 3 * PAGE);
}

#[test]
fn whoever_loads_a_word_sees_the_bytes_that_were_written_before_it_was_stored() {
    let mapping = mapping(PAGE);
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    // Each waits for its number, reads what the other wrote and answers.
    let player = |first: u64| {
        for number in (first..rounds).step_by(2) {
            while mapping.load(0) != number {
                std::hint::spin_loop();
            }
            let mut bytes = [0; 70];
            mapping.read(61, &mut bytes);
            assert_eq!(bytes, [number as u8; 70]);
            mapping.write(61, &[(number + 1) as u8; 70]);
            mapping.store(0, number + 1);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| player(1));
        player(0);
    });
    assert_eq!(mapping.load(0), rounds);
}

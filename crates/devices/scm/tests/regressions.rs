//! Bugs that were there once, each by name.

use crate::common::Scm;
use onode_object::conformance::Harness;
use onode_object::powers::Inspect;
use onode_object::{Durability, Hints, ObjectDevice, SyncScope, Transaction};
use onode_scm::Mode;

/// A file was cut to less and grew again before the cut was durable: its block was made longer by
/// the chunks that it was about to lose, which then had two owners (found by fsx).
#[test]
fn a_block_does_not_grow_over_what_it_gives_up() {
    for durability in [Durability::Buffered, Durability::Durable] {
        for split in [false, true] {
            let mut scm = Scm::holding(4 << 10, 4 << 20);
            let object = scm.device.reserve_ids(1).expect("ids");
            let mut first = Transaction::new();
            first.create(object, Hints::default()).write(object, 0, vec![1; 64 << 10]);
            scm.device.commit(first, durability).expect("room");
            let mut second = Transaction::new();
            second.truncate(object, 20_000);
            if split {
                scm.device.commit(std::mem::take(&mut second), durability).expect("room");
            }
            second.write(object, 30_000, vec![2; 20_000]);
            scm.device.commit(second, durability).expect("room");
            let other = scm.device.reserve_ids(1).expect("ids");
            let mut third = Transaction::new();
            third.create(other, Hints::default()).write(other, 0, vec![3; 128 << 10]);
            scm.device.commit(third, Durability::Durable).expect("room");
            for _ in 0..2 {
                let mut content = vec![9; 60_000];
                assert_eq!(scm.device.read(object, 0, &mut content), Ok(50_000));
                assert!(content[..20_000].iter().all(|byte| *byte == 1));
                assert!(content[20_000..30_000].iter().all(|byte| *byte == 0));
                assert!(content[30_000..50_000].iter().all(|byte| *byte == 2));
                scm.reopen();
            }
        }
    }
}

/// Each removal made the next transaction wait for a fence, which in a plain file is a sync.
#[test]
fn objects_go_without_a_fence_for_each() {
    let scm = Scm::holding(4 << 10, 1 << 20);
    let fences = || {
        let counters = scm.device.counters();
        counters.iter().find(|(name, _)| name == "fences").map(|(_, count)| *count)
    };
    let objects: Vec<_> = (0..50).map(|_| scm.device.reserve_ids(1).expect("ids")).collect();
    for object in &objects {
        let mut making = Transaction::new();
        making.create(*object, Hints::default()).write(*object, 0, vec![1; 100]);
        scm.device.commit(making, Durability::Buffered).expect("room");
    }
    scm.device.sync(SyncScope::All).expect("the memory works");
    let before = fences();
    for object in &objects {
        let mut removal = Transaction::new();
        removal.remove(*object);
        scm.device.commit(removal, Durability::Buffered).expect("removals need no room");
    }
    assert_eq!(fences(), before);
    scm.device.sync(SyncScope::All).expect("the memory works");
    assert_eq!(fences(), before.map(|count| count + 1));
}

/// Bytes that are free, or that the log has.
fn bytes_not_of_objects(scm: &Scm) -> u64 {
    let counters = scm.device.counters();
    counters.iter().filter(|(name, _)| name == "free_bytes" || name == "log_bytes").map(|(_, count)| count).sum()
}

/// A hole was filled by a block that the bytes behind it cut short, and its first chunk was taken
/// out: the rest, less than a chunk, was released as if it were a small block (found by the
/// conformance suite with encryption).
#[test]
fn no_block_of_chunks_is_cut_down_to_less_than_a_chunk() {
    const CHUNK: usize = 16 << 10;
    const FROM: u64 = 4096;
    // What the hole takes is no number of whole chunks.
    const FILLED: usize = CHUNK + 8192;
    for (_, mode) in Mode::ALL {
        for (punches, length, reopens) in
            [(true, CHUNK, false), (true, CHUNK, true), (true, CHUNK + 4096, false), (false, CHUNK, false)]
        {
            let mut scm = Scm::holding_in_mode(CHUNK as u32, 4 << 20, mode);
            let object = scm.device.reserve_ids(1).expect("ids");
            let before = bytes_not_of_objects(&scm);
            let mut making = Transaction::new();
            making.create(object, Hints::default()).write(object, FROM + FILLED as u64, vec![1; 4096]);
            making.write(object, FROM, vec![2; FILLED]);
            scm.device.commit(making, Durability::Durable).expect("room");
            let mut cut = Transaction::new();
            let (byte, made) = if punches {
                cut.punch(object, FROM, length as u64);
                (0, "punched out")
            } else {
                cut.write(object, FROM, vec![3; length]);
                (3, "written over")
            };
            scm.device.commit(cut, Durability::Durable).expect("room");
            if reopens {
                scm.reopen();
            }
            let mut content = vec![9; 4096 + FILLED + 4096];
            assert_eq!(scm.device.read(object, 0, &mut content), Ok(content.len()));
            let (new, old) = content[4096..4096 + FILLED].split_at(length);
            assert!(new.iter().all(|found| *found == byte), "{mode:?}: {made}");
            assert!(old.iter().all(|found| *found == 2), "{mode:?}: not {made}");
            scm.device.verify().unwrap_or_else(|what| panic!("{mode:?}, {made}: {what}"));
            let mut removal = Transaction::new();
            removal.remove(object);
            scm.device.commit(removal, Durability::Durable).expect("removals need no room");
            // What it had waits for the fences of others.
            for other in [1, 2].map(|_| scm.device.reserve_ids(1).expect("ids")) {
                let mut next = Transaction::new();
                next.create(other, Hints::default());
                scm.device.commit(next, Durability::Durable).expect("room");
            }
            assert_eq!(bytes_not_of_objects(&scm), before, "{mode:?}, {made}: it does not have everything back");
            scm.device.verify().unwrap_or_else(|what| panic!("{mode:?}, {made}: {what}"));
        }
    }
}

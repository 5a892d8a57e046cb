//! Space: the figures are honest, a full device refuses cleanly and always lets things go (N7).

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::durability::Durability;
use crate::error::ErrorKind;
use crate::hints::Hints;
use crate::id::ObjectId;
use crate::transaction::Transaction;
use alloc::vec;
use alloc::vec::Vec;

suite! { "space":
    Nothing figures_follow_what_is_stored,
    Nothing available_can_be_written_by_one_object,
    Nothing a_full_device_refuses_and_changes_nothing,
    Nothing a_transaction_too_large_is_refused_whole,
    Nothing a_full_device_lets_go,
    Nothing a_full_device_reads_and_reopens,
    Crash a_full_device_survives_crashes,
    Nothing a_full_device_takes_holes,
    Nothing space_returns_over_many_cycles,
    Nothing half_the_space_returns,
    Nothing fill_with_tiny_objects,
    Nothing fill_with_attributes,
}

/// Content of the small devices of these cases.
const SMALL_BYTES: u64 = 4 << 20;

/// Commits, and says whether there was space. Nothing else may go wrong.
#[track_caller]
fn fits(it: &Subject, build: impl FnOnce(&mut Transaction) -> &mut Transaction) -> bool {
    match it.try_commit(build) {
        Ok(()) => true,
        Err(error) if error.kind == ErrorKind::NoSpace => false,
        Err(error) => panic!("{error}"),
    }
}

/// Appends to a new object in ever smaller pieces until nothing fits; returns it and its size.
fn fill(it: &Subject) -> (ObjectId, u64) {
    let object = it.object();
    let mut size = 0;
    for piece in [128 << 10, 16 << 10, 4 << 10, 512] {
        while fits(it, |t| t.write(object, size, pattern(size, piece))) {
            size += piece as u64;
        }
    }
    (object, size)
}

/// The filled object has what `fill` wrote.
fn check_filled(it: &Subject, object: ObjectId, size: u64) {
    assert_eq!(it.size(object), size);
    let mut offset = 0;
    let mut piece = 128 << 10;
    while offset < size {
        let wanted = pattern(offset, piece);
        if offset + piece as u64 <= size && it.read(object, offset, piece) == wanted {
            offset += piece as u64;
        } else {
            // The pieces only ever get smaller.
            piece = match piece {
                0x20000 => 16 << 10,
                0x4000 => 4 << 10,
                0x1000 => 512,
                _ => panic!("the bytes at {offset} of the filled object differ"),
            };
        }
    }
}

fn figures_follow_what_is_stored(make: Maker<'_>) {
    let it = Subject::new(make);
    let before = it.device().space();
    let objects: Vec<ObjectId> = (0..4).map(|number| it.object_of(&pattern(number, 500_000))).collect();
    let full = it.device().space();
    assert_eq!((full.total, full.objects), (before.total, 4));
    assert!(full.available + 1_900_000 <= before.available, "{before:?} {full:?}");
    it.commit(|t| t.remove(objects[0]).truncate(objects[1], 0).punch(objects[2], 0, 500_000));
    let after = it.device().space();
    assert!(after.available >= full.available + 1_400_000, "{full:?} {after:?}");
    assert_eq!(after.objects, 3);
}

fn available_can_be_written_by_one_object(make: Maker<'_>) {
    let mut it = Subject::with_bytes(make, SMALL_BYTES);
    for _ in 0..2 {
        let object = it.object();
        let wanted = it.device().space().available / 100 * 99;
        let piece = it.device().info().transaction_bytes.min(100_000);
        let mut size = 0;
        while size < wanted {
            let length = piece.min((wanted - size) as usize);
            let fitted = fits(&it, |t| t.write(object, size, pattern(size, length)));
            assert!(fitted, "{size} of {wanted} promised bytes fitted");
            size += length as u64;
        }
        it.harness.reopen();
        for offset in (0..wanted).step_by(piece) {
            let length = piece.min((wanted - offset) as usize);
            assert!(it.read(object, offset, length) == pattern(offset, length), "the bytes at {offset} differ");
        }
        it.commit(|t| t.remove(object));
    }
}

fn a_full_device_refuses_and_changes_nothing(make: Maker<'_>) {
    let it = Subject::with_bytes(make, SMALL_BYTES);
    let other = it.object_of(b"other");
    let (object, size) = fill(&it);
    assert!(size >= SMALL_BYTES / 2, "only {size} bytes fitted");
    for _ in 0..3 {
        it.refuse(ErrorKind::NoSpace, |t| {
            t.write(other, 0, b"OTHER".to_vec()).write(object, size, pattern(1, 64 << 10))
        });
        it.refuse(ErrorKind::NoSpace, |t| t.write(object, size, pattern(1, 64 << 10)).truncate(other, 0));
    }
    it.expect(other, b"other");
    check_filled(&it, object, size);
    assert!(it.device().space().available <= 256 << 10, "{:?}", it.device().space());
}

fn a_transaction_too_large_is_refused_whole(make: Maker<'_>) {
    let it = Subject::with_bytes(make, SMALL_BYTES);
    let available = it.device().space().available;
    let (one, two) = (it.object_of(b"one"), it.id());
    // A device may hold back a little of what it has: more than all by that little and 64 KiB.
    let half = pattern(1, (available / 2 + available / 128) as usize + (64 << 10));
    it.refuse(ErrorKind::NoSpace, |t| {
        t.truncate(one, 0).write(one, 0, half.clone()).create(two, Hints::default()).write(two, 0, half.clone())
    });
    it.expect(one, b"one");
    it.expect_missing(two);
}

fn a_full_device_lets_go(make: Maker<'_>) {
    let it = Subject::with_bytes(make, SMALL_BYTES);
    let objects: Vec<ObjectId> = (0..20).map(|number| it.object_of(&pattern(number, 20_000))).collect();
    for object in &objects {
        it.commit(|t| {
            t.set_attribute(*object, key(0), pattern(1, 200)).set_attribute(*object, key(1), pattern(2, 600))
        });
    }
    let small: Vec<ObjectId> = (0..20).map(|number| it.object_of(&pattern(number, 128))).collect();
    let (filled, size) = fill(&it);
    let durably = |build: &dyn Fn(&mut Transaction)| {
        let mut transaction = Transaction::new();
        build(&mut transaction);
        it.device().commit(transaction, Durability::Durable).expect("a full device lets go");
    };
    for object in &objects[..10] {
        durably(&|t| _ = t.set_attribute(*object, key(0), pattern(3, 200)));
        durably(&|t| _ = t.set_attribute(*object, key(1), vec![]));
        durably(&|t| _ = t.remove_attribute(*object, key(1)));
        durably(&|t| _ = t.punch(*object, 5_001, 7_003));
        durably(&|t| _ = t.truncate(*object, 9_001));
        durably(&|t| _ = t.truncate(*object, 1 << 30));
        // A name goes, the directory's inode grows, and the file is noted down as one without a
        // name.
        durably(&|t| _ = t.remove_attribute(*object, key(0)).set_attribute(*object, key(1), pattern(4, 9)));
        durably(&|t| _ = t.truncate(*object, 9_000).set_attribute(*object, key(1), pattern(5, 20)));
    }
    for round in 0..5 {
        for object in &small {
            durably(&|t| _ = t.write(*object, 0, pattern(round + object.0, 128)));
        }
    }
    for object in &small {
        it.expect(*object, &pattern(4 + object.0, 128));
    }
    for object in &small[1..] {
        durably(&|t| _ = t.write(small[0], 0, pattern(object.0, 128)).remove(*object));
    }
    it.commit(|t| t.remove(small[0]));
    for object in &objects[..10] {
        assert_eq!(it.size(*object), 9_000);
    }
    for object in &objects {
        durably(&|t| _ = t.remove(*object));
    }
    check_filled(&it, filled, size);
    durably(&|t| _ = t.remove(filled));
    assert_eq!(it.device().space().objects, 0);
    it.object_of(&pattern(4, 1 << 20));
}

fn a_full_device_reads_and_reopens(make: Maker<'_>) {
    let mut it = Subject::with_bytes(make, SMALL_BYTES);
    let (object, size) = fill(&it);
    for _ in 0..3 {
        it.harness.reopen();
        check_filled(&it, object, size);
        assert!(!fits(&it, |t| t.write(object, size, pattern(1, 128 << 10))), "a remount made space");
    }
    it.commit(|t| t.remove(object));
    it.object_of(&pattern(2, 1 << 20));
}

fn a_full_device_survives_crashes(make: Maker<'_>) {
    let mut it = Subject::with_bytes(make, SMALL_BYTES);
    let other = it.object_of(b"other");
    for index in 0..4 {
        it.commit(|t| t.set_attribute(other, key(index), pattern(index, 9)));
    }
    let (object, size) = fill(&it);
    it.device().sync(crate::SyncScope::All).unwrap();
    for round in 1..4 {
        it.harness.crash();
        check_filled(&it, object, size);
        // What frees space is taken; whether a little more fits, the contract does not say.
        it.commit_durably(|t| t.set_attribute(other, key(0), vec![round as u8]).remove_attribute(other, key(round)));
    }
    it.commit_durably(|t| t.remove(object));
    it.harness.crash();
    it.expect_missing(object);
    it.object_of(&pattern(2, 1 << 20));
}

fn a_full_device_takes_holes(make: Maker<'_>) {
    let it = Subject::with_bytes(make, SMALL_BYTES);
    let hollow = it.object();
    let (object, size) = fill(&it);
    it.commit(|t| t.truncate(hollow, 1 << 50));
    assert_eq!(it.read(hollow, 1 << 49, 3), [0; 3]);
    it.commit(|t| t.punch(object, 0, size).remove(hollow));
    assert_eq!(it.read(object, size - 4, 9), [0; 4]);
}

fn space_returns_over_many_cycles(make: Maker<'_>) {
    let it = Subject::with_bytes(make, SMALL_BYTES);
    let before = it.device().space();
    let slack = before.total / 100;
    let mut first = None;
    for cycle in 0..6 {
        let (object, size) = fill(&it);
        let first = *first.get_or_insert(size);
        assert!(size + slack >= first, "cycle {cycle}: {size} bytes fitted, {first} at first");
        it.commit(|t| t.remove(object));
        let after = it.device().space();
        assert!(after.available + slack >= before.available, "cycle {cycle}: {before:?} {after:?}");
        assert_eq!(after.objects, 0);
    }
}

fn half_the_space_returns(make: Maker<'_>) {
    let it = Subject::with_bytes(make, SMALL_BYTES);
    let mut objects = Vec::new();
    loop {
        let object = it.id();
        if !fits(&it, |t| t.create(object, Hints::default()).write(object, 0, pattern(object.0, 30_000))) {
            break;
        }
        objects.push(object);
    }
    // Every second one goes, so that what is free lies in pieces.
    for object in objects.iter().step_by(2) {
        it.commit(|t| t.remove(*object));
    }
    let half = objects.len() / 2;
    for number in 0..half * 9 / 10 {
        let object = it.id();
        let fitted = fits(&it, |t| t.create(object, Hints::default()).write(object, 0, pattern(object.0, 30_000)));
        assert!(fitted, "{number} objects fitted into the space of {half}");
    }
    for object in objects.iter().skip(1).step_by(2) {
        it.expect(*object, &pattern(object.0, 30_000));
    }
}

fn fill_with_tiny_objects(make: Maker<'_>) {
    let it = Subject::with_bytes(make, 1 << 20);
    let mut objects = Vec::new();
    loop {
        let first = it.device().reserve_ids(16).unwrap().0;
        let some: Vec<ObjectId> = (first..first + 16).map(ObjectId).collect();
        let fitted = fits(&it, |t| {
            for object in &some {
                t.create(*object, Hints::default()).write(*object, 0, pattern(object.0, 33));
            }
            t
        });
        if !fitted {
            it.expect_missing(some[0]);
            break;
        }
        objects.extend(some);
    }
    assert!(objects.len() >= 64, "only {} tiny objects fitted", objects.len());
    assert_eq!(it.device().space().objects, objects.len() as u64);
    for object in &objects {
        assert_eq!(it.read(*object, 0, 40), pattern(object.0, 33));
        it.commit(|t| t.remove(*object));
    }
    it.object_of(&pattern(1, 300_000));
}

fn fill_with_attributes(make: Maker<'_>) {
    let it = Subject::with_bytes(make, 1 << 20);
    let object = it.object();
    let mut count = 0;
    while fits(&it, |t| {
        for index in count..count + 8 {
            t.set_attribute(object, key(index), pattern(index, 500));
        }
        t
    }) {
        count += 8;
    }
    assert!(count >= 64, "only {count} attributes fitted");
    assert_eq!(it.attribute(object, count), None);
    for index in 0..count {
        assert_eq!(it.attribute(object, index), Some(pattern(index, 500)));
    }
    it.commit(|t| t.remove(object));
    it.object_of(&pattern(1, 300_000));
}

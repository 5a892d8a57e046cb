//! Objects and their ids.

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::error::ErrorKind;
use crate::hints::Hints;
use crate::id::ObjectId;
use alloc::vec;
use alloc::vec::Vec;

suite! { "objects":
    Nothing a_fresh_device_is_empty,
    Nothing create_makes_an_empty_object,
    Nothing create_refuses_an_existing_object,
    Nothing create_refuses_unreserved_ids,
    Nothing well_known_ids_need_no_reservation,
    Nothing well_known_ids_can_be_made_again,
    Nothing remove_takes_content_and_attributes,
    Nothing remove_refuses_a_missing_object,
    Nothing every_mutation_refuses_a_missing_object,
    Nothing every_query_refuses_a_missing_object,
    Nothing ids_of_the_device_are_hidden,
    Nothing reserved_ids_are_consecutive_and_distinct,
    Nothing reserved_ids_run_out_with_no_space,
    Nothing ids_are_never_handed_out_twice_across_reopen,
    Crash ids_in_use_are_not_handed_out_after_a_crash,
    Nothing many_objects_in_one_transaction,
    Nothing threads_work_side_by_side,
}

fn a_fresh_device_is_empty(make: Maker<'_>) {
    let it = Subject::new(make);
    assert_eq!(it.device().list(ObjectId(0), 10), Ok(vec![]));
    let space = it.device().space();
    assert_eq!(space.objects, 0);
    assert!(space.available <= space.total && space.available > 0, "{space:?}");
    let info = it.device().info();
    assert!(!info.kind.is_empty() && !info.summary.is_empty());
    assert_eq!(info.read_only, None);
    assert!(info.transaction_bytes >= 4096, "{info:?}");
}

fn create_makes_an_empty_object(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let stat = it.device().stat(object).unwrap();
    assert_eq!((stat.size, stat.hints), (0, Hints::default()));
    it.expect(object, &[]);
    assert_eq!(it.attributes(object, 10), vec![]);
    assert_eq!(it.device().extents(object, 0, 10), Ok(vec![]));
    assert_eq!(it.device().space().objects, 1);
}

fn create_refuses_an_existing_object(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"stays");
    it.refuse(ErrorKind::Exists, |t| t.create(object, Hints::default()));
    it.expect(object, b"stays");
}

fn create_refuses_unreserved_ids(make: Maker<'_>) {
    let it = Subject::new(make);
    let last = it.id();
    for id in [0, last.0 + (1 << 40), (1 << 63) - 1, ObjectId::FIRST_OF_DEVICE.0, u64::MAX] {
        it.refuse(ErrorKind::Invalid, |t| t.create(ObjectId(id), Hints::default()));
    }
}

fn well_known_ids_need_no_reservation(make: Maker<'_>) {
    let it = Subject::new(make);
    let last = ObjectId(ObjectId::POOL.0 - 1);
    it.commit(|t| t.create(ObjectId(1), Hints::default()).create(last, Hints::default()));
    assert_eq!(it.device().list(ObjectId(0), 10), Ok(vec![ObjectId(1), last]));
    assert!(it.id() >= ObjectId::FIRST_FREE);
}

fn well_known_ids_can_be_made_again(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = ObjectId(2);
    let create = |bytes: &'static [u8]| {
        it.commit(|t| t.create(object, Hints::default()).write(object, 0, bytes.to_vec()));
    };
    create(b"a longer first life");
    it.commit(|t| t.set_attribute(object, key(1), vec![1]).remove(object));
    create(b"second");
    it.expect(object, b"second");
    assert_eq!(it.attribute(object, 1), None);
    it.commit(|t| t.truncate(object, 19));
    assert_eq!(it.read(object, 6, 13), vec![0; 13]);
}

fn remove_takes_content_and_attributes(make: Maker<'_>) {
    let it = Subject::new(make);
    let (gone, stays) = (it.object_of(&pattern(1, 100_000)), it.object_of(b"stays"));
    it.commit(|t| t.set_attribute(gone, key(1), vec![1; 100]));
    it.commit(|t| t.remove(gone));
    it.expect_missing(gone);
    it.expect(stays, b"stays");
    assert_eq!(it.device().list(ObjectId(0), 10), Ok(vec![stays]));
    assert_eq!(it.device().space().objects, 1);
}

fn remove_refuses_a_missing_object(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    it.commit(|t| t.remove(object));
    it.refuse(ErrorKind::NotFound, |t| t.remove(object));
    let never = it.id();
    it.refuse(ErrorKind::NotFound, |t| t.remove(never));
}

fn every_mutation_refuses_a_missing_object(make: Maker<'_>) {
    let it = Subject::new(make);
    for object in [ObjectId(0), ObjectId(5), it.id(), ObjectId(1 << 62), ObjectId::FIRST_OF_DEVICE, ObjectId(u64::MAX)]
    {
        it.refuse(ErrorKind::NotFound, |t| t.write(object, 0, vec![1]));
        it.refuse(ErrorKind::NotFound, |t| t.write(object, 0, vec![]));
        it.refuse(ErrorKind::NotFound, |t| t.truncate(object, 0));
        it.refuse(ErrorKind::NotFound, |t| t.punch(object, 0, 1));
        it.refuse(ErrorKind::NotFound, |t| t.set_attribute(object, key(0), vec![]));
        it.refuse(ErrorKind::NotFound, |t| t.remove_attribute(object, key(0)));
        it.refuse(ErrorKind::NotFound, |t| t.set_hints(object, Hints::default()));
        it.refuse(ErrorKind::NotFound, |t| t.remove(object));
    }
}

fn every_query_refuses_a_missing_object(make: Maker<'_>) {
    let it = Subject::new(make);
    let removed = it.object();
    it.commit(|t| t.remove(removed));
    let device = it.device();
    for object in [ObjectId(0), ObjectId(5), removed, ObjectId(1 << 62), ObjectId(u64::MAX)] {
        let kinds = [
            device.read(object, 0, &mut [0; 4]).map_err(|error| error.kind).err(),
            device.attribute(object, key(0)).map_err(|error| error.kind).err(),
            device.attributes(object, key(0), 4).map_err(|error| error.kind).err(),
            device.stat(object).map_err(|error| error.kind).err(),
            device.extents(object, 0, 4).map_err(|error| error.kind).err(),
        ];
        assert_eq!(kinds, [Some(ErrorKind::NotFound); 5], "{object}");
    }
}

fn ids_of_the_device_are_hidden(make: Maker<'_>) {
    let mut it = Subject::new(make);
    it.object_of(&pattern(2, 50_000));
    it.device().sync(crate::SyncScope::All).unwrap();
    it.harness.reopen();
    assert_eq!(it.device().list(ObjectId::FIRST_OF_DEVICE, 10), Ok(vec![]));
    assert_eq!(it.device().space().objects, 1);
}

fn reserved_ids_are_consecutive_and_distinct(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut end = ObjectId::FIRST_FREE.0;
    for count in [1, 10, 1, 1000, 3] {
        let first = it.device().reserve_ids(count).unwrap().0;
        assert!(first >= end, "{first} was handed out before");
        end = first + count;
        let (first, last) = (ObjectId(first), ObjectId(end - 1));
        it.commit(|t| t.create(last, Hints::default()));
        if first != last {
            it.commit(|t| t.create(first, Hints::default()));
        }
    }
}

fn reserved_ids_run_out_with_no_space(make: Maker<'_>) {
    let it = Subject::new(make);
    for count in [1 << 63, u64::MAX] {
        assert_eq!(it.device().reserve_ids(count).unwrap_err().kind, ErrorKind::NoSpace);
    }
    let object = it.object();
    it.expect(object, &[]);
}

fn ids_are_never_handed_out_twice_across_reopen(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let mut used = Vec::new();
    for round in 0..6 {
        let object = it.object();
        assert!(!used.contains(&object), "{object} was used before round {round}");
        used.push(object);
        // The newest object is gone again: its number must not come back.
        it.commit(|t| t.remove(object));
        it.harness.reopen();
        it.expect_missing(object);
    }
}

fn ids_in_use_are_not_handed_out_after_a_crash(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let mut used = Vec::new();
    for _ in 0..6 {
        let object = it.id();
        assert!(!used.contains(&object), "{object} was used before");
        it.commit_durably(|t| t.create(object, Hints::default()).write(object, 0, vec![1; 10]));
        if used.len() % 2 == 0 {
            it.commit_durably(|t| t.remove(object));
        }
        used.push(object);
        it.harness.crash();
    }
    assert_eq!(it.device().space().objects, 3);
}

fn many_objects_in_one_transaction(make: Maker<'_>) {
    let it = Subject::new(make);
    let first = it.device().reserve_ids(300).unwrap().0;
    it.commit(|t| {
        for number in 0..300u64 {
            let object = ObjectId(first + number);
            t.create(object, Hints::default()).write(object, number, vec![number as u8; 20]);
            t.set_attribute(object, key(number), vec![number as u8; 7]);
        }
        t
    });
    it.commit(|t| {
        for number in (0..300).step_by(3) {
            t.remove(ObjectId(first + number));
        }
        t
    });
    for number in 0..300u64 {
        let object = ObjectId(first + number);
        if number % 3 == 0 {
            it.expect_missing(object);
        } else {
            assert_eq!(it.read(object, number, 30), vec![number as u8; 20]);
            assert_eq!(it.attribute(object, number), Some(vec![number as u8; 7]));
        }
    }
}

fn threads_work_side_by_side(make: Maker<'_>) {
    let it = Subject::new(make);
    let device = it.device();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                let object = device.reserve_ids(1).unwrap();
                let mut transaction = crate::Transaction::new();
                device
                    .commit(core::mem::take(transaction.create(object, Hints::default())), crate::Durability::Buffered)
                    .unwrap();
                for round in 0..50u64 {
                    let mut transaction = crate::Transaction::new();
                    transaction.write(object, round * 100, vec![thread + 1; 100]);
                    device.commit(transaction, crate::Durability::Buffered).unwrap();
                    let mut buffer = vec![0; 100];
                    assert_eq!(device.read(object, round * 100, &mut buffer), Ok(100));
                    assert_eq!(buffer, vec![thread + 1; 100]);
                }
            });
        }
    });
    let objects = device.list(ObjectId(0), 10).unwrap();
    assert_eq!(objects.len(), 4);
    assert!(objects.iter().all(|object| it.size(*object) == 5000));
}

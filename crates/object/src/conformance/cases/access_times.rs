//! Access times: shown as last set, nobody else's business, and as durable as promised.

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::durability::SyncScope;
use crate::error::ErrorKind;
use crate::id::ObjectId;
use alloc::vec;
use alloc::vec::Vec;

suite! { "access_times":
    Nothing the_last_one_is_shown_and_kept,
    Nothing nothing_else_changes,
    Nothing a_removed_object_has_none,
    Nothing thousands_are_kept,
    Crash what_was_covered_survives,
    Crash what_was_not_covered_is_one_of_those_given,
    Crash a_crash_gives_none_to_what_was_removed,
}

impl Subject {
    #[track_caller]
    fn accessed(&self, object: ObjectId) -> u64 {
        self.device().stat(object).expect("the object exists").accessed
    }
}

fn the_last_one_is_shown_and_kept(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let (object, other) = (it.object_of(b"abc"), it.object());
    assert_eq!(it.accessed(object), 0);
    for time in [5, u64::MAX, 1, 1 << 60, 7] {
        it.commit(|t| t.set_access_time(object, time));
        assert_eq!((it.accessed(object), it.accessed(other)), (time, 0));
        it.harness.reopen();
        assert_eq!((it.accessed(object), it.accessed(other)), (time, 0));
    }
    it.commit(|t| t.set_access_time(object, 9).set_access_time(other, 3).set_access_time(object, 8));
    assert_eq!((it.accessed(object), it.accessed(other)), (8, 3));
    it.commit(|t| t.set_access_time(object, 0));
    it.harness.reopen();
    assert_eq!((it.accessed(object), it.accessed(other)), (0, 3));
    it.refuse(ErrorKind::NotFound, |t| t.set_access_time(other, 4).set_access_time(ObjectId(1), 4));
    assert_eq!(it.accessed(other), 3);
}

fn nothing_else_changes(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let bytes = pattern(1, 10_000);
    let object = it.object_of(&bytes);
    it.commit(|t| t.set_attribute(object, key(0), vec![1]).set_access_time(object, 77));
    // Nor does anything else change it.
    it.commit(|t| t.write(object, 0, bytes[..5_000].to_vec()).set_attribute(object, key(1), vec![2]));
    it.commit(|t| t.truncate(object, 12_000).truncate(object, 10_000).remove_attribute(object, key(1)));
    it.commit(|t| t.set_access_time(object, 78).punch(object, 0, 0));
    for _ in 0..2 {
        it.expect(object, &bytes);
        assert_eq!(it.attributes(object, 9), [(key(0), vec![1])]);
        assert_eq!(it.accessed(object), 78);
        it.harness.reopen();
    }
}

fn a_removed_object_has_none(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.set_access_time(object, 5));
    it.commit(|t| t.set_access_time(object, 6).remove(object));
    for _ in 0..2 {
        it.expect_missing(object);
        assert_eq!(it.device().list(ObjectId(0), 9), Ok(vec![]));
        it.harness.reopen();
    }
}

fn thousands_are_kept(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let objects: Vec<ObjectId> = (0..3000).map(|_| it.id()).collect();
    for some in objects.chunks(100) {
        it.commit(|t| some.iter().fold(t, |t, object| t.create(*object, crate::hints::Hints::default())));
    }
    for round in 1..=3u64 {
        for object in &objects {
            it.commit(|t| t.set_access_time(*object, object.0 * round));
        }
    }
    for _ in 0..2 {
        assert!(objects.iter().all(|object| it.accessed(*object) == object.0 * 3));
        it.harness.reopen();
    }
}

fn what_was_covered_survives(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let objects: Vec<ObjectId> = (0..5).map(|number| it.object_of(&pattern(number, 100))).collect();
    for round in 1..8u64 {
        for object in &objects {
            it.commit(|t| t.set_access_time(*object, round));
        }
        match round % 3 {
            0 => it.device().sync(SyncScope::All).unwrap(),
            1 => objects.iter().for_each(|object| it.device().sync(SyncScope::Object(*object)).unwrap()),
            _ => objects.iter().for_each(|object| it.commit_durably(|t| t.set_access_time(*object, round))),
        }
        if round % 2 == 0 {
            it.commit_durably(|t| t.write(objects[0], 0, vec![1; 200]));
        }
        it.harness.crash();
        for object in &objects {
            assert_eq!(it.accessed(*object), round);
        }
    }
}

fn what_was_not_covered_is_one_of_those_given(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let objects: Vec<ObjectId> = (0..40).map(|number| it.object_of(&pattern(number, 100))).collect();
    let mut covered = 0;
    for round in 0..10u64 {
        for time in covered + 1..covered + 20 {
            for object in &objects {
                it.commit(|t| t.set_access_time(*object, time));
            }
            it.commit_durably(|t| t.write(objects[time as usize % 40], 0, pattern(time, 300)));
        }
        it.harness.crash();
        let found: Vec<u64> = objects.iter().map(|object| it.accessed(*object)).collect();
        assert!(found.iter().all(|time| (covered..covered + 20).contains(time)), "round {round}: {found:?}");
        // What one recovery showed, the next shows.
        it.harness.crash();
        assert!(objects.iter().zip(&found).all(|(object, time)| it.accessed(*object) == *time));
        covered += 20;
        for object in &objects {
            it.commit(|t| t.set_access_time(*object, covered));
        }
        it.device().sync(SyncScope::All).unwrap();
    }
}

fn a_crash_gives_none_to_what_was_removed(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let (object, other) = (it.object_of(b"abc"), it.object_of(b"def"));
    it.commit(|t| t.set_access_time(object, 5).set_access_time(other, 6));
    it.device().sync(SyncScope::All).unwrap();
    it.commit_durably(|t| t.remove(object));
    for _ in 0..2 {
        it.harness.crash();
        it.expect_missing(object);
        assert_eq!(it.device().list(ObjectId(0), 9), Ok(vec![other]));
        assert_eq!(it.accessed(other), 6);
    }
}

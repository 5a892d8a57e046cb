//! Versions of objects: objects like others, but for their ids, which nobody hands out.

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::error::ErrorKind;
use crate::hints::Hints;
use crate::id::ObjectId;
use alloc::vec;
use alloc::vec::Vec;

suite! { "versions":
    Bare a_version_is_an_object_behind_all_others,
    Bare versions_take_no_ids,
    BareAndCrash versions_take_no_ids_across_crashes,
}

/// A version of `object`.
pub fn version(object: ObjectId, generation: u32) -> ObjectId {
    object.version(generation).expect("so small an id has versions")
}

fn a_version_is_an_object_behind_all_others(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let objects: Vec<ObjectId> = (0..4).map(|number| it.object_of(&pattern(number, 3_000))).collect();
    let mut expected = objects.clone();
    for (object, generation) in [(0, 0), (0, 7), (1, ObjectId::LAST_GENERATION), (3, 1), (3, 2)] {
        let one = version(objects[object], generation);
        it.commit(|t| t.create(one, Hints::default()));
        it.commit(|t| t.write(one, 0, pattern(one.0, 9_000)).set_attribute(one, key(1), vec![7; 90]));
        expected.push(one);
    }
    it.refuse(ErrorKind::Exists, |t| t.create(expected[4], Hints::default()));
    it.refuse(ErrorKind::NotFound, |t| t.write(version(objects[2], 5), 0, vec![1]));
    for _ in 0..2 {
        assert_eq!(it.device().list(ObjectId(0), 99), Ok(expected.clone()));
        assert_eq!(it.device().list(ObjectId::FIRST_VERSION, 99), Ok(expected[4..].to_vec()));
        assert_eq!(it.device().list(version(objects[1], 0), 2), Ok(expected[6..8].to_vec()));
        assert_eq!(it.device().space().objects, 9);
        for (number, object) in objects.iter().enumerate() {
            it.expect(*object, &pattern(number as u64, 3_000));
        }
        for one in &expected[4..] {
            it.expect(*one, &pattern(one.0, 9_000));
            assert_eq!(it.attribute(*one, 1), Some(vec![7; 90]));
        }
        it.harness.reopen();
    }
    // Each goes for itself.
    it.commit(|t| t.remove(expected[5]).remove(objects[3]).truncate(expected[4], 100));
    for _ in 0..2 {
        it.expect_missing(expected[5]);
        it.expect_missing(objects[3]);
        it.expect(expected[4], &pattern(expected[4].0, 9_000)[..100]);
        it.expect(expected[7], &pattern(expected[7].0, 9_000));
        it.expect(objects[0], &pattern(0, 3_000));
        it.harness.reopen();
    }
    it.commit(|t| expected[4..5].iter().chain(&expected[6..]).fold(t, |t, one| t.remove(*one)));
    assert_eq!(it.device().list(ObjectId(0), 99), Ok(objects[..3].to_vec()));
}

fn versions_take_no_ids(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object_of(b"abc");
    for generation in [0, 5, ObjectId::LAST_GENERATION] {
        it.commit(|t| t.create(version(object, generation), Hints::default()));
        let next = it.id();
        assert!(next > object && next.0 < object.0 + 4096, "after a version came {next}");
        it.harness.reopen();
        let next = it.id();
        assert!(next > object && next.0 < object.0 + 4096, "after a mount came {next}");
    }
}

fn versions_take_no_ids_across_crashes(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object_of(b"abc");
    for generation in [0, 5, ObjectId::LAST_GENERATION] {
        it.commit_durably(|t| t.create(version(object, generation), Hints::default()));
        it.harness.crash();
        let next = it.id();
        assert!(next > object && next.0 < object.0 + 4096, "after a crash came {next}");
        it.expect(version(object, generation), b"");
    }
}

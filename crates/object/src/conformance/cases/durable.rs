//! What survives a crash (N1, N2, N3, N5).

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::durability::SyncScope;
use crate::error::ErrorKind;
use crate::hints::Hints;
use crate::id::ObjectId;
use alloc::vec;
use alloc::vec::Vec;

suite! { "durable":
    Crash a_fresh_device_survives_a_crash,
    Crash a_durable_commit_survives,
    Crash a_durable_commit_takes_earlier_ones_along,
    Crash sync_of_all_makes_earlier_commits_durable,
    Crash sync_of_one_object_covers_what_came_before,
    Crash survivors_are_a_prefix,
    Crash transactions_are_whole_after_a_crash,
    Crash what_a_crash_left_stays,
    Crash close_makes_everything_durable,
    Crash refused_transactions_leave_nothing,
    Crash removed_and_truncated_bytes_stay_away,
    Crash work_goes_on_after_every_crash,
    Crash a_large_durable_write_survives,
    Nothing sync_of_a_missing_object_is_harmless,
}

fn a_fresh_device_survives_a_crash(make: Maker<'_>) {
    let mut it = Subject::new(make);
    for _ in 0..3 {
        it.harness.crash();
        assert_eq!(it.device().list(ObjectId(0), 10), Ok(vec![]));
    }
    it.object_of(b"abc");
}

fn a_durable_commit_survives(make: Maker<'_>) {
    let mut it = Subject::new(make);
    for round in 0..8 {
        let object = it.id();
        let bytes = pattern(round, 1 << (2 * round));
        it.commit_durably(|t| {
            t.create(object, Hints { embed: true, ..Hints::default() }).write(object, 0, bytes.clone());
            t.set_attribute(object, key(1), vec![round as u8; 30])
        });
        it.harness.crash();
        it.expect(object, &bytes);
        assert_eq!(it.attribute(object, 1), Some(vec![round as u8; 30]));
        assert!(it.device().stat(object).unwrap().hints.embed);
    }
}

fn a_durable_commit_takes_earlier_ones_along(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let objects: Vec<ObjectId> = (0..20).map(|number| it.object_of(&pattern(number, 3_000))).collect();
    it.commit_durably(|t| t.set_attribute(objects[0], key(0), vec![1]));
    it.harness.crash();
    for (number, object) in objects.iter().enumerate() {
        it.expect(*object, &pattern(number as u64, 3_000));
    }
}

fn sync_of_all_makes_earlier_commits_durable(make: Maker<'_>) {
    let mut it = Subject::new(make);
    for round in 0..5 {
        let object = it.object_of(&pattern(round, 20_000));
        it.commit(|t| t.punch(object, 100, 5_000).truncate(object, 15_000));
        it.device().sync(SyncScope::All).unwrap();
        let before = it.dump();
        it.harness.crash();
        assert_eq!(it.dump().difference(&before), None);
    }
}

fn sync_of_one_object_covers_what_came_before(make: Maker<'_>) {
    let mut it = Subject::new(make);
    for round in 0..5 {
        let (earlier, object) = (it.object_of(&pattern(round, 5_000)), it.object_of(b"synced"));
        it.device().sync(SyncScope::Object(object)).unwrap();
        it.object_of(b"later");
        it.harness.crash();
        it.expect(earlier, &pattern(round, 5_000));
        it.expect(object, b"synced");
    }
}

/// Buffered commits make objects in order; after the crash the first so many are there.
fn survivors_are_a_prefix(make: Maker<'_>) {
    let mut it = Subject::new(make);
    for round in 0..10 {
        let durable = it.object_of(b"durable");
        it.device().sync(SyncScope::All).unwrap();
        let objects: Vec<ObjectId> = (0..50).map(|number| it.object_of(&pattern(number, 700 * round))).collect();
        it.harness.crash();
        it.expect(durable, b"durable");
        let survivors = objects.iter().take_while(|object| it.device().stat(**object).is_ok()).count();
        for (number, object) in objects.iter().enumerate() {
            if number < survivors {
                it.expect(*object, &pattern(number as u64, 700 * round));
            } else {
                it.expect_missing(*object);
            }
        }
    }
}

fn transactions_are_whole_after_a_crash(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let objects: Vec<ObjectId> = (0..5).map(|_| it.object_of(&[0; 8])).collect();
    it.device().sync(SyncScope::All).unwrap();
    let mut last = 0;
    for round in 1..=60u64 {
        it.commit(|t| {
            for object in &objects {
                t.write(*object, 0, round.to_le_bytes().to_vec()).write(*object, 100, pattern(round, 2_000));
                t.set_attribute(*object, key(0), round.to_le_bytes().to_vec());
            }
            t
        });
        if round % 6 == 0 {
            it.harness.crash();
            let found = it.read(objects[0], 0, 8);
            for object in &objects {
                assert_eq!(it.read(*object, 0, 8), found, "half a transaction after round {round}");
                let number = u64::from_le_bytes(found.clone().try_into().unwrap());
                assert!(number >= last && number <= round, "state {number} after round {round}");
                if number > 0 {
                    assert_eq!(it.attribute(*object, 0), Some(found.clone()));
                    assert!(it.read(*object, 100, 2_000) == pattern(number, 2_000));
                }
            }
            last = u64::from_le_bytes(found.try_into().unwrap());
        }
    }
}

fn what_a_crash_left_stays(make: Maker<'_>) {
    let mut it = Subject::new(make);
    for round in 0..5 {
        for number in 0..10 {
            it.object_of(&pattern(number, 3_000 * round));
        }
        it.harness.crash();
        let before = it.dump();
        for _ in 0..3 {
            it.harness.crash();
            assert_eq!(it.dump().difference(&before), None, "a second crash changed what the first one left");
        }
        it.harness.reopen();
        assert_eq!(it.dump().difference(&before), None);
    }
}

fn close_makes_everything_durable(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object_of(&pattern(1, 10_000));
    it.harness.reopen();
    it.harness.crash();
    it.expect(object, &pattern(1, 10_000));
}

fn refused_transactions_leave_nothing(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object_of(b"before");
    let missing = it.id();
    for _ in 0..10 {
        it.refuse(ErrorKind::NotFound, |t| t.write(object, 0, b"broken".to_vec()).remove(missing));
    }
    it.device().sync(SyncScope::All).unwrap();
    it.harness.crash();
    it.expect(object, b"before");
}

fn removed_and_truncated_bytes_stay_away(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let (removed, cut) = (it.object_of(&pattern(1, 30_000)), it.object_of(&pattern(2, 30_000)));
    it.device().sync(SyncScope::All).unwrap();
    it.commit_durably(|t| t.remove(removed).truncate(cut, 5_000).truncate(cut, 30_000));
    let mut expected = pattern(2, 5_000);
    expected.resize(30_000, 0);
    for _ in 0..2 {
        it.harness.crash();
        it.expect_missing(removed);
        it.expect(cut, &expected);
    }
}

fn work_goes_on_after_every_crash(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let log = it.object();
    it.device().sync(SyncScope::All).unwrap();
    let mut expected = Vec::new();
    for round in 0..40 {
        let piece = pattern(round, 900);
        it.commit_durably(|t| t.write(log, expected.len() as u64, piece.clone()));
        expected.extend(piece);
        it.object_of(&pattern(round, 100));
        it.harness.crash();
        it.expect(log, &expected);
    }
}

fn a_large_durable_write_survives(make: Maker<'_>) {
    let mut it = Subject::with_bytes(make, 32 << 20);
    let object = it.object();
    let bytes = pattern(3, 4 << 20);
    it.commit_durably(|t| t.write(object, 77, bytes.clone()));
    it.harness.crash();
    assert!(it.read(object, 77, 5 << 20) == bytes, "the bytes read back differ");
}

fn sync_of_a_missing_object_is_harmless(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.remove(object));
    assert_eq!(it.device().sync(SyncScope::Object(object)), Ok(()));
    assert_eq!(it.device().sync(SyncScope::Object(ObjectId(u64::MAX))), Ok(()));
}

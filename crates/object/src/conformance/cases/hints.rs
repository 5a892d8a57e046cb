//! Hints: kept, shown, and without any effect on results.

use crate::conformance::generate::Generator;
use crate::conformance::subject::{Subject, pattern};
use crate::conformance::{Maker, suite};
use crate::hints::{Compression, Hints, Lifetime, ObjectKind, Temperature};
use crate::id::ObjectId;
use alloc::vec;

suite! { "hints":
    Nothing hints_are_kept_and_shown,
    Nothing set_hints_replaces_all_of_them,
    Nothing hostile_hints_change_no_result,
    Nothing changing_hints_keeps_content,
}

/// Wrong and extreme advice.
fn hostile() -> [Hints; 6] {
    let usual = Hints::default();
    [
        Hints { expected_size: u64::MAX, embed: true, ..usual },
        Hints { locality: Some(ObjectId(u64::MAX)), placement_class: u16::MAX, ..usual },
        Hints { kind: ObjectKind::Special, embed: true, expected_size: 1, ..usual },
        Hints { kind: ObjectKind::Volume, lifetime: Lifetime::Short, temperature: Temperature::Cold, ..usual },
        Hints { compression: Compression::Small, parity_pages: u8::MAX, ..usual },
        Hints { kind: ObjectKind::Directory, locality: Some(ObjectId(0)), compression: Compression::Never, ..usual },
    ]
}

fn hints_are_kept_and_shown(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let given = hostile().map(|hints| {
        let object = it.id();
        it.commit(|t| t.create(object, hints));
        (object, hints)
    });
    for _ in 0..2 {
        for (object, hints) in &given {
            assert_eq!(it.device().stat(*object).unwrap().hints, *hints);
        }
        it.harness.reopen();
    }
}

fn set_hints_replaces_all_of_them(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    for hints in hostile().into_iter().chain([Hints::default()]) {
        it.commit(|t| t.set_hints(object, hints));
        assert_eq!(it.device().stat(object).unwrap().hints, hints);
        it.expect(object, b"abc");
    }
}

/// The same operations under other advice give the same tree.
fn hostile_hints_change_no_result(make: Maker<'_>) {
    let it = Subject::new(make);
    let objects = hostile().map(|hints| {
        let object = it.id();
        it.commit(|t| t.create(object, hints));
        object
    });
    let mut bytes = pattern(1, 60_000);
    for object in objects {
        it.commit(|t| t.write(object, 0, bytes.clone()).write(object, 10_001, vec![0; 20_000]));
        it.commit(|t| t.punch(object, 40_000, 5_000).truncate(object, 50_000));
    }
    bytes[10_001..30_001].fill(0);
    bytes[40_000..45_000].fill(0);
    bytes.truncate(50_000);
    for object in objects {
        it.expect(object, &bytes);
    }
}

fn changing_hints_keeps_content(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let bytes = pattern(2, 30_000);
    let object = it.object_of(&bytes);
    let mut generator = Generator::new(3);
    for round in 0..30u64 {
        let hints = Hints { encryption_key: 0, ..generator.hints() };
        it.commit(|t| {
            t.set_hints(object, hints).write(object, round * 1_000, bytes[round as usize * 1_000..][..1_000].to_vec())
        });
        it.expect(object, &bytes);
    }
    it.harness.reopen();
    it.expect(object, &bytes);
}

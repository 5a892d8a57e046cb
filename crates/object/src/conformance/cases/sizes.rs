//! Large and many.

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::durability::Durability;
use crate::hints::Hints;
use crate::id::ObjectId;
use crate::transaction::Transaction;

suite! { "sizes":
    Nothing a_write_of_eight_mib,
    Nothing many_tiny_objects,
    Nothing a_thousand_mutations_of_one_object,
    Nothing rewriting_one_object_over_and_over,
    Nothing maintain_changes_nothing_visible,
    Nothing close_and_reopen_keep_everything,
}

fn a_write_of_eight_mib(make: Maker<'_>) {
    let mut it = Subject::with_bytes(make, 32 << 20);
    let bytes = pattern(1, 8 << 20);
    let object = it.object();
    it.commit(|t| t.write(object, 12_345, bytes.clone()));
    for _ in 0..2 {
        assert!(it.read(object, 12_345, 9 << 20) == bytes, "the bytes read back differ");
        assert_eq!(it.read(object, 12_343, 4), [0, 0, bytes[0], bytes[1]]);
        it.harness.reopen();
    }
}

fn many_tiny_objects(make: Maker<'_>) {
    let mut it = Subject::with_bytes(make, 32 << 20);
    let first = it.device().reserve_ids(2_000).unwrap().0;
    for number in 0..2_000 {
        let object = ObjectId(first + number);
        it.commit(|t| {
            t.create(object, Hints::default()).write(object, 0, pattern(number, number as usize % 90));
            t.set_attribute(object, key(0), pattern(number, 40))
        });
    }
    it.harness.reopen();
    assert_eq!(it.device().space().objects, 2_000);
    for number in 0..2_000 {
        let object = ObjectId(first + number);
        assert_eq!(it.read(object, 0, 100), pattern(number, number as usize % 90));
        assert_eq!(it.attribute(object, 0), Some(pattern(number, 40)));
    }
}

fn a_thousand_mutations_of_one_object(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let bytes = pattern(2, 100_000);
    it.commit(|t| {
        for number in (0..1_000).rev() {
            t.write(object, number * 100, bytes[number as usize * 100..][..100].to_vec());
        }
        t
    });
    it.expect(object, &bytes);
}

fn rewriting_one_object_over_and_over(make: Maker<'_>) {
    let it = Subject::with_bytes(make, 4 << 20);
    let object = it.object();
    // Far more than the device holds passes through it.
    let rounds = it.device().space().total / (256 << 10) * 3;
    for round in 0..rounds.min(400) {
        it.commit(|t| t.write(object, 0, pattern(round, 256 << 10)));
    }
    it.expect(object, &pattern(rounds.min(400) - 1, 256 << 10));
}

fn maintain_changes_nothing_visible(make: Maker<'_>) {
    let it = Subject::new(make);
    for number in 0..40 {
        let object = it.object_of(&pattern(number, 40_000));
        it.commit(|t| t.set_attribute(object, key(number), pattern(number, 30)));
        if number % 2 == 0 {
            it.commit(|t| t.remove(object));
        }
    }
    let before = it.dump();
    for _ in 0..50 {
        it.device().maintain(8).unwrap();
        assert_eq!(it.dump().difference(&before), None);
    }
    let mut calls = 0;
    while it.device().maintain(64).unwrap().more {
        calls += 1;
        assert!(calls < 100_000, "maintenance of an idle device never ends");
    }
    assert_eq!(it.dump().difference(&before), None);
}

fn close_and_reopen_keep_everything(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let mut generator = crate::conformance::Generator::new(4);
    for _ in 0..3 {
        for _ in 0..150 {
            let transaction: Transaction = generator.transaction(it.device());
            it.device().commit(transaction, Durability::Buffered).unwrap();
        }
        let before = it.dump();
        it.harness.reopen();
        assert_eq!(it.dump().difference(&before), None);
        it.harness.reopen();
        assert_eq!(it.dump().difference(&before), None, "after a second mount without changes");
    }
}

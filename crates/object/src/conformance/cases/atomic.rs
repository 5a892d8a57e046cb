//! Transactions happen wholly or not at all (N3).

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::error::ErrorKind;
use crate::hints::Hints;
use crate::id::ObjectId;
use crate::transaction::{Mutation, Transaction};
use alloc::vec;
use alloc::vec::Vec;

suite! { "atomic":
    Nothing the_empty_transaction_changes_nothing,
    Nothing one_invalid_mutation_anywhere_undoes_all,
    Nothing the_first_invalid_mutation_decides,
    Nothing create_use_and_remove_in_one_transaction,
    Nothing remove_and_make_again_in_one_transaction,
    Nothing use_after_remove_in_one_transaction,
    Nothing a_refused_create_leaves_the_id_usable,
}

fn the_empty_transaction_changes_nothing(make: Maker<'_>) {
    let it = Subject::new(make);
    it.object_of(b"abc");
    let before = it.dump();
    it.commit(|t| t);
    it.commit_durably(|t| t);
    assert_eq!(it.dump().difference(&before), None);
}

/// Changes of every sort to two objects.
fn valid_changes(one: ObjectId, two: ObjectId, new: ObjectId) -> Vec<Mutation> {
    let mut transaction = Transaction::new();
    transaction.create(new, Hints::default()).write(new, 100, pattern(1, 5_000)).write(one, 3, vec![1; 9_000]);
    transaction.set_attribute(one, key(1), vec![1]).remove_attribute(two, key(2)).punch(two, 10, 9_000);
    transaction.set_hints(one, Hints { embed: true, ..Hints::default() }).truncate(two, 77).remove(one);
    transaction.mutations
}

fn one_invalid_mutation_anywhere_undoes_all(make: Maker<'_>) {
    let it = Subject::new(make);
    let (one, two, new) = (it.object_of(&pattern(2, 20_000)), it.object_of(&pattern(3, 20_000)), it.id());
    it.commit(|t| t.set_attribute(two, key(2), vec![2; 50]));
    let missing = it.id();
    let invalid = [
        (Mutation::Remove { object: missing }, ErrorKind::NotFound),
        (Mutation::Create { object: two, hints: Hints::default() }, ErrorKind::Exists),
        (Mutation::Truncate { object: two, size: u64::MAX }, ErrorKind::Invalid),
        (Mutation::SetAttribute { object: two, key: key(1), value: vec![0; 601] }, ErrorKind::Invalid),
        (Mutation::Write { object: two, offset: u64::MAX, data: vec![1] }, ErrorKind::Invalid),
    ];
    for (wrong, kind) in invalid {
        for position in 0..=9 {
            let mut mutations = valid_changes(one, two, new);
            mutations.insert(position, wrong.clone());
            it.refuse(kind, |t| {
                t.mutations = mutations;
                t
            });
        }
    }
    it.commit(|t| {
        t.mutations = valid_changes(one, two, new);
        t
    });
    it.expect_missing(one);
}

fn the_first_invalid_mutation_decides(make: Maker<'_>) {
    let it = Subject::new(make);
    let (object, missing) = (it.object_of(b"abc"), it.id());
    it.refuse(ErrorKind::Exists, |t| t.create(object, Hints::default()).remove(missing).truncate(object, u64::MAX));
    it.refuse(ErrorKind::Invalid, |t| t.truncate(object, u64::MAX).remove(missing));
    let mut transaction = Transaction::new();
    transaction.truncate(object, 1).remove(missing).create(object, Hints::default());
    let error = it.device().commit(transaction, crate::Durability::Durable).unwrap_err();
    assert_eq!((error.kind, error.object), (ErrorKind::NotFound, Some(missing)));
}

fn create_use_and_remove_in_one_transaction(make: Maker<'_>) {
    let it = Subject::new(make);
    it.object_of(b"stays");
    let before = it.dump();
    let object = it.id();
    it.commit(|t| {
        t.create(object, Hints::default()).write(object, 0, pattern(4, 20_000)).set_attribute(object, key(1), vec![1]);
        t.truncate(object, 10).set_hints(object, Hints::default()).remove(object)
    });
    assert_eq!(it.dump().difference(&before), None);
}

fn remove_and_make_again_in_one_transaction(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = ObjectId(9);
    it.commit(|t| {
        t.create(object, Hints::default()).write(object, 0, pattern(5, 20_000)).set_attribute(object, key(1), vec![1])
    });
    it.commit(|t| {
        t.write(object, 0, vec![7; 10]).remove(object).create(object, Hints::default()).write(object, 2, vec![3; 2])
    });
    it.expect(object, &[0, 0, 3, 3]);
    assert_eq!(it.attributes(object, 10), vec![]);
}

fn use_after_remove_in_one_transaction(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.refuse(ErrorKind::NotFound, |t| t.remove(object).write(object, 0, vec![1]));
    it.refuse(ErrorKind::NotFound, |t| t.remove(object).remove(object));
    it.refuse(ErrorKind::NotFound, |t| t.write(object, 0, vec![1]).remove(object).remove_attribute(object, key(1)));
    it.expect(object, b"abc");
}

fn a_refused_create_leaves_the_id_usable(make: Maker<'_>) {
    let it = Subject::new(make);
    let (object, missing) = (it.id(), it.id());
    it.refuse(ErrorKind::NotFound, |t| t.create(object, Hints::default()).write(object, 0, vec![1]).remove(missing));
    it.commit(|t| t.create(object, Hints::default()).write(object, 0, b"now".to_vec()));
    it.expect(object, b"now");
}

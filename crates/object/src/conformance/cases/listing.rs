//! The list of objects: order, cursor and limit.

use crate::conformance::subject::Subject;
use crate::conformance::{Maker, suite};
use crate::hints::Hints;
use crate::id::ObjectId;
use alloc::vec;
use alloc::vec::Vec;

suite! { "listing":
    Nothing list_is_in_order_and_complete,
    Nothing list_cursor_and_limit,
    Nothing list_while_objects_come_and_go,
    Nothing list_after_reopen,
}

/// All ids, fetched with this limit a call.
fn list(it: &Subject, limit: usize) -> Vec<ObjectId> {
    let mut all: Vec<ObjectId> = Vec::new();
    loop {
        let from = all.last().map_or(ObjectId(0), |last| ObjectId(last.0 + 1));
        let some = it.device().list(from, limit).unwrap();
        assert!(some.len() <= limit && some.first().is_none_or(|first| *first >= from));
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

/// Makes `count` objects.
fn populate(it: &Subject, count: u64) -> Vec<ObjectId> {
    let first = it.device().reserve_ids(count).unwrap().0;
    let ids: Vec<ObjectId> = (first..first + count).map(ObjectId).collect();
    it.commit(|t| {
        for id in ids.iter().rev() {
            t.create(*id, Hints::default());
        }
        t
    });
    ids
}

fn list_is_in_order_and_complete(make: Maker<'_>) {
    let it = Subject::new(make);
    let ids = populate(&it, 700);
    for limit in [1, 2, 100, 699, 700, 5_000] {
        assert_eq!(list(&it, limit), ids, "limit {limit}");
    }
}

fn list_cursor_and_limit(make: Maker<'_>) {
    let it = Subject::new(make);
    let ids = populate(&it, 10);
    it.commit(|t| t.remove(ids[4]).create(ObjectId(3), Hints::default()));
    let list = |from, limit| it.device().list(from, limit).unwrap();
    assert_eq!(list(ObjectId(0), 0), vec![]);
    assert_eq!(list(ObjectId(3), 1), vec![ObjectId(3)]);
    assert_eq!(list(ObjectId(4), 1), vec![ids[0]]);
    assert_eq!(list(ids[4], 1), vec![ids[5]]);
    assert_eq!(list(ObjectId(ids[9].0 + 1), 9), vec![]);
    assert_eq!(list(ObjectId(u64::MAX), 9), vec![]);
}

fn list_while_objects_come_and_go(make: Maker<'_>) {
    let it = Subject::new(make);
    let ids = populate(&it, 100);
    let mut seen = Vec::new();
    let mut from = ObjectId(0);
    while let Some(id) = it.device().list(from, 1).unwrap().first().copied() {
        it.commit(|t| t.remove(id));
        seen.push(id);
        from = ObjectId(id.0 + 1);
    }
    assert_eq!(seen, ids);
    assert_eq!(list(&it, 10), vec![]);
    assert_eq!(it.device().space().objects, 0);
}

fn list_after_reopen(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let mut ids = populate(&it, 300);
    it.commit(|t| t.remove(ids[100]).remove(ids[299]));
    ids.remove(299);
    ids.remove(100);
    it.harness.reopen();
    assert_eq!(list(&it, 64), ids);
    assert_eq!(it.device().space().objects, 298);
}

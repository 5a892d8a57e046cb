//! Attributes: values, order, cursors and limits.

use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::error::ErrorKind;
use crate::id::{AttributeKey, AttributeKind};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

suite! { "attributes":
    Nothing set_and_replace,
    Nothing an_empty_value_is_not_a_missing_one,
    Nothing remove_is_no_error_if_there_is_none,
    Nothing values_up_to_the_limit,
    Nothing values_past_the_limit_are_refused,
    Bare order_is_kind_then_index,
    Nothing cursor_and_limit,
    Bare kinds_do_not_mix,
    Nothing content_and_attributes_do_not_touch,
    Nothing set_remove_set_in_one_transaction,
    Nothing ten_thousand_in_one_object,
    Nothing random_churn_matches_a_map,
}

const ENDS: [AttributeKey; 4] = [
    AttributeKey::new(AttributeKind(0), 0),
    AttributeKey::new(AttributeKind(0), u64::MAX),
    AttributeKey::new(AttributeKind(255), 0),
    AttributeKey::new(AttributeKind(255), u64::MAX),
];

fn set_and_replace(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    assert_eq!(it.attribute(object, 1), None);
    for value in [pattern(1, 10), pattern(2, 500), pattern(3, 1), pattern(4, 500)] {
        it.commit(|t| t.set_attribute(object, key(1), value.clone()));
        assert_eq!(it.attribute(object, 1), Some(value));
    }
    assert_eq!(it.attributes(object, 10).len(), 1);
}

fn an_empty_value_is_not_a_missing_one(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object();
    it.commit(|t| t.set_attribute(object, key(1), vec![]));
    assert_eq!(it.attribute(object, 1), Some(vec![]));
    assert_eq!(it.attributes(object, 10), vec![(key(1), vec![])]);
    it.harness.reopen();
    assert_eq!(it.attribute(object, 1), Some(vec![]));
    it.commit(|t| t.remove_attribute(object, key(1)));
    assert_eq!(it.attribute(object, 1), None);
}

fn remove_is_no_error_if_there_is_none(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    it.commit(|t| t.remove_attribute(object, key(1)));
    it.commit(|t| t.set_attribute(object, key(2), vec![2]).remove_attribute(object, key(1)));
    it.commit(|t| t.remove_attribute(object, key(2)).remove_attribute(object, key(2)));
    assert_eq!(it.attributes(object, 10), vec![]);
}

fn values_up_to_the_limit(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    for length in [0, 1, 127, 128, 255, 256, 511, 512, 599, 600] {
        it.commit(|t| t.set_attribute(object, key(length as u64), pattern(5, length)));
    }
    for (key, value) in it.attributes(object, 3) {
        assert_eq!(value, pattern(5, key.index as usize));
    }
    assert_eq!(it.attributes(object, 3).len(), 10);
}

fn values_past_the_limit_are_refused(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    it.commit(|t| t.set_attribute(object, key(1), vec![7; 9]));
    for length in [601, 4_096, 1 << 20] {
        it.refuse(ErrorKind::Invalid, |t| t.set_attribute(object, key(1), vec![1; length]));
    }
    assert_eq!(it.attribute(object, 1), Some(vec![7; 9]));
}

fn order_is_kind_then_index(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let mut keys = ENDS.to_vec();
    for kind in [1, 2, 7, 200] {
        keys.extend([1, 255, 256, 65_536, 1 << 40, 1 << 63].map(|index| AttributeKey::new(AttributeKind(kind), index)));
    }
    // In no order, one transaction each, so that the device has to sort.
    for step in 0..keys.len() {
        let key = keys[step * 11 % keys.len()];
        it.commit(|t| t.set_attribute(object, key, vec![key.kind.0, step as u8]));
    }
    keys.sort();
    for limit in [1, 2, 7, 1_000] {
        let found: Vec<AttributeKey> = it.attributes(object, limit).into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, keys, "limit {limit}");
    }
}

fn cursor_and_limit(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    it.commit(|t| {
        for index in (0..100).step_by(10) {
            t.set_attribute(object, key(index), vec![index as u8]);
        }
        t
    });
    let from = |index, limit| it.device().attributes(object, key(index), limit).unwrap();
    assert_eq!(from(0, 0), vec![]);
    assert_eq!(from(10, 1), vec![(key(10), vec![10])]);
    assert_eq!(from(11, 1), vec![(key(20), vec![20])]);
    assert_eq!(from(90, 5), vec![(key(90), vec![90])]);
    assert_eq!(from(91, 5), vec![]);
    let end = AttributeKey::new(AttributeKind(255), u64::MAX);
    assert_eq!(it.device().attributes(object, end, 5), Ok(vec![]));
}

fn kinds_do_not_mix(make: Maker<'_>) {
    let it = Subject::new(make);
    let (one, two) = (it.object(), it.object());
    for (number, key) in ENDS.into_iter().enumerate() {
        it.commit(|t| t.set_attribute(one, key, vec![number as u8]).set_attribute(two, key, vec![100 + number as u8]));
    }
    it.commit(|t| t.remove_attribute(one, ENDS[1]).set_attribute(two, ENDS[2], vec![]));
    let values = |object| ENDS.map(|key| it.device().attribute(object, key).unwrap());
    assert_eq!(values(one), [Some(vec![0]), None, Some(vec![2]), Some(vec![3])]);
    assert_eq!(values(two), [Some(vec![100]), Some(vec![101]), Some(vec![]), Some(vec![103])]);
}

fn content_and_attributes_do_not_touch(make: Maker<'_>) {
    let it = Subject::new(make);
    let bytes = pattern(6, 30_000);
    let object = it.object_of(&bytes);
    it.commit(|t| t.set_attribute(object, key(1), pattern(7, 600)));
    it.expect(object, &bytes);
    it.commit(|t| t.truncate(object, 0));
    assert_eq!(it.attribute(object, 1), Some(pattern(7, 600)));
    it.commit(|t| t.write(object, 0, bytes.clone()).remove_attribute(object, key(1)));
    it.expect(object, &bytes);
}

fn set_remove_set_in_one_transaction(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    it.commit(|t| {
        t.set_attribute(object, key(1), vec![1]).remove_attribute(object, key(1)).set_attribute(
            object,
            key(1),
            vec![2],
        );
        t.set_attribute(object, key(2), vec![1]).remove_attribute(object, key(2))
    });
    assert_eq!(it.attributes(object, 10), vec![(key(1), vec![2])]);
}

fn ten_thousand_in_one_object(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object();
    let value = |index: u64| pattern(index, 20 + index as usize % 50);
    for batch in 0..100u64 {
        it.commit(|t| {
            for index in (0..100u64).map(|i| (batch * 100 + i) * 7_919 % 10_000) {
                t.set_attribute(object, key(index), value(index));
            }
            t
        });
    }
    it.harness.reopen();
    let all = it.attributes(object, 333);
    assert_eq!(all.len(), 10_000);
    for (index, (found, bytes)) in all.into_iter().enumerate() {
        assert_eq!((found, bytes), (key(index as u64), value(index as u64)));
    }
    assert_eq!(it.attribute(object, 5_555), Some(value(5_555)));
    it.commit(|t| {
        for index in (0..10_000).filter(|index| index % 10 != 0) {
            t.remove_attribute(object, key(index));
        }
        t
    });
    assert_eq!(it.attributes(object, 333).len(), 1_000);
}

fn random_churn_matches_a_map(make: Maker<'_>) {
    let mut it = Subject::new(make);
    let object = it.object();
    let mut expected = alloc::collections::BTreeMap::new();
    let mut prng = Prng::new(8);
    for round in 0..1_500u64 {
        let key = AttributeKey::new(AttributeKind(prng.below(4) as u8), prng.below(200));
        if prng.chance(1, 3) {
            it.commit(|t| t.remove_attribute(object, key));
            expected.remove(&key);
        } else {
            let value = pattern(round, prng.below(601) as usize);
            it.commit(|t| t.set_attribute(object, key, value.clone()));
            expected.insert(key, value);
        }
        if round % 500 == 250 {
            it.harness.reopen();
        }
    }
    assert!(it.attributes(object, 50).into_iter().eq(expected));
}

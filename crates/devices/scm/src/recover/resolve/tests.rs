//! However ids lie and whatever is said twice: what comes out is what a plain replay comes to.

use super::*;
use onode_base::Prng;
use std::collections::BTreeMap;

type Model = BTreeMap<(u64, u64, u64), Value>;

/// An event of chance, done to the model at once.
fn step(prng: &mut Prng, ids: u64, fresh: &mut u64, order: u64, model: &mut Model) -> (Key, Value) {
    let is_new = prng.chance(1, 3);
    *fresh += u64::from(is_new);
    let object = if is_new { *fresh } else { prng.below(ids).max(1) };
    let index = if prng.chance(1, 2) { 0 } else { prng.below(3) * 10 };
    let key = match if is_new { 0 } else { prng.below(4) } {
        0 => Key { object, class: 0, index: 0 },
        1 => Key { object, class: 1, index },
        class => Key { object, class, index },
    };
    let is_gone = prng.chance(1, 6);
    let place = if is_gone { GONE } else { crate::log::place::Place::new(64 * (order + 1), 40).0 };
    if key.is_extent() {
        let length = 10 * prng.below(4);
        for byte in key.index..key.index + length {
            model.remove(&(object, 1, byte));
            if !is_gone {
                model.insert((object, 1, byte), Value(place + byte - key.index, 0));
            }
        }
        return (key, Value(place, length));
    }
    if key.is_onode() && is_gone {
        model.retain(|(of, ..), _| *of != object);
    } else if is_gone {
        model.remove(&(object, key.class, key.index));
    } else {
        model.insert((object, key.class, key.index), Value(place, 0));
    }
    (key, Value(place, 0))
}

/// Entries byte by byte, as the model has them, and the bytes of each object's blocks.
fn entries_of(events: &Events) -> (Model, u64) {
    let mut found = Model::new();
    let mut before = None;
    let mut allocated = BTreeMap::new();
    let mut shown = BTreeMap::new();
    let (objects, live) = events
        .each_entry::<()>(|key, value| {
            assert!(before < Some(key), "{key:?} comes after {before:?}");
            before = Some(key);
            if key.is_extent() {
                *allocated.entry(key.object).or_insert(0) += value.1;
                for byte in 0..value.1 {
                    found.insert((key.object, 1, key.index + byte), Value(value.0 + byte, 0));
                }
            } else {
                if key.is_onode() {
                    shown.insert(key.object, value.1);
                }
                found.insert((key.object, key.class, key.index), Value(value.0, 0));
            }
            Ok(())
        })
        .unwrap();
    assert!(shown.iter().all(|(object, bytes)| allocated.get(object).unwrap_or(&0) == bytes));
    assert!(live > 0 || objects == 0);
    let mapped = events.mapped();
    assert_eq!(mapped.iter().map(|mapped| mapped.length).sum::<u64>(), allocated.values().sum::<u64>());
    assert!(mapped.iter().all(|mapped| found.contains_key(&(mapped.object.0, 1, mapped.offset))));
    (found, objects)
}

#[test]
fn what_comes_out_is_what_a_replay_comes_to() {
    for (seed, ids) in [1, 3, 7, 100, 3000, 1 << 40].into_iter().enumerate() {
        for round in 0..20 {
            let mut prng = Prng::new(seed as u64 * 100 + round);
            let (mut events, mut model, mut fresh) = (Events::default(), Model::new(), ids / 2);
            for order in 0..600 {
                let (key, value) = step(&mut prng, ids, &mut fresh, order, &mut model);
                events.push(key, value);
            }
            events.finish();
            // What is said of an object that there is not does not count.
            let there: Vec<u64> =
                model.keys().filter(|(_, class, _)| *class == 0).map(|(object, ..)| *object).collect();
            model.retain(|(object, ..), _| there.binary_search(object).is_ok());
            let (found, objects) = entries_of(&events);
            assert_eq!(objects, there.len() as u64, "{ids} ids, round {round}");
            assert!(found == model, "{ids} ids, round {round}");
        }
    }
    let mut nothing = Events::default();
    nothing.finish();
    assert_eq!(nothing.each_entry::<()>(|_, _| Err(())), Ok((0, 0)));
    assert!(nothing.mapped().is_empty());
}

#[test]
fn what_is_said_again_takes_no_room() {
    let mut events = Events::default();
    for order in 0..1000 {
        events.push(Key { object: 100 + order, class: 0, index: 0 }, Value(64 * order, 0));
        events.push(Key { object: 7, class: 5, index: 0 }, Value(64 * order, 0));
        events.push(Key { object: 8, class: 5, index: 0 }, Value(64 * order, 0));
    }
    assert_eq!((events.ascending.len(), events.others.len()), (1000, 2));
}

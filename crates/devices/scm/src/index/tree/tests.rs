//! The tree against a map of the standard library.

use super::*;
use onode_base::Prng;
use onode_media::SimPmem;
use onode_media::real::{MappedOptions, MappedPmem};
use onode_media::sim::pmem::options::PmemOptions;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Nodes one after another, those given back first.
struct Plain {
    next: Cell<u64>,
    end: u64,
    free: RefCell<Vec<u64>>,
}

impl Plain {
    fn new(end: u64) -> Self {
        Self { next: Cell::new(0), end, free: RefCell::new(Vec::new()) }
    }

    fn used(&self) -> u64 {
        self.next.get() / NODE_BYTES - self.free.borrow().len() as u64
    }
}

impl Nodes for Plain {
    fn allocate_node(&self) -> Option<u64> {
        if let Some(free) = self.free.borrow_mut().pop() {
            return Some(free);
        }
        let address = self.next.get();
        (address + NODE_BYTES <= self.end).then(|| {
            self.next.set(address + NODE_BYTES);
            address
        })
    }

    fn release_node(&self, address: u64) {
        self.free.borrow_mut().push(address);
    }
}

/// Some are one after another of few objects, and every fourth is of one that has many.
fn key(number: u64) -> Key {
    match number % 4 {
        0 => Key { object: 77, class: 2, index: number },
        _ => Key { object: number / 7, class: number % 3, index: number },
    }
}

/// Removes all entries of an object from a key on.
fn remove_object(tree: &mut Tree, memory: &dyn Pmem, from: Key) -> Vec<(Key, Value)> {
    let (mut removed, mut next) = (Vec::new(), Some(from));
    while let Some(from) = next {
        let may_be_more = tree.remove_object(memory, from, |key, value| removed.push((key, value)));
        next = may_be_more.then(|| tree.first_of(memory, from)).flatten();
    }
    removed
}

fn expect(tree: &Tree, memory: &dyn Pmem, model: &BTreeMap<Key, Value>, prng: &mut Prng) {
    let mut all = Vec::new();
    tree.scan(memory, Key::FIRST, |key, value| {
        all.push((key, value));
        true
    });
    assert!(all.iter().copied().eq(model.iter().map(|(key, value)| (*key, *value))), "the entries in order");
    for _ in 0..50 {
        let asked = key(prng.below(3000));
        assert_eq!(tree.get(memory, asked), model.get(&asked).copied());
        let floor = model.range(..=asked).next_back().map(|(key, value)| (*key, *value));
        assert_eq!(tree.floor(memory, asked), floor);
        let next = model.range((Bound::Excluded(asked), Bound::Unbounded)).next();
        let next = next.map(|(key, value)| (*key, *value));
        assert_eq!(tree.floor_or_next(memory, asked, |_| false), next);
        assert_eq!(tree.floor_or_next(memory, asked, |_| true), floor.or(next));
        let mut first = None;
        tree.scan(memory, asked, |key, value| {
            first = Some((key, value));
            false
        });
        assert_eq!(first, model.range(asked..).next().map(|(key, value)| (*key, *value)));
    }
}

#[test]
fn it_agrees_with_a_map() {
    for seed in 0..4 {
        // Nodes are looked at where they lie, or word by word.
        let memory: Box<dyn Pmem> = if seed % 2 == 0 {
            Box::new(SimPmem::new(1 << 20, PmemOptions::default()))
        } else {
            Box::new(MappedPmem::anonymous(1 << 20, &MappedOptions::default()).unwrap())
        };
        let memory = &*memory;
        let source = Plain::new(1 << 20);
        let mut prng = Prng::new(seed);
        let mut model = BTreeMap::new();
        let mut inserted = Vec::new();
        let mut tree = Tree::new(memory, &source).unwrap();
        for round in 0..6000 {
            let number = if seed == 0 { round } else { prng.below(3000) };
            // Phases of growth and of shrinking.
            if prng.below(10) < if round / 1500 % 2 == 0 { 7 } else { 3 } {
                let value = Value(prng.next_u64(), round);
                inserted.push(key(number));
                let before = tree.insert(memory, &source, key(number), value);
                assert_eq!(before, Ok(model.insert(key(number), value)));
            } else if prng.below(100) == 0 {
                let from = key(number);
                let to = Key { object: from.object + 1, ..Key::FIRST };
                let expected: Vec<(Key, Value)> = model.range(from..to).map(|(key, value)| (*key, *value)).collect();
                assert_eq!(remove_object(&mut tree, memory, from), expected);
                model.retain(|key, _| !(from..to).contains(key));
            } else {
                let number = if seed == 0 { prng.below(round + 1) } else { number };
                assert_eq!(tree.remove(memory, key(number)), model.remove(&key(number)));
            }
            if prng.below(8) == 0 {
                // Wherever the entries are by now, and if they are.
                for key in inserted.drain(..) {
                    let value = Value(prng.next_u64(), 0);
                    tree.change(memory, key, |_| Some(value));
                    model.entry(key).and_modify(|there| *there = value);
                }
                tree.restock(memory, &source).unwrap();
            }
            if round % 500 == 0 {
                expect(&tree, memory, &model, &mut prng);
            }
        }
        assert!(tree.bytes() / NODE_BYTES == source.used(), "no node is lost");
        let mut built = Tree::build(memory, &Plain::new(1 << 20), |add| {
            model.iter().try_for_each(|(key, value)| add(*key, *value))
        })
        .unwrap();
        expect(&built, memory, &model, &mut prng);
        for number in model.keys() {
            assert!(built.remove(memory, *number).is_some());
        }
        assert_eq!(built.nodes, 1);
    }
}

#[test]
fn an_insertion_without_room_changes_nothing() {
    let memory = SimPmem::new(64 << 10, PmemOptions::default());
    let source = Plain::new(64 << 10);
    let mut tree = Tree::new(&memory, &source).unwrap();
    let mut model = BTreeMap::new();
    let mut prng = Prng::new(5);
    let mut refused = 0;
    while refused < 100 {
        let number = prng.below(100_000);
        match tree.insert(&memory, &source, key(number), Value(number, 0)) {
            Ok(_) => drop(model.insert(key(number), Value(number, 0))),
            Err(NoRoom) => refused += 1,
        }
    }
    expect(&tree, &memory, &model, &mut prng);
}

#[test]
fn what_is_missing_has_neighbours_of_its_object_or_none() {
    let memory = &SimPmem::new(1 << 20, PmemOptions::default());
    let source = Plain::new(1 << 20);
    let mut tree = Tree::new(memory, &source).unwrap();
    let key = |object, index| Key { object, class: 0, index };
    for index in 0..1000 {
        tree.insert(memory, &source, key(5, 2 * index), Value(index, 0)).unwrap();
    }
    assert_eq!(tree.get_or_neighbour(memory, key(5, 100)), Ok(Value(50, 0)));
    for (object, index) in [(4, u64::MAX), (6, 0), (0, 0), (u64::MAX - 1, 0)] {
        assert_eq!(tree.get_or_neighbour(memory, key(object, index)), Err(false), "{object}");
    }
    let found = (0..1000).filter(|index| tree.get_or_neighbour(memory, key(5, 2 * index + 1)) == Err(true));
    assert_eq!(found.count(), 1000);
}

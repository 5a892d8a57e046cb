//! The tree against a map, with a store of blocks that goes from checkpoint to checkpoint.

use super::*;
use onode_base::Prng;
use onode_engine::Key;
use std::collections::BTreeMap;

struct Store {
    layout: Layout,
    blocks: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl ReadNodes for Store {
    fn read_node(&mut self, block: u64, _crc: u32) -> Result<Vec<u8>> {
        self.blocks.get(&block).cloned().ok_or_else(|| damaged("no such block"))
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }
}

fn write_changed(tree: &mut Tree, store: &mut Store) {
    for freed in tree.take_freed() {
        assert!(store.blocks.remove(&freed).is_some(), "block {freed} was given up twice");
    }
    let next = &mut store.next;
    let written = tree
        .write_changed(&mut || {
            *next += 1;
            Ok(*next)
        })
        .unwrap();
    store.blocks.extend(written.into_iter().map(|node| (node.block, node.bytes)));
    assert_eq!(store.blocks.len() as u64, tree.counts().nodes);
}

#[test]
fn any_history_equals_that_of_a_map() {
    let layout = Layout::new(1 << 30, None, None).unwrap();
    let mut store = Store { layout, blocks: BTreeMap::new(), next: layout.first_free() };
    let mut tree = Tree::at(0, 0, 0);
    let mut map: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
    let mut prng = Prng::new(11);
    for round in 0..40_000u64 {
        let grows = (round / 8_000).is_multiple_of(2);
        let key = Key { object: prng.below(300), kind: Key::ATTRIBUTE, index: prng.below(40) };
        if prng.chance(if grows { 8 } else { 2 }, 10) {
            let value = alloc::vec![round as u8; prng.below(if round % 50 == 0 { 1000 } else { 90 }) as usize];
            tree.put(&mut store, key, value.clone()).unwrap();
            map.insert(key, value);
        } else {
            assert_eq!(tree.remove(&mut store, &key).unwrap(), map.remove(&key).is_some());
        }
        let key = Key { index: prng.below(40), ..key };
        assert_eq!(tree.get(&mut store, &key).unwrap(), map.get(&key).map(|value| &value[..]));
        let next = map.range(key..).next().map(|(key, value)| (*key, &value[..]));
        assert_eq!(tree.next(&mut store, &key).unwrap(), next);
        if round % 700 == 0 {
            write_changed(&mut tree, &mut store);
            tree.evict(if round % 1400 == 0 { 3 } else { 0 });
            let (root, crc) = tree.root();
            if round % 2100 == 0 {
                tree = Tree::at(root, crc, store.blocks.len() as u64);
            }
        }
    }
    for key in map.keys() {
        assert!(tree.remove(&mut store, key).unwrap());
    }
    write_changed(&mut tree, &mut store);
    assert_eq!((tree.root(), tree.counts().nodes, store.blocks.len()), ((0, 0), 0, 0));
}

#[test]
fn entries_in_order_fill_their_nodes() {
    let layout = Layout::new(1 << 30, None, None).unwrap();
    let mut store = Store { layout, blocks: BTreeMap::new(), next: layout.first_free() };
    let mut tree = Tree::at(0, 0, 0);
    for object in 0..5_000 {
        tree.put(&mut store, Key::onode(onode_object::ObjectId(object)), alloc::vec![1; 80]).unwrap();
    }
    // 100 bytes an entry.
    assert!(tree.counts().nodes <= 5_000 / 40 + 6, "{:?}", tree.counts());
}

#[test]
fn an_entry_is_not_lost_in_a_node_without_a_place_for_it() {
    let layout = Layout::new(1 << 30, None, None).unwrap();
    let mut store = Store { layout, blocks: BTreeMap::new(), next: layout.first_free() };
    let empty = Node { level: 1, items: Items::Inner(Vec::new()), bytes: 0, used: 0 };
    let mut tree = Tree::at(0, 0, 0);
    tree.root = Some(Child { node: Some(Box::new(empty)), ..Child::default() });
    let error = tree.put(&mut store, Key::default(), alloc::vec![1]).unwrap_err();
    assert_eq!(error.kind, onode_object::ErrorKind::Corrupt);
    // Nor is it taken for one that was never there.
    assert!(tree.get(&mut store, &Key::default()).is_err());
    assert!(tree.next(&mut store, &Key::default()).is_err());
    assert!(tree.remove(&mut store, &Key::default()).is_err());
    assert!(tree.mark(&mut store, &Key::default()).is_err());
    assert!(tree.way(&mut store, &Key::default(), true, &mut Ways::default()).is_err());
}

#[test]
fn a_node_that_is_not_there_is_not_written_as_nothing() {
    use onode_object::ErrorKind;
    let changed = |object, node| (Key { object, ..Key::default() }, Child { node, ..Child::default() });
    let leaf = |level| Node { level, items: Items::Leaf(Vec::new()), bytes: 0, used: 0 };
    let tree_of = |items: Vec<(Key, Child)>| {
        let root = Node { level: 1, items: Items::Inner(items), bytes: 0, used: 0 };
        let mut tree = Tree::at(0, 0, 0);
        tree.root = Some(Child { node: Some(Box::new(root)), ..Child::default() });
        tree
    };
    let mut tree = tree_of(alloc::vec![changed(1, None), changed(2, Some(Box::new(leaf(0))))]);
    assert_eq!(tree.write_changed(&mut || Ok(9)).unwrap_err().kind, ErrorKind::Bug);
    // Leaves and what is none do not become one node.
    let mut tree = tree_of(alloc::vec![changed(1, Some(Box::new(leaf(0)))), changed(2, Some(Box::new(leaf(1))))]);
    assert_eq!(tree.pack().unwrap_err().kind, ErrorKind::Bug);
}

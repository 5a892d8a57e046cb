//! The tree against a `BTreeMap`, with write-backs in between.

use super::*;
use alloc::collections::BTreeMap;
use onode_base::Prng;

#[derive(Default)]
struct Memory {
    blobs: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl NodeSource for Memory {
    fn load(&mut self, reference: BlobReference, level: u8) -> Result<Arc<Node>> {
        let bytes = self.blobs.get(&reference.location.get()).expect("a live node");
        Ok(Arc::new(Node::decode(bytes, level).expect("a sound node")))
    }
    fn release(&mut self, reference: BlobReference) {
        assert!(self.blobs.remove(&reference.location.get()).is_some());
    }
    fn store(&mut self, bytes: &[u8], _: u8, _: Key) -> Result<BlobReference> {
        assert!(bytes.len() <= 2048);
        self.next += 1;
        self.blobs.insert(self.next, bytes.to_vec());
        Ok(BlobReference { location: self.next.into(), length: (bytes.len() as u32).into(), checksum: 0.into() })
    }
    fn keep(&mut self, _: BlobReference, _: Node) {}
}

fn contents(tree: &Tree, memory: &mut Memory) -> Vec<(Key, Vec<u8>)> {
    let mut all = Vec::new();
    tree.scan(memory, &Key::MIN, &mut |key, value| {
        all.push((*key, value.to_vec()));
        true
    })
    .unwrap();
    all
}

#[test]
fn behaves_like_a_map_through_growth_shrinking_and_write_back() {
    for seed in 0..6 {
        let mut prng = Prng::new(seed);
        let (mut tree, mut memory, mut model) = (Tree::new(2048), Memory::default(), BTreeMap::new());
        for step in 0..6000u32 {
            let shrinking = step / 1500 % 2 == 1;
            let key = Key { object: prng.below(40), kind: (prng.below(3) * 256) as u16, index: prng.below(60) };
            if prng.chance(if shrinking { 3 } else { 1 }, 4) {
                assert_eq!(tree.remove(&mut memory, &key).unwrap(), model.remove(&key).is_some());
            } else {
                let mut value = vec![0; prng.below(600) as usize];
                prng.fill(&mut value);
                tree.insert(&mut memory, key, &value).unwrap();
                model.insert(key, value);
            }
            if prng.chance(1, 97) {
                tree.write_back(&mut memory).unwrap();
                let (root, level) = tree.written_root().unwrap();
                tree = Tree::open(2048, root, level);
            }
            let probe = Key { object: prng.below(41), kind: (prng.below(3) * 256) as u16, index: prng.below(61) };
            let expected = model.range(..=probe).next_back().map(|(key, value)| (*key, value.clone()));
            assert_eq!(tree.last_at_or_before(&mut memory, &probe).unwrap(), expected, "seed {seed} step {step}");
            assert_eq!(tree.get(&mut memory, &probe, <[u8]>::to_vec).unwrap(), model.get(&probe).cloned());
        }
        let expected: Vec<_> = model.into_iter().collect();
        assert_eq!(contents(&tree, &mut memory), expected, "seed {seed}");
        for (key, _) in expected {
            assert!(tree.remove(&mut memory, &key).unwrap());
        }
        tree.write_back(&mut memory).unwrap();
        assert_eq!(memory.blobs.len(), 1, "only the empty root is left");
    }
}

#[test]
fn a_touched_node_moves_and_nothing_else_does() {
    let (mut tree, mut memory) = (Tree::new(2048), Memory::default());
    for index in 0..2000 {
        tree.insert(&mut memory, Key { object: 7, kind: 512, index }, &[1; 16]).unwrap();
    }
    tree.write_back(&mut memory).unwrap();
    let before = memory.blobs.len();
    let mut leaf = None;
    tree.walk(&mut memory, &mut |place, node| {
        if node.level() == 0 && leaf.is_none() {
            leaf = Some((place.unwrap().location.get(), node.first_key().unwrap()));
        }
        Ok(())
    })
    .unwrap();
    let (location, key) = leaf.unwrap();
    assert!(!tree.touch(&mut memory, &key, 0, location + 1_000_000).unwrap());
    assert_eq!(tree.dirty_bytes(), 0);
    assert!(tree.touch(&mut memory, &key, 0, location).unwrap());
    tree.write_back(&mut memory).unwrap();
    assert_eq!(memory.blobs.len(), before);
    assert!(!memory.blobs.contains_key(&location));
}

#[test]
fn damaged_nodes_are_refused() {
    let mut node = Node::new(0);
    for index in 0..20 {
        node.insert(Key { object: index / 3, kind: 256, index }, &[index as u8; 9]);
    }
    let bytes = node.encode();
    assert!(Node::decode(&bytes, 0).is_some());
    assert!(Node::decode(&bytes, 1).is_none());
    for cut in 0..bytes.len() {
        assert!(Node::decode(&bytes[..cut], 0).is_none(), "cut at {cut}");
    }
    let mut prng = Prng::new(3);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + prng.below(4) {
            let at = prng.below(damaged.len() as u64) as usize;
            damaged[at] = prng.next_u64() as u8;
        }
        if let Some(node) = Node::decode(&damaged, 0) {
            assert!((1..node.len()).all(|index| node.key(index - 1) < node.key(index)));
        }
    }
}

/// Restarts that were kept through changes say the same as those of a node that is read anew, and
/// no group is longer than it may be.
#[test]
fn a_changed_node_finds_what_one_read_anew_finds() {
    // The key that follows a new one becomes shorter by more than the new one takes, if the
    // difference of its object needs the long form and does so no more.
    const FAR: [u64; 6] = [1, 1 << 60, 1 << 61, (1 << 61) + 1, 3 << 61, 1 << 63];
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let (mut node, mut model) = (Node::new(0), BTreeMap::new());
        for step in 0..1500 {
            let object = prng.below(6);
            let object = if seed % 2 == 0 { object } else { FAR[object as usize] };
            let key = Key { object, kind: (prng.below(3) * 256) as u16, index: prng.below(40) };
            let grows = step / 300 % 2 == 0;
            match prng.below(10) {
                0 if node.len() > 4 => {
                    let keep = prng.below(node.encoded_bytes() as u64) as usize;
                    let right = node.split_after(keep);
                    node.check_restarts();
                    right.check_restarts();
                    node.append(&right);
                }
                1 if node.len() > 1 => {
                    // Another key between its neighbours.
                    let index = prng.below(node.len() as u64) as usize;
                    let old = node.key(index);
                    let new = Key { index: old.index + 1, ..old };
                    if index + 1 == node.len() || new < node.key(index + 1) {
                        node.replace_key(index, new);
                        let value = model.remove(&old).expect("it is there");
                        model.insert(new, value);
                    }
                }
                part if (part < 8) == grows => {
                    let mut value = vec![0; prng.below(40) as usize];
                    prng.fill(&mut value);
                    node.insert(key, &value);
                    model.insert(key, value);
                }
                _ => {
                    node.remove(&key);
                    model.remove(&key);
                }
            }
            node.check_restarts();
            assert_eq!(node.len(), model.len());
            assert_eq!(node.get(&key).map(<[u8]>::to_vec), model.get(&key).cloned(), "seed {seed} step {step}");
        }
        let found: Vec<_> = node.entries_from(0).map(|(key, value)| (key, value.to_vec())).collect();
        assert_eq!(found, model.into_iter().collect::<Vec<_>>(), "seed {seed}");
    }
}

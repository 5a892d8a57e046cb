//! Prefix codes: a binary tree of bytes in front of the codes that it gives them.
//!
//! The tree is written from the root on: a 1 and the byte for a leaf, a 0 and both subtrees for a
//! node.

use onode_codec::bits::{BitReader, BitWriter};

/// A tree of bytes.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A byte.
    Leaf(u8),
    /// Two subtrees: code bit 0 and code bit 1.
    Node(Box<[Tree; 2]>),
}

/// How often each byte occurs, without those that do not.
pub fn histogram(bytes: &[u8]) -> Vec<(u64, u8)> {
    let mut counts = [0u64; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let all = counts.iter().zip(0..=u8::MAX);
    all.filter(|&(&count, _)| count > 0).map(|(&count, byte)| (count, byte)).collect()
}

/// Writes `tree` and the codes of `bytes`, all of which it has.
pub fn encode(bytes: &[u8], tree: &Tree) -> Vec<u8> {
    let mut out = BitWriter::default();
    let mut codes = [(0u64, 0u32); 256];
    put_tree(tree, 0, 0, &mut codes, &mut out);
    for &byte in bytes {
        let (code, bits) = codes[usize::from(byte)];
        out.put(code, bits);
    }
    out.finish()
}

/// Writes a subtree and notes the codes in it. Sums of counts below 2^64 give no code of more than
/// 64 bits that is ever used, as each level about doubles them.
fn put_tree(tree: &Tree, code: u64, bits: u32, codes: &mut [(u64, u32); 256], out: &mut BitWriter) {
    match tree {
        Tree::Leaf(byte) => {
            codes[usize::from(*byte)] = (code, bits);
            out.put(1, 1);
            out.put(u64::from(*byte), 8);
        }
        Tree::Node(children) => {
            out.put(0, 1);
            let [zero, one] = &**children;
            put_tree(zero, code, bits + 1, codes, out);
            put_tree(one, code | 1 << bits, bits + 1, codes, out);
        }
    }
}

/// A node of a tree that is being decoded: children by index, or a byte.
#[derive(Clone, Copy)]
enum Slot {
    Leaf(u8),
    Node([u16; 2]),
}

/// The most nodes and leaves of a tree of bytes.
const SLOTS_MAX: usize = 511;

/// Takes a tree off `input` without recursion, so that its depth costs no stack.
fn take_tree(input: &mut BitReader<'_>) -> Option<Vec<Slot>> {
    let mut slots: Vec<Slot> = Vec::with_capacity(64);
    // Nodes whose second child is still to come.
    let mut open: Vec<(usize, bool)> = Vec::new();
    loop {
        let index = slots.len();
        if index == SLOTS_MAX {
            return None;
        }
        if input.take(1)? == 0 {
            slots.push(Slot::Node([index as u16 + 1, 0]));
            open.push((index, false));
            continue;
        }
        slots.push(Slot::Leaf(input.take(8)? as u8));
        loop {
            match open.pop() {
                None => return Some(slots),
                Some((node, false)) => {
                    let next = slots.len() as u16;
                    if let Some(Slot::Node(children)) = slots.get_mut(node) {
                        children[1] = next;
                    }
                    open.push((node, true));
                    break;
                }
                Some((_, true)) => {}
            }
        }
    }
}

/// The bytes that [`encode`] wrote.
pub fn decode(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    if length == 0 {
        return coded.is_empty().then(Vec::new);
    }
    let mut input = BitReader::new(coded);
    let slots = take_tree(&mut input)?;
    let root = *slots.first()?;
    if let Slot::Leaf(byte) = root {
        return Some(vec![byte; length]);
    }
    if length > coded.len() * 8 {
        return None;
    }
    let mut out = Vec::with_capacity(length);
    for _ in 0..length {
        let mut slot = root;
        loop {
            match slot {
                Slot::Leaf(byte) => break out.push(byte),
                Slot::Node(children) => {
                    let child = children.get(input.take(1)? as usize)?;
                    slot = *slots.get(usize::from(*child))?;
                }
            }
        }
    }
    Some(out)
}

//! Huffman coding: the two rarest subtrees become one until one is left.

use super::prefix::{self, Tree};

/// `bytes`, coded.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    tree(bytes).map_or_else(Vec::new, |tree| prefix::encode(bytes, &tree))
}

/// The tree with the shortest codes for `bytes`; `None` if there are none.
fn tree(bytes: &[u8]) -> Option<Tree> {
    let mut parts: Vec<(u64, Tree)> =
        prefix::histogram(bytes).into_iter().map(|(count, byte)| (count, Tree::Leaf(byte))).collect();
    // From the most frequent to the rarest; the rarest are taken off the end.
    parts.sort_by_key(|part| core::cmp::Reverse(part.0));
    while parts.len() > 1 {
        let (Some(rare), Some(next)) = (parts.pop(), parts.pop()) else { break };
        let sum = rare.0 + next.0;
        let at = parts.partition_point(|part| part.0 > sum);
        parts.insert(at, (sum, Tree::Node(Box::new([next.1, rare.1]))));
    }
    parts.pop().map(|part| part.1)
}

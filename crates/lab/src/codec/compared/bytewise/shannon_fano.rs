//! Shannon-Fano coding: the bytes, sorted by how often they occur, are halved again and again.

use super::prefix::{self, Tree};

/// `bytes`, coded.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut counts = prefix::histogram(bytes);
    counts.sort_by_key(|&(count, byte)| (core::cmp::Reverse(count), byte));
    tree(&counts).map_or_else(Vec::new, |tree| prefix::encode(bytes, &tree))
}

/// The tree of the bytes in `counts`, most frequent first.
fn tree(counts: &[(u64, u8)]) -> Option<Tree> {
    let total: u64 = counts.iter().map(|count| count.0).sum();
    match counts {
        [] => None,
        [(_, byte)] => Some(Tree::Leaf(*byte)),
        _ => {
            let mut first = 0;
            let mut split = 0;
            for (index, count) in counts.iter().enumerate().take(counts.len() - 1) {
                // One more only if that brings the first half nearer to half.
                if index > 0 && total.abs_diff(2 * first) <= total.abs_diff(2 * (first + count.0)) {
                    break;
                }
                first += count.0;
                split = index + 1;
            }
            let (low, high) = counts.split_at(split);
            Some(Tree::Node(Box::new([tree(low)?, tree(high)?])))
        }
    }
}

//! What no device could do better: figures beside those of the device that say how much of them is
//! the workload's.

use crate::stream::Operation;
use onode_base::evict::Lru;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

/// Pages that the reads of a stream take from a medium of such pages if each operation is durable
/// before the next one, nothing is written twice, and all else costs nothing: what one operation
/// wrote of a file lies in pages of its own. `cached` pages are kept, those written or read last.
pub(super) fn reads_of_pieces(stream: &[Operation], page_bytes: u64, cached: usize) -> u64 {
    let mut files: HashMap<&str, Vec<u64>> = HashMap::new();
    let mut cache = Lru::new(cached);
    let (mut next, mut reads) = (0, 0);
    for operation in stream {
        match operation {
            Operation::Create(name, bytes) | Operation::Append(name, bytes) => {
                let pages = next..next + bytes.div_ceil(page_bytes);
                next = pages.end;
                let file = files.entry(name).or_default();
                for page in pages {
                    file.push(page);
                    cache.insert(page, (), 1);
                }
            }
            Operation::Read(name) => {
                for page in files.get(name.as_str()).into_iter().flatten() {
                    if cache.get(page).is_none() {
                        reads += 1;
                        cache.insert(*page, (), 1);
                    }
                }
            }
            Operation::Delete(name) => _ = files.remove(name.as_str()),
            Operation::Write(..) | Operation::ReadPart(..) | Operation::Measure => {}
        }
    }
    reads
}

/// How far the most worn of `segments` runs ahead of the mean of `mean` erases if `resting` of them
/// hold what never changes, one of them is exchanged for a worn one each `every` segments opened,
/// each time the best pair, and all others are always erased in turn, the least worn first.
pub(super) fn wear_with_exchanges(segments: usize, resting: usize, mean: f64, every: usize) -> f64 {
    let erases = (mean * segments as f64) as u64;
    let mut resting: BTreeSet<(u64, usize)> = (0..resting).map(|number| (1, number)).collect();
    let mut working: BinaryHeap<Reverse<(u64, usize)>> =
        (resting.len()..segments).map(|number| Reverse((1, number))).collect();
    let mut most = 1;
    for turn in segments as u64..erases {
        let Some(Reverse((worn, number))) = working.pop() else { break };
        most = most.max(worn + 1);
        working.push(Reverse((worn + 1, number)));
        if (turn + 1).is_multiple_of(every as u64)
            && let Some(&least) = resting.first()
            && let Some(&Reverse(worst)) = working.iter().min()
            && least.0 < worst.0
        {
            resting.remove(&least);
            resting.insert(worst);
            working.retain(|one| one.0 != worst);
            working.push(Reverse(least));
        }
    }
    most as f64 / mean.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_once_each_and_not_at_all_out_of_the_cache() {
        let name = || "a".to_owned();
        let stream = [
            Operation::Create(name(), 3000),
            Operation::Append(name(), 100),
            Operation::Read(name()),
            Operation::Read(name()),
            Operation::Delete(name()),
        ];
        assert_eq!(reads_of_pieces(&stream, 2048, 0), 6);
        assert_eq!(reads_of_pieces(&stream, 2048, 2), 6, "each page drives out the next one wanted");
        assert_eq!(reads_of_pieces(&stream, 2048, 3), 0);
    }

    #[test]
    fn exchanges_take_longer_than_a_young_medium_has() {
        let never = wear_with_exchanges(100, 60, 30.0, usize::MAX);
        let seldom = wear_with_exchanges(100, 60, 30.0, 24);
        let often = wear_with_exchanges(100, 60, 30.0, 5);
        assert!(never > 2.0 && seldom < 1.3 && often < seldom, "{never} {seldom} {often}");
        assert!(wear_with_exchanges(100, 60, 8.0, 24) > seldom + 0.2);
    }
}

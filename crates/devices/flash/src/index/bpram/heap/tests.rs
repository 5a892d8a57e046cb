//! Places for buckets are the ones that a search granule by granule finds.

use super::*;
use onode_base::prng::Prng;

/// Where the highest run of so many free granules at or above `low` begins.
fn highest_run(heap: &Heap, count: usize, low: usize) -> Option<u32> {
    let mut run = 0;
    for index in (low..heap.count).rev() {
        run = if heap.has(index) { 0 } else { run + 1 };
        if run == count {
            return Some(index as u32);
        }
    }
    None
}

#[test]
fn a_place_for_a_bucket_is_the_last_that_is_free() {
    let mut random = Prng::new(1);
    for round in 0..40 {
        let mut heap = Heap::new(HEAP_BEGIN + GRANULE_BYTES * (1 + random.below(700)));
        let mut taken = Vec::new();
        for step in 0..400 {
            heap.reserve(random.below(40) * GRANULE_BYTES);
            if random.chance(1, 3) && !taken.is_empty() {
                heap.give(taken.swap_remove(random.below(taken.len() as u64) as usize));
                continue;
            }
            let most = if random.chance(1, 9) { 3000 } else { 512 };
            let bytes = 1 + random.below(most) as u32;
            let expected = highest_run(&heap, granules(bytes), heap.low);
            let span = heap.take_high(bytes);
            assert_eq!(span.map(|span| span.granule), expected, "round {round}, step {step}");
            taken.extend(span);
        }
        let used: usize = taken.iter().map(|span| granules(span.bytes)).sum();
        assert_eq!(heap.free, heap.count - used);
    }
}

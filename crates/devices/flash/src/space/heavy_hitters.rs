//! The objects that cost the most programs, from a sketch of fixed size.
//!
//! Counting every object takes memory that grows with their number. Here a table of [`ENTRIES`]
//! objects counts as the Space-Saving algorithm does (Metwally, Agrawal and El Abbadi): an object
//! that is not in a full table takes the place of the one with the least count, and that count. So
//! no count is too low, each is too high by at most what its entry says, and an object with more
//! than 1/32 of all is always there.

use alloc::vec::Vec;
use onode_object::powers::ObjectPrograms;

/// Objects that are told apart.
const ENTRIES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hitter {
    object: u64,
    bytes: u64,
    /// Of these, so many may have been others'.
    over: u64,
}

/// Bytes of content and attributes that were programmed for objects since the mount, moves of the
/// cleaner included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeavyHitters {
    entries: Vec<Hitter>,
}

impl HeavyHitters {
    /// `bytes` are programmed for `object`.
    pub fn count(&mut self, object: u64, bytes: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.object == object) {
            entry.bytes += bytes;
        } else if self.entries.len() < ENTRIES {
            if self.entries.is_empty() {
                self.entries.reserve_exact(ENTRIES);
            }
            self.entries.push(Hitter { object, bytes, over: 0 });
        } else if let Some(least) = self.entries.iter_mut().min_by_key(|entry| (entry.bytes, entry.object)) {
            *least = Hitter { object, bytes: least.bytes + bytes, over: least.bytes };
        }
    }

    /// The objects, those with the most pages of `page_bytes` first.
    pub fn objects(&self, page_bytes: u64) -> Vec<ObjectPrograms> {
        let pages = |bytes: u64| bytes.div_ceil(page_bytes.max(1));
        let mut entries = self.entries.clone();
        entries.sort_unstable_by_key(|entry| (core::cmp::Reverse(entry.bytes), entry.object));
        let of = |one: Hitter| ObjectPrograms { object: one.object, pages: pages(one.bytes), over: pages(one.over) };
        entries.into_iter().map(of).collect()
    }

    /// Memory it holds.
    pub const fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Hitter>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn counts_are_exact_while_there_is_room() {
        let mut costliest = HeavyHitters::default();
        for turn in 0..10 {
            for object in 0..32 {
                costliest.count(object, 100 + object * 10 + turn);
            }
        }
        let objects = costliest.objects(1000);
        assert_eq!(objects.len(), 32);
        assert_eq!(objects[0], ObjectPrograms { object: 31, pages: (4100_u64 + 45).div_ceil(1000), over: 0 });
    }

    #[test]
    fn what_costs_much_is_found_among_thousands() {
        let (mut costliest, mut prng) = (HeavyHitters::default(), Prng::new(3));
        let mut exact = [0_u64; 5000];
        for _ in 0..100_000 {
            // A third of all goes to four objects.
            let object = if prng.chance(1, 3) { prng.below(4) * 1000 } else { prng.below(5000) };
            exact[object as usize] += 4096;
            costliest.count(object, 4096);
        }
        let memory = costliest.memory_bytes();
        assert!(memory <= 32 * 24, "{memory} bytes");
        let objects = costliest.objects(4096);
        for hot in [0, 1000, 2000, 3000] {
            let place = objects.iter().position(|one| one.object == hot).expect("it is there");
            assert!(place < 4, "object {hot} is number {place}");
            let (pages, ObjectPrograms { pages: found, over, .. }) = (exact[hot as usize] / 4096, objects[place]);
            assert!(found >= pages && found - over <= pages, "{found} less at most {over} for {pages}");
        }
    }
}

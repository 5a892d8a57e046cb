//! The multi-level queue of paper 4 (section 3.5).
//!
//! The paper names neither the levels nor what happens to what is not used any more. Here the level
//! is the logarithm of the references, an entry sinks a level when it was not used for a lifetime,
//! and the oldest of the lowest level that holds anything goes first, one entry at a time: the
//! paper empties the whole level (`research/hybrid-peers.md` 24).

use onode_tier::policy::Policy;
use onode_tier::policy::lists::Lists;

const LEVELS: usize = 8;

pub(super) struct MultiQueue {
    lists: Lists<LEVELS>,
    /// Requests after which an unused entry sinks a level.
    lifetime: u64,
    capacity: u64,
}

impl MultiQueue {
    pub(super) fn new(capacity: u64) -> Self {
        Self { lists: Lists::default(), lifetime: capacity, capacity }
    }

    /// Sinks what outlived its time, at most one entry a level and request.
    fn age(&mut self, now: u64) {
        // As many requests as entries fit, by their present mean size, and twice over.
        let entries = self.lists.count() as u64;
        let fitting = (self.capacity * entries).checked_div(self.used()).unwrap_or(self.capacity);
        self.lifetime = fitting.saturating_mul(2).max(1);
        for level in 1..LEVELS {
            let Some(key) = self.lists.front(level) else { continue };
            let expired = self.lists.get(key).is_some_and(|entry| entry.stamp < now);
            if expired {
                if let Some(entry) = self.lists.get_mut(key) {
                    entry.stamp = now + self.lifetime;
                }
                self.lists.move_to(level - 1, key);
            }
        }
    }
}

impl Policy for MultiQueue {
    fn contains(&self, key: u64) -> bool {
        self.lists.get(key).is_some()
    }

    fn used(&self) -> u64 {
        self.lists.size_of_first(LEVELS)
    }

    fn hit(&mut self, key: u64, now: u64) {
        let lifetime = self.lifetime;
        if let Some(entry) = self.lists.get_mut(key) {
            entry.count = entry.count.saturating_add(1);
            entry.stamp = now + lifetime;
            let level = (entry.count.ilog2() as usize).min(LEVELS - 1);
            self.lists.move_to(level, key);
        }
        self.age(now);
    }

    fn insert(&mut self, key: u64, size: u64, now: u64) {
        self.lists.push(0, key, size, 1, now + self.lifetime);
        self.age(now);
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        let key = (0..LEVELS).find_map(|level| self.lists.front(level))?;
        self.lists.take(key);
        Some(key)
    }

    fn remove(&mut self, key: u64) {
        self.lists.take(key);
    }

    fn is_hot(&self, key: u64) -> bool {
        self.lists.get(key).is_some_and(|entry| entry.queue > 0)
    }
}

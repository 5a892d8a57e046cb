//! Least recently used.

use onode_tier::policy::Policy;
use onode_tier::policy::lists::Lists;

const KEPT: usize = 0;

pub(super) struct Lru(Lists<1>);

impl Lru {
    pub(super) fn new() -> Self {
        Self(Lists::default())
    }
}

impl Policy for Lru {
    fn contains(&self, key: u64) -> bool {
        self.0.get(key).is_some()
    }

    fn used(&self) -> u64 {
        self.0.size(KEPT)
    }

    fn hit(&mut self, key: u64, _now: u64) {
        if let Some(entry) = self.0.get_mut(key) {
            entry.count = entry.count.saturating_add(1);
        }
        self.0.move_to(KEPT, key);
    }

    fn insert(&mut self, key: u64, size: u64, _now: u64) {
        self.0.push(KEPT, key, size, 0, 0);
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        let key = self.0.front(KEPT)?;
        self.0.take(key);
        Some(key)
    }

    fn remove(&mut self, key: u64) {
        self.0.take(key);
    }

    fn is_hot(&self, key: u64) -> bool {
        self.0.get(key).is_some_and(|entry| entry.count > 0)
    }
}

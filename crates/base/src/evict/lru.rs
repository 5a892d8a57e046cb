//! Least recently used, with a budget in bytes.

use alloc::collections::BTreeMap;

/// A cache that forgets what was used longest ago once its values exceed the byte budget.
///
/// The newest value always stays, even when it alone exceeds the budget.
#[derive(Debug)]
pub struct Lru<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    order: BTreeMap<u64, K>,
    next_use: u64,
    bytes: usize,
    budget_bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Ord + Clone, V> Lru<K, V> {
    /// An empty cache of `budget_bytes`.
    #[must_use]
    pub const fn new(budget_bytes: usize) -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), next_use: 0, bytes: 0, budget_bytes }
    }

    /// The value of `key`, which becomes the most recently used.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&entry.used);
        entry.used = self.next_use;
        self.order.insert(self.next_use, key.clone());
        self.next_use += 1;
        Some(&entry.value)
    }

    /// Puts `value` of `bytes` under `key` and evicts what no longer fits.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        self.order.insert(self.next_use, key.clone());
        self.entries.insert(key, Entry { value, bytes, used: self.next_use });
        self.next_use += 1;
        self.bytes += bytes;
        self.evict();
    }

    /// Changes the budget and evicts what no longer fits.
    pub fn set_budget(&mut self, budget_bytes: usize) {
        self.budget_bytes = budget_bytes;
        self.evict();
    }

    /// The budget.
    #[must_use]
    pub const fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }

    fn evict(&mut self) {
        while self.bytes > self.budget_bytes && self.entries.len() > 1 {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes -= entry.bytes;
            }
        }
    }

    /// Takes the value of `key` out of the cache.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.used);
        self.bytes -= entry.bytes;
        Some(entry.value)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Bytes held now.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicts_the_longest_unused_and_counts_bytes() {
        let mut cache = Lru::new(30);
        for key in 0..3 {
            cache.insert(key, key * 10, 10);
        }
        assert_eq!(cache.get(&0), Some(&0));
        cache.insert(3, 30, 10);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.get(&0), Some(&0));
        cache.insert(4, 40, 100);
        assert_eq!(cache.get(&4), Some(&40));
        assert_eq!(cache.bytes(), 100);
        cache.remove(&4);
        assert_eq!(cache.bytes(), 0);
    }
}

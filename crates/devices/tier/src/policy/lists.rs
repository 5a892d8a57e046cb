//! Queues of keys with sizes: what every policy is made of.
//!
//! A key is in one queue at a time. Every operation takes time logarithmic in the number of keys.

use alloc::collections::BTreeMap;

/// A key's place and history.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its size, in the unit of the owner.
    pub size: u64,
    /// The number of the queue that it is in.
    pub queue: usize,
    /// References, as the policy counts them.
    pub count: u32,
    /// A moment, as the policy needs one.
    pub stamp: u64,
    place: u64,
}

#[derive(Debug, Default)]
struct Queue {
    order: BTreeMap<u64, u64>,
    size: u64,
}

/// `N` queues, numbered from 0.
#[derive(Debug)]
pub struct Lists<const N: usize> {
    entries: BTreeMap<u64, Entry>,
    queues: [Queue; N],
    next_place: u64,
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), queues: core::array::from_fn(|_| Queue::default()), next_place: 0 }
    }
}

impl<const N: usize> Lists<N> {
    /// A key's place and history.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&Entry> {
        self.entries.get(&key)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    /// The number of keys in all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Whether `key` is in one of the first `queues`.
    #[must_use]
    pub fn is_in_first(&self, key: u64, queues: usize) -> bool {
        self.get(key).is_some_and(|entry| entry.queue < queues)
    }

    /// Appends a key that is nowhere else, or leaves its place for this.
    pub fn push(&mut self, queue: usize, key: u64, size: u64, count: u32, stamp: u64) {
        self.take(key);
        let place = self.next_place;
        self.next_place += 1;
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.order.insert(place, key);
            queue.size += size;
        }
        self.entries.insert(key, Entry { size, queue, count, stamp, place });
    }

    /// Moves a key to the end of a queue, its own or another.
    pub fn move_to(&mut self, queue: usize, key: u64) {
        if let Some(entry) = self.take(key) {
            self.push(queue, key, entry.size, entry.count, entry.stamp);
        }
    }

    /// Takes a key out of whatever queue it is in.
    pub fn take(&mut self, key: u64) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        if let Some(queue) = self.queues.get_mut(entry.queue) {
            queue.order.remove(&entry.place);
            queue.size -= entry.size;
        }
        Some(entry)
    }

    /// The key that is in a queue the longest.
    #[must_use]
    pub fn front(&self, queue: usize) -> Option<u64> {
        self.queues.get(queue)?.order.first_key_value().map(|(_, key)| *key)
    }

    /// The sizes of a queue's keys together.
    #[must_use]
    pub fn size(&self, queue: usize) -> u64 {
        self.queues.get(queue).map_or(0, |queue| queue.size)
    }

    /// The sizes of the first `queues` together.
    #[must_use]
    pub fn size_of_first(&self, queues: usize) -> u64 {
        self.queues.iter().take(queues).map(|queue| queue.size).sum()
    }

    /// Drops the oldest keys of a queue until it holds no more than `most`.
    pub fn trim(&mut self, queue: usize, most: u64) {
        while self.size(queue) > most
            && let Some(oldest) = self.front(queue)
        {
            self.take(oldest);
        }
    }
}

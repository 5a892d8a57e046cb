//! 2Q: what was used once waits in a queue of a quarter; only what is asked for again after it left
//! that queue is kept among the rest, in the order of use.

use onode_tier::policy::Policy;
use onode_tier::policy::lists::Lists;

const ONCE: usize = 0;
const OFTEN: usize = 1;
const REMEMBERED: usize = 2;

pub(super) struct TwoQueue {
    lists: Lists<3>,
    capacity: u64,
}

impl TwoQueue {
    pub(super) fn new(capacity: u64) -> Self {
        Self { lists: Lists::default(), capacity }
    }
}

impl Policy for TwoQueue {
    fn contains(&self, key: u64) -> bool {
        self.lists.is_in_first(key, REMEMBERED)
    }

    fn used(&self) -> u64 {
        self.lists.size_of_first(REMEMBERED)
    }

    fn hit(&mut self, key: u64, _now: u64) {
        if self.lists.get(key).is_some_and(|entry| entry.queue == OFTEN) {
            self.lists.move_to(OFTEN, key);
        }
    }

    fn insert(&mut self, key: u64, size: u64, _now: u64) {
        let queue = match self.lists.get(key).map(|entry| entry.queue) {
            Some(OFTEN | REMEMBERED) => OFTEN,
            _ => ONCE,
        };
        self.lists.push(queue, key, size, 0, 0);
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        let once = self.lists.front(ONCE);
        let often = self.lists.front(OFTEN);
        if let Some(key) = once.filter(|_| self.lists.size(ONCE) > self.capacity / 4 || often.is_none()) {
            self.lists.move_to(REMEMBERED, key);
            self.lists.trim(REMEMBERED, self.capacity / 2);
            return Some(key);
        }
        self.lists.take(often?);
        often
    }

    fn remove(&mut self, key: u64) {
        self.lists.take(key);
    }

    fn is_hot(&self, key: u64) -> bool {
        self.lists.get(key).is_some_and(|entry| entry.queue == OFTEN)
    }
}

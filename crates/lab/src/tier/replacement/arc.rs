//! ARC: what was used once and what was used again, each in the order of use, with a border between
//! them that moves towards the side whose victims are asked for again.

use onode_tier::policy::Policy;
use onode_tier::policy::lists::Lists;

const ONCE: usize = 0;
const OFTEN: usize = 1;
const GONE_ONCE: usize = 2;
const GONE_OFTEN: usize = 3;

pub(super) struct Arc {
    lists: Lists<4>,
    capacity: u64,
    /// What `ONCE` should hold.
    target: u64,
    /// The newest key came back from `GONE_OFTEN`: that side keeps what it has when both are equal.
    often_returned: bool,
}

impl Arc {
    pub(super) fn new(capacity: u64) -> Self {
        Self { lists: Lists::default(), capacity, target: 0, often_returned: false }
    }
}

impl Policy for Arc {
    fn contains(&self, key: u64) -> bool {
        self.lists.is_in_first(key, GONE_ONCE)
    }

    fn used(&self) -> u64 {
        self.lists.size_of_first(GONE_ONCE)
    }

    fn hit(&mut self, key: u64, _now: u64) {
        if self.contains(key) {
            self.lists.move_to(OFTEN, key);
        }
    }

    fn insert(&mut self, key: u64, size: u64, _now: u64) {
        let (once, often) = (self.lists.size(GONE_ONCE).max(1), self.lists.size(GONE_OFTEN).max(1));
        let before = self.lists.get(key).map(|entry| entry.queue);
        match before {
            Some(GONE_ONCE) => self.target = (self.target + size * (often / once).max(1)).min(self.capacity),
            Some(GONE_OFTEN) => self.target = self.target.saturating_sub(size * (once / often).max(1)),
            _ => {}
        }
        self.often_returned = before == Some(GONE_OFTEN);
        self.lists.push(if before.is_some() { OFTEN } else { ONCE }, key, size, 0, 0);
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        let (once, often) = (self.lists.front(ONCE), self.lists.front(OFTEN));
        let size = self.lists.size(ONCE);
        let takes_once = size > self.target || (self.often_returned && size == self.target && size > 0);
        let (key, ghosts) = match (once, often) {
            (Some(key), None) => (key, GONE_ONCE),
            (Some(key), Some(_)) if takes_once => (key, GONE_ONCE),
            (_, often) => (often?, GONE_OFTEN),
        };
        self.lists.move_to(ghosts, key);
        // The ghosts of each side and its content together are no more than the whole.
        self.lists.trim(GONE_ONCE, self.capacity.saturating_sub(self.lists.size(ONCE)));
        self.lists.trim(GONE_OFTEN, self.capacity);
        Some(key)
    }

    fn remove(&mut self, key: u64) {
        self.lists.take(key);
    }

    fn is_hot(&self, key: u64) -> bool {
        self.lists.get(key).is_some_and(|entry| entry.queue == OFTEN)
    }
}

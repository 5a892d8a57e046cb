//! S3-FIFO: a small queue that most leaves again at once, a main queue with second chances, and a
//! list of what left the small one.

use onode_tier::policy::Policy;
use onode_tier::policy::lists::Lists;

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOSTS: usize = 2;

const MOST_COUNT: u32 = 3;

pub(super) struct S3Fifo {
    lists: Lists<3>,
    capacity: u64,
}

impl S3Fifo {
    pub(super) fn new(capacity: u64) -> Self {
        Self { lists: Lists::default(), capacity }
    }
}

impl Policy for S3Fifo {
    fn contains(&self, key: u64) -> bool {
        self.lists.is_in_first(key, GHOSTS)
    }

    fn used(&self) -> u64 {
        self.lists.size_of_first(GHOSTS)
    }

    fn hit(&mut self, key: u64, _now: u64) {
        if let Some(entry) = self.lists.get_mut(key)
            && entry.queue != GHOSTS
        {
            entry.count = (entry.count + 1).min(MOST_COUNT);
        }
    }

    fn insert(&mut self, key: u64, size: u64, _now: u64) {
        let queue = match self.lists.get(key).map(|entry| entry.queue) {
            Some(GHOSTS | MAIN) => MAIN,
            _ => SMALL,
        };
        self.lists.push(queue, key, size, 0, 0);
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        loop {
            let small = self.lists.front(SMALL);
            let main = self.lists.front(MAIN);
            if let Some(key) = small.filter(|_| self.lists.size(SMALL) >= self.capacity / 10 || main.is_none()) {
                if self.lists.get(key).is_some_and(|entry| entry.count > 1) {
                    self.lists.move_to(MAIN, key);
                    continue;
                }
                self.lists.move_to(GHOSTS, key);
                self.lists.trim(GHOSTS, self.capacity);
                return Some(key);
            }
            // Ends: each turn takes a count from one of finitely many.
            let key = main?;
            match self.lists.get_mut(key) {
                Some(entry) if entry.count > 0 => {
                    entry.count -= 1;
                    self.lists.move_to(MAIN, key);
                }
                _ => {
                    self.lists.take(key);
                    return Some(key);
                }
            }
        }
    }

    fn remove(&mut self, key: u64) {
        self.lists.take(key);
    }

    fn is_hot(&self, key: u64) -> bool {
        self.lists.get(key).is_some_and(|entry| entry.count > 0)
    }
}

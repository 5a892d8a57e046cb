//! The cache of names: where a name in a directory leads, by the home that the name hashes to.
//!
//! It has a budget of bytes and forgets what was not asked for since the sweep came by last. Two
//! names with one home take turns. Everything in it can be asked of the device again.

use crate::state::hash::NumberMap;
use crate::types::FileType;
use std::collections::VecDeque;

/// What the cache knows about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedName {
    pub inode: u64,
    pub file_type: FileType,
}

/// What an entry takes besides a long name.
const ENTRY_BYTES: usize = 128;
const SHORT_BYTES: usize = 38;
/// Entries that one insertion looks at, at most, before it takes one out.
const STEPS: usize = 8;

#[derive(Debug)]
enum Name {
    Short(u8, [u8; SHORT_BYTES]),
    Long(Box<[u8]>),
}

impl Name {
    fn new(name: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        match short.get_mut(..name.len()) {
            Some(start) => {
                start.copy_from_slice(name);
                Self::Short(name.len() as u8, short)
            }
            None => Self::Long(name.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(length, bytes) => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }

    const fn cost(&self) -> usize {
        match self {
            Self::Short(..) => ENTRY_BYTES,
            Self::Long(bytes) => ENTRY_BYTES + bytes.len(),
        }
    }
}

#[derive(Debug)]
struct CachedEntry {
    name: Name,
    found: CachedName,
    used: bool,
    /// The number of its place in the queue; others of the same key are of entries that are gone.
    place: u64,
}

/// Names of directories with where they lead.
#[derive(Debug)]
pub(crate) struct NameCache {
    entries: NumberMap<(u64, u64), CachedEntry>,
    /// Directories and homes in the order in which the sweep looks at them.
    sweep: VecDeque<((u64, u64), u64)>,
    next_place: u64,
    bytes: usize,
    budget_bytes: usize,
}

impl NameCache {
    pub(crate) fn new(budget_bytes: usize) -> Self {
        Self { entries: NumberMap::default(), sweep: VecDeque::new(), next_place: 0, bytes: 0, budget_bytes }
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&mut self, directory: u64, home: u64, name: &[u8]) -> Option<CachedName> {
        let entry = self.entries.get_mut(&(directory, home)).filter(|entry| entry.name.bytes() == name)?;
        entry.used = true;
        Some(entry.found)
    }

    pub(crate) fn insert(&mut self, directory: u64, home: u64, name: &[u8], found: CachedName) {
        let key = (directory, home);
        self.next_place += 1;
        let entry = CachedEntry { name: Name::new(name), found, used: false, place: self.next_place };
        self.bytes += entry.name.cost();
        if let Some(before) = self.entries.insert(key, entry) {
            self.bytes -= before.name.cost();
        }
        self.sweep.push_back((key, self.next_place));
        self.evict(key);
    }

    pub(crate) fn remove(&mut self, directory: u64, home: u64, name: &[u8]) {
        if self.entries.get(&(directory, home)).is_some_and(|entry| entry.name.bytes() == name) {
            self.take_out((directory, home));
        }
    }

    fn take_out(&mut self, key: (u64, u64)) {
        if let Some(entry) = self.entries.remove(&key) {
            self.bytes -= entry.name.cost();
        }
    }

    /// Brings the cache back into its budget, and the queue to about the entries that there are.
    fn evict(&mut self, newest: (u64, u64)) {
        let mut steps = 0;
        while self.bytes > self.budget_bytes && self.entries.len() > 1 || self.sweep.len() > 2 * self.entries.len() + 16
        {
            let Some((key, place)) = self.sweep.pop_front() else { break };
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.place == place) else { continue };
            steps += 1;
            if key == newest || self.bytes <= self.budget_bytes || (entry.used && steps <= STEPS) {
                entry.used = false;
                self.sweep.push_back((key, place));
            } else {
                self.take_out(key);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.sweep.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(inode: u64) -> CachedName {
        CachedName { inode, file_type: FileType::Regular }
    }

    #[test]
    fn it_keeps_what_is_used_within_its_budget() {
        let mut names = NameCache::new(100 * ENTRY_BYTES);
        names.insert(1, 0, b"used", found(7));
        for number in 1..10_000_u64 {
            names.insert(1, number, b"name", found(number));
            assert_eq!(names.get(1, 0, b"used"), Some(found(7)), "after {number}");
            assert_eq!(names.get(1, number, b"name"), Some(found(number)), "the newest stays");
            assert!(names.bytes() <= 100 * ENTRY_BYTES && names.sweep.len() <= 2 * names.entries.len() + 16);
        }
        assert!(names.entries.len() > 50, "{} entries", names.entries.len());
    }

    #[test]
    fn removed_names_leave_nothing_behind() {
        let mut names = NameCache::new(1 << 20);
        for number in 0..10_000_u64 {
            let name = vec![b'n'; 1 + number as usize % 255];
            names.insert(number % 3, number, &name, found(number));
            names.remove(number % 3, number, b"another");
            assert_eq!(names.get(number % 3, number, &name), Some(found(number)));
            names.remove(number % 3, number, &name);
            assert_eq!(names.get(number % 3, number, &name), None);
        }
        assert_eq!((names.bytes(), names.entries.len()), (0, 0));
        assert!(names.sweep.len() <= 2 + 16);
    }

    #[test]
    fn names_with_one_home_are_never_taken_for_each_other() {
        let mut names = NameCache::new(1 << 20);
        names.insert(1, 5, b"one", found(1));
        names.insert(1, 5, b"two", found(2));
        assert_eq!((names.get(1, 5, b"one"), names.get(1, 5, b"two")), (None, Some(found(2))));
        names.remove(1, 5, b"one");
        assert_eq!(names.get(1, 5, b"two"), Some(found(2)));
        names.clear();
        assert_eq!(names.get(1, 5, b"two"), None);
    }
}

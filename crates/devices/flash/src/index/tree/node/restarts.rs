//! Restarts of a node: entries whose key and place are known, from which those up to the next
//! restart are decoded.
//!
//! They exist in memory alone. It keeps true: the first entry has one, they are in order, and no
//! more than [`GROUP_ENTRIES_MAX`] entries are decoded from one. A change in the middle of a node
//! moves the restarts behind it and decodes nothing.

use alloc::vec::Vec;
use onode_engine::Key;

/// Entries from one restart to the next where they arrive in order.
pub(super) const GROUP_ENTRIES: usize = 16;
/// A group with more entries is divided.
pub(super) const GROUP_ENTRIES_MAX: usize = 24;
/// Memory is taken for so many at a time.
const GROWTH: usize = 2;

/// An entry from which others can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restart {
    /// Its key.
    pub(super) key: Key,
    /// Where it starts.
    pub(super) start: u32,
    /// Its number.
    pub(super) index: u32,
}

/// The restarts of a node, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Restarts {
    all: Vec<Restart>,
}

impl Restarts {
    pub(super) const fn new() -> Self {
        Self { all: Vec::new() }
    }

    /// Takes memory for those of so many entries in order.
    pub(super) fn reserve(&mut self, entries: usize) {
        self.all.reserve_exact(entries.div_ceil(GROUP_ENTRIES).saturating_sub(self.all.len()));
    }

    pub(super) fn first(&self) -> Option<&Restart> {
        self.all.first()
    }

    /// The last one at or before a key.
    pub(super) fn of_key(&self, key: &Key) -> Option<&Restart> {
        self.all[..self.all.partition_point(|restart| restart.key <= *key)].last()
    }

    /// The last one at or before an entry.
    pub(super) fn of_index(&self, index: usize) -> Option<&Restart> {
        self.all[..self.behind(index)].last()
    }

    /// How many stand at or before an entry.
    fn behind(&self, index: usize) -> usize {
        self.all.partition_point(|restart| restart.index as usize <= index)
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Restart>()
    }

    fn put(&mut self, at: usize, restart: Restart) {
        if self.all.len() == self.all.capacity() {
            self.all.reserve_exact(GROWTH);
        }
        self.all.insert(at, restart);
    }

    /// Takes in an entry behind all others.
    pub(super) fn push(&mut self, key: Key, start: usize, index: usize) {
        if self.all.last().is_none_or(|last| index - last.index as usize >= GROUP_ENTRIES) {
            self.put(self.all.len(), Restart { key, start: start as u32, index: index as u32 });
        }
    }

    /// Forgets those from an entry on.
    pub(super) fn cut(&mut self, index: usize) {
        self.all.truncate(self.all.partition_point(|restart| (restart.index as usize) < index));
    }

    /// An entry was put in before the one that had its number, and all behind moved by so many
    /// bytes. Returns the restart of its group and the group's number of entries, of which the node
    /// now has `count` in all, if the group is to be divided.
    pub(super) fn inserted(&mut self, key: Key, index: usize, bytes: isize, count: usize) -> Option<(Restart, usize)> {
        let mut behind = self.all.partition_point(|restart| (restart.index as usize) < index);
        if let Some(here) = self.all.get_mut(behind).filter(|restart| restart.index as usize == index) {
            here.key = key;
            behind += 1;
        }
        for restart in &mut self.all[behind..] {
            restart.index += 1;
            restart.start = restart.start.wrapping_add_signed(bytes as i32);
        }
        let restart = *self.all.get(behind.checked_sub(1)?)?;
        let end = self.all.get(behind).map_or(count, |next| next.index as usize);
        let entries = end - restart.index as usize;
        (entries > GROUP_ENTRIES_MAX).then_some((restart, entries))
    }

    /// Divides a group at an entry.
    pub(super) fn divide(&mut self, restart: Restart) {
        self.put(self.behind(restart.index as usize), restart);
    }

    /// The entry of this number is gone and the one behind it, if there is one, is `next`; all
    /// behind moved by so many bytes.
    pub(super) fn removed(&mut self, index: usize, start: usize, next: Option<Key>, bytes: isize) {
        let mut at = self.all.partition_point(|restart| (restart.index as usize) < index);
        if self.all.get(at).is_some_and(|restart| restart.index as usize == index) {
            let takes_over =
                next.filter(|_| self.all.get(at + 1).is_none_or(|other| other.index as usize != index + 1));
            match takes_over {
                Some(key) => {
                    self.all[at].key = key;
                    at += 1;
                }
                None => _ = self.all.remove(at),
            }
        }
        if let Some(restart) = self.all.get_mut(at).filter(|restart| restart.index as usize == index + 1) {
            (restart.index, restart.start) = (index as u32, start as u32);
            at += 1;
        }
        for restart in &mut self.all[at..] {
            restart.index -= 1;
            restart.start = restart.start.wrapping_add_signed(bytes as i32);
        }
        self.join(index);
    }

    /// Joins the group of an entry with the one behind it if both are small.
    fn join(&mut self, index: usize) {
        let at = self.behind(index);
        if let (Some(first), Some(behind)) = (at.checked_sub(1), self.all.get(at + 1))
            && (behind.index - self.all[first].index) as usize <= GROUP_ENTRIES
        {
            self.all.remove(at);
        }
    }

    /// The value of an entry became longer or shorter.
    pub(super) fn resized(&mut self, index: usize, bytes: isize) {
        let behind = self.behind(index);
        self.all[behind..]
            .iter_mut()
            .for_each(|restart| restart.start = restart.start.wrapping_add_signed(bytes as i32));
    }

    /// An entry has another key, and with it another length; that behind it starts at `next`, and
    /// what is behind that moved by so many bytes.
    pub(super) fn renamed(&mut self, index: usize, key: Key, next: usize, bytes: isize) {
        let behind = self.behind(index);
        if let Some(here) = self.all[..behind].last_mut().filter(|restart| restart.index as usize == index) {
            here.key = key;
        }
        for restart in &mut self.all[behind..] {
            restart.start = match restart.index as usize {
                number if number == index + 1 => next as u32,
                _ => restart.start.wrapping_add_signed(bytes as i32),
            };
        }
    }

    /// All of them, in order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Restart> {
        self.all.iter()
    }
}

//! Entries with a memory in front of the tree: onodes and extents are asked of the memory, and all
//! else, and what the memory lacks, of the tree.
//!
//! It keeps true: tree and memory say the same. A change goes to both, and what the memory has no
//! room for, or lost, it says is elsewhere.

use super::EntryStore;
use super::flash::FlashEntries;
use crate::index::bpram::{Bpram, Lookup, entries::BucketEntries as Bucket, keeps};
use crate::index::tree::Setting;
use crate::log::Log;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::Result;

/// The memory and the tree that it stands before.
pub struct MemoryEntries<'a> {
    memory: &'a mut Bpram,
    flash: &'a mut FlashEntries,
}

impl<'a> MemoryEntries<'a> {
    /// `memory` before `flash`.
    pub const fn new(memory: &'a mut Bpram, flash: &'a mut FlashEntries) -> Self {
        Self { memory, flash }
    }

    /// The tree behind it, which has all entries.
    pub const fn flash(&mut self) -> &mut FlashEntries {
        self.flash
    }

    /// Visits entries that the memory answers for, wherever they are now, in the order of their
    /// keys from `from` on, until `visit` returns false.
    pub fn scan_kept(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        let mut from = *from;
        loop {
            let (entries, next) = self.memory.run(&from);
            let mut goes_on = true;
            match entries {
                Some(entries) => goes_on = entries.from(&from).iter().all(|(key, value)| visit(key, value)),
                None => {
                    self.flash.scan(log, &from, &mut |key, value| {
                        if next.is_some_and(|next| *key >= next) {
                            return false;
                        }
                        goes_on = !keeps(key.kind) || visit(key, value);
                        goes_on
                    })?;
                }
            }
            match next {
                Some(next) if goes_on => from = next,
                _ => return Ok(()),
            }
        }
    }

    /// Takes over from the tree up to `limit` entries that the memory lacks, with the first of
    /// them, and returns how many; none if it lacks nothing, or is full.
    pub fn refill(&mut self, log: &mut Log, limit: usize) -> Result<Option<u64>> {
        if self.memory.is_full(limit / 16) {
            return Ok(None);
        }
        let Some((first, end)) = self.memory.first_elsewhere() else { return Ok(None) };
        let (mut taken, mut rest) = (Bucket::default(), None);
        self.flash.scan_as(log, &first, IoTag::Recovery, &mut |key, value| {
            if end.is_some_and(|end| *key >= end) {
                return false;
            }
            if !keeps(key.kind) {
                return true;
            }
            if taken.len() == limit {
                rest = Some(*key);
                return false;
            }
            taken.insert(*key, value);
            true
        })?;
        let count = taken.len() as u64;
        self.memory.fill(first, taken, rest);
        Ok(Some(count))
    }
}

impl EntryStore for MemoryEntries<'_> {
    fn get(&mut self, log: &mut Log, key: &Key, found: &mut dyn FnMut(&[u8])) -> Result<()> {
        if keeps(key.kind) && matches!(self.memory.get(key, &mut *found), Lookup::Here(_)) {
            return Ok(());
        }
        self.flash.get(log, key, found)
    }

    fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        if keeps(from.kind) { self.scan_kept(log, from, visit) } else { self.flash.scan(log, from, visit) }
    }

    fn at_or_before(&mut self, log: &mut Log, key: &Key) -> Result<Option<(Key, Vec<u8>)>> {
        match self.memory.floor(key) {
            Lookup::Here(found) => Ok(found),
            Lookup::Elsewhere => self.flash.at_or_before(log, key),
        }
    }

    fn set(&mut self, log: &mut Log, setting: Setting<'_>) -> Result<()> {
        let Setting { key, value, .. } = setting;
        // The tree first: it may fail, and the memory may not.
        self.flash.set(log, setting)?;
        if keeps(key.kind) {
            self.memory.insert(key, value);
        }
        Ok(())
    }

    fn remove(&mut self, log: &mut Log, key: &Key) -> Result<bool> {
        if keeps(key.kind) {
            self.memory.remove(key);
        }
        self.flash.remove(log, key)
    }
}

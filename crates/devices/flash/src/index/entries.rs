//! Entries in the order of their keys, wherever they are kept: in the wandering tree on flash
//! ([`flash`]), or in a memory beside it that stands in front of the tree ([`memory`]). The memory
//! comes and goes while the volume is mounted; the tree always has all entries.
//!
//! It keeps true: who asks or changes an entry reaches it through the one that is in charge now.
//!
//! It does not know what an entry means, nor what was deferred.

mod compare;
mod flash;
mod memory;

pub use flash::{FlashEntries, Limits};

use super::bpram::Bpram;
use super::tree::{Setting, Sought, Tree};
use crate::log::Log;
use crate::medium::errors::damaged;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use memory::MemoryEntries;
use onode_codec::exact::Entry;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::{ObjectId, Result};

/// Where entries are kept. The tree alone is one, the memory in front of a tree the other.
trait EntryStore {
    /// Shows `found` the value of `key`, if there is one.
    fn get(&mut self, log: &mut Log, key: &Key, found: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Visits entries of the kind of `from`, and perhaps others, in order of their keys from the
    /// first at or after `from`, until `visit` returns false.
    fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()>;

    /// The last entry at or before `key`, which names an extent; it need not be one.
    fn at_or_before(&mut self, log: &mut Log, key: &Key) -> Result<Option<(Key, Vec<u8>)>>;

    /// Sets the value of a key.
    fn set(&mut self, log: &mut Log, setting: Setting<'_>) -> Result<()>;

    /// Removes `key`; true if it was there.
    fn remove(&mut self, log: &mut Log, key: &Key) -> Result<bool>;
}

/// All entries.
pub struct Entries {
    flash: FlashEntries,
    /// The index of content in a memory beside the flash, if there is one.
    memory: Option<Bpram>,
}

impl Entries {
    /// Those of `tree`, without a memory.
    pub fn new(tree: Tree, limits: Limits) -> Self {
        Self { flash: FlashEntries::new(tree, limits), memory: None }
    }

    /// The memory in front of the tree, if there is one.
    fn beside(&mut self) -> Option<MemoryEntries<'_>> {
        self.memory.as_mut().map(|memory| MemoryEntries::new(memory, &mut self.flash))
    }

    /// Asks the one that is in charge now.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut dyn EntryStore) -> T) -> T {
        match self.beside() {
            Some(mut beside) => ask(&mut beside),
            None => ask(&mut self.flash),
        }
    }

    /// What `with` makes of the value of `key`, if there is one.
    pub fn get<T>(&mut self, log: &mut Log, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let (mut with, mut found) = (Some(with), None);
        self.ask(|store| store.get(log, key, &mut |value| found = with.take().map(|with| with(value))))?;
        Ok(found)
    }

    /// Loads what lookups of `sought`, which are in order, will ask for, many nodes together. A
    /// memory in front of the tree answers without.
    pub fn load_ahead(&mut self, log: &mut Log, sought: &[Sought], tag: IoTag) {
        if self.memory.is_none() {
            self.flash.load_ahead(log, sought, tag);
        }
    }

    /// Visits entries of the kind of `from`, and perhaps others, in order of their keys from the
    /// first at or after `from`, until `visit` returns false.
    pub fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        self.ask(|store| store.scan(log, from, visit))
    }

    /// The last entry at or before `key`, which names an extent; it need not be one.
    pub fn at_or_before(&mut self, log: &mut Log, key: &Key) -> Result<Option<(Key, Vec<u8>)>> {
        self.ask(|store| store.at_or_before(log, key))
    }

    /// Sets the value of `key`.
    pub fn set(&mut self, log: &mut Log, key: Key, value: &[u8]) -> Result<()> {
        self.replace(log, Setting { key, value, replaced: &mut |_| {} })
    }

    /// Sets the value of a key and shows the one before.
    pub fn replace(&mut self, log: &mut Log, setting: Setting<'_>) -> Result<()> {
        self.ask(|store| store.set(log, setting))
    }

    /// Removes `key`; true if it was there.
    pub fn remove(&mut self, log: &mut Log, key: &Key) -> Result<bool> {
        self.ask(|store| store.remove(log, key))
    }

    /// Removes all entries of `object`.
    pub fn remove_object(&mut self, log: &mut Log, object: ObjectId) -> Result<()> {
        loop {
            let mut keys = Vec::new();
            let first = Key { object: object.0, kind: 0, index: 0 };
            self.flash.scan_as(log, &first, IoTag::Index, &mut |key, _| {
                let wanted = key.object == object.0 && keys.len() < 256;
                if wanted {
                    keys.push(*key);
                }
                wanted
            })?;
            if keys.is_empty() {
                return Ok(());
            }
            for key in &keys {
                if !self.remove(log, key)? {
                    return Err(damaged(format!("an entry of {object} stands in the wrong place of the index")));
                }
            }
        }
    }

    /// Nodes of the tree.
    pub const fn nodes(&self) -> &FlashEntries {
        &self.flash
    }

    /// The same, to be moved, written and repaired.
    pub const fn nodes_mut(&mut self) -> &mut FlashEntries {
        &mut self.flash
    }

    /// How much memory the index may take.
    pub const fn limits(&self) -> &Limits {
        self.flash.limits()
    }
}

/// The memory beside the flash.
impl Entries {
    /// What is there of it.
    pub const fn memory(&self) -> Option<&Bpram> {
        self.memory.as_ref()
    }

    /// The same, to be written.
    pub const fn memory_mut(&mut self) -> Option<&mut Bpram> {
        self.memory.as_mut()
    }

    /// From now on `memory` takes part; what it lacks is elsewhere.
    pub fn put_memory(&mut self, memory: Bpram) {
        self.memory = Some(memory);
    }

    /// Goes on without the memory: the flash has all entries.
    pub const fn take_memory(&mut self) -> Option<Bpram> {
        self.memory.take()
    }

    /// Takes over from the tree up to `limit` entries that the memory lacks, with the first of
    /// them, and returns how many; none if it lacks nothing, or is full, or is not there.
    pub fn refill(&mut self, log: &mut Log, limit: usize) -> Result<Option<u64>> {
        self.beside().map_or(Ok(None), |mut beside| beside.refill(log, limit))
    }

    /// All entries that the memory answers for, taken apart; none without one.
    pub fn memory_entries(&mut self, log: &mut Log) -> Result<Vec<Entry>> {
        self.beside().map_or_else(|| Ok(Vec::new()), |mut beside| beside.kept(log))
    }

    /// Entries that memory and tree do not agree on, as words; none if all is well.
    pub fn compare_memory(&mut self, log: &mut Log) -> Result<Vec<String>> {
        self.beside().map_or_else(|| Ok(Vec::new()), |mut beside| beside.compare(log))
    }
}

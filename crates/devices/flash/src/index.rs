//! The seam behind which the device keeps what it knows of its objects: onodes, attributes and the
//! places of their content, as entries in the order of their keys.
//!
//! Everything above asks and changes entries here and nowhere else, and what was deferred of them
//! is settled first; where they are kept is nobody's business but this module's. The wandering tree
//! on flash keeps all of them; beside it a memory may keep onodes and extents, and answers for
//! them.

pub mod apply;
pub mod attach;
pub mod beside;
pub mod bpram;
pub mod deferred;
pub mod plan;
pub mod read;
pub mod tree;

use crate::core::Core;
use crate::index::bpram::{Found, keeps};
use crate::index::tree::Key;
use crate::medium::errors::damaged;
use alloc::format;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

impl Core {
    /// What `with` makes of the value of `key`, if there is one.
    pub fn entry<T>(&mut self, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        self.settle(key)?;
        let mut with = Some(with);
        if let Found::Here(found) = self.remembered(key, |value| with.take().map(|with| with(value))) {
            return Ok(found.flatten());
        }
        let (tree, mut source) = self.index();
        let found = tree.get(&mut source, key, |value| with.take().map(|with| with(value)))?;
        Ok(found.flatten())
    }

    /// Visits entries of the kind of `from`, and perhaps others, in order of their keys from the
    /// first at or after `from`, until `visit` returns false.
    pub fn entries(&mut self, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        self.settle_walk(from)?;
        if self.bpram.is_some() && keeps(from.kind) {
            return self.scan_remembered(from, visit);
        }
        let (tree, mut source) = self.index();
        tree.scan(&mut source, from, visit)
    }

    /// The last entry at or before `key`, which names an extent; it need not be one.
    pub fn entry_at_or_before(&mut self, key: &Key) -> Result<Option<(Key, Vec<u8>)>> {
        self.settle(key)?;
        if let Some(bpram) = &mut self.bpram
            && let Found::Here(found) = bpram.floor(key)
        {
            return Ok(found);
        }
        let (tree, mut source) = self.index();
        tree.last_at_or_before(&mut source, key)
    }

    /// Sets the value of `key`.
    pub fn set_entry(&mut self, key: Key, value: &[u8]) -> Result<()> {
        self.settle(&key)?;
        let (tree, mut source) = self.index();
        tree.insert(&mut source, key, value)?;
        if let Some(bpram) = self.bpram.as_mut().filter(|_| keeps(key.kind)) {
            bpram.insert(key, value);
        }
        Ok(())
    }

    /// Removes `key`; true if it was there.
    pub fn remove_entry(&mut self, key: &Key) -> Result<bool> {
        self.settle(key)?;
        if let Some(bpram) = self.bpram.as_mut().filter(|_| keeps(key.kind)) {
            bpram.remove(key);
        }
        let (tree, mut source) = self.index();
        tree.remove(&mut source, key)
    }

    /// Removes all entries of `object`.
    pub fn remove_entries(&mut self, object: ObjectId) -> Result<()> {
        self.settle_walk(&Key { object: object.0, kind: Key::ATTRIBUTE, index: 0 })?;
        loop {
            let mut keys = Vec::new();
            let (tree, mut source) = self.index();
            tree.scan(&mut source, &Key { object: object.0, kind: 0, index: 0 }, &mut |key, _| {
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
                if !self.remove_entry(key)? {
                    return Err(damaged(format!("an entry of {object} stands in the wrong place of the index")));
                }
            }
        }
    }
}

//! The index: what the device knows of its objects - onodes, attributes and the places of their
//! content - as entries in the order of their keys.
//!
//! Everything above asks and changes entries here and nowhere else. What a mount found in the
//! journal may be deferred ([`deferred`]): what is asked for is applied first. Below that the index
//! is [`apply`], which knows what entries mean, over [`entries`], which keeps them: in the
//! wandering tree on flash, and perhaps in a memory beside it.
//!
//! It keeps true: nobody sees an entry without the deferred changes of it. What is deferred is
//! applied to a part that knows of none, so applying never asks for more of them.

pub mod apply;
pub mod beside;
pub mod bpram;
pub mod deferred;
pub mod entries;
pub mod plan;
pub mod read;
pub mod tree;

use crate::index::apply::{AccessTimes, Applied, Counts, Extent, Onode};
use crate::index::deferred::Deferred;
use crate::index::entries::Entries;
use crate::index::tree::Setting;
use crate::log::Log;
use crate::log::record::{Change, Piece};
use crate::medium::format::BlobReference;
use alloc::vec::Vec;
use core::ops::Range;
use onode_engine::Key;
use onode_object::{ObjectId, Result};

/// What finds objects and their content.
pub struct Index {
    applied: Applied,
    deferred: Deferred,
}

impl Index {
    /// The index of a volume of which nothing is deferred yet. A volume that is `read_only` is not
    /// said to be damaged for changes that cannot be applied.
    pub fn new(applied: Applied, read_only: bool) -> Self {
        Self { applied, deferred: Deferred::new(read_only) }
    }

    /// What `with` makes of the value of `key`, if there is one.
    pub fn entry<T>(&mut self, log: &mut Log, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        self.deferred.apply_of(&mut self.applied, log, key)?;
        self.applied.entry(log, key, with)
    }

    /// Visits entries of the kind of `from`, and perhaps others, in order of their keys from the
    /// first at or after `from`, until `visit` returns false.
    pub fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        self.deferred.apply_from(&mut self.applied, log, from)?;
        self.applied.scan(log, from, visit)
    }

    /// The onode of `object`, if it exists.
    pub fn onode(&mut self, log: &mut Log, object: ObjectId) -> Result<Option<Onode>> {
        self.deferred.apply_of(&mut self.applied, log, &Key::onode(object))?;
        self.applied.onode(log, object)
    }

    /// The onode of `object`, or `NotFound`.
    pub fn require(&mut self, log: &mut Log, object: ObjectId) -> Result<Onode> {
        self.deferred.apply_of(&mut self.applied, log, &Key::onode(object))?;
        self.applied.require(log, object)
    }

    /// Sets the onode of `object`, which takes over the access time that waits for it.
    pub fn set_onode(&mut self, log: &mut Log, object: ObjectId, onode: &Onode) -> Result<()> {
        self.deferred.apply_of(&mut self.applied, log, &Key::onode(object))?;
        self.applied.set_onode(log, object, onode)
    }

    /// Up to `limit` extents of `object` that end after the start of `range` and start before its
    /// end.
    pub fn extents(&mut self, log: &mut Log, object: ObjectId, range: Range<u64>, limit: usize) -> Result<Vec<Extent>> {
        self.deferred.apply_of(&mut self.applied, log, &Key::onode(object))?;
        self.applied.extents(log, object, range, limit)
    }

    /// The same, as they are without what is deferred: to read ahead, which changes nothing.
    pub fn applied_extents(
        &mut self,
        log: &mut Log,
        object: ObjectId,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<Extent>> {
        self.applied.extents(log, object, range, limit)
    }

    /// Does one change.
    pub fn apply(&mut self, log: &mut Log, change: &Change) -> Result<()> {
        self.deferred.apply_before(&mut self.applied, log, change)?;
        self.applied.apply(log, change)
    }

    /// Sets an attribute and shows the value before.
    pub fn set_attribute(&mut self, log: &mut Log, setting: Setting<'_>) -> Result<()> {
        self.deferred.apply_of(&mut self.applied, log, &setting.key)?;
        self.applied.set_attribute(log, setting)
    }

    /// Makes `range` of `object` a hole; returns how many bytes that frees.
    pub fn unplace(&mut self, log: &mut Log, object: ObjectId, range: Range<u64>) -> Result<u64> {
        self.deferred.apply_of(&mut self.applied, log, &Key::onode(object))?;
        self.applied.unplace(log, object, range)
    }

    /// Puts `pieces` in the place of what `object` has from `offset` on.
    pub fn replace(&mut self, log: &mut Log, object: ObjectId, offset: u64, pieces: &[Piece]) -> Result<()> {
        let length: u64 = pieces.iter().map(|piece| u64::from(piece.length)).sum();
        self.unplace(log, object, offset..offset + length)?;
        self.applied.link(log, object, offset, pieces, true)
    }

    /// Where entries are kept.
    pub const fn entries(&self) -> &Entries {
        self.applied.entries()
    }

    /// The same, to be changed beside what the entries mean.
    pub fn entries_mut(&mut self) -> &mut Entries {
        self.applied.entries_mut()
    }

    /// Divides the memory for nodes between changed and clean ones.
    pub fn share_memory(&mut self) {
        self.applied.share_memory();
    }

    /// How many objects and extents there are, without what is deferred.
    pub const fn counts(&self) -> &Counts {
        self.applied.counts()
    }

    /// The same, to be set.
    pub const fn counts_mut(&mut self) -> &mut Counts {
        self.applied.counts_mut()
    }

    /// Access times that no onode has yet.
    pub const fn access_times(&self) -> &AccessTimes {
        self.applied.access_times()
    }

    /// The same, to be changed.
    pub const fn access_times_mut(&mut self) -> &mut AccessTimes {
        self.applied.access_times_mut()
    }

    /// Bytes of changed nodes in memory.
    pub fn dirty_bytes(&self) -> usize {
        self.entries().nodes().dirty_bytes()
    }
}

/// What is deferred.
impl Index {
    /// Notes down a change of the journal. `at_once` applies it: the memory beside the flash has
    /// onodes and extents without a read.
    pub fn defer(&mut self, log: &mut Log, change: Change, at_once: bool) -> Result<()> {
        if at_once {
            return self.apply(log, &change);
        }
        self.deferred.defer(&mut self.applied, log, change)
    }

    /// Applies everything that is deferred.
    pub fn apply_all_deferred(&mut self, log: &mut Log) -> Result<()> {
        self.deferred.apply_all(&mut self.applied, log)
    }

    /// Applies up to `count` units of what is deferred; whether any is left.
    pub fn apply_some_deferred(&mut self, log: &mut Log, count: u32) -> Result<bool> {
        self.deferred.apply_some(&mut self.applied, log, count)
    }

    /// Drops the unit that would be applied next.
    pub fn drop_next_deferred(&mut self) {
        self.deferred.drop_next();
    }

    /// Whether anything is deferred.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Memory that it takes, about.
    pub const fn deferred_bytes(&self) -> usize {
        self.deferred.memory_bytes()
    }

    /// Bytes that a checkpoint stores of it, at most.
    pub const fn deferred_stored_bytes(&self) -> usize {
        self.deferred.stored_bytes()
    }

    /// Whether so much is deferred that it has to be applied in steps.
    pub const fn has_long_deferred(&self) -> bool {
        self.deferred.is_long(self.applied.entries().limits().dirty_bytes)
    }

    /// Applies what places content, or does anything but to cut something off.
    pub fn apply_deferred_places(&mut self, log: &mut Log) -> Result<()> {
        self.deferred.apply_others(&mut self.applied, log)
    }

    /// Whether a checkpoint can store all of `changes`, if nothing else is deferred.
    pub fn could_store(&self, log: &Log, changes: &[Change]) -> bool {
        deferred::can_all_be_stored(changes, log, self.entries().limits().dirty_bytes)
    }

    /// Whether a checkpoint can store what is deferred.
    pub fn can_store_deferred(&self, log: &Log) -> bool {
        self.deferred.can_be_stored(log, self.entries().limits().dirty_bytes)
    }

    /// Stores what is deferred anew, for the coming checkpoint; where, if anything is.
    pub fn store_deferred(&mut self, log: &mut Log) -> Result<()> {
        self.deferred.store(log)
    }

    /// Where the coming checkpoint has what is deferred.
    pub const fn stored_deferred(&self) -> Option<BlobReference> {
        self.deferred.stored()
    }

    /// Takes up what a checkpoint stored.
    pub fn load_deferred(&mut self, log: &mut Log, stored: BlobReference) -> Result<()> {
        self.deferred.load(log, stored)
    }

    /// Objects that exist with those that are deferred.
    pub fn object_count(&self) -> u64 {
        let (made, removed) = self.deferred.made_and_removed();
        (self.counts().objects + made).saturating_sub(removed)
    }
}

//! What a change does to the index: the one `apply` of live commits and of replay, and the lookups
//! of onodes and extents.
//!
//! It keeps true: what a change places counts as referred to, what it replaces no longer does; the
//! numbers of objects and extents are those of the entries.
//!
//! It knows nothing of deferred changes: they are applied through it, and it cannot ask for more.

mod moved;
mod recent;
mod values;

pub use values::{Extent, Onode};

use crate::index::entries::Entries;
use crate::index::tree::Setting;
use crate::log::Log;
use crate::log::record::{Change, EXTENT_BYTES_MAX, Piece};
use crate::medium::errors::damaged;
use crate::medium::layout::Layout;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use moved::ContentMove;
use onode_base::planted::{Bug, is_planted};
use onode_engine::Key;
use onode_object::{Mutation, ObjectId, Result};
use recent::RecentOnodes;

/// Access times that no onode has yet.
pub type AccessTimes = BTreeMap<ObjectId, u64>;

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The next object id.
    pub next_object: u64,
    /// Objects that exist.
    pub objects: u64,
    /// Extents that exist: each will need an item in a summary.
    pub extents: u64,
}

/// The index as far as changes were applied to it.
pub struct Applied {
    entries: Entries,
    counts: Counts,
    access_times: AccessTimes,
    recent: RecentOnodes,
    /// An extent may be longer than a page.
    has_runs: bool,
}

impl Applied {
    /// An index with these entries.
    pub const fn new(entries: Entries, has_runs: bool) -> Self {
        let counts = Counts { next_object: ObjectId::FIRST_FREE.0, objects: 0, extents: 0 };
        Self { entries, counts, access_times: AccessTimes::new(), recent: RecentOnodes::new(), has_runs }
    }

    /// The entries.
    pub const fn entries(&self) -> &Entries {
        &self.entries
    }

    /// The entries, to be changed beside what they mean.
    pub fn entries_mut(&mut self) -> &mut Entries {
        self.recent.clear();
        &mut self.entries
    }

    /// Divides the memory for nodes between changed and clean ones.
    pub fn share_memory(&mut self) {
        self.entries.nodes_mut().share_memory();
    }

    /// What `with` makes of the value of `key`, if there is one.
    pub fn entry<T>(&mut self, log: &mut Log, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        self.entries.get(log, key, with)
    }

    /// Visits entries in order of their keys, as [`Entries::scan`] does.
    pub fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        self.entries.scan(log, from, visit)
    }

    /// Sets an attribute and shows the value before.
    pub fn set_attribute(&mut self, log: &mut Log, setting: Setting<'_>) -> Result<()> {
        debug_assert!(setting.key.as_attribute().is_some(), "{:?} is no attribute", setting.key);
        self.entries.replace(log, setting)
    }

    /// How many there are.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The same, to be set.
    pub const fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// Access times that no onode has yet.
    pub const fn access_times(&self) -> &AccessTimes {
        &self.access_times
    }

    /// The same, to be changed.
    pub const fn access_times_mut(&mut self) -> &mut AccessTimes {
        &mut self.access_times
    }
}

impl Applied {
    /// The onode of `object`, if it exists.
    pub fn onode(&mut self, log: &mut Log, object: ObjectId) -> Result<Option<Onode>> {
        if let Some(known) = self.recent.get(object) {
            return Ok(known);
        }
        let found = self.entries.get(log, &Key::onode(object), Onode::decode)?;
        if found == Some(None) {
            return Err(damaged(format!("the onode of {object} is malformed")));
        }
        self.recent.learn(object, found.flatten());
        Ok(found.flatten())
    }

    /// The onode of `object`, or `NotFound`.
    pub fn require(&mut self, log: &mut Log, object: ObjectId) -> Result<Onode> {
        self.onode(log, object)?
            .ok_or_else(|| onode_object::Error::of(onode_base::ErrorKind::NotFound, object, "there is no such object"))
    }

    /// Sets the onode of `object`, which takes over the access time that waits for it.
    pub fn set_onode(&mut self, log: &mut Log, object: ObjectId, onode: &Onode) -> Result<()> {
        let accessed = self.access_times.remove(&object).unwrap_or(onode.accessed);
        let onode = Onode { accessed, ..*onode };
        self.recent.forget(object);
        self.entries.set(log, Key::onode(object), &onode.encode())?;
        self.recent.learn(object, Some(onode));
        Ok(())
    }

    /// Up to `limit` extents of `object` that end after `from` and start before `until`.
    pub fn extents(&mut self, log: &mut Log, object: ObjectId, range: Range<u64>, limit: usize) -> Result<Vec<Extent>> {
        let Range { start: from, end: until } = range;
        let mut first = Key::extent(object, from);
        if from > 0
            && let Some((key, value)) = self.entries.at_or_before(log, &first)?
            && key.object == object.0
            && key.kind == Key::EXTENT
            && let Some(extent) = Extent::decode(&key, &value).filter(|extent| extent.end() > from)
        {
            // One extent often covers all that is asked for.
            if extent.end() >= until && limit > 0 {
                return Ok(alloc::vec![extent]);
            }
            first = key;
        }
        let mut found = Vec::new();
        let mut sound = true;
        self.entries.scan(log, &first, &mut |key, value| {
            if key.object != object.0 || key.kind != Key::EXTENT || key.index >= until || found.len() >= limit {
                return false;
            }
            match Extent::decode(key, value) {
                Some(extent) => found.push(extent),
                None => sound = false,
            }
            sound
        })?;
        if sound { Ok(found) } else { Err(damaged(format!("an extent of {object} is malformed"))) }
    }

    /// Does one change. Live commits and replay both come here.
    pub fn apply(&mut self, log: &mut Log, change: &Change) -> Result<()> {
        match change {
            Change::Place { object, offset, pieces } => self.place(log, *object, *offset, pieces),
            Change::Patch { object, key, patch } => {
                let value = self.entries.get(log, &Key::attribute(*object, *key), |old| patch.apply(old))?;
                let malformed = || damaged(format!("a patch does not fit its attribute of {object}"));
                let value = value.flatten().ok_or_else(malformed)?;
                self.entries.set(log, Key::attribute(*object, *key), &value)
            }
            Change::Mutation(mutation) => self.mutate(log, mutation),
        }
    }

    fn mutate(&mut self, log: &mut Log, mutation: &Mutation) -> Result<()> {
        match mutation {
            Mutation::Create { object, hints } => {
                self.counts.next_object = object.next_free(self.counts.next_object);
                self.counts.objects += 1;
                self.set_onode(log, *object, &Onode { hints: *hints, ..Onode::default() })
            }
            Mutation::Remove { object } => self.remove(log, *object),
            // A write without bytes; one with bytes is logged as `Change::Place`.
            Mutation::Write { .. } => Ok(()),
            Mutation::Truncate { object, size } => {
                let mut onode = self.require(log, *object)?;
                if *size < onode.size && !is_planted(Bug::TruncateKeepsBytes) {
                    onode.allocated = onode.allocated.saturating_sub(self.unplace(log, *object, *size..u64::MAX)?);
                }
                onode.size = *size;
                self.set_onode(log, *object, &onode)
            }
            Mutation::Punch { object, offset, length } => {
                let mut onode = self.require(log, *object)?;
                let end = offset.saturating_add(*length).min(onode.size);
                if *offset < end && onode.allocated > 0 {
                    onode.allocated = onode.allocated.saturating_sub(self.unplace(log, *object, *offset..end)?);
                    self.set_onode(log, *object, &onode)?;
                }
                Ok(())
            }
            Mutation::Move { object, offset, length, to } => {
                let until = offset.saturating_add(*length);
                self.move_content(log, *object, &ContentMove { range: *offset..until, to: *to })
            }
            Mutation::SetAttribute { object, key, value } => {
                self.entries.set(log, Key::attribute(*object, *key), value)
            }
            Mutation::RemoveAttribute { object, key } => {
                self.entries.remove(log, &Key::attribute(*object, *key)).map(|_| ())
            }
            Mutation::SetHints { object, hints } => {
                let mut onode = self.require(log, *object)?;
                onode.hints = *hints;
                self.set_onode(log, *object, &onode)
            }
            Mutation::SetAccessTime { object, time } => {
                let onode = self.require(log, *object)?;
                self.access_times.remove(object);
                self.set_onode(log, *object, &Onode { accessed: *time, ..onode })
            }
        }
    }

    fn remove(&mut self, log: &mut Log, object: ObjectId) -> Result<()> {
        let onode = self.require(log, object)?;
        if onode.accessed != 0 || self.access_times.contains_key(&object) {
            log.access_mut().note_gone(object);
        }
        if onode.allocated > 0 {
            self.unplace(log, object, 0..u64::MAX)?;
        }
        self.recent.forget(object);
        self.entries.remove_object(log, object)?;
        self.counts.objects = self.counts.objects.saturating_sub(1);
        if !is_planted(Bug::AccessTimeOfRemoved) {
            self.access_times.remove(&object);
        }
        Ok(())
    }

    /// `pieces` now hold the bytes of `object` from `offset` on.
    fn place(&mut self, log: &mut Log, object: ObjectId, offset: u64, pieces: &[Piece]) -> Result<()> {
        let mut onode = self.require(log, object)?;
        let length: u64 = pieces.iter().map(|piece| u64::from(piece.length)).sum();
        let end = offset + length;
        if onode.allocated > 0 && offset < onode.size {
            onode.allocated = onode.allocated.saturating_sub(self.unplace(log, object, offset..end)?);
        }
        self.link(log, object, offset, pieces, onode.allocated > 0)?;
        onode.allocated += length;
        onode.size = onode.size.max(end);
        self.set_onode(log, object, &onode)
    }

    /// Enters extents for `pieces` into a hole. `may_join` says that there may be an extent before
    /// them.
    pub fn link(
        &mut self,
        log: &mut Log,
        object: ObjectId,
        offset: u64,
        pieces: &[Piece],
        may_join: bool,
    ) -> Result<()> {
        let layout = *log.layout();
        let mut at = offset;
        let joins = may_join && offset > 0;
        let mut last = if joins { self.extents(log, object, offset - 1..offset, 1)?.pop() } else { None };
        for piece in self.runs_of(&layout, pieces) {
            if piece.length == 0 || !layout.contains(piece.location, u64::from(piece.length)) {
                return Err(damaged(format!("a place of {object} lies outside the medium")));
            }
            let segment = layout.segment_of(piece.location);
            log.retain(piece.location, u64::from(piece.length));
            let joined = last.filter(|last| {
                (self.has_runs || is_on_one_page(&layout, last.piece.location, piece))
                    && last.end() == at
                    && last.piece.location + u64::from(last.piece.length) == piece.location
                    && layout.segment_of(last.piece.location) == segment
                    && last.piece.length + piece.length <= EXTENT_BYTES_MAX
            });
            let extent = match joined {
                Some(last) => {
                    let length = last.piece.length + piece.length;
                    Extent { offset: last.offset, piece: Piece { length, ..last.piece } }
                }
                None => {
                    self.counts.extents += 1;
                    Extent { offset: at, piece }
                }
            };
            self.entries.set(log, Key::extent(object, extent.offset), &Extent::encode(extent.piece))?;
            at += u64::from(piece.length);
            last = Some(extent);
        }
        Ok(())
    }

    /// The runs that get an entry of the index each: `pieces`, or the pages that they touch.
    fn runs_of(&self, layout: &Layout, pieces: &[Piece]) -> Vec<Piece> {
        if self.has_runs {
            return pieces.to_vec();
        }
        let payload = u64::from(layout.payload_bytes);
        let mut pages = Vec::new();
        for piece in pieces {
            let (mut from, end) = (piece.location, piece.location.saturating_add(u64::from(piece.length)));
            while from < end {
                let until = (from - from % payload + payload).min(end);
                pages.push(Piece { location: from, length: (until - from) as u32 });
                from = until;
            }
        }
        pages
    }

    /// Makes `range` of `object` a hole; returns how many bytes that frees.
    pub fn unplace(&mut self, log: &mut Log, object: ObjectId, range: Range<u64>) -> Result<u64> {
        let Range { start: from, end: until } = range;
        let mut freed = 0;
        let mut last = None;
        loop {
            let extents = self.extents(log, object, from..until, 64)?;
            let Some(&first) = extents.first() else { return Ok(freed) };
            // In a tree that is out of order a scan finds what a lookup does not.
            if last.replace(first) == Some(first) {
                return Err(damaged(format!("an extent of {object} stands in the wrong place of the index")));
            }
            for extent in extents {
                let start = extent.offset.max(from);
                let end = extent.end().min(until);
                let cut = |at: u64, length: u64| Piece {
                    location: extent.piece.location + (at - extent.offset),
                    length: length as u32,
                };
                if extent.offset < start {
                    let left = cut(extent.offset, start - extent.offset);
                    self.entries.set(log, Key::extent(object, extent.offset), &Extent::encode(left))?;
                } else {
                    self.entries.remove(log, &Key::extent(object, extent.offset))?;
                    self.counts.extents = self.counts.extents.saturating_sub(1);
                }
                if end < extent.end() {
                    let right = cut(end, extent.end() - end);
                    self.entries.set(log, Key::extent(object, end), &Extent::encode(right))?;
                    self.counts.extents += 1;
                }
                let gone = cut(start, end - start);
                log.release(gone.location, u64::from(gone.length));
                freed += u64::from(gone.length);
            }
        }
    }
}

/// Whether `piece` ends on the page of `location`. Without runs of pages its parts are joined at
/// least there, or each move by the cleaner could divide it further.
const fn is_on_one_page(layout: &Layout, location: u64, piece: Piece) -> bool {
    let payload = layout.payload_bytes as u64;
    location / payload == (piece.location + piece.length as u64 - 1) / payload
}

//! Another parity for content that was written before its object wished that (paper 1, section
//! III.C): it moves to rows that have it.
//!
//! It keeps true: who changed a wish never has to change it again. Until all of its content has
//! moved, superblocks say that something is left, and a mount that finds that looks at every
//! object, as after more changes than are kept by object.

use super::{Cleaner, MOVED_PAGES};
use crate::index::Index;
use crate::index::apply::Extent;
use crate::log::Log;
use crate::medium::layout::Layout;
use crate::space::items::{Item, Owner};
use crate::volume::Volume;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::{ObjectId, Result};

/// Objects that are kept one by one; with more, all are looked at.
const OBJECTS_MAX: usize = 4096;

/// Objects or extents looked at in one go.
const AT_ONCE: usize = 64;

/// Bytes that are moved in one step, at least.
const STEP_BYTES: u64 = 128 << 10;

/// What has to move because its parity is not the one that is wished.
#[derive(Debug, Default)]
pub struct Reprotect {
    objects: BTreeSet<ObjectId>,
    /// Everything of the first of them before this byte was looked at.
    from: u64,
    /// All objects from this one on are to be looked at.
    sweep: Option<ObjectId>,
    /// Bytes that moved since the mount.
    moved: u64,
}

impl Reprotect {
    /// Whether anything may have to move.
    pub fn is_pending(&self) -> bool {
        self.sweep.is_some() || !self.objects.is_empty()
    }

    /// Bytes by which a step of [`Cleaner::reprotect_some`] may leave less room: what moves may
    /// count for as much more, and a segment that is opened for it is not full.
    pub const fn step_bytes(layout: &Layout) -> u64 {
        STEP_BYTES + MOVED_PAGES as u64 * layout.payload_bytes as u64 + 2 * layout.segment_bytes()
    }

    /// Bytes that moved since the mount.
    pub const fn moved(&self) -> u64 {
        self.moved
    }

    /// Content of `object` may have another parity than it wishes.
    pub fn note(&mut self, object: ObjectId) {
        if self.objects.first().is_some_and(|first| *first >= object) {
            self.from = 0;
        }
        self.objects.insert(object);
        if self.objects.len() > OBJECTS_MAX {
            self.note_all();
        }
    }

    /// Any object may have such content.
    pub fn note_all(&mut self) {
        *self = Self { sweep: Some(ObjectId(0)), moved: self.moved, ..Self::default() };
    }

    /// The object that is looked at next, and from where on.
    fn next(&mut self, index: &mut Index, log: &mut Log) -> Result<Option<(ObjectId, u64)>> {
        if let (true, Some(from)) = (self.objects.is_empty(), self.sweep) {
            let found = index.list(log, from, AT_ONCE)?;
            self.sweep = found.last().filter(|_| found.len() == AT_ONCE).map(|last| ObjectId(last.0 + 1));
            self.objects.extend(found);
        }
        Ok(self.objects.first().map(|object| (*object, self.from)))
    }

    /// Everything of `object` was looked at.
    fn pass(&mut self, object: ObjectId) {
        self.objects.remove(&object);
        self.from = 0;
    }
}

impl Cleaner {
    /// What has to move for another parity.
    pub const fn reprotect(&self) -> &Reprotect {
        &self.reprotect
    }

    /// The same, to note down more.
    pub const fn reprotect_mut(&mut self) -> &mut Reprotect {
        &mut self.reprotect
    }

    /// Moves some of what has another parity than its object wishes, if there is room. True if
    /// there is more to do and something was done.
    pub fn reprotect_some(&mut self, volume: &mut Volume<'_>) -> Result<bool> {
        if !self.reprotect.is_pending() {
            return Ok(false);
        }
        let mut left = STEP_BYTES;
        while left > 0 {
            // What is left without room waits until there is some.
            if !Self::may_empty(volume.log, &volume.room()) {
                return Ok(false);
            }
            let Some((object, from)) = self.reprotect.next(volume.index, volume.log)? else { break };
            let looked = match self.reprotect_part(volume, object, from) {
                Ok(looked) => looked,
                // What is damaged stays where it is.
                Err(error) if error.kind == ErrorKind::Corrupt => None,
                Err(error) => return Err(error),
            };
            let Some((until, moved)) = looked else {
                self.reprotect.pass(object);
                continue;
            };
            self.reprotect.from = until;
            self.reprotect.moved += moved;
            left = left.saturating_sub(moved.max(u64::from(volume.log.layout().payload_bytes)));
        }
        let is_pending = self.reprotect.is_pending();
        volume.checkpoints.set_parity_pending(is_pending);
        Ok(is_pending)
    }

    /// Looks at some extents of `object` from a byte on, and moves the first that has another
    /// parity than is wished, or a part of it. Says up to where all is well now and how much moved;
    /// nothing if there are no more.
    fn reprotect_part(&mut self, volume: &mut Volume<'_>, object: ObjectId, from: u64) -> Result<Option<(u64, u64)>> {
        let Some(onode) = volume.index.onode(volume.log, object)? else { return Ok(None) };
        let extents: Vec<Extent> = volume.index.extents(volume.log, object, from..u64::MAX, AT_ONCE)?;
        let Some(last) = extents.last().map(Extent::end) else { return Ok(None) };
        let wrong = extents.iter().find(|one| volume.log.has_other_parity(one.piece.location, &onode.hints));
        let Some(extent) = wrong.filter(|_| !is_planted(Bug::WishForgotten)) else { return Ok(Some((last, 0))) };
        let start = extent.offset.max(from);
        let location = extent.piece.location + (start - extent.offset);
        let most = u64::from(MOVED_PAGES * volume.log.layout().payload_bytes);
        let length = (extent.end() - start).min(most);
        volume.prepare_writing()?;
        let item = Item {
            start: volume.log.layout().within(location),
            length: length as u32,
            owner: Owner::Content { object: object.0, offset: start },
        };
        match volume.checkpoints.mover(volume.index, volume.log).protecting().move_item(&item, location) {
            Err(error) if error.kind == ErrorKind::Corrupt => {}
            moved => moved?,
        }
        if volume.index.dirty_bytes() > volume.room().emptying_dirty_limit() {
            volume.checkpoint()?;
        }
        Ok(Some((start + length, length)))
    }
}

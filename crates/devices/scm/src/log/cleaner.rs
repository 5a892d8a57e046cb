//! The cleaner of the log: what the oldest segment still says is said again at the end, then the
//! segment is free.
//!
//! Because the oldest goes first, nothing that a statement takes back can be older than the
//! statement's own segment: items that say that something is gone are never repeated.

use crate::core::{Core, KEPT_SEGMENTS};
use crate::index::node::{Key, Value};
use crate::log::batch::Batch;
use crate::log::item::{Item, Objects};
use crate::log::scan::Records;
use crate::log::{Chain, Place};
use crate::medium::errors::damaged;
use crate::medium::format::{RECORD_HEADER, SegmentHead, salt_of};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{ObjectId, Result};

/// The log may be twice what it has to say, and this many segments more, or this share of the
/// device if that is more: a long log costs a mount little (it reads gigabytes a second), and each
/// cleaning repeats what still counts.
const SLACK_SEGMENTS: u64 = 8;
const SLACK_SHARE: u64 = 16;
const SLACK_BYTES_MAX: u64 = 32 << 20;

/// An item that is said again: the entry of the index that waits for it, with its place before and
/// its other word, and where it is going to lie.
struct Repeated {
    entry: Option<(Key, Place, u64)>,
    now: Place,
}

impl<P: Pmem> Core<P> {
    fn log_is_long(&self, slack: u64) -> bool {
        let live = self.live_log_bytes * 2;
        self.log.segments.len() as u64 * self.chunk_bytes() > live + slack * self.chunk_bytes()
    }

    /// Cleans while the log is too long, at most a few segments a time; further while the store is
    /// not full.
    pub(crate) fn gather_log(&mut self, must_fit: bool) -> Result<()> {
        let mut rounds = 0;
        let share = (self.superblock.length / SLACK_SHARE).min(SLACK_BYTES_MAX) / self.chunk_bytes();
        while rounds < 2 && self.log_is_long(SLACK_SEGMENTS.max(share)) {
            if !self.clean_segment()? {
                break;
            }
            rounds += 1;
        }
        if self.log.spare.len() < KEPT_SEGMENTS {
            self.refill_store();
        }
        if must_fit {
            self.clean_for_store()?;
        }
        Ok(())
    }

    /// Frees the oldest segment; false if that is not possible now.
    pub(crate) fn clean_segment(&mut self) -> Result<bool> {
        if self.log.segments.len() <= 1 {
            return Ok(false);
        }
        let oldest = self.log.segments.first;
        let mut batch = Batch::default();
        self.log.begin(&mut batch);
        let mut repeated = Vec::new();
        let (bytes, head) = self.read_segment(oldest)?;
        let mut records = Records::of_segment(&bytes, salt_of(&self.superblock.uuid), &head);
        let mut next = head.first_record;
        loop {
            for record in records.by_ref() {
                next = record.head.sequence + 1;
                self.repeat_record(oldest + record.start + RECORD_HEADER, record.items, &mut batch, &mut repeated)?;
            }
            if !self.salvages || records.resume().is_none() {
                break;
            }
        }
        let after = Chain::after(&*self.memory, oldest);
        if next < self.read_segment(after)?.1.first_record && !self.salvages {
            // What cannot be read must not be let go.
            return Err(damaged(format!("record {next} of the log, in the segment at byte {oldest}")));
        }
        // Without a segment in store the log goes on in the one that this frees, once it is free.
        let is_lent = self.log.next == oldest;
        let in_store = self.log.spare.len() + usize::from(!is_lent);
        if self.log.segments_for(&batch) > self.log.spare.len() && self.log.exact_segments_for(&batch) > in_store {
            return Ok(false);
        }
        let place_it = |number: usize, place: Place| {
            if let Some(item) = repeated.get_mut(number) {
                item.now = place;
            }
        };
        let lent = (!is_lent).then_some(oldest);
        if !batch.is_empty() && !self.log.append_with(&*self.memory, &mut batch, lent, place_it) {
            return Err(self.fail(damaged("the log has no segment in store")));
        }
        for Repeated { entry, now } in &repeated {
            if let Some((key, before, second)) = entry {
                self.tree.change(&*self.memory, *key, |_| Some(Value(now.0, *second)));
                // An item is shorter where it need not name its object.
                self.live_log_bytes = (self.live_log_bytes + now.bytes()).saturating_sub(before.bytes());
            }
        }
        self.counters.bytes_moved += repeated.iter().map(|item| item.now.bytes()).sum::<u64>();
        self.counters.segments_cleaned += 1;
        self.log.flushed = self.log.sequence;
        if !is_planted(Bug::ScmTailBeforeRepeat) {
            self.fence()?;
        }
        self.log.segments.pop(&*self.memory);
        self.log.tail_sequence += 1;
        self.write_superblock(false)?;
        if self.log.next != oldest {
            self.store_or_release(oldest);
        }
        Ok(true)
    }

    fn read_segment(&self, address: u64) -> Result<(Vec<u8>, SegmentHead)> {
        let mut bytes = vec![0; self.chunk_bytes() as usize];
        self.memory.read(address, &mut bytes);
        let head = bytes.first_chunk().and_then(|head| SegmentHead::decode(head, salt_of(&self.superblock.uuid)));
        let head = head.ok_or_else(|| damaged(format!("head of the log's segment at byte {address}")))?;
        Ok((bytes, head))
    }

    /// Adds what a record still says to the batch; `start` is where its items lie.
    fn repeat_record(&self, start: u64, items: &[u8], batch: &mut Batch, repeated: &mut Vec<Repeated>) -> Result<()> {
        let mut input = items;
        let mut objects = Objects::default();
        while !input.is_empty() {
            let at = start + (items.len() - input.len()) as u64;
            let before = input.len();
            let Some(item) = Item::decode(&mut input, &mut objects) else {
                return Err(damaged(format!("log item at byte {at}")));
            };
            let place = Place::new(at, (before - input.len()) as u64);
            let is_here = |key: Key| {
                self.tree.get(&*self.memory, key).filter(|Value(first, _)| Place(*first).address() == place.address())
            };
            match item {
                Item::Onode(object, _) => {
                    if let Some(value) = is_here(Key::onode(object)) {
                        let entry = Some((Key::onode(object), place, value.1));
                        repeated.push(Repeated { entry, now: batch.push(&item) });
                    }
                }
                Item::Attribute(object, key, _) => {
                    if let Some(value) = is_here(Key::attribute(object, key)) {
                        let entry = Some((Key::attribute(object, key), place, value.1));
                        repeated.push(Repeated { entry, now: batch.push(&item) });
                    }
                }
                Item::Extent { .. } if is_planted(Bug::ScmCleanerForgetsExtents) => {}
                Item::Extent { object, offset, address, length } => {
                    self.repeat_extent(object, offset, address, length, batch, repeated);
                }
                Item::NoAttribute(..)
                | Item::NoExtent { .. }
                | Item::Removed(_)
                | Item::Put { .. }
                | Item::Zero { .. }
                | Item::Check { .. } => {}
            }
        }
        Ok(())
    }

    /// What is left of an extent may be several parts.
    fn repeat_extent(
        &self,
        object: ObjectId,
        offset: u64,
        address: u64,
        length: u64,
        batch: &mut Batch,
        repeated: &mut Vec<Repeated>,
    ) {
        let mut at = offset;
        while at < offset + length {
            let Some(extent) = self.extent_at(object, at).filter(|extent| extent.offset < offset + length) else {
                break;
            };
            let same = extent.offset >= offset && extent.address == address + (extent.offset - offset);
            if same && extent.end() <= offset + length {
                let Value(address, length) = Value(extent.address, extent.length);
                let now = batch.push(&Item::Extent { object, offset: extent.offset, address, length });
                repeated.push(Repeated { entry: None, now });
            }
            at = extent.end();
        }
    }
}

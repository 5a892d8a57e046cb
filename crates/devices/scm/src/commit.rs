//! From a transaction to its record, and back if there is no room for it.

pub mod change;
pub mod doubt;
pub mod gather;
pub mod mapping;
pub mod mode;
pub mod scratch;
pub mod slot;

use crate::commit::change::{Change, Put};
use crate::commit::doubt::MOST_OF_RECORD;
use crate::commit::mapping::Blocks;
use crate::commit::slot::FIRST_TABLE;
use crate::core::{Core, KEPT_SEGMENTS};
use crate::log::{MOST_UNFENCED, Place};
use crate::medium::errors::no_space;
use crate::space::held::Held;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::validate::{self, Stored};
use onode_object::{AttributeKey, Durability, ObjectId, Result, Transaction};

/// What was written before the record is fenced by itself if it is more than this; less is checked
/// by a checksum in the record, which costs less than a fence.
const MOST_CHECKED_BYTES: u64 = 4096;
/// The same where a fence is a sync of a file.
const MOST_CHECKED_BYTES_IN_FILE: u64 = 8 << 20;
/// How often a transaction for which there is no room has space gathered for it.
const MOST_ATTEMPTS: u32 = 3;

impl<P: Pmem> Core<P> {
    /// Does the whole transaction or nothing.
    pub(crate) fn commit(&mut self, transaction: &Transaction, durability: Durability) -> Result<()> {
        self.commit_with(transaction, durability, Blocks::default())
    }

    /// The same with blocks that become content or memory by it.
    pub(crate) fn commit_with(
        &mut self,
        transaction: &Transaction,
        durability: Durability,
        blocks: Blocks<'_>,
    ) -> Result<()> {
        self.check_writable()?;
        let mut exists = |object: ObjectId| Ok(object.0 < FIRST_TABLE && self.exists(object));
        validate::validate(transaction, ObjectId(self.next_id), &mut exists)?;
        if transaction.is_empty() && blocks.is_empty() {
            if durability == Durability::Durable && (self.log.fenced < self.log.sequence || !self.unflushed.is_empty())
            {
                self.flush_content();
                self.fence()?;
            }
            return Ok(());
        }
        self.gather_log(false)?;
        let mut attempts = 0;
        let mut must_fit = false;
        loop {
            match self.attempt(transaction, durability, must_fit, blocks) {
                // Whether it may be refused at all is asked only now: most transactions find room.
                Err(error)
                    if error.kind == ErrorKind::NoSpace
                        && !must_fit
                        && validate::never_needs_space(transaction, &mut Lookup(self))?
                        && !is_planted(Bug::FullScmUnlinkRefused) =>
                {
                    must_fit = true;
                    self.gather_log(true)?;
                }
                Err(error)
                    if error.kind == ErrorKind::NoSpace
                        && attempts < MOST_ATTEMPTS
                        && self.gain_space(transaction)? =>
                {
                    attempts += 1;
                }
                done => return done,
            }
        }
    }

    fn attempt(
        &mut self,
        transaction: &Transaction,
        durability: Durability,
        must_fit: bool,
        blocks: Blocks<'_>,
    ) -> Result<()> {
        // What an object lost may not be overwritten in place while a crash could bring it back.
        // Nor while a recovery would put something there once more.
        let is_shown = self.log.fenced <= self.last_shrink || self.log.applied <= self.last_put_and_shrink;
        if is_shown || self.log.sequence - self.log.fenced > MOST_UNFENCED {
            self.fence()?;
        }
        if !self.doubted.has_room() {
            self.settle_all()?;
        }
        let mut change = Change::new(self);
        let checked = match change.prepare(transaction, must_fit, blocks) {
            Ok(checked) => checked,
            Err(error) => {
                return Err(match change.undo() {
                    Ok(()) => error,
                    // The index in memory is not what the log says any more; a mount makes it anew.
                    Err(_) => self.fail(error),
                });
            }
        };
        if !checked && change.core.mode.vouches() && !is_planted(Bug::ScmContentNotChecked) {
            change.core.fence()?;
        }
        change.record(durability)
    }
}

impl<P: Pmem> Change<'_, P> {
    /// Does all that can fail. Whether a checksum in the record tells what was written before it.
    fn prepare(&mut self, transaction: &Transaction, must_fit: bool, blocks: Blocks<'_>) -> Result<bool> {
        self.withdrawn = blocks.withdrawn;
        for mutation in &transaction.mutations {
            self.apply(mutation)?;
        }
        for content in blocks.published {
            self.adopt(content)?;
        }
        if let Some(object) = blocks.gathered {
            self.gather(object)?;
        }
        if let Some((object, slot)) = blocks.slots {
            self.make_slots(object, slot)?;
        }
        let written: u64 = self.lists.written.iter().map(|(_, length)| length).sum();
        let most = if self.core.fences_are_dear() { MOST_CHECKED_BYTES_IN_FILE } else { MOST_CHECKED_BYTES };
        let checked = self.core.mode.vouches() && written <= most && self.lists.written.len() <= MOST_OF_RECORD;
        self.finish_items(checked && !is_planted(Bug::ScmContentNotChecked))?;
        self.reserve_log(must_fit)?;
        Ok(checked)
    }

    /// Has enough segments in store for the items, and the log have as many as it needs to say them
    /// again.
    fn reserve_log(&mut self, must_fit: bool) -> Result<()> {
        let needed = self.core.log.segments_for(&self.lists.batch);
        let (before, live) = (self.core.live_log_bytes, self.live_after());
        let grows = !must_fit && (live > before || !self.lists.fresh.is_empty());
        let wanted = if grows { self.core.segments_wanted(live, true) } else { 0 };
        let kept = if must_fit { 0 } else { KEPT_SEGMENTS };
        while needed > 0 && self.core.log.spare.len() < needed + kept || self.core.owned_segments() < wanted {
            match self.core.blocks.allocate(self.core.chunk_bytes()) {
                Some(address) => self.core.log.spare.push(&*self.core.memory, address),
                None if self.core.log.spare.len() >= needed && must_fit => break,
                None => return Err(no_space("no room for the log")),
            }
        }
        Ok(())
    }

    /// Writes the record and does what had to wait for it.
    fn record(mut self, durability: Durability) -> Result<()> {
        // What the record puts in place may not be what a recovery that finds the record checks for
        // those before it.
        let is_doubted = |put: &Put| {
            let (address, length) = put.range();
            self.core.doubted.overlaps(address, length)
        };
        if self.core.log.fenced < self.core.log.sequence && self.lists.puts.iter().any(is_doubted) {
            self.core.fence()?;
        }
        let lists = &mut *self.lists;
        if !lists.batch.fits() {
            lists.places.resize(lists.batch.len(), Place(0));
        }
        // The record is made longer, to whole lines, where it is.
        let bytes_logged = lists.batch.item_bytes() as u64;
        let core = &mut *self.core;
        if durability == Durability::Durable {
            // What is durable now is so with the content of all before.
            core.flush_content();
        }
        let places = &mut lists.places;
        let appended = core.log.append(&*core.memory, &mut lists.batch, |number, place| {
            if let Some(slot) = places.get_mut(number) {
                *slot = place;
            }
        });
        if !appended {
            let error = no_space("the log has no segment in store");
            return Err(self.core.fail(error));
        }
        self.settle_places();
        let core = &mut *self.core;
        let last = core.log.sequence - 1;
        for (address, length) in self.lists.checked.drain(..) {
            core.doubted.insert(&*core.memory, address, length, last);
        }
        core.commits += 1;
        core.counters.commits += 1;
        core.counters.bytes_logged += bytes_logged;
        core.counters.bytes_written += self.lists.written.iter().map(|(_, length)| length).sum::<u64>();
        if !self.lists.puts.is_empty() {
            core.last_put = last;
        }
        if self.shrinks {
            core.last_shrink = last;
            if !self.lists.puts.is_empty() {
                core.last_put_and_shrink = last;
            }
        }
        let puts_wait = !self.lists.puts.is_empty() && !is_planted(Bug::ScmPutBeforeFence);
        if (durability == Durability::Durable || puts_wait) && !is_planted(Bug::ScmRecordNotFenced) {
            core.fence()?;
        }
        for put in &self.lists.puts {
            match *put {
                Put::Bytes { address, start, length } => {
                    core.memory.write_through(address, &self.lists.content[start..start + length]);
                    core.counters.put_in_place += length as u64;
                }
                Put::Zero { address, length } => {
                    core.memory.zero(address, length);
                    core.memory.flush(address, length);
                    core.counters.put_in_place += length;
                }
            }
        }
        core.log.flushed = last + 1;
        for (address, bytes, part) in self.lists.released.drain(..) {
            core.hold(&Held { sequence: last, address, bytes, part })?;
        }
        if is_planted(Bug::ScmHeldReused) {
            core.release_held();
        }
        core.refill_store();
        let blocks = &core.blocks;
        // Without room for more nodes the next transaction that needs one says so.
        let _ = core.tree.settle(&*core.memory, blocks);
        if let Some((object, _)) = self.lists.onodes.last() {
            core.known.note_found(*object);
        }
        self.leave_lists();
        Ok(())
    }
}

/// The device as it is asked for what is stored.
struct Lookup<'a, P: Pmem>(&'a Core<P>);

impl<P: Pmem> Stored for Lookup<'_, P> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        self.0.attribute(object, key).map(|value| value.map(|value| value.len()))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let Some((onode, _)) = self.0.find_onode(object)? else { return Ok(None) };
        let mut at = 0;
        while at < onode.size {
            match self.0.extent_at(object, at).filter(|extent| extent.offset <= at) {
                Some(extent) => at = extent.end(),
                None => return Ok(None),
            }
        }
        Ok(Some(onode.size))
    }
}

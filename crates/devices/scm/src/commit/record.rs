//! How a prepared transaction becomes a record, and what happens before and after that.
//!
//! All that can fail is done before anything is appended. New content is durable before the record
//! is, or the record tells its checksum; bytes that a durable state shows are put in place when the
//! record is durable; blocks that were given up are deferred.

use crate::commit::blocks::BlockChanges;
use crate::commit::change::Change;
use crate::commit::lists::{Lists, Put};
use crate::log::place::Place;
use crate::log::room::Need;
use crate::persist::Recorded;
use crate::persist::unverified::MOST_OF_RECORD;
use crate::space::deferred_frees::DeferredFree;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{Durability, Result, Transaction};

/// What was written before the record is fenced by itself if it is more than this; less is checked
/// by a checksum in the record, which costs less than a fence.
const MOST_CHECKED_BYTES: u64 = 4096;
/// The same where a fence is a sync of a file.
const MOST_CHECKED_BYTES_IN_FILE: u64 = 8 << 20;

impl<P: Pmem> Change<'_, P> {
    /// Does all that can fail. Whether a checksum in the record tells what was written before it.
    pub(crate) fn prepare(
        &mut self,
        transaction: &Transaction,
        must_fit: bool,
        blocks: BlockChanges<'_>,
    ) -> Result<bool> {
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
        let most = if self.store.fences_are_dear() { MOST_CHECKED_BYTES_IN_FILE } else { MOST_CHECKED_BYTES };
        let is_little = self.lists.written_bytes() <= most && self.lists.written.len() <= MOST_OF_RECORD;
        let checked = self.store.mode().vouches() && is_little;
        self.finish_items(checked && !is_planted(Bug::ScmContentNotChecked))?;
        self.reserve_log(must_fit)?;
        Ok(checked)
    }

    /// Has enough segments in store for the items, and the log have as many as it needs to say them
    /// again.
    fn reserve_log(&mut self, must_fit: bool) -> Result<()> {
        let live_bytes = self.live_after();
        let grows = !must_fit && (live_bytes > self.store.log().live_bytes() || !self.lists.fresh.is_empty());
        self.store.reserve_log(&self.lists.batch, &Need { live_bytes, grows, must_fit })
    }

    /// Writes the record and does what had to wait for it; the lists, empty. What was written
    /// before it is `checked` by a checksum in it, or fenced now.
    pub(crate) fn record(mut self, checked: bool, durability: Durability) -> Result<Box<Lists>> {
        if !checked && self.store.mode().vouches() && !is_planted(Bug::ScmContentNotChecked) {
            self.store.fence()?;
        }
        // What the record puts in place may not be what a recovery that finds the record checks for
        // those before it.
        let is_unverified = |put: &Put| {
            let (address, length) = put.range();
            self.store.is_unverified(address, length)
        };
        if self.store.log().has_unfenced() && self.lists.puts.iter().any(is_unverified) {
            self.store.fence()?;
        }
        let lists = &mut *self.lists;
        if !lists.batch.fits() {
            lists.places.resize(lists.batch.len(), Place(0));
        }
        if durability == Durability::Durable {
            // What is durable now is so with the content of all before.
            self.store.flush_content();
        }
        let places = &mut lists.places;
        self.store.append(&mut lists.batch, |number, place| {
            if let Some(slot) = places.get_mut(number) {
                *slot = place;
            }
        })?;
        self.patch_places();
        let puts = !self.lists.puts.is_empty();
        self.store.note_record(&Recorded {
            checked: &self.lists.checked,
            content_bytes: self.lists.written_bytes(),
            puts,
            shrinks: self.shrinks,
        });
        let puts_wait = puts && !is_planted(Bug::ScmPutBeforeFence);
        if (durability == Durability::Durable || puts_wait) && !is_planted(Bug::ScmRecordNotFenced) {
            self.store.fence()?;
        }
        self.put_in_place();
        self.defer_released()?;
        self.store.refill_log();
        // Without room for more nodes the next transaction that needs one says so.
        let _ = self.index.restock(self.store.blocks());
        if let Some((object, _)) = self.lists.onodes.last() {
            self.index.note_found(*object);
        }
        Ok(self.into_lists())
    }

    fn put_in_place(&mut self) {
        for put in &self.lists.puts {
            match *put {
                Put::Bytes { address, start, length } => {
                    self.store.put_in_place(address, &self.lists.content[start..start + length]);
                }
                Put::Zero { address, length } => self.store.zero_in_place(address, length),
            }
        }
        self.store.note_puts_flushed();
    }

    /// Blocks that the transaction gave up wait until its record is durable.
    fn defer_released(&mut self) -> Result<()> {
        let sequence = self.store.log().last();
        for (address, bytes, part) in self.lists.released.drain(..) {
            self.store.defer(&DeferredFree { sequence, address, bytes, part })?;
        }
        if is_planted(Bug::ScmHeldReused) {
            self.store.release_deferred();
        }
        Ok(())
    }
}

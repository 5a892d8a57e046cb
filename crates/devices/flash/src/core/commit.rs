//! Commits: placing content, logging the record, applying it.

use super::Core;
use crate::commit::access::{remade, sets_access_times};
use crate::commit::compact::Plan;
use crate::commit::sync::Ticket;
use crate::index::apply::Onode;
use crate::log::Writer;
use crate::log::record::{Change, Changes, Piece};
use crate::medium::format::{FEATURE_ACCESS_TIMES, FEATURE_VERSIONS};
use crate::policy::{Stream, whole_page_bytes};
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::{Admission, never_needs_space, validate};
use onode_object::{Durability, Hints, Mutation, ObjectId, Result, SyncScope, Transaction};

/// Content moves by the byte.
pub const MOVE_UNIT: u64 = 1;

/// Whether `transaction` makes a version of an object: without one no content moves.
fn makes_versions(transaction: &Transaction) -> bool {
    let makes = |one: &Mutation| matches!(one, Mutation::Create { object, .. } if object.is_version());
    transaction.mutations.iter().any(makes)
}

impl Core {
    /// Does the whole transaction or nothing.
    pub fn commit(&mut self, transaction: Transaction, durability: Durability) -> Result<()> {
        if transaction.is_empty() {
            self.check(&transaction)?;
            return if durability == Durability::Durable { self.sync() } else { Ok(()) };
        }
        self.commit_before_sync(transaction, durability)?;
        let synced = if durability == Durability::Durable { self.sync() } else { Ok(()) };
        self.finish_commit(synced)
    }

    /// Does the whole transaction or nothing; the caller makes it durable at once and then calls
    /// [`finish_commit`](Self::finish_commit).
    pub fn commit_to_be_synced(&mut self, transaction: Transaction) -> Result<()> {
        if transaction.is_empty() {
            return self.check(&transaction);
        }
        self.commit_before_sync(transaction, Durability::Durable)
    }

    /// What is left to do for a commit that was `synced`, or was not to be.
    pub fn finish_commit(&mut self, synced: Result<()>) -> Result<()> {
        let result = synced.and_then(|()| {
            let most_times = self.options.pending_access_times;
            self.volume().shed_access_times(most_times)?;
            if self.checkpoint_is_due() {
                self.checkpoint(false)?;
            }
            self.index.share_memory();
            Ok(())
        });
        self.latch_half_way(result)
    }

    /// Memory and medium may disagree after an error; what is on the medium is whole.
    fn latch_half_way(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            self.log.latch().fail_because(|| format!("a commit failed half-way: {error}"));
        }
        result
    }

    fn check(&mut self, transaction: &Transaction) -> Result<()> {
        self.log.store().latch().check()?;
        let next_id = ObjectId(self.index.counts().next_object);
        let Self { index, log, .. } = self;
        let admission = Admission { next_id, move_unit: Some(MOVE_UNIT) };
        validate(transaction, admission, &mut |object| index.onode(log, object).map(|onode| onode.is_some()))
    }

    /// Makes sure that `transaction` is not refused if it comes next.
    pub fn check_commit(&mut self, transaction: &Transaction) -> Result<()> {
        self.check(transaction)?;
        if transaction.is_empty() || never_needs_space(transaction, &mut self.volume())? {
            return Ok(());
        }
        let (cleaner, mut volume) = self.parts();
        cleaner.pay_and_make_room(&mut volume, transaction, false)
    }

    fn commit_before_sync(&mut self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.check(&transaction)?;
        // A little of what a mount deferred, so that it is not all left to one who asks for much.
        self.index.apply_some_deferred(&mut self.log, 1)?;
        let most_times = self.options.pending_access_times;
        self.volume().forget_times_of_remade(&transaction, most_times)?;
        let freeing = never_needs_space(&transaction, &mut self.volume())? && !is_planted(Bug::FullFlashUnlinkRefused);
        if freeing && self.goes_in_steps(&transaction) {
            let changes = self.prepare_steps(transaction)?;
            let result = self.commit_in_steps(changes);
            return self.latch_half_way(result);
        }
        let (cleaner, mut volume) = self.parts();
        cleaner.pay_and_make_room(&mut volume, &transaction, freeing)?;
        let result = self.commit_in_room(transaction, durability);
        self.latch_half_way(result)
    }

    fn commit_in_room(&mut self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.prepare_writing()?;
        let likely = self.rhythm.commit();
        // In the write buffer what is synced waits for its page to fill like anything else.
        let synced = (likely || durability == Durability::Durable) && !self.checkpoints.buffers_writes(&self.index);
        let plan = if synced { self.volume().plan(&transaction)? } else { Plan::default() };
        let sets_access_times = sets_access_times(&transaction);
        for (feature, is_needed) in
            [(FEATURE_ACCESS_TIMES, sets_access_times), (FEATURE_VERSIONS, makes_versions(&transaction))]
        {
            if is_needed && !self.checkpoints.has_feature(feature) {
                // Older programs must not meet what follows.
                self.checkpoints.add_feature(feature);
                self.checkpoints.write_superblock(&mut self.index, &mut self.log, false)?;
            }
        }
        let remade = if sets_access_times { remade(&transaction) } else { Vec::new() };
        let mut changes = Changes::new();
        for (position, mutation) in transaction.mutations.into_iter().enumerate() {
            if is_planted(Bug::TransactionSplit) && changes.count() == 1 {
                self.log_changes(&core::mem::take(&mut changes))?;
            }
            let encoded = plan.encoded(position);
            let change = match mutation {
                Mutation::Write { object, offset, data } if !data.is_empty() => {
                    self.bytes_written += data.len() as u64;
                    let pieces = if plan.in_one_run {
                        self.log.append_content(Stream::Journal, Writer::User, object, offset, &data)?
                    } else {
                        self.write_content(object, offset, &data, synced)?
                    };
                    self.applied(Change::Place { object, offset, pieces })?
                }
                Mutation::SetAccessTime { object, time } if self.volume().logs_access_time(object, &remade) => {
                    self.volume().note_access_time(object, time)?;
                    continue;
                }
                Mutation::SetAttribute { object, key, value } => {
                    self.log.count_attribute(object, value.len());
                    match encoded {
                        Some(_) => self.applied(Change::Mutation(Mutation::SetAttribute { object, key, value }))?,
                        None => self.volume().set_attribute(object, key, value)?,
                    }
                }
                Mutation::SetHints { object, hints } => {
                    self.note_parity_wish(object, &hints)?;
                    self.applied(Change::Mutation(Mutation::SetHints { object, hints }))?
                }
                Mutation::Move { object, to, .. } => {
                    if let Some(marker) = self.note_parity_move(object, to)? {
                        changes.push(&marker);
                    }
                    self.applied(Change::Mutation(mutation))?
                }
                other => self.applied(Change::Mutation(other))?,
            };
            match encoded {
                Some(encoded) => changes.push_encoded(encoded),
                None => changes.push(&change),
            }
        }
        self.commits += 1;
        if changes.count() > 0 {
            self.log_changes(&changes)?;
        }
        if durability == Durability::Durable {
            if sets_access_times {
                self.volume().sync_access_times(SyncScope::All)?;
            }
        } else if !self.options.small_object_buffer {
            self.log.program_page(Stream::Journal)?;
        }
        Ok(())
    }

    /// An object gets these hints: if it wishes another parity than before, what it has is to move.
    fn note_parity_wish(&mut self, object: ObjectId, hints: &Hints) -> Result<()> {
        let layout = *self.log.layout();
        if layout.chosen_parity.is_none() {
            return Ok(());
        }
        let Some(before) = self.index.onode(&mut self.log, object)? else { return Ok(()) };
        let parity = |hints: &Hints| layout.parity_for(hints.parity_pages);
        if before.allocated > 0 && parity(&before.hints) != parity(hints) {
            self.cleaner.reprotect_mut().note(object);
            self.checkpoints.set_parity_pending(true);
        }
        Ok(())
    }

    /// Content of `object` goes to `to`: if that may wish another parity than the content has, the
    /// content is to move. Returns what tells a replay of that, if nothing else does.
    fn note_parity_move(&mut self, object: ObjectId, to: ObjectId) -> Result<Option<Change>> {
        let layout = *self.log.layout();
        if layout.chosen_parity.is_none() {
            return Ok(None);
        }
        let from = self.index.onode(&mut self.log, object)?;
        let Some((from, to_onode)) = from.zip(self.index.onode(&mut self.log, to)?) else { return Ok(None) };
        let parity = |hints: &Hints| layout.parity_for(hints.parity_pages);
        let differs = parity(&from.hints) != parity(&to_onode.hints);
        if differs || self.checkpoints.parity_pending() {
            self.cleaner.reprotect_mut().note(to);
            self.checkpoints.set_parity_pending(true);
        }
        let marker = || Change::Mutation(Mutation::SetHints { object: to, hints: to_onode.hints });
        Ok(differs.then(marker))
    }

    /// Appends the record of a commit.
    pub(super) fn log_changes(&mut self, changes: &Changes) -> Result<()> {
        self.log.begin_transaction();
        self.log.append_changes(changes)
    }

    /// The change, after it was applied.
    fn applied(&mut self, change: Change) -> Result<Change> {
        self.index.apply(&mut self.log, &change)?;
        Ok(change)
    }

    /// Appends content to the streams that the placement policy names. `likely_synced` content
    /// keeps its tail where that may wait for its page to fill.
    fn write_content(&mut self, object: ObjectId, offset: u64, data: &[u8], likely_synced: bool) -> Result<Vec<Piece>> {
        let payload = self.log.layout().payload_bytes as usize;
        let onode = self.index.require(&mut self.log, object)?;
        let packed = self.options.small_object_buffer;
        let together = !packed || (likely_synced && self.log.tail_may_wait(data.len()));
        let split = if together { data.len() } else { whole_page_bytes(&onode.hints, data.len(), payload) };
        let old = if split == 0 { None } else { self.replaced_place(object, &onode, offset)? };
        let stream = if split == 0 { Stream::Data } else { self.log.stream_for_write(&onode.hints, old) };
        let mut pieces = Vec::new();
        for (stream, from, until) in [(stream, 0, split), (Stream::Journal, split, data.len())] {
            let at = offset + from as u64;
            for piece in self.log.append_content(stream, Writer::User, object, at, &data[from..until])? {
                self.log.join(&mut pieces, piece);
            }
        }
        if !packed {
            // What comes next starts a page.
            self.log.program_page(stream)?;
        }
        Ok(pieces)
    }

    /// The stream for whole pages at the start of an object if they were written now, or for all
    /// of it if it has none.
    pub fn next_stream(&mut self, object: ObjectId) -> Result<(Stream, Onode)> {
        let onode = self.index.require(&mut self.log, object)?;
        let payload = u64::from(self.log.layout().payload_bytes);
        if self.options.small_object_buffer && (1..payload).contains(&onode.size) {
            return Ok((Stream::Journal, onode));
        }
        let old = self.replaced_place(object, &onode, 0)?;
        Ok((self.log.stream_for_write(&onode.hints, old), onode))
    }

    /// How many bytes of an object have another parity than its `hints` wish, and how many it has.
    pub fn other_parity(&mut self, object: ObjectId, hints: &Hints) -> Result<(u64, u64)> {
        let (mut from, mut other, mut all) = (0, 0, 0);
        loop {
            let extents = self.index.extents(&mut self.log, object, from..u64::MAX, 64)?;
            let Some(last) = extents.last() else { return Ok((other, all)) };
            from = last.end();
            for extent in &extents {
                let length = u64::from(extent.piece.length);
                all += length;
                other += if self.log.has_other_parity(extent.piece.location, hints) { length } else { 0 };
            }
        }
    }

    /// Where that lies which a write to `object` at `offset` replaces, if the placement asks.
    fn replaced_place(&mut self, object: ObjectId, onode: &Onode, offset: u64) -> Result<Option<u64>> {
        let asks = self.log.placement().asks_the_past() && onode.allocated > 0 && offset < onode.size;
        if !asks {
            return Ok(None);
        }
        let old = self.index.extents(&mut self.log, object, offset..offset + 1, 1)?.pop();
        Ok(old.map(|extent| extent.piece.location))
    }

    /// The ticket of a sync of all that was committed so far.
    pub fn take_ticket(&mut self) -> Ticket {
        self.rhythm.sync();
        self.tickets = self.tickets.next();
        self.tickets
    }

    /// Makes every commit so far durable: one program of the page that holds the last record.
    pub fn sync(&mut self) -> Result<()> {
        self.rhythm.sync();
        let mut volume = self.volume();
        if volume.program_unsynced()? { volume.flush_programmed() } else { Ok(()) }
    }
}

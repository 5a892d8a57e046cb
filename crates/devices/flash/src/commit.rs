//! Commits: placing content, logging the record, applying it. Making it durable is `sync`.

pub mod access;
pub mod checkpoint;
pub mod failing;
pub mod sync;

use crate::commit::access::remade;
use crate::core::Core;
use crate::index::apply::EXTENT_BYTES_MAX;
use crate::log::Writer;
use crate::log::record::{Change, Piece, Record};
use crate::medium::format::FEATURE_ACCESS_TIMES;
use crate::policy::{Stream, whole_page_bytes};
use crate::space::items::Owner;
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::{never_needs_space, validate};
use onode_object::{Durability, Mutation, ObjectId, Result, SyncScope, Transaction};

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
            self.shed_access_times()?;
            if self.checkpoint_is_due() {
                self.checkpoint(false)?;
            }
            self.share_memory();
            Ok(())
        });
        self.latch_half_way(result)
    }

    /// Memory and medium may disagree after an error; what is on the medium is whole.
    fn latch_half_way(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            self.log.store.latch(&format!("a commit failed half-way: {error}"));
        }
        result
    }

    fn check(&mut self, transaction: &Transaction) -> Result<()> {
        self.log.store.check_writable()?;
        let next = ObjectId(self.next_object);
        validate(transaction, next, &mut |object| self.onode(object).map(|onode| onode.is_some()))
    }

    fn commit_before_sync(&mut self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.check(&transaction)?;
        // A little of what a mount deferred, so that it is not all left to one who asks for much.
        self.settle_some(1)?;
        self.forget_times_of_remade(&transaction)?;
        let freeing = never_needs_space(&transaction, self)? && !is_planted(Bug::FullFlashUnlinkRefused);
        self.pay_and_make_room(&transaction, freeing)?;
        let result = self.commit_in_room(transaction, durability);
        self.latch_half_way(result)
    }

    fn commit_in_room(&mut self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.prepare_writing()?;
        let likely = self.rhythm.commit();
        // In the write buffer what is synced waits for its page to fill like anything else.
        let synced = (likely || durability == Durability::Durable) && !self.buffers_writes();
        let in_one_run = synced && self.belongs_in_one_run(&transaction)?;
        let sets_access_times = Self::sets_access_times(&transaction);
        if sets_access_times && self.incompatible & FEATURE_ACCESS_TIMES == 0 {
            // Older programs must not meet what follows.
            self.incompatible |= FEATURE_ACCESS_TIMES;
            self.write_superblock(false)?;
        }
        let remade = if sets_access_times { remade(&transaction) } else { Vec::new() };
        let mut changes = Vec::with_capacity(transaction.mutations.len());
        for mutation in transaction.mutations {
            let change = match mutation {
                Mutation::Write { object, offset, data } if !data.is_empty() => {
                    let pieces = self.write_content(object, offset, &data, (synced, in_one_run))?;
                    Change::Place { object, offset, pieces }
                }
                Mutation::SetAccessTime { object, time } if self.logs_access_time(object, &remade) => {
                    self.note_access_time(object, time)?;
                    continue;
                }
                Mutation::SetAttribute { object, key, value } => {
                    self.costliest.count(object.0, value.len() as u64);
                    Change::Mutation(Mutation::SetAttribute { object, key, value })
                }
                other => Change::Mutation(other),
            };
            let patch = self.patch(&change)?;
            self.apply(&change)?;
            changes.push(patch.unwrap_or(change));
        }
        self.statistics.commits += 1;
        if !changes.is_empty() {
            self.log_changes(changes)?;
        }
        if durability == Durability::Durable {
            if sets_access_times {
                self.sync_access_times(SyncScope::All)?;
            }
        } else if !self.options.small_object_buffer {
            self.log.program_page(Stream::Journal)?;
        }
        Ok(())
    }

    /// Appends the record of a commit.
    fn log_changes(&mut self, mut changes: Vec<Change>) -> Result<()> {
        self.log.transaction += 1;
        if is_planted(Bug::TransactionSplit) && changes.len() > 1 {
            let second = changes.split_off(1);
            self.log.append_record(&Record::Commit { transaction: self.log.transaction, changes })?;
            self.log.transaction += 1;
            changes = second;
        }
        self.log.append_record(&Record::Commit { transaction: self.log.transaction, changes })
    }

    /// Appends content to the streams that the placement policy names, or in one run to the
    /// journal.
    fn write_content(
        &mut self,
        object: ObjectId,
        offset: u64,
        data: &[u8],
        (synced, in_one_run): (bool, bool),
    ) -> Result<Vec<Piece>> {
        self.statistics.bytes_written += data.len() as u64;
        if in_one_run {
            let mut pieces = Vec::new();
            self.append_content((Stream::Journal, Writer::User), object, offset, data, &mut pieces)?;
            return Ok(pieces);
        }
        let payload = self.log.store.layout.payload_bytes as usize;
        let onode = self.require(object)?;
        let packed = self.options.small_object_buffer;
        let together = !packed || (synced && self.tail_may_wait(data.len()));
        let split = if together { data.len() } else { whole_page_bytes(&onode.hints, data.len(), payload) };
        let stream = if split == 0 { Stream::Data } else { self.stream_for_write(object, &onode, offset)? };
        let mut pieces = Vec::new();
        for (stream, from, until) in [(stream, 0, split), (Stream::Journal, split, data.len())] {
            self.append_content((stream, Writer::User), object, offset + from as u64, &data[from..until], &mut pieces)?;
        }
        if !packed {
            // What comes next starts a page.
            self.log.program_page(stream)?;
        }
        Ok(pieces)
    }

    /// Appends `data` to `stream` and adds the places to `pieces`.
    pub fn append_content(
        &mut self,
        (stream, writer): (Stream, Writer),
        object: ObjectId,
        offset: u64,
        data: &[u8],
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        self.costliest.count(object.0, data.len() as u64);
        let mut done = 0;
        while done < data.len() {
            let owner = Owner::Content { object: object.0, offset: offset + done as u64 };
            let piece = self.log.append(stream, writer, &data[done..], owner)?;
            done += piece.length as usize;
            match pieces.last_mut() {
                Some(last) if self.is_joint(*last, piece) => last.length += piece.length,
                _ => pieces.push(piece),
            }
        }
        Ok(())
    }

    /// Whether `next` goes on where `last` ends, in the same segment.
    fn is_joint(&self, last: Piece, next: Piece) -> bool {
        let layout = &self.log.store.layout;
        last.location + u64::from(last.length) == next.location
            && layout.segment_of(last.location) == layout.segment_of(next.location)
            && last.length + next.length <= EXTENT_BYTES_MAX
    }

    /// Whether enough has changed for a checkpoint.
    pub fn checkpoint_is_due(&self) -> bool {
        self.log.chain_broken
            || self.dirty_bytes() > self.dirty_limit
            || self.memory_is_due()
            || (self.bpram.is_some() && self.replay_reads() >= self.reads_allowed())
            || self.log.journal_pages.max(self.log.mixed_pages) >= self.checkpoint_pages
            || (self.log.journal_pages + self.log.mixed_pages >= self.checkpoint_pages && self.is_tight())
    }

    /// So many of them are the bound: two pages for each of the journal, less what one more commit
    /// and the search for the journal's end may add.
    const fn reads_allowed(&self) -> u32 {
        let pages = 2 * self.checkpoint_pages;
        pages - pages / 16
    }

    /// About the pages that a mount would read after a cut now: those of the journal that its way
    /// back leads through, and the node behind each that changed.
    fn replay_reads(&self) -> u32 {
        self.log.echoes.reads().saturating_add(self.tree.dirty_nodes() as u32)
    }

    /// The first write of a session is a superblock. It repeats the newest one, which a second cut
    /// might take away, and reserves sequence numbers that no session had: a session that left only
    /// segments which no superblock came to know has left pages that must not be taken for those of
    /// this one. Once it is written, the checkpoint before is of no use any more, and what was held
    /// for it is free.
    pub fn prepare_writing(&mut self) -> Result<()> {
        self.clean = false;
        if !self.session_begun {
            if !is_planted(Bug::SessionUnnumbered) {
                self.log.table.skip_numbers();
                self.checkpoint_state.next_sequence = self.log.table.next_sequence;
                self.write_superblock(false)?;
            }
            self.session_begun = true;
            self.log.table.release_held();
        }
        self.reopen_memory()
    }
}

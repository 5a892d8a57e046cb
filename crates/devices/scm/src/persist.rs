//! What is written when: the order of stores, flushes, fences and superblocks, and what may be
//! reused or overwritten after each of them.
//!
//! A fence makes every record so far durable. A block that a record gave up is reused only when
//! that record is durable and no recovery verifies its bytes; bytes that a recovery verifies, or
//! puts in place once more, change only after the superblock has said that it does not. After a
//! failure nothing changes any more: what is in memory may be ahead of what is durable. It owns the
//! log and the space for that, but not the index: what records say of objects it does not know.

pub mod in_place;
pub mod mode;
pub mod room;
pub mod unflushed;
pub mod unverified;

use crate::log::batch::Batch;
use crate::log::place::Place;
use crate::log::room::Need;
use crate::log::{Log, LogState, Tail};
use crate::medium::errors::{damaged, from_media, no_space};
use crate::medium::format::{FEATURE_EXCLUSIVE, FEATURE_SLOTS, FEATURE_VERSIONS, SUPERBLOCKS, Superblock};
use crate::medium::shared_area::Window;
use crate::medium::superblocks::{store_copy, store_superblock};
use crate::persist::mode::Mode;
use crate::persist::unflushed::UnflushedRanges;
use crate::persist::unverified::UnverifiedRanges;
use crate::space::deferred_frees::DeferredFree;
use crate::space::{Blocks, Space};
use onode_base::planted::{Bug, is_planted};
use onode_engine::Latch;
use onode_media::{Domain, Pmem};
use onode_object::validate;
use onode_object::{Error, ObjectId, Result};
use std::ops::Range;
use std::sync::Arc;

/// What was written since the device was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub commits: u64,
    pub fences: u64,
    pub content_bytes: u64,
    pub log_bytes: u64,
    pub put_in_place: u64,
}

/// What of the device is durable, and what may become so.
pub(crate) struct Persistence<P: Pmem> {
    memory: Arc<P>,
    superblock: Superblock,
    log: Log,
    space: Space<P>,
    unverified: UnverifiedRanges,
    unflushed: UnflushedRanges,
    mode: Mode,
    /// No record before this number, if it is not durable yet, has taken bytes away from an object.
    last_shrink: u64,
    /// The last record that put bytes in place and took bytes away, perhaps the same.
    last_put_and_shrink: u64,
    /// The last record that put bytes in place, or a later one.
    last_put: u64,
    /// Transactions of all processes.
    commits: u64,
    /// Whether anything failed, in whatever process, so that nothing may change any more: 0 or 1.
    failures: u64,
    /// Whether anything may change, and why not.
    latch: Latch,
    /// Another process flushed what no fence has covered yet.
    has_foreign: bool,
    written: Written,
}

/// What processes tell each other of it, besides the state of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersistState {
    pub next_id: u64,
    pub generation: u64,
    pub features: u64,
    pub deferred: Window,
    pub unverified: Window,
    pub unflushed: Window,
    pub last_shrink: u64,
    pub last_put_and_shrink: u64,
    pub live_log_bytes: u64,
    pub commits: u64,
    pub failures: u64,
}

/// What a record did besides what its items say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded<'a> {
    /// Ranges whose checksum it tells.
    pub checked: &'a [(u64, u64)],
    /// Bytes of content that were written for it.
    pub content_bytes: u64,
    /// It puts bytes in place.
    pub puts: bool,
    /// It took bytes away from an object.
    pub shrinks: bool,
}

impl<P: Pmem> Persistence<P> {
    /// Of a device that was just opened, or that is not known yet.
    pub(crate) fn new(memory: Arc<P>, superblock: Superblock, log: Log, blocks: Blocks<P>, mode: Mode) -> Self {
        Self {
            memory,
            superblock,
            log,
            space: Space::new(blocks),
            unverified: UnverifiedRanges::default(),
            unflushed: UnflushedRanges::default(),
            mode,
            last_shrink: 0,
            last_put_and_shrink: 0,
            last_put: 0,
            commits: 0,
            failures: 0,
            latch: Latch::default(),
            has_foreign: false,
            written: Written::default(),
        }
    }

    #[inline]
    pub(crate) fn memory(&self) -> &P {
        &self.memory
    }

    pub(crate) const fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    #[inline]
    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    #[inline]
    pub(crate) const fn space(&self) -> &Space<P> {
        &self.space
    }

    /// What allocates, releases and publishes.
    #[inline]
    pub(crate) const fn blocks(&self) -> &Blocks<P> {
        self.space.blocks()
    }

    /// Blocks are handed out under the lease of `members` from now on.
    pub(crate) fn follow(&mut self, members: &Blocks<P>) {
        self.space.follow(members);
    }

    #[inline]
    pub(crate) const fn chunk_bytes(&self) -> u64 {
        self.superblock.chunk_bytes as u64
    }

    #[inline]
    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) const fn written(&self) -> Written {
        self.written
    }

    /// Transactions of all processes.
    pub(crate) const fn commits(&self) -> u64 {
        self.commits
    }

    /// Whether tables of slots may exist.
    pub(crate) const fn has_slots(&self) -> bool {
        self.superblock.features & FEATURE_SLOTS != 0
    }

    /// Has the superblock say that blocks are named by slots, too: who does not know of them must
    /// not take their blocks for free.
    pub(crate) fn announce_slots(&mut self) -> Result<()> {
        self.announce(FEATURE_SLOTS)
    }

    /// Has the superblock say that objects may have versions: who does not know of them would take
    /// these for tables.
    pub(crate) fn announce_versions(&mut self) -> Result<()> {
        self.announce(FEATURE_VERSIONS)
    }

    /// Whether one process at a time uses the device.
    pub(crate) const fn is_exclusive(&self) -> bool {
        self.superblock.features & FEATURE_EXCLUSIVE != 0
    }

    /// Says whether one process at a time uses the device, durable on return: in both superblocks
    /// and their copy, so that none of them says otherwise when it is the last one left.
    pub(crate) fn set_exclusive(&mut self, is_exclusive: bool) -> Result<()> {
        let others = self.superblock.features & !FEATURE_EXCLUSIVE;
        self.superblock.features = others | if is_exclusive { FEATURE_EXCLUSIVE } else { 0 };
        for _ in SUPERBLOCKS {
            self.write_superblock(false)?;
        }
        self.write_copy();
        self.fence()
    }

    fn announce(&mut self, feature: u64) -> Result<()> {
        if self.superblock.features & feature == 0 {
            self.superblock.features |= feature;
            self.write_copy();
            self.write_superblock(false)?;
        }
        Ok(())
    }

    /// No object has this id or a higher one.
    #[inline]
    pub(crate) const fn next_id(&self) -> u64 {
        self.superblock.next_id
    }

    /// Reserves ids; the first of them.
    pub(crate) fn reserve_ids(&mut self, count: u64) -> Result<ObjectId> {
        let (first, next) = validate::reserve(ObjectId(self.superblock.next_id), count)?;
        self.superblock.next_id = next.0;
        Ok(first)
    }

    /// Whether anything may change, and why not.
    #[inline]
    pub(crate) const fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Nothing may change, from the beginning.
    pub(crate) fn forbid_changes(&mut self) {
        self.latch.close();
    }

    /// Nothing may change any more: what is in memory may be ahead of what is durable.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.failures = 1;
        self.latch.fail(error)
    }

    /// Whether a fence is a sync of a file.
    pub(crate) fn fences_are_dear(&self) -> bool {
        self.memory.domain() == Domain::Sync
    }

    /// Makes every record so far durable, and what was put in place before.
    pub(crate) fn fence(&mut self) -> Result<()> {
        self.written.fences += 1;
        if std::mem::take(&mut self.has_foreign) && self.fences_are_dear() {
            // A sync takes with it only what was flushed here.
            self.memory.flush(0, self.memory.length());
        }
        if let Err(error) = self.memory.fence() {
            return Err(self.fail(from_media("making changes durable", &error)));
        }
        self.log.note_fence();
        self.log.leave_mark(&*self.memory);
        self.unverified.forget_below(&*self.memory, self.log.unverified_from());
        self.release_deferred();
        Ok(())
    }

    /// Writes the superblock, durable on return.
    pub(crate) fn write_superblock(&mut self, closed: bool) -> Result<()> {
        let Tail { session, address, sequence } = self.log.tail();
        self.superblock.generation += 1;
        self.superblock.closed = closed;
        self.superblock.session = session;
        self.superblock.tail = address;
        self.superblock.tail_sequence = sequence;
        self.superblock.accepted = self.log.durable();
        store_superblock(&*self.memory, &self.superblock);
        if closed {
            self.write_copy();
        }
        self.fence()?;
        self.unverified.forget_below(&*self.memory, self.superblock.accepted);
        self.release_deferred();
        Ok(())
    }

    /// Writes the copy of the superblock, durable with the next fence.
    pub(crate) fn write_copy(&self) {
        store_copy(&*self.memory, &self.superblock);
    }

    /// Whether anything waits for a sync.
    pub(crate) const fn has_unsynced(&self) -> bool {
        self.log.has_unfenced() || !self.unflushed.is_empty()
    }

    /// Makes everything durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush_content();
        self.fence()
    }

    /// Has the next transaction find what it needs: what an object lost may not be overwritten in
    /// place while a crash could bring it back, nor while a recovery would put something there once
    /// more.
    pub(crate) fn make_ready(&mut self) -> Result<()> {
        let is_shown = !self.log.is_fenced(self.last_shrink) || !self.log.is_applied(self.last_put_and_shrink);
        if is_shown || self.log.has_many_unfenced() {
            self.fence()?;
        }
        if !self.unverified.has_room() {
            self.accept_records()?;
        }
        Ok(())
    }

    /// Has the items of a batch put together for where the next record goes.
    pub(crate) fn begin(&self, batch: &mut Batch) {
        self.log.begin(batch);
    }

    /// Has room in the log for a batch, and for saying all items again.
    pub(crate) fn reserve_log(&mut self, batch: &Batch, need: &Need) -> Result<()> {
        self.log.reserve(self.space.blocks(), batch, need)
    }

    /// Appends a transaction, flushed but not fenced, and tells where each item lies that had no
    /// place yet.
    pub(crate) fn append(&mut self, batch: &mut Batch, placed: impl FnMut(usize, Place)) -> Result<()> {
        // The record is made longer, to whole lines, where it is.
        let bytes = batch.item_bytes() as u64;
        if !self.log.append(&*self.memory, batch, None, placed) {
            return Err(self.fail(no_space("the log has no segment in store")));
        }
        self.written.log_bytes += bytes;
        Ok(())
    }

    /// Notes what the record just appended did.
    pub(crate) fn note_record(&mut self, recorded: &Recorded<'_>) {
        let last = self.log.last();
        for (address, length) in recorded.checked {
            self.unverified.insert(&*self.memory, *address, *length, last);
        }
        self.commits += 1;
        self.written.commits += 1;
        self.written.content_bytes += recorded.content_bytes;
        if recorded.puts {
            self.last_put = last;
        }
        if recorded.shrinks {
            self.last_shrink = last;
            if recorded.puts {
                self.last_put_and_shrink = last;
            }
        }
    }

    /// So many bytes of the log more, or fewer, say something.
    pub(crate) const fn count_live(&mut self, more: i64) {
        self.log.count_live(more);
    }

    /// Segments of the log in store up to their usual number, if there is room.
    pub(crate) fn refill_log(&mut self) {
        self.log.refill(self.space.blocks());
    }

    /// Gives back segments that the log has in store and does not need.
    pub(crate) fn trim_log(&mut self) {
        self.log.trim(self.space.blocks());
    }

    /// Appends what the oldest segment still says; that segment may be lent to the log for it.
    pub(crate) fn append_repeated(
        &mut self,
        batch: &mut Batch,
        lent: Option<u64>,
        placed: impl FnMut(usize, Place),
    ) -> Result<()> {
        if self.log.append(&*self.memory, batch, lent, placed) {
            return Ok(());
        }
        Err(self.fail(damaged("the log has no segment in store")))
    }

    /// An item was said again in `now` bytes, which had taken `before`.
    pub(crate) const fn count_repeated(&mut self, before: u64, now: u64) {
        self.log.count_repeated(before, now);
    }

    /// Lets the oldest segment of the log go, all of which was said again.
    pub(crate) fn retire_oldest(&mut self) -> Result<()> {
        let oldest = self.log.segments().first();
        self.log.note_flushed();
        if !is_planted(Bug::ScmTailBeforeRepeat) {
            self.fence()?;
        }
        self.log.drop_oldest(&*self.memory);
        self.write_superblock(false)?;
        self.log.store_or_release(self.space.blocks(), oldest);
        Ok(())
    }

    /// A block that a record gave up waits from now on.
    pub(crate) fn defer(&mut self, free: &DeferredFree) -> Result<()> {
        if self.space.is_deferred_full() {
            self.release_all_deferred()?;
        }
        self.space.defer(free);
        Ok(())
    }

    /// Gives back the blocks that no durable state refers to and no recovery looks at.
    pub(crate) fn release_deferred(&mut self) {
        let unverified = &self.unverified;
        self.space.release_below(self.log.durable(), |address, bytes| unverified.overlaps(address, bytes));
    }

    /// Gets back every block that is only deferred. Afterwards nothing waits for a fence.
    pub(crate) fn release_all_deferred(&mut self) -> Result<()> {
        if self.log.has_unfenced() {
            self.fence()?;
        }
        if self.space.has_deferred() {
            self.fence()?;
        }
        if self.space.has_deferred() {
            self.write_superblock(false)?;
        }
        Ok(())
    }

    /// Whether content of these bytes waits to be flushed.
    pub(crate) fn is_unflushed(&self, bytes: &Range<u64>) -> bool {
        self.unflushed.overlaps(&*self.memory, bytes)
    }

    /// What others have to know of it.
    #[inline]
    pub(crate) const fn state(&self) -> PersistState {
        PersistState {
            next_id: self.superblock.next_id,
            generation: self.superblock.generation,
            features: self.superblock.features,
            deferred: self.space.deferred_window(),
            unverified: self.unverified.window(),
            unflushed: self.unflushed.window(),
            last_shrink: self.last_shrink,
            last_put_and_shrink: self.last_put_and_shrink,
            live_log_bytes: self.log.live_bytes(),
            commits: self.commits,
            failures: self.failures,
        }
    }

    /// Takes over what another process did.
    pub(crate) fn set_state(&mut self, state: &PersistState, log: &LogState) {
        self.superblock.next_id = state.next_id;
        self.superblock.generation = state.generation;
        self.superblock.features = state.features;
        self.log.set_state(log, state.live_log_bytes);
        self.space.set_deferred_window(state.deferred);
        self.unverified.follow(&*self.memory, state.unverified);
        self.unflushed.set_window(state.unflushed);
        (self.last_shrink, self.last_put_and_shrink) = (state.last_shrink, state.last_put_and_shrink);
        // The other process may have put bytes in place.
        self.last_put = u64::MAX;
        self.commits = state.commits;
        self.failures = self.failures.max(state.failures);
        if self.failures > 0 {
            self.latch.fail_because(|| "read-only since a failure in another process".to_owned());
        }
        // What another process flushed is not known to the medium of this one.
        self.has_foreign |= self.log.has_undurable();
    }

    /// Flushes everything: what a process flushed that died may not be durable yet.
    pub(crate) fn flush_foreign(&mut self) {
        self.has_foreign = false;
        self.memory.flush(0, self.memory.length());
    }

    /// Goes on from what a recovery made of the log, after a process died in the middle of a
    /// change.
    pub(crate) fn restart(&mut self, superblock: Superblock, log: Log) {
        (self.superblock, self.log) = (superblock, log);
        self.space.forget_deferred();
        self.unverified.clear();
        (self.last_shrink, self.last_put_and_shrink) = (0, 0);
        self.commits += 1;
    }
}

//! The log: which records stand where, and which commits are durable on which disk.
//!
//! The same records, with the same numbers and checksums, go to the rings of both disks. A disk
//! whose copy nobody waits for gets it later, in one request with what comes next.
//!
//! What it keeps true: a record says of no other one that it is durable before a flush covered it.
//! While a checkpoint is under way nothing goes to the big disk's ring, so that it never has a gap
//! that somebody relies on.
//!
//! What it does not do: decide when a checkpoint begins. It says what there is room for.

pub mod change;
pub mod commits;
pub mod group;
pub mod need;
pub mod probe;
mod progress;
mod readable;
pub mod record;
pub mod ring;
pub mod room;

use crate::content::pending::Content;
use crate::disks::Disks;
use crate::log::group::Group;
use crate::log::need::Need;
use crate::log::progress::Progress;
use crate::log::readable::Readable;
use crate::log::record::{HEADER_BYTES, Header, Seal};
use crate::log::ring::Ring;
use crate::log::room::{Load, Room};
use crate::medium::errors::{bug, from_media};
use crate::medium::layout::BLOCK;
use crate::medium::superblock::Mark;
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

/// Bytes of a record at most: memory may hold one more than it should until the fast disk has it.
const RECORD_BYTES: u64 = 4 << 20;

/// Records that the big disk is to write now.
#[derive(Debug)]
pub struct Batch {
    /// Offsets on the disk, and bytes.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// The last of them.
    newest: Mark,
    /// The newest commit in them, or before.
    commits: u64,
}

/// Where the logs go on behind a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointMarks {
    /// The big disk's.
    pub tail: Mark,
    /// The fast disk's, and its last durable record.
    pub fast: Option<(Mark, Mark)>,
}

/// The log of a volume.
#[derive(Debug)]
pub struct Log {
    big: Ring,
    /// The fast disk's ring, while it takes part.
    fast: Option<Ring>,
    session: u64,
    /// What makes the headers of the volume.
    seal: Seal,
    /// Records of the fast disk begin at a multiple of this after a checkpoint.
    stripe_blocks: u64,
    /// Bytes that the big disk may lack before a checkpoint begins.
    either_bytes: u64,
    newest: Mark,
    /// A checkpoint is under way.
    is_under_way: bool,
    /// It has commits that no record has. What comes behind them must not be durable before it is.
    lacks_record: bool,
    /// Records name content that was written to its place and may not be durable: none of them is
    /// written before it is.
    holds_placed: bool,
    /// Content in records that can be read from the fast disk, or soon can.
    readable: Readable,
    /// How far the commits are.
    progress: Progress,
}

impl Log {
    /// The log behind a checkpoint or a replay; `newest` is the last record.
    #[must_use]
    pub fn new(big: Ring, session: u64, seal: Seal, newest: Mark, either_bytes: u64) -> Self {
        Self {
            big,
            fast: None,
            session,
            seal,
            stripe_blocks: 1,
            either_bytes,
            newest,
            is_under_way: false,
            lacks_record: false,
            holds_placed: false,
            readable: Readable::default(),
            progress: Progress::default(),
        }
    }

    /// The newest record.
    #[must_use]
    pub const fn newest(&self) -> Mark {
        self.newest
    }

    /// The fast disk takes part from now on, with this ring; behind a checkpoint its records begin
    /// at a multiple of `stripe_blocks`.
    pub fn attach_fast(&mut self, ring: Ring, stripe_blocks: u64) {
        (self.fast, self.stripe_blocks) = (Some(ring), stripe_blocks);
    }

    /// The fast disk takes no part any more.
    pub fn detach_fast(&mut self) {
        self.fast = None;
    }

    /// Whether the fast disk takes part.
    #[must_use]
    pub const fn has_fast(&self) -> bool {
        self.fast.is_some()
    }

    /// Whether a commit is as durable as it needs to be.
    #[must_use]
    pub const fn has(&self, commit: u64, need: Need) -> bool {
        self.progress.has(commit, self.effective(need))
    }

    /// What is needed while there is, or is no, fast disk.
    #[must_use]
    pub const fn effective(&self, need: Need) -> Need {
        match self.fast {
            Some(_) => need,
            None => Need { big: need.is_any(), fast: false, either: false },
        }
    }

    /// Whether nobody who commits or syncs needs more of what came since the last sync, which needs
    /// `unsynced`, than the fast disk.
    #[must_use]
    pub const fn leans_on_fast(&self, unsynced: Need) -> bool {
        self.fast.is_some() && unsynced.either && !unsynced.big && !unsynced.fast
    }

    /// Whether a checkpoint is under way.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Whether no record may be written before the checkpoint under way is durable.
    #[must_use]
    pub const fn must_wait(&self) -> bool {
        self.is_under_way && self.lacks_record
    }

    /// Whether the big disk's ring leaves records out until the next checkpoint.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.big.is_behind()
    }

    /// Whether the big disk's ring has records behind the checkpoint.
    #[must_use]
    pub const fn has_records(&self) -> bool {
        self.big.used() > 0
    }

    /// Whether records name content that may not be durable.
    #[must_use]
    pub const fn holds_placed(&self) -> bool {
        self.holds_placed
    }

    /// All content that records name is durable.
    pub const fn content_is_durable(&mut self) {
        self.holds_placed = false;
    }

    /// Whether it is time for a checkpoint; what the big disk's log has does not matter if it may
    /// fall behind.
    #[must_use]
    pub fn is_half_full(&self, may_fall_behind: bool) -> bool {
        // Not one block more: half of a ring is whole erase blocks of a fast disk, and one that is
        // begun is copied.
        (!may_fall_behind && self.big.is_half_full()) || self.fast.as_ref().is_some_and(Ring::is_half_full)
    }

    /// Whether a record with so much payload can be appended; on the big disk, too, unless that may
    /// fall behind.
    #[must_use]
    pub fn fits(&self, payload: usize, may_fall_behind: bool) -> bool {
        let blocks = record::blocks_of(payload);
        (may_fall_behind || self.fits_big(blocks)) && self.fast.as_ref().is_none_or(|ring| ring.takes(blocks))
    }

    const fn fits_big(&self, blocks: u64) -> bool {
        !self.big.is_behind() && self.big.takes(blocks)
    }

    /// Whether the group fits into the rings, and content does not gather in memory without end.
    #[must_use]
    pub fn room(&self, load: &Load, need: Need) -> Room {
        let waits_for_big = self.effective(need).big;
        let may_fall_behind = !waits_for_big && self.leans_on_fast(load.unsynced);
        let fits = self.fits(load.payload, may_fall_behind);
        let holds_much = self.holds_much(load);
        if self.is_under_way {
            return if !waits_for_big && !holds_much && fits { Room::Fits } else { Room::Finish };
        }
        // Who waits for the big disk waits for the whole checkpoint, so it is put off until the log
        // is full: the more of what it would bring home is gone by then.
        let who_comes = if need.is_any() { need } else { load.unsynced };
        let is_put_off = self.effective(who_comes).big;
        if fits && !holds_much && (is_put_off || !self.is_half_full(may_fall_behind)) {
            return Room::Fits;
        }
        // Between the heads' ways to the log and back a checkpoint takes much longer than by
        // itself.
        if waits_for_big || self.fast.is_none() || !fits { Room::Checkpoint } else { Room::Begin }
    }

    /// Whether memory has as much of what the big disk lacks as it may.
    fn holds_much(&self, load: &Load) -> bool {
        match self.leans_on_fast(load.unsynced) {
            true => load.is_above(RECORD_BYTES),
            false => load.is_above(0) || self.big.backlog_bytes() > self.either_bytes,
        }
    }

    /// Makes a record of the group, whose last commit is `commits`, and appends it; returns how
    /// many bytes it has, padding included. The group is empty then.
    ///
    /// # Errors
    /// `Bug` if it does not fit, which [`room`](Self::room) is there for: it would be written over
    /// records that count.
    pub fn append(&mut self, group: &mut Group, commits: u64) -> Result<u64> {
        let blocks = record::blocks_of(group.payload().len());
        if group.transactions() > 0 && self.fast.as_ref().is_some_and(|ring| !ring.fits(blocks)) {
            return Err(bug(format!("the log of the fast disk has no room for {blocks} blocks")));
        }
        let mut group = core::mem::take(group);
        self.progress.append(commits);
        if group.transactions() == 0 {
            return Ok(0);
        }
        self.holds_placed |= group.has_placed();
        let header = Header {
            sequence: self.newest.sequence + 1,
            session: self.session,
            fast_durable: self.fast.as_ref().map_or(0, |ring| ring.durable().sequence),
            big_durable: self.big.durable().sequence,
            chain: self.newest.chain,
            transactions: group.transactions(),
            ..Header::default()
        };
        let (bytes, crc) = record::encode(&header, group.payload(), self.seal);
        self.newest = Mark { position: 0, sequence: header.sequence, chain: crc };
        let blocks = bytes.len() as u64 / BLOCK;
        if self.fits_big(blocks) && self.big.backlog_bytes() <= self.either_bytes {
            self.big.append(&bytes, header.sequence, crc);
        } else {
            self.big.skip_until_checkpoint();
        }
        if let Some(ring) = self.fast.as_mut() {
            let first = ring.append(&bytes, header.sequence, crc) + HEADER_BYTES as u64;
            self.readable.append(group.take_contents(), first);
        }
        Ok(bytes.len() as u64)
    }

    /// What the big disk is to write, unless somebody does that later, for who needs this. If
    /// nobody waits, the disk is written to that who waits later will need: the fast one if
    /// `leans_on_fast`. Also whether the fast disk is to have it.
    pub fn share(&mut self, need: Need, leans_on_fast: bool) -> (Option<Batch>, bool) {
        let wanted = self.effective(need);
        let is_waited_for = need.is_any();
        let to_big = wanted.big || !(is_waited_for || leans_on_fast || self.is_under_way);
        let to_fast = wanted.fast || wanted.either || (!is_waited_for && leans_on_fast);
        (to_big.then(|| self.take_batch()), to_fast)
    }

    fn take_batch(&mut self) -> Batch {
        let (writes, newest) = (self.big.take_backlog(), self.big.newest());
        Batch { writes, newest, commits: self.progress.appended() }
    }

    /// What the big disk lacks, unless its log fell behind.
    pub fn lacks_on_big(&mut self) -> Option<Batch> {
        (self.progress.lacks_on_big() && !self.big.is_behind()).then(|| self.take_batch())
    }

    /// The big disk has made that durable.
    pub fn is_on_big(&mut self, batch: &Batch) {
        self.big.set_durable(batch.newest);
        self.progress.is_on_big(batch.commits);
    }

    /// False if there is no fast disk any more.
    pub fn write_fast(&mut self, disks: &Disks) -> bool {
        let Some(ring) = self.fast.as_mut() else { return false };
        let backlog = ring.take_backlog();
        let written = disks.fast.lock().with(|fast| {
            let write = |(offset, bytes): &(u64, Vec<u8>)| fast.disk().write_at(*offset, bytes, IoTag::Journal);
            let written = backlog.iter().try_for_each(write);
            written.map_err(|error| from_media("writing the log of the fast disk", &error))
        });
        if written.is_some() {
            self.readable.is_written();
        }
        self.keep_fast(written.is_some())
    }

    /// The same.
    pub fn flush_fast(&mut self, disks: &Disks) -> bool {
        let flushed = disks.fast.lock().with(|fast| match is_planted(Bug::TierFastNotFlushed) {
            true => Ok(()),
            false => fast.disk().flush().map_err(|error| from_media("flushing the fast disk", &error)),
        });
        if let Some(ring) = self.fast.as_mut().filter(|_| flushed.is_some()) {
            ring.set_durable(ring.newest());
            self.progress.all_on_fast();
        }
        self.keep_fast(flushed.is_some())
    }

    /// Bytes that the log of the fast disk can take.
    #[must_use]
    pub fn fast_room(&self) -> u64 {
        self.fast.as_ref().map_or(0, |ring| ring.room() * BLOCK)
    }

    /// Content that can be read from the log of the fast disk since this was asked last.
    pub fn take_readable(&mut self) -> Vec<Content> {
        self.readable.take()
    }

    fn keep_fast(&mut self, is_there: bool) -> bool {
        if !is_there {
            self.fast = None;
        }
        is_there
    }

    /// A checkpoint begins that has everything until now, also commits that no record has if
    /// `lacks_record`. Who needs the records before it on the big disk waits for it.
    pub fn mark_checkpoint(&mut self, lacks_record: bool) -> CheckpointMarks {
        let tail = Mark { position: self.big.mark(), ..self.newest };
        self.big.take_backlog();
        let (stripe, newest) = (self.stripe_blocks, self.newest);
        let fast = self.fast.as_mut().map(|ring| {
            ring.align(stripe);
            (Mark { position: ring.mark(), ..newest }, ring.durable())
        });
        (self.is_under_way, self.lacks_record) = (true, lacks_record);
        CheckpointMarks { tail, fast }
    }

    /// The checkpoint under way, which has these commits, is durable: nothing before its marks is
    /// needed any more.
    pub fn end_checkpoint(&mut self, commits: u64) {
        self.is_under_way = false;
        self.big.release();
        if let Some(ring) = self.fast.as_mut() {
            ring.release();
        }
        self.covers(commits);
    }

    /// A checkpoint that has these commits is durable.
    pub fn covers(&mut self, commits: u64) {
        self.progress.covers(commits);
    }
}

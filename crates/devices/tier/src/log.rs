//! The log: which records stand where, and which commits are durable on which disk.
//!
//! The same records, with the same numbers and checksums, go to the rings of both disks. A disk
//! whose copy nobody waits for gets it later, in one request with what comes next.

pub mod change;
pub mod probe;
pub mod record;
pub mod ring;

use crate::commit::flight::Flight;
use crate::content::pending::Content;
use crate::core::{Core, Need};
use crate::disks::Disks;
use crate::log::record::{HEADER_BYTES, Header, Seal};
use crate::log::ring::Ring;
use crate::medium::errors::{bug, from_media};
use crate::medium::layout::BLOCK;
use crate::medium::superblock::Mark;
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

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

/// The log of a volume.
#[derive(Debug)]
pub struct Log {
    /// The big disk's ring.
    pub big: Ring,
    /// The fast disk's, while it takes part.
    pub fast: Option<Ring>,
    /// The session that writes.
    pub session: u64,
    /// What makes the headers of the volume.
    seal: Seal,
    /// Records of the fast disk begin at a multiple of this after a checkpoint.
    pub stripe_blocks: u64,
    /// Bytes that the big disk may lack before a checkpoint begins.
    pub either_bytes: u64,
    /// The newest record.
    pub newest: Mark,
    /// The checkpoint under way.
    pub flight: Option<Flight>,
    /// Records name content that was written to its place and may not be durable: none of them is
    /// written before it is.
    pub holds_placed: bool,
    /// Content in records that the fast disk was not handed yet, and in those that it was.
    unwritten: Vec<Content>,
    readable: Vec<Content>,
    /// The newest commit that has a record.
    appended: u64,
    /// The newest commit that is durable on the big disk.
    on_big: u64,
    /// The newest commit that is durable on the fast disk, or needs not be there.
    on_fast: u64,
}

impl Log {
    /// The log behind a checkpoint or a replay; `newest` is the last record.
    #[must_use]
    pub const fn new(big: Ring, session: u64, seal: Seal, newest: Mark, either_bytes: u64) -> Self {
        let (appended, on_big, on_fast) = (0, 0, 0);
        Self {
            big,
            fast: None,
            session,
            seal,
            stripe_blocks: 1,
            either_bytes,
            newest,
            flight: None,
            holds_placed: false,
            unwritten: Vec::new(),
            readable: Vec::new(),
            appended,
            on_big,
            on_fast,
        }
    }

    /// Whether a commit is as durable as it needs to be.
    #[must_use]
    pub const fn has(&self, commit: u64, need: Need) -> bool {
        let need = self.effective(need);
        commit <= self.appended
            && (!need.big || commit <= self.on_big)
            && (!need.fast || commit <= self.on_fast)
            && (!need.either || commit <= self.on_big || commit <= self.on_fast)
    }

    /// What is needed while there is, or is no, fast disk.
    pub const fn effective(&self, need: Need) -> Need {
        match self.fast {
            Some(_) => need,
            None => Need { big: need.big || need.fast || need.either, fast: false, either: false },
        }
    }

    /// Whether the big disk has to say first that the fast one may have what it lacks.
    #[must_use]
    pub const fn must_lean(&self, core: &Core, need: Need) -> bool {
        need.either && self.fast.is_some() && core.superblock.fast.is_attached && !core.may_lean
    }

    /// Whether nobody who commits or syncs needs more of what came since the last sync than the
    /// fast disk.
    #[must_use]
    pub const fn leans_on_fast(&self, core: &Core) -> bool {
        let unsynced = core.unsynced;
        self.fast.is_some() && unsynced.either && !unsynced.big && !unsynced.fast
    }

    /// Whether it is time for a checkpoint; what the big disk's log has does not matter if it may
    /// fall behind.
    #[must_use]
    pub fn is_half_full(&self, may_fall_behind: bool) -> bool {
        // Not one block more: half of a ring is whole erase blocks of a fast disk, and one that is
        // begun is copied.
        let is_half_full = |ring: &Ring| ring.used() * 2 >= ring.blocks;
        (!may_fall_behind && is_half_full(&self.big)) || self.fast.as_ref().is_some_and(is_half_full)
    }

    /// Whether a record with so much payload can be appended; on the big disk, too, unless that may
    /// fall behind.
    #[must_use]
    pub fn fits(&self, payload: usize, may_fall_behind: bool) -> bool {
        let blocks = record::blocks_of(payload);
        let fits = |ring: &Ring| blocks * 2 <= ring.blocks && ring.fits(blocks);
        (may_fall_behind || self.fits_big(blocks)) && self.fast.as_ref().is_none_or(fits)
    }

    fn fits_big(&self, blocks: u64) -> bool {
        !self.big.is_behind() && blocks * 2 <= self.big.blocks && self.big.fits(blocks)
    }

    /// Makes a record of the group and appends it.
    ///
    /// # Errors
    /// `Bug` if it does not fit, which [`make_room`](Self::make_room) is there for: it would be
    /// written over records that count.
    pub fn append(&mut self, core: &mut Core) -> Result<()> {
        let blocks = record::blocks_of(core.group.payload.len());
        if core.group.transactions > 0 && self.fast.as_ref().is_some_and(|ring| !ring.fits(blocks)) {
            return Err(core.fail(bug(format!("the log of the fast disk has no room for {blocks} blocks"))));
        }
        let group = core::mem::take(&mut core.group);
        self.appended = core.commits;
        if group.transactions == 0 {
            return Ok(());
        }
        self.holds_placed |= group.has_placed;
        let header = Header {
            sequence: self.newest.sequence + 1,
            session: self.session,
            fast_durable: self.fast.as_ref().map_or(0, |ring| ring.durable.sequence),
            big_durable: self.big.durable.sequence,
            chain: self.newest.chain,
            transactions: group.transactions,
            ..Header::default()
        };
        let (bytes, crc) = record::encode(&header, &group.payload, self.seal);
        self.newest = Mark { position: 0, sequence: header.sequence, chain: crc };
        let blocks = bytes.len() as u64 / BLOCK;
        if self.fits_big(blocks) && self.big.backlog_bytes() <= self.either_bytes {
            self.big.append(&bytes, header.sequence, crc);
        } else {
            self.big.fall_behind();
        }
        if let Some(ring) = self.fast.as_mut() {
            let first = ring.append(&bytes, header.sequence, crc) + HEADER_BYTES as u64;
            let placed = |mut content: Content| {
                content.logged.at += first;
                content
            };
            self.unwritten.extend(group.contents.into_iter().map(placed));
        }
        self.note_room(core);
        core.figures.records += 1;
        core.figures.logged += u64::from(group.transactions);
        core.figures.log_bytes += bytes.len() as u64;
        Ok(())
    }

    /// What the big disk is to write, unless somebody does that later, for who needs this. If
    /// nobody waits, the disk is written to that who waits later will need: the fast one if
    /// `leans_on_fast`. Also whether the fast disk is to have it.
    pub fn share(&mut self, need: Need, leans_on_fast: bool) -> (Option<Batch>, bool) {
        let wanted = self.effective(need);
        let is_waited_for = need.big || need.fast || need.either;
        let to_big = wanted.big || !(is_waited_for || leans_on_fast || self.is_under_way());
        let to_fast = wanted.fast || wanted.either || (!is_waited_for && leans_on_fast);
        (to_big.then(|| self.take_batch()), to_fast)
    }

    fn take_batch(&mut self) -> Batch {
        let (writes, newest) = (self.big.take_backlog(), self.big.newest());
        Batch { writes, newest, commits: self.appended }
    }

    /// What the big disk lacks, unless its log fell behind.
    pub fn lacks_on_big(&mut self) -> Option<Batch> {
        (self.on_big < self.appended && !self.big.is_behind()).then(|| self.take_batch())
    }

    /// The big disk has made that durable.
    pub fn is_on_big(&mut self, batch: &Batch) {
        self.big.set_durable(batch.newest);
        self.on_big = self.on_big.max(batch.commits);
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
            self.readable.append(&mut self.unwritten);
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
            self.on_fast = self.appended;
        }
        self.keep_fast(flushed.is_some())
    }

    /// How much the log of the fast disk can take.
    pub fn note_room(&self, core: &mut Core) {
        core.log_room = self.fast.as_ref().map_or(0, |ring| ring.room() * BLOCK);
    }

    /// Content that can be read from the log of the fast disk since this was asked last.
    pub fn take_readable(&mut self) -> Vec<Content> {
        core::mem::take(&mut self.readable)
    }

    fn keep_fast(&mut self, is_there: bool) -> bool {
        if !is_there {
            self.fast = None;
        }
        is_there
    }

    /// A checkpoint that has these commits is durable.
    pub fn covers(&mut self, commits: u64) {
        self.appended = self.appended.max(commits);
        self.on_big = self.on_big.max(commits);
        self.on_fast = self.on_fast.max(commits);
    }
}

//! The log: which records stand where, and which commits are durable on which disk.

use crate::core::{Core, Need};
use crate::disks::Disks;
use crate::layout::BLOCK;
use crate::record::{self, Header};
use crate::ring::Ring;
use crate::superblock::Mark;
use onode_media::IoTag;
use onode_object::Result;

/// The log of a volume.
#[derive(Debug)]
pub struct Log {
    /// The big disk's ring.
    pub big: Ring,
    /// The session that writes.
    pub session: u64,
    /// The newest record.
    newest: Mark,
    /// The newest commit that has a record.
    appended: u64,
    /// The newest commit that is durable on the big disk.
    on_big: u64,
}

impl Log {
    /// The log behind a checkpoint or a replay; `newest` is the last record.
    #[must_use]
    pub const fn new(big: Ring, session: u64, newest: Mark) -> Self {
        Self { big, session, newest, appended: 0, on_big: 0 }
    }

    /// Whether a commit is as durable as it needs to be.
    #[must_use]
    pub const fn has(&self, commit: u64, need: Need) -> bool {
        let is_wanted = need.big || need.fast || need.either;
        commit <= if is_wanted { self.on_big } else { self.appended }
    }

    /// Whether it is time for a checkpoint.
    #[must_use]
    pub const fn is_half_full(&self) -> bool {
        self.big.used() * 2 > self.big.blocks
    }

    /// Whether a record with so much payload can be appended.
    #[must_use]
    pub const fn fits(&self, payload: usize) -> bool {
        let blocks = record::blocks_of(payload);
        blocks * 2 <= self.big.blocks && self.big.fits(blocks)
    }

    /// Makes a record of the group and appends it.
    pub fn append(&mut self, core: &mut Core) {
        let group = core::mem::take(&mut core.group);
        self.appended = core.commits;
        if group.transactions == 0 {
            return;
        }
        let header = Header {
            sequence: self.newest.sequence + 1,
            session: self.session,
            fast_durable: 0,
            big_durable: self.big.durable.sequence,
            chain: self.newest.chain,
            transactions: group.transactions,
            ..Header::default()
        };
        let (bytes, crc) = record::encode(&header, &group.payload);
        self.newest = Mark { position: 0, sequence: header.sequence, chain: crc };
        self.big.append(&bytes, header.sequence, crc);
        core.figures.records += 1;
        core.figures.logged += u64::from(group.transactions);
        core.figures.log_bytes += bytes.len() as u64;
    }

    /// Writes what was appended, and waits as far as `need` asks for it. Content that a record names is durable before
    /// the record is written.
    ///
    /// # Errors
    /// `Media`.
    pub fn write(&mut self, disks: &Disks, need: Need, has_placed: bool) -> Result<()> {
        if has_placed {
            disks.flush()?;
        }
        for (offset, bytes) in self.big.take_backlog() {
            disks.write(offset / BLOCK, &bytes, IoTag::Journal)?;
        }
        if need.big || need.fast || need.either {
            disks.flush()?;
            self.big.set_durable();
            self.on_big = self.appended;
        }
        Ok(())
    }

    /// Writes a checkpoint if anything changed; then every commit is durable and the ring is empty.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    pub fn checkpoint(&mut self, core: &mut Core) -> Result<()> {
        core.check_writable()?;
        if core.is_dirty || self.big.used() > 0 {
            core.superblock.tail = Mark { position: self.big.position(), ..self.newest };
            core.checkpoint()?;
            self.big.restart();
        }
        self.appended = core.commits;
        self.on_big = core.commits;
        Ok(())
    }
}

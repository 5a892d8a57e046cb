//! Consistency modes: what content is worth to whoever wrote it. Names, sizes and all that a
//! transaction does stay all or nothing in each of them.

use crate::core::Core;
use crate::share::shared::UNFLUSHED;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::Result;
use std::ops::Range;

/// What a device promises for content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As in the memory: a process that ends loses nothing, a power cut may take everything.
    /// Nothing is flushed.
    Mem,
    /// Content is flushed by the next durable commit or sync, all else by each commit.
    Meta,
    /// Content that is overwritten is flushed where it lies and torn at 8 bytes; all else is as in
    /// `Atomic`.
    Sync,
    /// Content changes with its transaction or not at all.
    #[default]
    Atomic,
}

impl Mode {
    /// All of them, with what each is called.
    pub const ALL: [(&'static str, Self); 4] =
        [("mem", Self::Mem), ("meta", Self::Meta), ("sync", Self::Sync), ("atomic", Self::Atomic)];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Whether content may be overwritten where it lies.
    #[must_use]
    pub const fn overwrites(self) -> bool {
        !matches!(self, Self::Atomic)
    }

    /// Whether a record vouches for content that was flushed before it: of new content in the modes
    /// that flush that, and of content that had been durable and was moved in all that flush
    /// anything.
    pub(crate) const fn vouches(self) -> bool {
        !matches!(self, Self::Mem)
    }

    /// Whether new content is flushed at once.
    pub(crate) const fn flushes(self) -> bool {
        matches!(self, Self::Sync | Self::Atomic)
    }
}

/// Ranges of the memory whose content waits to be flushed, in a ring that all processes see:
/// whoever syncs flushes what any of them has stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unflushed {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Unflushed {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first == self.last
    }
}

impl<P: Pmem> Core<P> {
    /// Content of these bytes is flushed when somebody syncs.
    pub(crate) fn flush_later(&mut self, address: u64, length: u64) {
        let Unflushed { first, last } = self.unflushed;
        if first < last {
            let [start, before, _] = UNFLUSHED.load(&*self.memory, last - 1);
            if start + before == address || start == address {
                let length = if start == address { before.max(length) } else { before + length };
                return UNFLUSHED.store(&*self.memory, last - 1, [start, length, 0]);
            }
        }
        if last - first >= UNFLUSHED.entries() {
            self.flush_content();
        }
        UNFLUSHED.store(&*self.memory, self.unflushed.last, [address, length, 0]);
        self.unflushed.last += 1;
    }

    /// Whether any content of these bytes waits to be flushed.
    pub(crate) fn waits_to_be_flushed(&self, bytes: &Range<u64>) -> bool {
        (self.unflushed.first..self.unflushed.last).any(|number| {
            let [address, length, _] = UNFLUSHED.load(&*self.memory, number);
            address < bytes.end && bytes.start < address + length
        })
    }

    /// Flushes the content that waits for it.
    pub(crate) fn flush_content(&mut self) {
        for number in self.unflushed.first..self.unflushed.last {
            if is_planted(Bug::ScmMetaNotFlushed) {
                break;
            }
            let [address, length, _] = UNFLUSHED.load(&*self.memory, number);
            self.memory.flush(address, length);
        }
        self.unflushed.first = self.unflushed.last;
    }

    /// Whether bytes may be put over content without a word to anybody.
    pub(crate) fn overwrites_at_once(&self, address: u64, length: u64) -> bool {
        self.mode == Mode::Mem
            && self.read_only.is_none()
            && (self.last_put < self.superblock.accepted || is_planted(Bug::ScmOverwritePutAgain))
            && !self.doubted.overlaps(address, length)
    }

    /// Has the superblock say that a recovery need not put anything in place once more: perhaps
    /// where something is about to be that no record speaks of.
    pub(crate) fn settle_puts(&mut self) -> Result<()> {
        if self.last_put >= self.superblock.accepted && !is_planted(Bug::ScmOverwritePutAgain) {
            self.fence()?;
            self.write_superblock(false)?;
            self.last_put = 0;
        }
        Ok(())
    }

    /// Puts bytes over content where it lies.
    pub(crate) fn overwrite(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let length = bytes.len() as u64;
        self.settle(address, length)?;
        self.settle_puts()?;
        self.counters.bytes_written += length;
        match self.mode {
            Mode::Mem => self.memory.write(address, bytes),
            Mode::Meta => {
                self.memory.write(address, bytes);
                self.flush_later(address, length);
            }
            Mode::Sync | Mode::Atomic => {
                self.memory.write_through(address, bytes);
                if !is_planted(Bug::ScmOverwriteNotFenced) {
                    self.fence()?;
                }
            }
        }
        Ok(())
    }
}

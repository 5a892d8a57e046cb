//! Consistency modes: what content is worth to whoever wrote it. Names, sizes and all that a transaction does stay all or
//! nothing in each of them.

use crate::core::Core;
use onode_media::Pmem;
use onode_object::Result;

/// What a device promises for content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As in the memory: a process that ends loses nothing, a power cut may take everything. Nothing is flushed.
    Mem,
    /// Content is flushed by a sync, all else by each commit.
    Meta,
    /// Content that is overwritten is flushed where it lies and torn at 8 bytes; all else is as in `Atomic`.
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

    /// Whether a record vouches for the content that was written for it.
    pub(crate) const fn checks(self) -> bool {
        matches!(self, Self::Sync | Self::Atomic)
    }
}

/// Most ranges that wait to be flushed.
const MOST_UNFLUSHED: usize = 1024;

impl<P: Pmem> Core<P> {
    /// Content of these bytes is flushed when somebody syncs.
    pub(crate) fn flush_later(&mut self, address: u64, length: u64) {
        if self.unflushed.len() >= MOST_UNFLUSHED {
            self.flush_content();
        }
        match self.unflushed.last_mut() {
            Some((start, before)) if *start + *before == address => *before += length,
            Some((start, before)) if *start == address => *before = (*before).max(length),
            _ => self.unflushed.push((address, length)),
        }
    }

    /// Flushes the content that waits for it.
    pub(crate) fn flush_content(&mut self) {
        for (address, length) in self.unflushed.drain(..) {
            self.memory.flush(address, length);
        }
    }

    /// Puts bytes over content where it lies.
    pub(crate) fn overwrite(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let length = bytes.len() as u64;
        self.settle(address, length)?;
        if self.last_put >= self.superblock.accepted {
            // A recovery would put something in place once more, perhaps here.
            self.fence()?;
            self.write_superblock(false)?;
            self.last_put = 0;
        }
        self.counters.bytes_written += length;
        match self.mode {
            Mode::Mem => self.memory.write(address, bytes),
            Mode::Meta => {
                self.memory.write(address, bytes);
                self.flush_later(address, length);
            }
            Mode::Sync | Mode::Atomic => {
                self.memory.write_through(address, bytes);
                self.fence()?;
            }
        }
        Ok(())
    }
}

//! Bytes that are stored where content lies already, or where a program put it, and not by way of a
//! record.
//!
//! Before such a store no recovery may verify these bytes or put others there once more: the
//! superblock says so first, if it has to. What the content is worth afterwards is for the
//! [`Mode`] to say.

use crate::persist::Persistence;
use crate::persist::mode::Mode;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::Result;
use onode_object::powers::Content;

impl<P: Pmem> Persistence<P> {
    /// Whether a recovery verifies any of these bytes.
    pub(crate) fn is_unverified(&self, address: u64, length: u64) -> bool {
        self.unverified.overlaps(address, length)
    }

    /// Has the superblock say that a recovery does not verify these bytes any more, if it would:
    /// they are about to change.
    pub(crate) fn allow_change(&mut self, address: u64, length: u64) -> Result<()> {
        if self.unverified.overlaps(address, length) { self.accept_records() } else { Ok(()) }
    }

    /// Has it say so of everything.
    pub(crate) fn accept_records(&mut self) -> Result<()> {
        if !self.log.is_durable() {
            self.fence()?;
        }
        self.write_superblock(false)
    }

    /// Has the superblock say that a recovery need not put anything in place once more: perhaps
    /// where something is about to be that no record speaks of.
    pub(crate) fn accept_puts(&mut self) -> Result<()> {
        if self.may_put_again() && !is_planted(Bug::ScmOverwritePutAgain) {
            self.fence()?;
            self.write_superblock(false)?;
            self.last_put = 0;
        }
        Ok(())
    }

    const fn may_put_again(&self) -> bool {
        self.last_put >= self.superblock.accepted
    }

    /// Whether nothing waits for anything: all is durable, nothing is deferred, and a recovery
    /// would put nothing in place.
    pub(crate) const fn is_quiet(&self) -> bool {
        !self.log.has_undurable()
            && !self.may_put_again()
            && self.unflushed.is_empty()
            && !self.space.has_deferred()
            && !self.has_foreign
    }

    /// Makes a store durable that nothing else waits for ([`is_quiet`](Self::is_quiet)): nothing is
    /// left for others to know.
    pub(crate) fn fence_store(&mut self) -> onode_media::Result<()> {
        self.written.fences += 1;
        self.memory.fence()
    }

    /// Stores content that the next sync flushes.
    pub(crate) fn write_unflushed(&mut self, address: u64, bytes: &[u8]) {
        self.memory.write(address, bytes);
        self.unflushed.insert(&*self.memory, address, bytes.len() as u64);
        self.written.content_bytes += bytes.len() as u64;
    }

    /// Flushes the content that waits for it.
    pub(crate) fn flush_content(&mut self) {
        self.unflushed.flush(&*self.memory);
    }

    /// Puts bytes in place that a record holds and that is durable.
    pub(crate) fn put_in_place(&mut self, address: u64, bytes: &[u8]) {
        self.memory.write_through(address, bytes);
        self.written.put_in_place += bytes.len() as u64;
    }

    /// The same with zeros.
    pub(crate) fn zero_in_place(&mut self, address: u64, length: u64) {
        self.memory.zero(address, length);
        self.memory.flush(address, length);
        self.written.put_in_place += length;
    }

    /// All that the records so far put in place was flushed.
    pub(crate) const fn note_puts_flushed(&mut self) {
        self.log.note_flushed();
    }

    /// Whether bytes may be put over content without a word to anybody.
    pub(crate) fn overwrites_at_once(&self, address: u64, length: u64) -> bool {
        self.mode == Mode::Mem
            && self.latch.may_write()
            && (!self.may_put_again() || is_planted(Bug::ScmOverwritePutAgain))
            && !self.unverified.overlaps(address, length)
    }

    /// Puts bytes over content where [it may be done](Self::overwrites_at_once) without more.
    pub(crate) fn overwrite_at_once(&mut self, address: u64, bytes: &[u8]) {
        self.written.content_bytes += bytes.len() as u64;
        self.memory.write(address, bytes);
    }

    /// Puts bytes over content where it lies.
    pub(crate) fn overwrite(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.latch.check()?;
        self.allow_change(address, bytes.len() as u64)?;
        self.accept_puts()?;
        match self.mode {
            Mode::Mem => self.overwrite_at_once(address, bytes),
            Mode::Meta => self.write_unflushed(address, bytes),
            Mode::Sync | Mode::Atomic => {
                self.written.content_bytes += bytes.len() as u64;
                self.memory.write_through(address, bytes);
                if !is_planted(Bug::ScmOverwriteNotFenced) {
                    self.fence()?;
                }
            }
        }
        Ok(())
    }

    /// Makes the content of blocks durable before anything says that it is some object's.
    pub(crate) fn flush_blocks(&mut self, contents: &[Content]) -> Result<()> {
        // Not vouched for by a checksum: a program may go on storing through its pointer, and that
        // must not cost the file.
        for content in contents.iter().filter(|content| !content.is_durable && content.bytes > 0) {
            let end = content.address.checked_add(content.bytes);
            let inside = end.is_some_and(|end| end <= self.memory.length());
            match self.mode {
                Mode::Meta if inside => self.unflushed.insert(&*self.memory, content.address, content.bytes),
                Mode::Sync | Mode::Atomic if inside && !is_planted(Bug::ScmPublishNotFlushed) => {
                    self.memory.flush(content.address, content.bytes);
                }
                Mode::Mem | Mode::Meta | Mode::Sync | Mode::Atomic => {}
            }
        }
        let flushes = self.mode.flushes();
        if flushes && contents.iter().any(|content| !content.is_durable) && !is_planted(Bug::ScmPublishNotFenced) {
            self.fence()?;
        }
        Ok(())
    }
}

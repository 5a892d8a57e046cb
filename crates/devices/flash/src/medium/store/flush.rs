//! Flushes of the medium, under the device's lock or beside it, and what is known to be flushed.
//!
//! It keeps true: a page says that all before it had been flushed only if the flush began after the
//! last journal page before it was programmed; if it began earlier, a page says up to where it
//! reached. The watermark of a session never goes back.

use super::Store;
use crate::medium::errors::from_media;
use crate::medium::layout::SegmentPage;
use alloc::sync::Arc;
use onode_media::SharedNand;
use onode_object::Result;

/// What had been programmed when a flush began.
pub struct FlushBegun {
    programs: u64,
    journal_programs: u64,
    /// The next journal page.
    journal_end: SegmentPage,
}

impl Store {
    /// Whether the medium can be flushed without the device's lock.
    pub const fn flushes_beside(&self) -> bool {
        self.shared.is_some()
    }

    /// What others may use of the medium.
    pub const fn shared(&self) -> Option<&Arc<dyn SharedNand>> {
        self.shared.as_ref()
    }

    /// Whether something was programmed since the last flush.
    pub const fn has_unflushed(&self) -> bool {
        self.unflushed
    }

    /// Whether all before the journal page that is about to be programmed was flushed. Only the
    /// first page after a flush may say so.
    pub const fn take_flushed(&mut self) -> bool {
        self.journal_programs += 1;
        core::mem::replace(&mut self.flushed, false)
    }

    /// The journal page before which all was flushed, if no page says so yet.
    pub const fn flushed_before(&self) -> Option<SegmentPage> {
        self.flushed_before
    }

    /// A page that will be programmed says so.
    pub const fn note_flushed_told(&mut self) {
        self.flushed_before = None;
    }

    /// Makes everything programmed so far survive a failure of the host, too.
    pub fn flush(&mut self) -> Result<()> {
        self.write("flush", |nand| nand.flush())?;
        self.flushed = true;
        self.flushed_before = None;
        self.unflushed = false;
        Ok(())
    }

    /// Begins the flush that the medium then waits for without the device's lock; nothing if it
    /// cannot do that. `journal_end` is the next journal page.
    pub fn begin_flush(&mut self, journal_end: SegmentPage) -> Result<Option<(Arc<dyn SharedNand>, FlushBegun)>> {
        let Some(medium) = self.shared.clone() else { return Ok(None) };
        self.write("flush", |nand| nand.begin_flush())?;
        let begun = FlushBegun { programs: self.programs, journal_programs: self.journal_programs, journal_end };
        Ok(Some((medium, begun)))
    }

    /// A flush ended that began with `begun`; a failure latches the device read-only, as any failed
    /// write.
    pub fn end_flush(&mut self, begun: &FlushBegun, flushed: onode_media::Result<()>) -> Result<()> {
        if let Err(error) = flushed {
            return Err(self.latch.fail(from_media("flush", &error)));
        }
        if begun.journal_programs == self.journal_programs {
            self.flushed = true;
            self.flushed_before = None;
        } else if !self.flushed {
            self.flushed_before = Some(begun.journal_end);
        }
        self.unflushed &= begun.programs != self.programs;
        Ok(())
    }

    /// Notes that all commits up to `transaction` are durable, where the medium has room for that.
    pub fn set_watermark(&mut self, transaction: u64) -> Result<()> {
        // A flush beside the lock may end after one that covers more.
        if self.noted.is_some_and(|noted| noted > transaction) {
            return Ok(());
        }
        self.noted = Some(transaction);
        self.write("note what is durable", |nand| nand.set_watermark(transaction))
    }
}

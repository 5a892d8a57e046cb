//! How far the log has come: commits, the journal since the last checkpoint, and what its pages
//! hold back.

use super::Log;
use crate::log::access::AccessLog;
use crate::log::waiting::WaitingPages;
use crate::policy::Stream;
use crate::space::items::Owner;
use onode_object::Result;

impl Log {
    /// Commits so far; the age in summaries.
    pub const fn transaction(&self) -> u64 {
        self.transaction
    }

    /// So many commits were found.
    pub const fn set_transaction(&mut self, transaction: u64) {
        self.transaction = transaction;
    }

    /// The number of the next commit, which begins.
    pub const fn begin_transaction(&mut self) -> u64 {
        self.transaction += 1;
        self.transaction
    }

    /// The journal segment after the open one, reserved with its sequence number.
    pub const fn next_journal(&self) -> (u32, u32) {
        self.next_journal
    }

    /// The journal goes on there.
    pub const fn set_next_journal(&mut self, segment: u32, sequence: u32) {
        self.next_journal = (segment, sequence);
    }

    /// Whether an erase or a program failed, so that a checkpoint has to stand in for what was
    /// logged since the last one.
    pub const fn is_chain_broken(&self) -> bool {
        self.chain_broken
    }

    /// Journal pages with records, and without, that were programmed since the last checkpoint.
    pub const fn pages_since_checkpoint(&self) -> (u32, u32) {
        (self.journal_pages, self.mixed_pages)
    }

    /// Pages of the journal that a mount would read now.
    pub fn replay_reads(&self) -> u32 {
        self.echoes.reads()
    }

    /// A checkpoint was written: nothing before it is replayed.
    pub fn note_checkpoint(&mut self) {
        self.journal_pages = 0;
        self.mixed_pages = 0;
        self.echoes.clear();
        self.chain_broken = false;
    }

    /// Nodes and the segment table go to segments of their own if `apart`, else where the placement
    /// has them.
    pub const fn keep_index_apart(&mut self, apart: bool) {
        self.index_stream = if apart { Stream::Index } else { Stream::of_index(self.placement()) };
    }

    /// Appends a part of the index in one unbroken run.
    pub fn append_index(&mut self, bytes: &[u8], owner: Owner) -> Result<u64> {
        self.append_whole(self.index_stream, bytes, owner)
    }

    /// Whether pages of content may wait for more after a sync: the journal copies them.
    pub const fn let_pages_wait(&mut self, may_wait: bool) {
        self.copies_waiting = may_wait;
    }

    /// After a replay: copies of pages that may never have been programmed.
    pub const fn waiting_pages(&self) -> &WaitingPages {
        &self.waiting_pages
    }

    /// The same, to be changed.
    pub const fn waiting_pages_mut(&mut self) -> &mut WaitingPages {
        &mut self.waiting_pages
    }

    /// Access times.
    pub const fn access(&self) -> &AccessLog {
        &self.access
    }

    /// The same, to be changed.
    pub const fn access_mut(&mut self) -> &mut AccessLog {
        &mut self.access
    }
}

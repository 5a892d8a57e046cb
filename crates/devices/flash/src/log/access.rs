//! The log of access times: entries of 16 bytes in segments of their own.
//!
//! An entry repeats an object and the time it was last read; the youngest entry of an object
//! counts. All segments of the log count as open, full ones too, until a checkpoint needs no entry
//! any more and lets all of them go: a mount reads those that are open, and nothing is ever copied
//! off them. Until then no entry is left out, so that the log never ends with an older time than an
//! onode has.
//!
//! What the entries say is kept by [`crate::commit::access`].

use super::Log;
use crate::log::record::Record;
use crate::medium::format::{ACCESS_ENTRY_BYTES, PageKind};
use crate::medium::page::PageInfo;
use crate::medium::store::Programmed;
use crate::policy::Stream;
use crate::space::segments::SegmentState;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use onode_media::IoTag;
use onode_object::{ObjectId, Result};

/// The segments with access times, and the page being filled.
#[derive(Debug, Default)]
pub struct AccessLog {
    /// Segment, sequence number and the next page.
    open: Option<(u32, u32, u32)>,
    /// Segments filled before, also by a session that was cut.
    filled: Vec<u32>,
    /// Entries that wait for their page.
    entries: Vec<u8>,
    /// Pages programmed.
    pages: u32,
    /// A program failed: a segment with entries is to be retired.
    failed: bool,
    /// Objects that are gone and that the log may name.
    gone: BTreeSet<ObjectId>,
    /// The next checkpoint is to need no entry.
    ends: bool,
}

/// Pages after which the log is long.
const PAGES_MAX: u32 = 128;

/// Objects that are gone after which it is long.
const GONE_MAX: usize = 2048;

impl AccessLog {
    /// Keeps the segments of a session that was cut.
    pub fn resume(&mut self, filled: Vec<u32>) {
        self.filled = filled;
    }

    /// Whether the log should end and begin anew: a mount reads all of it.
    pub fn is_long(&self) -> bool {
        let is_large = self.pages >= PAGES_MAX || self.gone.len() >= GONE_MAX;
        !self.filled.is_empty() || self.failed || self.ends || is_large
    }

    /// An object is removed of which the log may have a time.
    pub fn note_gone(&mut self, object: ObjectId) {
        if self.names_any() {
            self.gone.insert(object);
        }
    }

    /// Whether it may have a time of `object`, which is gone.
    pub fn names_gone(&self, object: ObjectId) -> bool {
        self.gone.contains(&object)
    }

    /// Whether it has any entry.
    pub const fn names_any(&self) -> bool {
        self.open.is_some() || !self.filled.is_empty() || !self.entries.is_empty()
    }

    /// Lets the log end at the next checkpoint.
    pub const fn end(&mut self) {
        self.ends = true;
    }

    /// Whether `segment` is one of them.
    pub fn is_filled(&self, segment: u32) -> bool {
        self.filled.contains(&segment)
    }

    /// Whether an entry waits for its page: one of `object`, or any.
    pub fn waits(&self, object: Option<ObjectId>) -> bool {
        let mut all = self.entries.chunks_exact(ACCESS_ENTRY_BYTES);
        all.any(|entry| object.is_none_or(|object| entry.starts_with(&object.0.to_le_bytes())))
    }

    /// Memory it holds.
    pub fn memory_bytes(&self) -> usize {
        // About what an object takes in the set.
        self.entries.capacity() + self.filled.capacity() * size_of::<u32>() + self.gone.len() * 16
    }
}

impl Log {
    /// Appends an entry.
    pub fn append_access_time(&mut self, object: ObjectId, time: u64) -> Result<()> {
        if self.access.entries.len() + ACCESS_ENTRY_BYTES > self.payload() {
            self.program_access_times()?;
        }
        self.access.entries.extend_from_slice(&object.0.to_le_bytes());
        self.access.entries.extend_from_slice(&time.to_le_bytes());
        Ok(())
    }

    /// Programs the entries that wait.
    pub fn program_access_times(&mut self) -> Result<()> {
        while !self.access.entries.is_empty() {
            let open = self.access.open.filter(|(_, _, page)| *page < self.store.layout().segment_pages);
            let (segment, sequence, page) = match open {
                Some(open) => open,
                None => self.open_access_segment()?,
            };
            let info = PageInfo {
                kind: PageKind::Atime,
                record_bytes: 0,
                echo_bytes: 0,
                spare_bytes: 0,
                sequence,
                flushed: false,
            };
            match self.store.program(
                self.store.layout().page(Stream::Atime, segment, page),
                info,
                &self.access.entries,
                IoTag::Atime,
            )? {
                Programmed::Whole => {
                    self.access.open = Some((segment, sequence, page + 1));
                    self.access.pages += 1;
                    self.access.entries.clear();
                }
                Programmed::Failed(failed) => {
                    self.access.open = None;
                    self.access.failed = true;
                    self.table.update(segment, |entry| {
                        entry.state = SegmentState::Failing;
                        entry.summary_page = failed.page as u16;
                    });
                }
            }
        }
        Ok(())
    }

    fn open_access_segment(&mut self) -> Result<(u32, u32, u32)> {
        if let Some((segment, ..)) = self.access.open.take() {
            self.access.filled.push(segment);
            self.store.finish(segment)?;
        }
        self.store.latch().check()?;
        let (segment, sequence) = self.open_any(Stream::Atime)?;
        let erases = self.table.get(segment).erases;
        self.append_record(&Record::Opened { segment, sequence, erases, stream: Stream::Atime })?;
        self.access.open = Some((segment, sequence, 0));
        Ok((segment, sequence, 0))
    }

    /// The coming checkpoint needs no entry: all segments go.
    pub fn release_access_times(&mut self) {
        let AccessLog { open, filled, .. } = core::mem::take(&mut self.access);
        for segment in filled.into_iter().chain(open.map(|(segment, ..)| segment)) {
            self.table.update(segment, |entry| {
                if entry.state == SegmentState::Open {
                    entry.state = SegmentState::Full;
                }
            });
        }
    }
}

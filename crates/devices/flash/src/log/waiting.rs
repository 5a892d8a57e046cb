//! Content that waits for its page to fill, after a sync.
//!
//! A synced write whose tail would leave a page of the data stream almost empty leaves that page in
//! the buffer; every journal page holds a copy of it ([`Record::Waiting`]) for as long as it waits.
//! So the last journal page before a cut has all content that is in no page of its own, and a
//! replay needs that page's copies only.

use super::Log;
use crate::log::record::{FRAME_HEADER_BYTES, Record};
use crate::medium::errors::damaged;
use crate::medium::layout::{Layout, SegmentPage};
use crate::policy::Stream;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

/// Copies of pages that were not full, by place.
#[derive(Clone, Debug, Default)]
pub struct WaitingPages(BTreeMap<SegmentPage, Vec<u8>>);

impl WaitingPages {
    /// Adds the copy of a page that begins at `location`; a longer one of the same page stays.
    ///
    /// # Errors
    /// `Corrupt` if no page begins there or a page is shorter.
    pub fn add(&mut self, layout: &Layout, location: u64, bytes: Vec<u8>) -> Result<()> {
        let (at, offset) = layout.page_of(location);
        if !layout.contains(location, 1) || offset != 0 || bytes.len() > layout.payload_bytes as usize {
            return Err(damaged(format!("{} bytes wait at {location}, where no page begins", bytes.len())));
        }
        let known = self.0.entry(at).or_default();
        if known.len() < bytes.len() {
            *known = bytes;
        }
        Ok(())
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: Self) {
        for (at, bytes) in other.0 {
            let known = self.0.entry(at).or_default();
            if known.len() < bytes.len() {
                *known = bytes;
            }
        }
    }

    /// The copy of a page.
    #[must_use]
    pub fn get(&self, at: SegmentPage) -> Option<&[u8]> {
        self.0.get(&at).map(Vec::as_slice)
    }

    /// `count` bytes of a page from `offset` on, if the copy has them.
    #[must_use]
    pub fn bytes(&self, at: SegmentPage, offset: usize, count: usize) -> Option<&[u8]> {
        self.get(at)?.get(offset..offset.checked_add(count)?)
    }

    /// Memory they take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.values().map(Vec::capacity).sum()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Log {
    /// Whether the tail of a synced write of `length` bytes stays with the rest and waits for its
    /// page to fill. A long tail is worth its place beside the record: it is not programmed twice.
    pub const fn tail_may_wait(&self, length: usize) -> bool {
        let payload = self.store.layout().payload_bytes as usize;
        self.copies_waiting && length >= payload && length % payload <= payload / 8
    }

    /// Programs what users wrote, wherever it waits, so that the next journal page may name it;
    /// what that page has room to hold a copy of waits on.
    pub fn program_users(&mut self) -> Result<()> {
        let journal = self.open[Stream::Journal as usize].as_ref();
        let used = journal.map_or(0, |open| open.front.len() + open.records.len());
        let mut room = self.store.layout().journal_bytes().min(usize::from(u16::MAX)).saturating_sub(used);
        for stream in Stream::CONTENT {
            let Some(open) = self.open[stream as usize].as_ref().filter(|open| open.users_wait) else { continue };
            let tail = open.front.len() % self.payload();
            let copied = if tail > 0 && self.copies_waiting { waiting_bytes_max(tail) } else { usize::MAX };
            if copied <= room {
                room -= copied;
                self.program_whole_pages(stream)?;
            } else {
                self.program_page(stream)?;
            }
        }
        Ok(())
    }

    /// Programs what users wrote, wherever it waits but for the journal, and leaves nothing that
    /// would need a copy.
    pub fn program_all_users(&mut self) -> Result<()> {
        for stream in Stream::CONTENT {
            if self.open[stream as usize].as_ref().is_some_and(|open| open.users_wait) {
                self.program_page(stream)?;
            }
        }
        Ok(())
    }

    /// The frames of the copies that the next journal page has to hold, which has room for them.
    pub(super) fn waiting_frames(&self, room: usize) -> Vec<u8> {
        let mut frames = Vec::new();
        if !self.copies_waiting || is_planted(Bug::WaitingNotCopied) {
            return frames;
        }
        for open in Stream::CONTENT.iter().filter_map(|stream| self.open[*stream as usize].as_ref()) {
            let fits = frames.len() + waiting_bytes_max(open.front.len()) <= room;
            if open.users_wait && !open.front.is_empty() && fits {
                let at = open.at();
                let location = self.store.layout().location(at, 0);
                let record = Record::Waiting { location, bytes: open.front.clone() }.encode();
                crate::log::record::put_frame(&mut frames, &record, true, FRAME_HEADER_BYTES + record.len());
            }
        }
        frames
    }
}

/// The most bytes that the copy of so many bytes takes in a journal page: header of the frame,
/// kind, location, length.
const fn waiting_bytes_max(bytes: usize) -> usize {
    FRAME_HEADER_BYTES + 1 + 10 + 3 + bytes
}

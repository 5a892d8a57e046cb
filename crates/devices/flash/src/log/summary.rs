//! Summaries: the items of a segment at its end, which tell the cleaner whom to ask about what lies
//! there.
//!
//! A segment is sealed with its summary once only the summary's room is left; one that was given up
//! has its items in memory.

use super::Log;
use crate::medium::format::{NO_SUMMARY, PageKind, SUMMARY_MAGIC, SummaryHeader};
use crate::medium::layout::SegmentPage;
use crate::medium::page::PageInfo;
use crate::medium::store::Programmed;
use crate::policy::Stream;
use crate::space::items::{Item, Items};
use crate::space::segments::SegmentState;
use alloc::vec::Vec;
use onode_media::IoTag;
use onode_object::Result;
use zerocopy::IntoBytes;

impl Log {
    /// Closes the open segment of `stream` with its summary.
    pub fn seal(&mut self, stream: Stream) -> Result<()> {
        self.program_page(stream)?;
        if self.is_row_closed(stream) {
            return self.leave(stream);
        }
        let Some(open) = &mut self.open[stream as usize] else { return Ok(()) };
        let (segment, page, sequence) = (open.segment, open.page, open.sequence);
        let entry = *self.table.get(segment);
        let (items, count) = core::mem::take(&mut open.items).finish();
        let header = SummaryHeader {
            magic: SUMMARY_MAGIC,
            sequence: sequence.into(),
            transaction: self.transaction.into(),
            live_bytes: entry.live_bytes.into(),
            items: count.into(),
            item_bytes: (items.len() as u32).into(),
            checksum: onode_base::checksum::crc32c(&items).into(),
        };
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(&items);
        let pages = bytes.len().div_ceil(self.payload()) as u32;
        let at = SegmentPage { page, ..self.page(segment) };
        let fits = page + pages <= self.store.layout().pages_with(at.parity);
        debug_assert!(fits, "a summary has no room in segment {segment}");
        if fits {
            let kind = PageKind::Summary;
            let info = PageInfo { kind, record_bytes: 0, echo_bytes: 0, sequence, spare_bytes: 0, flushed: false };
            if let Programmed::Failed(failed) = self.store.program(at, info, &bytes, IoTag::Summary)? {
                self.fail(stream, failed);
                self.keep_items(segment, items, count);
                return Ok(());
            }
        }
        self.open[stream as usize] = None;
        self.table.update(segment, |entry| {
            entry.summary_page = if fits { page as u16 } else { NO_SUMMARY };
            entry.state = SegmentState::Full;
        });
        self.store.finish(segment)
    }

    /// The items of a segment that is no longer open, from its summary or from memory; `None` if
    /// neither has them.
    pub fn items_of(&mut self, segment: u32, tag: IoTag) -> Option<Vec<Item>> {
        if let Some(items) = self.loose_items.get(&segment) {
            return items.decode();
        }
        let entry = *self.table.get(segment);
        if entry.state == SegmentState::Failing {
            return None;
        }
        let at = SegmentPage { page: u32::from(entry.summary_page), ..self.page(segment) };
        if entry.summary_page == NO_SUMMARY || at.page >= self.store.layout().pages_with(at.parity) {
            return None;
        }
        let location = self.store.layout().location(at, 0);
        let mut header = [0; size_of::<SummaryHeader>()];
        self.read(location, &mut header, tag).ok()?;
        let header: SummaryHeader = zerocopy::FromBytes::read_from_bytes(&header).ok()?;
        let length = u64::from(header.item_bytes.get());
        let start = location + size_of::<SummaryHeader>() as u64;
        if header.magic != SUMMARY_MAGIC
            || header.sequence.get() != entry.sequence
            || !self.store.layout().contains(start, length)
        {
            return None;
        }
        let mut bytes = alloc::vec![0; length as usize];
        self.read(start, &mut bytes, tag).ok()?;
        if onode_base::checksum::crc32c(&bytes) != header.checksum.get() {
            return None;
        }
        Items::decode(&bytes, header.items.get())
    }
}

//! Reading back the items of a segment, which tell the cleaner whom to ask about what lies there.

use super::Log;
use crate::medium::format::{NO_SUMMARY, SUMMARY_MAGIC, SummaryHeader};
use crate::medium::layout::SegmentPage;
use crate::space::items::{Item, Items};
use crate::space::segments::SegmentState;
use alloc::vec::Vec;
use onode_media::IoTag;

impl Log {
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
        if entry.summary_page == NO_SUMMARY || u32::from(entry.summary_page) >= self.store.layout().segment_pages {
            return None;
        }
        let at = SegmentPage { segment, page: u32::from(entry.summary_page) };
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

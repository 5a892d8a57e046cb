//! Reading back what the log holds: from buffers, from memory after a failed program, or from verified pages.

use super::Log;
use crate::errors::damaged;
use crate::format::BlobReference;
use crate::layout::SegmentPage;
use alloc::format;
use alloc::vec::Vec;
use onode_media::IoTag;
use onode_object::Result;

impl Log {
    /// Reads `out.len()` bytes of one segment from `location`, from memory or from verified pages.
    pub fn read(&mut self, location: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        let layout = self.store.layout;
        if !layout.contains(location, out.len() as u64) {
            return Err(damaged(format!("{} bytes at {location} are outside the medium", out.len())));
        }
        let sequence = self.table.get(layout.segment_of(location)).sequence;
        let payload = self.payload();
        let (mut at, mut offset) = layout.page_of(location);
        let mut rest = out;
        while !rest.is_empty() {
            let count = rest.len().min(payload - offset as usize);
            if let Some(front) = self.buffered(at) {
                let bytes = front.get(offset as usize..offset as usize + count);
                let bytes = bytes.ok_or_else(|| damaged("bytes that were never written"))?;
                rest[..count].copy_from_slice(bytes);
            } else if let Some(bytes) = self.waiting_pages.bytes(at, offset as usize, count) {
                rest[..count].copy_from_slice(bytes);
            } else if offset == 0 && rest.len() >= payload {
                let mut pages = (rest.len() / payload) as u32;
                // What waits in a buffer comes after what is on the medium.
                if let Some((page, _)) = self.waiting(at.segment) {
                    pages = pages.min(page - at.page);
                }
                let bytes = pages as usize * payload;
                self.store.whole_pages(at, sequence, &mut rest[..bytes], tag)?;
                at.page += pages;
                rest = &mut rest[bytes..];
                continue;
            } else {
                let page = self.store.page(at, sequence, tag)?;
                rest[..count].copy_from_slice(&page.payload[offset as usize..offset as usize + count]);
            }
            rest = &mut rest[count..];
            at.page += 1;
            offset = 0;
        }
        Ok(())
    }

    /// The first page of a segment that is not on the medium, and the content from there on.
    fn waiting(&self, segment: u32) -> Option<(u32, &[u8])> {
        let open = self.open.iter().flatten().find(|open| open.segment == segment);
        open.map(|open| (open.page, &open.front[..])).or_else(|| self.stranded_in(segment))
    }

    /// The content of a page that waits in a buffer, if `at` is one.
    fn buffered(&self, at: SegmentPage) -> Option<&[u8]> {
        let (page, front) = self.waiting(at.segment)?;
        let start = at.page.checked_sub(page)? as usize * self.payload();
        let end = (start + self.payload()).min(front.len());
        // What was never written there is no content, rather than a page of the medium.
        Some(front.get(start..end).unwrap_or_default())
    }

    /// Reads a blob and checks it against its reference.
    pub fn read_blob(&mut self, reference: BlobReference, tag: IoTag) -> Result<Vec<u8>> {
        let length = u64::from(reference.length.get());
        let location = reference.location.get();
        if length > 1 << 20 || !self.store.layout.contains(location, length) {
            return Err(damaged(format!("a reference to {length} bytes at {location} makes no sense")));
        }
        let mut bytes = alloc::vec![0; length as usize];
        self.read(location, &mut bytes, tag)?;
        let found = onode_base::checksum::crc32c(&bytes);
        if found != reference.checksum.get() {
            let expected = reference.checksum.get();
            return Err(damaged(format!(
                "{length} bytes at {location}: checksum {found:08x}, expected {expected:08x}"
            )));
        }
        Ok(bytes)
    }
}

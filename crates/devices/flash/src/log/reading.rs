//! Reading back what the log holds: from buffers, from memory after a failed program, or from
//! verified pages. What waits in memory is copied at once; the pages that have the rest are a list,
//! so that they can be read elsewhere.

use super::Log;
use crate::log::record::Piece;
use crate::medium::errors::damaged;
use crate::medium::format::BlobReference;
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::pages::{PageReader, Want};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use onode_media::IoTag;
use onode_object::{Error, Result};

impl Log {
    /// Reads `out.len()` bytes of one segment from `location`, from memory or from verified pages.
    pub fn read(&mut self, location: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        let mut wants = Vec::new();
        self.plan(location, out, 0..out.len(), &mut wants)?;
        self.store.reader(tag).read(&wants, out).map_err(Error::from)
    }

    /// Fills `range` of `out`, which begins with the byte at `location`, with what waits in memory,
    /// and adds to `wants` the pages that have the rest.
    pub fn plan(&self, location: u64, out: &mut [u8], range: Range<usize>, wants: &mut Vec<Want>) -> Result<()> {
        let layout = self.store.layout();
        if !layout.contains(location, range.len() as u64) {
            return Err(damaged(format!("{} bytes at {location} are outside the medium", range.len())));
        }
        let sequence = self.table.get(layout.segment_of(location)).sequence;
        let payload = self.payload();
        let (mut at, offset) = layout.page_of(location);
        let (mut to, mut from) = (range.start, offset as usize);
        while to < range.end {
            let count = (range.end - to).min(payload - from);
            if let Some(front) = self.buffered(at) {
                let bytes = front.get(from..from + count);
                out[to..to + count].copy_from_slice(bytes.ok_or_else(|| damaged("bytes that were never written"))?);
            } else if let Some(bytes) = self.waiting_pages.bytes(at, from, count) {
                out[to..to + count].copy_from_slice(bytes);
            } else if from == 0 && count == payload {
                // What waits in a buffer comes after what is on the medium.
                let before = self.waiting(at.segment).map_or(u32::MAX, |(page, _)| page - at.page);
                let pages = layout.run(at, ((range.end - to) / payload) as u32).clamp(1, before);
                // A page with its trailer in it that is alone is kept, like one of which a part is
                // needed.
                let kept = pages == 1 && !Layout::trailer_in_spare(&layout.geometry);
                wants.extend((0..pages).map(|page| {
                    let to = to + page as usize * payload;
                    Want {
                        at: SegmentPage { page: at.page + page, ..at },
                        sequence,
                        from: 0,
                        to: to..to + payload,
                        kept,
                    }
                }));
                at.page += pages;
                to += pages as usize * payload;
                continue;
            } else {
                wants.push(Want { at, sequence, from, to: to..to + count, kept: true });
            }
            to += count;
            at.page += 1;
            from = 0;
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

    /// Reads places together that will be asked for next: their bytes, one after another. Nothing
    /// if any of them is not sound, which is told when it is asked for.
    pub fn read_ahead(&mut self, places: &[Piece], tag: IoTag) -> Option<Vec<u8>> {
        let mut bytes = alloc::vec![0; places.iter().map(|place| place.length as usize).sum()];
        let mut wants = Vec::new();
        let mut from = 0;
        for place in places {
            let until = from + place.length as usize;
            self.plan(place.location, &mut bytes, from..until, &mut wants).ok()?;
            from = until;
        }
        self.store.read_ahead(&wants, &mut bytes, tag).then_some(bytes)
    }

    /// Reads blobs together that will be asked for next. Those that are not sound are left for when
    /// they are asked for, and others with them.
    pub fn read_blobs_ahead(&mut self, references: &[BlobReference], tag: IoTag) -> Vec<Option<Vec<u8>>> {
        let place = |one: &BlobReference| Piece { location: one.location.get(), length: one.length.get() };
        let places: Vec<Piece> = references.iter().map(place).collect();
        let Some(bytes) = self.read_ahead(&places, tag) else { return alloc::vec![None; references.len()] };
        let mut rest = bytes.as_slice();
        let parts = references.iter().map(|reference| {
            let (blob, others) = rest.split_at(reference.length.get() as usize);
            rest = others;
            (onode_base::checksum::crc32c(blob) == reference.checksum.get()).then(|| blob.to_vec())
        });
        parts.collect()
    }

    /// Reads a blob and checks it against its reference.
    pub fn read_blob(&mut self, reference: BlobReference, tag: IoTag) -> Result<Vec<u8>> {
        let length = u64::from(reference.length.get());
        let location = reference.location.get();
        if length > 1 << 20 || !self.store.layout().contains(location, length) {
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

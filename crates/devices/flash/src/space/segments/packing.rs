//! What content takes on segments of several widths.
//!
//! Where objects choose their parity, a segment with less of it holds more. Space is counted in
//! segments with the most parity, whatever a free one will be used for, so that there is room for
//! what was promised room; content on wider segments counts as the share that it takes of them.

use super::Segment;
use crate::medium::layout::Layout;
use crate::policy::Stream;

/// How much of a segment content takes, by stream.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Pages of content in each row of a segment of each stream.
    columns: [u32; Stream::ALL.len()],
    /// The same with the most parity.
    least: u32,
}

impl Packing {
    /// That of a division of the medium.
    pub fn new(layout: &Layout) -> Self {
        let columns = Stream::ALL.map(|stream| layout.row_pages(layout.parity_of(stream)));
        Self { columns, least: layout.row_pages(layout.parity_pages as u8) }
    }

    /// Bytes that what is referred to on `segment` would take of one with the most parity.
    pub fn packed(&self, segment: &Segment) -> u32 {
        let columns = self.columns[segment.stream as usize];
        if columns == self.least {
            return segment.live_bytes;
        }
        (u64::from(segment.live_bytes) * u64::from(self.least)).div_ceil(u64::from(columns)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_media::Geometry;

    #[test]
    fn what_fills_a_segment_fills_it_whatever_its_parity() {
        let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 8, blocks: 400, chips: 1 };
        let plain = Layout::new(shape, 8).unwrap().with_parity(2).unwrap();
        let full = |layout: &Layout, stream: Stream| {
            let live_bytes = layout.bytes_with(layout.parity_of(stream)) as u32;
            Packing::new(layout).packed(&Segment { stream, live_bytes, ..Segment::NEW })
        };
        for layout in [plain, plain.with_choice(0).unwrap(), plain.with_choice(1).unwrap()] {
            for stream in Stream::ALL {
                if stream.wished_parity().is_none_or(|parity| u32::from(parity) <= layout.parity_pages) {
                    assert_eq!(u64::from(full(&layout, stream)), layout.segment_bytes(), "{stream:?}");
                }
            }
        }
        assert_eq!(full(&plain, Stream::Data), plain.bytes_with(2) as u32);
    }
}

//! Where things are: superblock blocks, segments, pages and the payload byte space.

use crate::medium::format::{
    FEATURE_COMPACT_RECORDS, PageTrailer, Superblock, chosen_parity_of_features, parity_of_features,
};
use crate::policy::Stream;
use alloc::format;
use onode_base::ErrorKind;
use onode_media::{BlockAddress, Geometry, PageAddress};
use onode_object::{Error, Result};

mod rows;
mod superblocks;

pub use rows::{AREA_BYTES, ChosenParity, PARITY_PAGES_MAX, Row};
pub use superblocks::{End, SuperblockBlocks};

/// The division of a medium. Follows from the geometry, the segment size and the use of the spare
/// area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Shape of the medium.
    pub geometry: Geometry,
    /// Erase blocks of a segment.
    pub blocks_per_segment: u32,
    /// Erase blocks that hold superblocks.
    pub superblocks: SuperblockBlocks,
    /// Number of segments.
    pub segments: u32,
    /// Bytes of a page that carry content.
    pub payload_bytes: u32,
    /// Pages of a segment, those of parity apart; where objects choose their parity, of one with
    /// the most of it.
    pub segment_pages: u32,
    /// Bytes of the spare area with which journal pages go on.
    pub spare_record_bytes: u32,
    /// The most pages of parity in a row of pages; 0 if none is kept.
    pub parity_pages: u32,
    /// Pages of parity of content that wishes no other number, where objects choose.
    pub chosen_parity: Option<u8>,
}

/// More of the spare area is not used: a record that does not fit takes a page of its own.
const SPARE_RECORD_BYTES_MAX: u32 = 112;

/// A page inside a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentPage {
    /// The segment.
    pub segment: u32,
    /// The page, counted in writing order.
    pub page: u32,
    /// Pages of parity in each row of the segment.
    pub parity: u8,
}

impl Layout {
    /// The fewest segments a volume can work with.
    pub const MIN_SEGMENTS: u32 = 16;
    /// The most pages of a segment: one number of a page means that there is none.
    pub const MOST_SEGMENT_PAGES: u32 = u16::MAX as u32 - 1;
    /// The most payload bytes of a segment.
    pub const MOST_SEGMENT_BYTES: u64 = 1 << 30;

    /// Divides a medium of `geometry` into segments of `blocks_per_segment`, as new volumes are
    /// divided.
    ///
    /// # Errors
    /// `Invalid` if the shape cannot carry a volume.
    pub fn new(geometry: Geometry, blocks_per_segment: u16) -> Result<Self> {
        Self::divided(geometry, blocks_per_segment, SuperblockBlocks::of_new(&geometry))
    }

    /// The same with superblocks in these blocks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn divided(geometry: Geometry, blocks_per_segment: u16, superblocks: SuperblockBlocks) -> Result<Self> {
        let invalid = |detail| Error::new(ErrorKind::Invalid, detail);
        geometry.validate().map_err(|error| invalid(format!("{error}")))?;
        let blocks_per_segment = u32::from(blocks_per_segment);
        if blocks_per_segment == 0 {
            return Err(invalid("a segment has at least one erase block".into()));
        }
        let segments = geometry.blocks.saturating_sub(superblocks.count()) / blocks_per_segment;
        if segments < Self::MIN_SEGMENTS {
            return Err(invalid(format!(
                "{} erase blocks make {segments} segments of {blocks_per_segment}; at least {} are needed",
                geometry.blocks,
                Self::MIN_SEGMENTS
            )));
        }
        let segment_pages = blocks_per_segment * geometry.pages_per_block;
        if segment_pages > Self::MOST_SEGMENT_PAGES {
            return Err(invalid(format!("{segment_pages} pages in a segment are too many")));
        }
        let payload_bytes = Self::payload_bytes(&geometry);
        let layout = Self {
            geometry,
            blocks_per_segment,
            superblocks,
            segments,
            payload_bytes,
            segment_pages,
            spare_record_bytes: 0,
            parity_pages: 0,
            chosen_parity: None,
        };
        layout.validate()?;
        Ok(layout)
    }

    /// The division that the superblock of a volume on a medium of shape `medium` tells; the volume
    /// may have fewer blocks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_volume(medium: Geometry, superblock: &Superblock) -> Result<Self> {
        let features = superblock.incompatible.get();
        let geometry = Geometry { blocks: superblock.blocks.get(), ..medium };
        let superblocks = SuperblockBlocks::of_features(&geometry, features);
        let layout = Self::divided(geometry, superblock.blocks_per_segment.get(), superblocks)?;
        let has_records = features & FEATURE_COMPACT_RECORDS != 0;
        let layout = if has_records { layout.with_records_in_spare() } else { layout };
        let layout = layout.with_parity(parity_of_features(features))?;
        match chosen_parity_of_features(features) {
            Some(usual) => layout.with_choice(usual),
            None => Ok(layout),
        }
    }

    /// The same division of a medium of more blocks: what there is stays where it is, but the
    /// superblocks at the far end.
    ///
    /// # Errors
    /// As [`new`](Self::new), and `Invalid` if those are too few more.
    pub fn grown(&self, blocks: u32) -> Result<Self> {
        let needed = self.least_growth();
        if blocks < needed {
            let detail = format!("{blocks} erase blocks are too few to grow, at least {needed} are needed");
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        self.on(blocks)
    }

    /// The same division of a medium of fewer blocks.
    ///
    /// # Errors
    /// As [`new`](Self::new), and `Invalid` if those are too few less, or too few for superblocks
    /// where they are.
    pub fn shrunk(&self, blocks: u32) -> Result<Self> {
        let most = self.most_shrunk();
        if blocks > most {
            let detail = format!("{blocks} erase blocks are too many to shrink to, at most {most} are needed");
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        let shrunk = self.on(blocks)?;
        if !shrunk.superblocks.can_be_told(&shrunk.geometry) {
            let detail = format!("{blocks} erase blocks are too few for a volume with superblocks as this one has");
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        Ok(shrunk)
    }

    /// The same division of a medium of so many blocks.
    fn on(&self, blocks: u32) -> Result<Self> {
        let geometry = Geometry { blocks, ..self.geometry };
        let other = Self::divided(geometry, self.blocks_per_segment as u16, self.superblocks.on(blocks))?;
        let Self { geometry, superblocks, segments, .. } = other;
        Ok(Self { geometry, superblocks, segments, ..*self })
    }

    /// The most erase blocks of a medium that the volume can shrink to: one segment less, and the
    /// new superblocks at the far end stand in front of those that count until they do.
    #[must_use]
    pub fn most_shrunk(&self) -> u32 {
        let far = self.superblocks.at(End::Far);
        far.start.min(self.superblocks.count() + self.segments * self.blocks_per_segment - 1)
    }

    /// The fewest erase blocks of a medium that the volume can grow to: one segment more, and the
    /// new superblocks at the far end stand beside those that count until they do.
    #[must_use]
    pub fn least_growth(&self) -> u32 {
        let far = self.geometry.blocks + self.superblocks.at(End::Far).len() as u32;
        far.max(self.superblocks.count() + (self.segments + 1) * self.blocks_per_segment)
    }

    /// The segments from `first` on that have one of these erase blocks.
    pub fn segments_with(&self, first: u32, blocks: core::ops::Range<u32>) -> impl Iterator<Item = u32> + use<> {
        let layout = *self;
        let has = move |segment: &u32| layout.blocks(*segment).any(|block| blocks.contains(&block.0));
        (first..self.segments).filter(has)
    }

    fn validate(&self) -> Result<()> {
        let invalid = |detail| Err(Error::new(ErrorKind::Invalid, detail));
        let (bytes, most) = (self.segment_bytes(), self.stride());
        if bytes < 3 * self.node_bytes() as u64 / 2 {
            return invalid(format!("a segment of {bytes} bytes is too small for the index; take more blocks"));
        }
        if most > Self::MOST_SEGMENT_BYTES {
            return invalid("a segment may have at most 1 GiB".into());
        }
        Ok(())
    }

    /// The same with journal pages that go on in what the trailer leaves of the spare area.
    #[must_use]
    pub const fn with_records_in_spare(mut self) -> Self {
        let left = self.geometry.spare_bytes.saturating_sub(size_of::<PageTrailer>() as u32);
        self.spare_record_bytes = if left < SPARE_RECORD_BYTES_MAX { left } else { SPARE_RECORD_BYTES_MAX };
        self
    }

    /// Bytes of a journal page for content and records.
    #[must_use]
    pub const fn journal_bytes(&self) -> usize {
        (self.payload_bytes + self.spare_record_bytes) as usize
    }

    /// Whether the page trailer lies in the spare area.
    #[must_use]
    pub const fn trailer_in_spare(geometry: &Geometry) -> bool {
        geometry.spare_bytes as usize >= size_of::<PageTrailer>()
    }

    /// Spare bytes that are read with a page: those of its trailer and what follows it, or none.
    #[must_use]
    pub const fn spare_bytes_read(geometry: &Geometry) -> usize {
        if Self::trailer_in_spare(geometry) { geometry.spare_bytes as usize } else { 0 }
    }

    /// Bytes of a page that carry content.
    #[must_use]
    pub const fn payload_bytes(geometry: &Geometry) -> u32 {
        if Self::trailer_in_spare(geometry) {
            geometry.page_bytes
        } else {
            geometry.page_bytes - size_of::<PageTrailer>() as u32
        }
    }

    /// Payload bytes of a segment; where objects choose their parity, of one with the most of it,
    /// which holds the least.
    #[must_use]
    pub const fn segment_bytes(&self) -> u64 {
        self.segment_pages as u64 * self.payload_bytes as u64
    }

    /// Pages of a segment with `parity` pages of it in each row, those apart.
    #[must_use]
    pub const fn pages_with(&self, parity: u8) -> u32 {
        (self.blocks_per_segment - parity as u32) * self.geometry.pages_per_block
    }

    /// Pages of a segment with the least parity that there may be, that apart.
    #[must_use]
    pub const fn most_pages(&self) -> u32 {
        if self.chosen_parity.is_some() { self.pages_with(0) } else { self.segment_pages }
    }

    /// Payload bytes of a segment with `parity` pages of it in each row.
    #[must_use]
    pub const fn bytes_with(&self, parity: u8) -> u64 {
        self.pages_with(parity) as u64 * self.payload_bytes as u64
    }

    /// Page `page` of `segment`, which `stream` fills.
    #[must_use]
    pub const fn page(&self, stream: Stream, segment: u32, page: u32) -> SegmentPage {
        SegmentPage { segment, page, parity: self.parity_of(stream) }
    }

    /// Nodes of the tree have at most this many bytes: a page, within 2 to 4 KiB.
    #[must_use]
    pub fn node_bytes(&self) -> usize {
        (self.payload_bytes as usize).clamp(2048, 4096)
    }

    /// The page of the medium behind page `at`. On several chips, and with parity, the blocks of a
    /// segment are striped.
    #[must_use]
    pub const fn address(&self, at: SegmentPage) -> PageAddress {
        let first = self.superblocks.first_other() + at.segment * self.blocks_per_segment;
        let (block, page) = if self.has_parity() {
            self.place_in_row(at)
        } else if self.geometry.chips > 1 {
            (at.page % self.blocks_per_segment, at.page / self.blocks_per_segment)
        } else {
            (at.page / self.geometry.pages_per_block, at.page % self.geometry.pages_per_block)
        };
        PageAddress((first + block) as u64 * self.geometry.pages_per_block as u64 + page as u64)
    }

    /// How many pages from `at` on, at most `wanted`, follow each other on the medium in one block.
    #[must_use]
    pub fn run(&self, at: SegmentPage, wanted: u32) -> u32 {
        if self.geometry.chips > 1 || self.has_parity() {
            return wanted.min(1);
        }
        wanted.min(self.geometry.pages_per_block - at.page % self.geometry.pages_per_block)
    }

    /// The erase blocks of a segment.
    pub fn blocks(&self, segment: u32) -> impl Iterator<Item = BlockAddress> + use<> {
        let first = self.superblocks.first_other() + segment * self.blocks_per_segment;
        (first..first + self.blocks_per_segment).map(BlockAddress)
    }

    /// The segment that an erase block belongs to, if it is part of one.
    #[must_use]
    pub fn segment_of_block(&self, block: BlockAddress) -> Option<u32> {
        let segment = block.0.checked_sub(self.superblocks.first_other())? / self.blocks_per_segment;
        Some(segment).filter(|segment| *segment < self.segments)
    }

    /// The payload address of byte `offset` of page `at`. Where objects choose their parity it has
    /// the number of pages of parity in it, so that who reads needs to know nothing of the segment.
    #[must_use]
    pub const fn location(&self, at: SegmentPage, offset: u32) -> u64 {
        self.start_of(at.segment, at.parity) + at.page as u64 * self.payload_bytes as u64 + offset as u64
    }

    /// The payload address of the first byte of a segment with `parity` pages of it in each row.
    #[must_use]
    pub const fn start_of(&self, segment: u32, parity: u8) -> u64 {
        let width = if self.chosen_parity.is_some() { parity as u64 } else { 0 };
        (segment as u64 * self.widths() + width) * self.stride()
    }

    /// How many numbers of pages of parity a segment may have.
    const fn widths(&self) -> u64 {
        if self.chosen_parity.is_some() { self.parity_pages as u64 + 1 } else { 1 }
    }

    /// Payload addresses from the start of one segment to that of the next, or to that of the same
    /// segment with more parity.
    const fn stride(&self) -> u64 {
        self.most_pages() as u64 * self.payload_bytes as u64
    }

    /// The segment of a payload address.
    #[must_use]
    pub const fn segment_of(&self, location: u64) -> u32 {
        (location / self.stride() / self.widths()) as u32
    }

    /// Pages of parity in each row of the segment of a payload address, as that says.
    #[must_use]
    pub const fn parity_at(&self, location: u64) -> u8 {
        if self.chosen_parity.is_some() {
            (location / self.stride() % self.widths()) as u8
        } else {
            self.parity_pages as u8
        }
    }

    /// Bytes from the start of its segment to a payload address.
    #[must_use]
    pub const fn within(&self, location: u64) -> u32 {
        (location % self.stride()) as u32
    }

    /// The first payload address that is of no segment.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start_of(self.segments, 0)
    }

    /// The page and the byte in it of a payload address.
    #[must_use]
    pub const fn page_of(&self, location: u64) -> (SegmentPage, u32) {
        let (within, payload) = (self.within(location), self.payload_bytes);
        let (segment, parity) = (self.segment_of(location), self.parity_at(location));
        (SegmentPage { segment, page: within / payload, parity }, within % payload)
    }

    /// The pages of one segment that have `length` bytes from `location`.
    pub fn pages_of(&self, location: u64, length: u32) -> impl Iterator<Item = SegmentPage> + Clone + use<> {
        let (first, within) = self.page_of(location);
        let count = within.saturating_add(length).div_ceil(self.payload_bytes);
        (first.page..first.page.saturating_add(count)).map(move |page| SegmentPage { page, ..first })
    }

    /// Whether `length` bytes from `location` lie inside one segment of this medium.
    #[must_use]
    pub fn contains(&self, location: u64, length: u64) -> bool {
        let bytes = self.bytes_with(self.parity_at(location));
        location < self.end() && u64::from(self.within(location)).saturating_add(length) <= bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn shape(chips: u32, spare_bytes: u32) -> Geometry {
        Geometry { page_bytes: 512, spare_bytes, pages_per_block: 8, blocks: 66, chips }
    }

    #[test]
    fn every_page_has_one_address_and_blocks_are_filled_in_order() {
        for chips in [1, 2] {
            let layout = Layout::new(shape(chips, 0), 2).unwrap();
            assert_eq!((layout.segments, layout.payload_bytes, layout.superblocks.count()), (31, 496, 4));
            let mut seen = alloc::collections::BTreeSet::new();
            for segment in 0..layout.segments {
                let mut next = alloc::collections::BTreeMap::new();
                for page in 0..layout.segment_pages {
                    let address = layout.address(SegmentPage { segment, page, parity: 0 });
                    assert!(seen.insert(address));
                    let block = layout.geometry.block_of(address);
                    assert!(layout.blocks(segment).any(|one| one == block));
                    let expected = next.entry(block).or_insert(layout.geometry.first_page(block));
                    assert_eq!(*expected, address);
                    expected.0 += 1;
                }
            }
        }
    }

    #[test]
    fn locations_round_trip() {
        let layout = Layout::new(shape(1, 16), 2).unwrap();
        let at = SegmentPage { segment: 7, page: 13, parity: 0 };
        assert_eq!(layout.page_of(layout.location(at, 99)), (at, 99));
        assert!(layout.contains(layout.location(at, 0), 512 * 3));
        assert!(!layout.contains(layout.location(at, 1), 512 * 3));
        assert!(!layout.contains(u64::MAX, 1));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(Layout::new(shape(1, 0), 0).is_err());
        assert!(Layout::new(shape(1, 0), 8).is_err());
        assert!(Layout::new(Geometry { page_bytes: 500, ..shape(1, 0) }, 1).is_err());
    }

    #[test]
    fn superblocks_are_at_both_ends_and_no_segment_has_their_blocks() {
        for blocks in [24, 63, 64, 65, 100, 1023, 1024, 1025] {
            let shape = Geometry { page_bytes: 2048, blocks, ..shape(1, 64) };
            for superblocks in [SuperblockBlocks::of_new(&shape), SuperblockBlocks::at_start(&shape)] {
                let layout = Layout::divided(shape, 1, superblocks).unwrap();
                let of_segments: Vec<u32> =
                    (0..layout.segments).flat_map(|segment| layout.blocks(segment)).map(|block| block.0).collect();
                let ends = End::ALL.map(|end| superblocks.at(end).collect::<Vec<_>>());
                assert_eq!(ends[1].is_empty(), !superblocks.at_both_ends());
                for (end, blocks) in End::ALL.into_iter().zip(&ends) {
                    assert!(blocks.iter().all(|&block| superblocks.end_of(block) == end));
                }
                let mut all: Vec<u32> = ends.into_iter().flatten().chain(of_segments).collect();
                all.sort_unstable();
                assert_eq!(all, (0..blocks).collect::<Vec<_>>());
            }
        }
    }
}

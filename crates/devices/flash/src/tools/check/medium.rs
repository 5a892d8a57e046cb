//! Reading for a check: verified pages and runs of bytes straight from the medium, with a small
//! cache.
//!
//! It shares the format with the mounting path, and how a page is found again from the parity of
//! its row, and nothing else: no store, no log, no latch.

use super::ahead::{AHEAD_BYTES, Expected, ReadPage, read_pages};
use super::superblocks::Located;
use crate::log::waiting::WaitingPages;
use crate::medium::format::{BlobReference, PageKind, PageTrailer};
use crate::medium::layout::{Layout, Row, SegmentPage};
use crate::medium::page::{self, PageFault, PageInfo};
use crate::medium::pages::{Pages, RowState, VerifiedPage};
use crate::medium::saved::SavedPages;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::evict::Lru;
use onode_media::{IoTag, MediaErrorKind, Nand, PageAddress};

/// Memory for pages read, beside those that were read ahead.
const CACHE_BYTES: usize = 64 << 10;

/// A verified page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) info: PageInfo,
    pub(crate) payload: Arc<[u8]>,
}

impl Page {
    /// The record frames at its end.
    pub(crate) fn records(&self) -> &[u8] {
        &self.payload[self.payload.len() - self.info.record_bytes..]
    }
}

/// Why bytes cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They would lie outside the medium, or across the end of a segment.
    Outside,
    /// A page is not to be trusted.
    Page(SegmentPage, PageFault),
    /// The pages are sound, but the bytes are not those that the reference names.
    Checksum { expected: u32, found: u32 },
    /// The medium failed.
    Medium(String),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Outside => f.write_str("a place outside the medium"),
            Self::Page(at, fault) => {
                write!(f, "segment {} page {}: ", at.segment, at.page)?;
                match fault {
                    PageFault::Erased => f.write_str("an erased page"),
                    PageFault::Checksum => f.write_str("a page with a wrong checksum"),
                    PageFault::Sequence { found } => write!(f, "a page with sequence number {found}"),
                }
            }
            Self::Checksum { expected, found } => write!(f, "checksum {found:08x} instead of {expected:08x}"),
            Self::Medium(why) => f.write_str(why),
        }
    }
}

/// The medium under a check.
pub(crate) struct Medium<'a> {
    nand: &'a mut dyn Nand,
    layout: Layout,
    seed: u32,
    cache: Lru<u64, Page>,
    /// Pages that will be looked at next.
    expected: Expected,
    /// Copies that stand in for pages that are damaged.
    saved: SavedPages,
    /// Pages that were read from their copies.
    restored: BTreeSet<SegmentPage>,
    /// What finds damaged pages again from the parity of their rows.
    rows: Pages,
    /// Pages that were found again.
    rebuilt: BTreeSet<SegmentPage>,
    /// Pages of content of which the journal has a copy.
    waiting: WaitingPages,
    /// Pages read so far.
    pages_read: u64,
}

impl<'a> Medium<'a> {
    /// The medium of the volume that `newest` describes.
    pub(crate) fn new(nand: &'a mut dyn Nand, layout: Layout, newest: &Located) -> Self {
        Self {
            nand,
            layout,
            seed: page::volume_seed(&newest.superblock.uuid),
            rows: Pages::new(layout, page::volume_seed(&newest.superblock.uuid), 0),
            rebuilt: BTreeSet::new(),
            cache: Lru::new(CACHE_BYTES + AHEAD_BYTES),
            expected: Expected::default(),
            saved: SavedPages::of(&newest.superblock, &newest.references),
            restored: BTreeSet::new(),
            waiting: WaitingPages::default(),
            pages_read: 0,
        }
    }

    pub(crate) fn nand(&mut self) -> &mut dyn Nand {
        self.nand
    }

    /// The division of the medium.
    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Pages read so far.
    pub(crate) const fn pages_read(&self) -> u64 {
        self.pages_read
    }

    /// Pages that were read from their copies.
    pub(crate) const fn restored(&self) -> &BTreeSet<SegmentPage> {
        &self.restored
    }

    /// Pages that were found again from the parity of their rows.
    pub(crate) const fn rebuilt(&self) -> &BTreeSet<SegmentPage> {
        &self.rebuilt
    }

    /// These pages were found again, too.
    pub(crate) fn note_rebuilt(&mut self, pages: &[SegmentPage]) {
        self.rebuilt.extend(pages);
    }

    /// How the pages of `row` agree, in a segment with this sequence number.
    pub(crate) fn row(&mut self, row: Row, sequence: u32) -> Result<RowState, Fault> {
        let Self { rows, nand, pages_read, .. } = self;
        let state = rows.examine_row(row, sequence, &mut |runs| {
            *pages_read += runs.len() as u64;
            nand.read_runs(runs, IoTag::Check);
        });
        state.map_err(|error| Fault::Medium(format!("row {}: {error}", row.row)))
    }

    /// Pages of content of which the journal has a copy, to be taken from there.
    pub(crate) const fn waiting_mut(&mut self) -> &mut WaitingPages {
        &mut self.waiting
    }

    /// A page of a segment, which must have `sequence` if that is known.
    pub(crate) fn page(&mut self, at: SegmentPage, sequence: Option<u32>) -> Result<Page, Fault> {
        if at.segment >= self.layout.segments || at.page >= self.layout.pages_with(at.parity) {
            return Err(Fault::Outside);
        }
        let address = self.layout.address(at);
        let page = match self.kept(address) {
            Some(page) => {
                self.expected.pass(at);
                page
            }
            None => match self.read(at, address) {
                Err(fault @ Fault::Page(..)) => match self.rebuild(at, sequence)? {
                    Some(page) => page,
                    None => self.restore(at, address).ok_or(fault)?,
                },
                read => read?,
            },
        };
        match sequence {
            Some(expected) if expected != page.info.sequence => {
                let fault = Fault::Page(at, PageFault::Sequence { found: page.info.sequence });
                self.rebuild(at, sequence)?.ok_or(fault)
            }
            _ => Ok(page),
        }
    }

    /// A page from the parity of its row.
    fn rebuild(&mut self, at: SegmentPage, sequence: Option<u32>) -> Result<Option<Page>, Fault> {
        let Self { rows, nand, pages_read, .. } = self;
        let rebuilt = rows.rebuild(at, sequence, &mut |first, data, spare| {
            *pages_read += 1;
            nand.read_run(first, data, spare, IoTag::Check)
        });
        let rebuilt = rebuilt.map_err(|error| Fault::Medium(format!("segment {}: {error}", at.segment)))?;
        Ok(rebuilt.map(|VerifiedPage { payload, info }| {
            self.rebuilt.insert(at);
            let page = Page { info, payload };
            self.keep(at, page.clone());
            page
        }))
    }

    /// A page from its copy.
    fn restore(&mut self, at: SegmentPage, address: PageAddress) -> Option<Page> {
        let (payload, sequence) = self.saved.read(self.nand, address, IoTag::Check).ok()??;
        self.restored.insert(at);
        let kind = PageKind::Index;
        let info = PageInfo { kind, record_bytes: 0, echo_bytes: 0, sequence, spare_bytes: 0, flushed: true };
        let page = Page { info, payload: payload.into() };
        self.keep(at, page.clone());
        Some(page)
    }

    /// A page that is in memory.
    fn kept(&mut self, address: PageAddress) -> Option<Page> {
        self.cache.get(&address.0).cloned()
    }

    /// Keeps a page in memory.
    fn keep(&mut self, at: SegmentPage, page: Page) {
        let bytes = page.payload.len();
        self.cache.insert(self.layout.address(at).0, page, bytes);
    }

    /// Pages that will be looked at next, in this order, and no others of before. Of a long list
    /// the first ones count.
    pub(crate) fn expect(&mut self, pages: impl Iterator<Item = SegmentPage>) {
        self.expected.set(&self.layout, pages);
    }

    /// Whether all that was expected has been looked at.
    pub(crate) fn expects_nothing(&self) -> bool {
        self.expected.is_empty()
    }

    /// Reads `at` and what is expected behind it, if `at` was expected.
    fn read_ahead(&mut self, at: SegmentPage) {
        let pages = self.expected.take(&self.layout, at);
        if pages.is_empty() {
            return;
        }
        self.pages_read += pages.len() as u64;
        let (seed, layout) = (self.seed, self.layout);
        let Self { nand, cache, expected, .. } = self;
        read_pages(*nand, &layout, &pages, &mut |read| match verify(seed, &layout, &read) {
            Ok(page) => {
                let bytes = page.payload.len();
                cache.insert(layout.address(read.at).0, page, bytes);
            }
            Err(fault) => expected.note_fault(read.at, fault),
        });
    }

    fn read(&mut self, at: SegmentPage, address: PageAddress) -> Result<Page, Fault> {
        self.read_ahead(at);
        if let Some(fault) = self.expected.take_fault(at) {
            return Err(Fault::Page(at, fault));
        }
        if let Some(page) = self.kept(address) {
            return Ok(page);
        }
        let mut data = vec![0; self.layout.geometry.page_bytes as usize];
        let mut spare = vec![0; Layout::spare_bytes_read(&self.layout.geometry)];
        self.pages_read += 1;
        match self.nand.read(address, &mut data, &mut spare, IoTag::Check) {
            Ok(()) => {}
            Err(error) if error.kind == MediaErrorKind::Uncorrectable => {
                return Err(Fault::Page(at, PageFault::Checksum));
            }
            Err(error) => return Err(Fault::Medium(format!("page {}: {error}", address.0))),
        }
        let read = ReadPage { at, data: &data, spare: &spare };
        let page = verify(self.seed, &self.layout, &read).map_err(|fault| Fault::Page(at, fault))?;
        self.keep(at, page.clone());
        Ok(page)
    }

    /// `length` bytes from `location`, all in pages of `sequence` if that is known.
    pub(crate) fn bytes(&mut self, location: u64, length: u64, sequence: Option<u32>) -> Result<Vec<u8>, Fault> {
        if !self.layout.contains(location, length) {
            return Err(Fault::Outside);
        }
        let mut bytes = Vec::with_capacity(length as usize);
        let (mut at, offset) = self.layout.page_of(location);
        let mut offset = offset as usize;
        while (bytes.len() as u64) < length {
            let count = (self.layout.payload_bytes as usize - offset).min(length as usize - bytes.len());
            match self.waiting.bytes(at, offset, count) {
                Some(copy) => bytes.extend_from_slice(copy),
                None => bytes.extend_from_slice(&self.page(at, sequence)?.payload[offset..offset + count]),
            }
            at.page += 1;
            offset = 0;
        }
        Ok(bytes)
    }

    /// The bytes behind a reference, checked against it.
    pub(crate) fn blob(&mut self, reference: &BlobReference, sequence: Option<u32>) -> Result<Vec<u8>, Fault> {
        let length = u64::from(reference.length.get());
        if length > 1 << 20 {
            return Err(Fault::Outside);
        }
        let bytes = self.bytes(reference.location.get(), length, sequence)?;
        let found = onode_base::checksum::crc32c(&bytes);
        let expected = reference.checksum.get();
        if found == expected { Ok(bytes) } else { Err(Fault::Checksum { expected, found }) }
    }
}

/// The page that was read.
fn verify(seed: u32, layout: &Layout, read: &ReadPage<'_>) -> Result<Page, PageFault> {
    let (payload, rest) = read.data.split_at(layout.payload_bytes as usize);
    let trailer = if read.spare.is_empty() { rest } else { read.spare };
    let info = page::verify(seed, layout.address(read.at), None, trailer, payload)?;
    let more = &trailer[size_of::<PageTrailer>()..][..info.spare_bytes];
    Ok(Page { info, payload: [payload, more].concat().into() })
}

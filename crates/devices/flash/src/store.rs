//! Pages of segments on the medium: programming with a trailer, reading with verification, a small
//! cache of pages read, and the latch that turns the device read-only when the medium refuses to be
//! written. A program that fails for its block alone is told to the caller.

use crate::errors::{damaged, from_media};
use crate::format::{PageKind, PageTrailer};
use crate::layout::{Layout, SegmentPage};
use crate::page::{self, PageFault, PageInfo};
use crate::ring::SavedPages;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::evict::Lru;
use onode_base::planted::{Bug, is_planted};
use onode_media::{IoTag, Nand, PageAddress};
use onode_object::{Error, Result};
use zerocopy::IntoBytes;

/// A verified page: its payload and what it says about itself.
#[derive(Clone, Debug)]
pub struct VerifiedPage {
    /// The payload, with what of it is in the spare area.
    pub payload: Arc<[u8]>,
    /// Kind, records, sequence.
    pub info: PageInfo,
}

impl VerifiedPage {
    /// The record frames at its end.
    pub fn records(&self) -> &[u8] {
        &self.payload[self.payload.len() - self.info.record_bytes..]
    }

    /// The records of the pages before it, which it repeats.
    pub fn echo(&self) -> &[u8] {
        let end = self.payload.len() - self.info.record_bytes;
        &self.payload[end - self.info.echo_bytes..end]
    }
}

/// The medium behind the segments.
pub struct Store {
    nand: Box<dyn Nand>,
    /// The division of the medium.
    pub layout: Layout,
    seed: u32,
    cache: Lru<(u64, u32), VerifiedPage>,
    /// Copies that stand in for pages that are damaged.
    saved: SavedPages,
    /// Pages that were read from their copies, in memory until a checkpoint has moved what is on them.
    restored: BTreeMap<SegmentPage, VerifiedPage>,
    /// Whether all was flushed since the last journal page was programmed.
    pub flushed: bool,
    /// Whether something was programmed since the last flush.
    pub unflushed: bool,
    /// Programs that failed one after another.
    failures: u32,
    /// Reads that failed because a page is not what was written.
    damaged_reads: u64,
    read_only: Option<String>,
}

/// So many programs that fail one after another are no bad blocks: the medium as a whole refuses.
const FAILURES_MAX: u32 = 8;

/// How a program ended: `Err` names a page of the block that a chip could not program. What was to be
/// programmed counts as lost from the first page on.
pub type Programmed = core::result::Result<(), SegmentPage>;

impl Store {
    /// A store over `nand` for the volume `uuid`.
    pub fn new(nand: Box<dyn Nand>, layout: Layout, uuid: &[u8; 16], cache_bytes: usize) -> Self {
        Self {
            nand,
            layout,
            seed: page::volume_seed(uuid),
            cache: Lru::new(cache_bytes),
            saved: SavedPages::default(),
            restored: BTreeMap::new(),
            flushed: false,
            unflushed: false,
            failures: 0,
            damaged_reads: 0,
            read_only: None,
        }
    }

    /// Reads that failed because a page is not what was written.
    pub const fn damaged_reads(&self) -> u64 {
        self.damaged_reads
    }

    /// Those so far were expected.
    pub const fn forget_damaged_reads(&mut self) {
        self.damaged_reads = 0;
    }

    /// A run of pages from `at` on could not be read. One that the medium cannot correct is damaged, which concerns its bytes
    /// alone; anything else concerns the medium.
    fn read_error(&mut self, at: SegmentPage, error: &onode_media::Error) -> Error {
        if error.kind == onode_media::MediaErrorKind::Uncorrectable {
            return self.note_damaged(at, &PageFault::Checksum);
        }
        from_media("read", error)
    }

    /// A page is not what was written.
    fn note_damaged(&mut self, at: SegmentPage, fault: &PageFault) -> Error {
        self.damaged_reads += 1;
        damaged(format!("segment {} page {}: {fault:?}", at.segment, at.page))
    }

    /// The medium, for what is neither page nor segment: superblocks, bad blocks, counters.
    pub fn nand(&mut self) -> &mut dyn Nand {
        &mut *self.nand
    }

    /// Bytes of pages in the cache.
    pub const fn cached_bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// Counters of the medium.
    pub fn counters(&self) -> Option<onode_media::Counters> {
        self.nand.counters()
    }

    /// Virtual time that the medium has spent.
    pub fn virtual_nanoseconds(&self) -> u64 {
        self.nand.virtual_nanoseconds()
    }

    /// The volume's part of page checksums.
    pub const fn seed(&self) -> u32 {
        self.seed
    }

    /// Why nothing may be written, if so.
    pub fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    /// Refuses every further write because of `why`. The first reason stays.
    pub fn latch(&mut self, why: &str) {
        if self.read_only.is_none() {
            self.read_only = Some(why.into());
        }
    }

    /// An error if nothing may be written.
    pub fn check_writable(&self) -> Result<()> {
        match &self.read_only {
            None => Ok(()),
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why.clone())),
        }
    }

    /// Runs `write` on the medium; a failure latches the device read-only (N6).
    pub fn write<T>(&mut self, what: &str, write: impl FnOnce(&mut dyn Nand) -> onode_media::Result<T>) -> Result<T> {
        self.check_writable()?;
        write(&mut *self.nand).map_err(|error| {
            let error = from_media(what, &error);
            self.latch(&format!("the device turned read-only after a failed write: {error}"));
            error
        })
    }

    /// Runs a program; false if a chip reports that it failed, which concerns one block. Any other failure
    /// latches the device read-only, and so do many in a row.
    pub fn try_program(&mut self, program: impl FnOnce(&mut dyn Nand) -> onode_media::Result<()>) -> Result<bool> {
        self.check_writable()?;
        self.unflushed = true;
        let error = match program(&mut *self.nand) {
            Ok(()) => {
                self.failures = 0;
                return Ok(true);
            }
            Err(error) => error,
        };
        if is_planted(Bug::FailedProgramIgnored) {
            return Ok(true);
        }
        let of_block =
            matches!(error.kind, onode_media::MediaErrorKind::ProgramFailed | onode_media::MediaErrorKind::BadBlock);
        self.failures += 1;
        if of_block && self.failures <= FAILURES_MAX {
            return Ok(false);
        }
        let error = from_media("program", &error);
        self.latch(&format!("the device turned read-only after a failed write: {error}"));
        Err(error)
    }

    /// Programs one journal page, whose payload goes on in the spare area.
    pub fn program_journal(
        &mut self,
        at: SegmentPage,
        info: PageInfo,
        payload: &[u8],
        tag: IoTag,
    ) -> Result<Programmed> {
        let address = self.layout.address(at);
        Ok(if self.program_one(address, info, payload, tag)? { Ok(()) } else { Err(at) })
    }

    /// Programs whole pages from `at` on; `payload` holds them one after another, the last may be short.
    pub fn program(&mut self, at: SegmentPage, info: PageInfo, payload: &[u8], tag: IoTag) -> Result<Programmed> {
        let size = self.layout.payload_bytes as usize;
        let mut at = at;
        let mut rest = payload;
        while !rest.is_empty() {
            let whole = (rest.len() / size) as u32;
            let address = self.layout.address(at);
            if whole == 0 {
                let (page, after) = rest.split_at(rest.len().min(size));
                if !self.program_one(address, info, page, tag)? {
                    return Ok(Err(at));
                }
                rest = after;
                at.page += 1;
            } else {
                let count = self.layout.run(at, whole);
                let (pages, after) = rest.split_at(count as usize * size);
                if !self.program_run(address, info, pages, tag)? {
                    return Ok(Err(at));
                }
                rest = after;
                at.page += count;
            }
        }
        Ok(Ok(()))
    }

    fn program_one(&mut self, address: PageAddress, info: PageInfo, payload: &[u8], tag: IoTag) -> Result<bool> {
        let mut page = vec![0; self.layout.geometry.page_bytes as usize];
        let size = self.layout.payload_bytes as usize;
        let (payload, more) = payload.split_at(payload.len().min(size));
        page[..payload.len()].copy_from_slice(payload);
        let trailer = page::seal(self.seed, address, info, &page[..size], more);
        if Layout::trailer_in_spare(&self.layout.geometry) {
            let mut spare = vec![0xff; self.layout.geometry.spare_bytes as usize];
            let (front, back) = spare.split_at_mut(size_of::<PageTrailer>());
            front.copy_from_slice(trailer.as_bytes());
            back[..more.len()].copy_from_slice(more);
            self.try_program(|nand| nand.program(address, &page, &spare, tag))
        } else {
            page[size..].copy_from_slice(trailer.as_bytes());
            self.try_program(|nand| nand.program(address, &page, &[], tag))
        }
    }

    fn program_run(&mut self, first: PageAddress, info: PageInfo, payload: &[u8], tag: IoTag) -> Result<bool> {
        let size = self.layout.payload_bytes as usize;
        if !Layout::trailer_in_spare(&self.layout.geometry) {
            let page_bytes = self.layout.geometry.page_bytes as usize;
            let mut pages = Vec::with_capacity(payload.len() / size * page_bytes);
            for (i, page) in payload.chunks(size).enumerate() {
                pages.extend_from_slice(page);
                let address = PageAddress(first.0 + i as u64);
                pages.extend_from_slice(page::seal(self.seed, address, info, page, &[]).as_bytes());
            }
            return self.try_program(|nand| nand.program_run(first, &pages, &[], tag));
        }
        let spare_bytes = self.layout.geometry.spare_bytes as usize;
        let mut spares = vec![0xff; payload.len() / size * spare_bytes];
        for (i, (page, spare)) in payload.chunks(size).zip(spares.chunks_mut(spare_bytes)).enumerate() {
            let trailer = page::seal(self.seed, PageAddress(first.0 + i as u64), info, page, &[]);
            spare[..size_of::<PageTrailer>()].copy_from_slice(trailer.as_bytes());
        }
        self.try_program(|nand| nand.program_run(first, payload, &spares, tag))
    }

    /// Reads and verifies a page, past the cache. The outer error is one of the medium's host, the inner
    /// one says why the page is not to be trusted.
    pub fn examine(
        &mut self,
        address: PageAddress,
        sequence: Option<u32>,
        tag: IoTag,
    ) -> Result<core::result::Result<VerifiedPage, PageFault>> {
        let shape = self.layout.geometry;
        let mut data = vec![0; shape.page_bytes as usize];
        let in_spare = Layout::trailer_in_spare(&shape);
        let mut spare = vec![0; if in_spare { shape.spare_bytes as usize } else { 0 }];
        match self.nand.read(address, &mut data, &mut spare, tag) {
            Ok(()) => {}
            Err(error) if error.kind == onode_media::MediaErrorKind::Uncorrectable => {
                return Ok(Err(PageFault::Checksum));
            }
            Err(error) => return Err(from_media("read", &error)),
        }
        let (payload, rest) = data.split_at(self.layout.payload_bytes as usize);
        let trailer = if in_spare { &spare[..] } else { rest };
        Ok(page::verify(self.seed, address, sequence, trailer, payload).map(|info| {
            let more = &trailer[size_of::<PageTrailer>()..][..info.spare_bytes];
            let payload = if more.is_empty() { payload.into() } else { [payload, more].concat().into() };
            VerifiedPage { payload, info }
        }))
    }

    /// Keeps a page that was examined: it will be read under its sequence number.
    pub fn keep(&mut self, address: PageAddress, page: VerifiedPage) {
        let bytes = page.payload.len();
        self.cache.insert((address.0, page.info.sequence), page, bytes);
    }

    /// The verified page `at` of a segment opened with `sequence`.
    pub fn page(&mut self, at: SegmentPage, sequence: u32, tag: IoTag) -> Result<VerifiedPage> {
        let address = self.layout.address(at);
        if let Some(page) = self.cache.get(&(address.0, sequence)) {
            return Ok(page.clone());
        }
        match self.examine(address, Some(sequence), tag)? {
            Ok(page) => {
                self.cache.insert((address.0, sequence), page.clone(), page.payload.len());
                Ok(page)
            }
            Err(fault) => self.restore(at, Some(sequence), tag)?.ok_or_else(|| self.note_damaged(at, &fault)),
        }
    }

    /// The pages that `saved` has copies of are read from these if they are damaged.
    pub fn set_saved(&mut self, saved: SavedPages) {
        self.saved = saved;
    }

    /// The page `at` of a segment opened with `sequence`, if that is known, from its copy. Nothing if there is none.
    pub fn restore(&mut self, at: SegmentPage, sequence: Option<u32>, tag: IoTag) -> Result<Option<VerifiedPage>> {
        let is_of = |page: &VerifiedPage| sequence.is_none_or(|sequence| page.info.sequence == sequence);
        if !self.restored.contains_key(&at)
            && let Some((payload, sequence)) = self.saved.read(&mut *self.nand, self.layout.address(at), tag)?
        {
            let info = PageInfo {
                kind: PageKind::Index,
                record_bytes: 0,
                echo_bytes: 0,
                sequence,
                spare_bytes: 0,
                flushed: true,
            };
            self.restored.insert(at, VerifiedPage { payload: payload.into(), info });
        }
        Ok(self.restored.get(&at).filter(|page| is_of(page)).cloned())
    }

    /// The pages that were read from their copies.
    pub fn restored(&self) -> impl Iterator<Item = SegmentPage> {
        self.restored.keys().copied()
    }

    /// Nothing refers to the pages any more that were read from their copies.
    pub fn forget_restored(&mut self) {
        self.restored.clear();
    }

    /// Reads and verifies whole pages from `at` on into `out`, in runs where that is possible; the error
    /// names the first bad page.
    pub fn whole_pages(&mut self, at: SegmentPage, sequence: u32, out: &mut [u8], tag: IoTag) -> Result<()> {
        let damaged_reads = self.damaged_reads;
        match self.runs_of_pages(at, sequence, out, tag) {
            Err(error) if error.kind == ErrorKind::Corrupt && !self.saved.is_empty() => {
                self.damaged_reads = damaged_reads;
                let pages = out.chunks_mut(self.layout.payload_bytes as usize);
                for (page, out) in (at.page..).zip(pages) {
                    let page = self.page(SegmentPage { page, ..at }, sequence, tag)?;
                    out.copy_from_slice(&page.payload[..out.len()]);
                }
                Ok(())
            }
            read => read,
        }
    }

    fn runs_of_pages(&mut self, at: SegmentPage, sequence: u32, out: &mut [u8], tag: IoTag) -> Result<()> {
        let size = self.layout.payload_bytes as usize;
        let shape = self.layout.geometry;
        let mut at = at;
        let mut rest = out;
        while !rest.is_empty() {
            let count = self.layout.run(at, (rest.len() / size) as u32);
            let in_spare = Layout::trailer_in_spare(&shape);
            if count == 0 || (count == 1 && !in_spare) {
                let (page, after) = rest.split_at_mut(size);
                page.copy_from_slice(&self.page(at, sequence, tag)?.payload);
                rest = after;
                at.page += 1;
                continue;
            }
            let (pages, after) = rest.split_at_mut(count as usize * size);
            let first = self.layout.address(at);
            if !in_spare {
                self.run_with_trailers(at, count, sequence, pages, tag)?;
                rest = after;
                at.page += count;
                continue;
            }
            let mut spares: Vec<u8> = vec![0; (count * shape.spare_bytes) as usize];
            let read = self.nand.read_run(first, pages, &mut spares, tag);
            read.map_err(|error| self.read_error(at, &error))?;
            for (i, (page, spare)) in pages.chunks(size).zip(spares.chunks(shape.spare_bytes as usize)).enumerate() {
                let address = PageAddress(first.0 + i as u64);
                let at = SegmentPage { page: at.page + i as u32, ..at };
                let verified = page::verify(self.seed, address, Some(sequence), spare, page);
                verified.map_err(|fault| self.note_damaged(at, &fault))?;
            }
            rest = after;
            at.page += count;
        }
        Ok(())
    }

    /// A run of pages that carry their trailers themselves: read at once, verified, copied without them.
    fn run_with_trailers(
        &mut self,
        at: SegmentPage,
        count: u32,
        sequence: u32,
        out: &mut [u8],
        tag: IoTag,
    ) -> Result<()> {
        let (page_bytes, size) = (self.layout.geometry.page_bytes as usize, self.layout.payload_bytes as usize);
        let first = self.layout.address(at);
        let mut pages = vec![0; count as usize * page_bytes];
        let read = self.nand.read_run(first, &mut pages, &mut [], tag);
        read.map_err(|error| self.read_error(at, &error))?;
        for (i, (page, out)) in pages.chunks(page_bytes).zip(out.chunks_mut(size)).enumerate() {
            let (payload, trailer) = page.split_at(size);
            let address = PageAddress(first.0 + i as u64);
            let at = SegmentPage { page: at.page + i as u32, ..at };
            let verified = page::verify(self.seed, address, Some(sequence), trailer, payload);
            verified.map_err(|fault| self.note_damaged(at, &fault))?;
            out.copy_from_slice(payload);
        }
        Ok(())
    }

    /// No page of `segment` will be programmed any more: the medium may let go what it holds for it.
    pub fn finish(&mut self, segment: u32) -> Result<()> {
        for block in self.layout.blocks(segment) {
            self.write("finish", |nand| nand.finish(block))?;
        }
        Ok(())
    }

    /// Erases a segment. `Ok(false)` means that a block refused: the segment must be retired.
    pub fn erase_segment(&mut self, segment: u32) -> Result<bool> {
        self.check_writable()?;
        for block in self.layout.blocks(segment) {
            let first = self.layout.geometry.first_page(block);
            if is_planted(Bug::ErasedTrusted)
                && self.examine(first, None, IoTag::Data)?.err() == Some(PageFault::Erased)
            {
                continue;
            }
            match self.nand.erase(block, IoTag::Data) {
                Ok(()) => {}
                Err(error)
                    if matches!(
                        error.kind,
                        onode_media::MediaErrorKind::EraseFailed | onode_media::MediaErrorKind::BadBlock
                    ) =>
                {
                    self.write("mark bad block", |nand| nand.mark_bad(block))?;
                    return Ok(false);
                }
                Err(error) => {
                    let error = from_media("erase", &error);
                    self.latch(&format!("the device turned read-only after a failed erase: {error}"));
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Makes everything programmed so far survive a failure of the host, too.
    pub fn flush(&mut self) -> Result<()> {
        self.write("flush", |nand| nand.flush())?;
        self.flushed = true;
        self.unflushed = false;
        Ok(())
    }

    /// All commits up to this one were durable once, 0 where the medium knows nothing of it; `None` if it knew and the
    /// note is damaged.
    pub fn watermark(&mut self) -> Result<Option<u64>> {
        match self.nand.watermark() {
            Ok(noted) => Ok(Some(noted.unwrap_or(0))),
            Err(error) if error.kind == onode_media::MediaErrorKind::Uncorrectable => Ok(None),
            Err(error) => Err(from_media("read what was durable", &error)),
        }
    }

    /// Notes that all commits up to `transaction` are durable, where the medium has room for that.
    pub fn set_watermark(&mut self, transaction: u64) -> Result<()> {
        self.write("note what is durable", |nand| nand.set_watermark(transaction))
    }
}

/// The page kind and the accounting tag of pages of `stream`, with content from users or only from the cleaner.
pub const fn kind_and_tag(stream: crate::policy::Stream, from_users: bool) -> (PageKind, IoTag) {
    use crate::policy::Stream;
    match stream {
        Stream::Journal => (PageKind::Journal, IoTag::Journal),
        Stream::Index => (PageKind::Index, IoTag::Index),
        Stream::Atime => (PageKind::Atime, IoTag::Atime),
        _ if from_users => (PageKind::Data, IoTag::Data),
        _ => (PageKind::Cold, IoTag::Cleaning),
    }
}

//! What of an image in a file its readers use without its owner: the file, and how much of each
//! block is written.
//!
//! It keeps true: an entry here changes after the file does, as the block table does, so whoever
//! sees a page counted as written finds it in the file. It writes nothing but flushes.

use super::format::Layout;
use super::host::HostFile;
use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::nand::{BlockAddress, Flushes, Geometry, PageAddress, PageRun, SharedNand, read_in_turn};
use crate::tag::IoTag;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use onode_base::sync::{Mutex, rank};

/// Stands for a block whose table entry is damaged; no block has so many pages.
const LOST: u32 = u32::MAX;

/// The shared part of an image.
pub(super) struct ImageShared {
    pub(super) file: Arc<HostFile>,
    pub(super) geometry: Geometry,
    pub(super) layout: Layout,
    /// Pages written of each block.
    written: Vec<AtomicU32>,
    pub(super) counters: Arc<Mutex<Counters, rank::MediumNotes>>,
    flushes: Arc<Flushes>,
    /// Somebody changes the image: there is something to flush.
    is_written: bool,
}

impl ImageShared {
    /// The shared part of an image whose blocks have so many pages written, or are lost;
    /// `is_written` if it may change.
    pub(super) fn new(
        file: HostFile,
        geometry: Geometry,
        layout: Layout,
        written: impl Iterator<Item = Option<u32>>,
        is_written: bool,
    ) -> Self {
        let written = written.map(|pages| AtomicU32::new(pages.unwrap_or(LOST))).collect();
        let (file, counters, flushes) = (Arc::new(file), Arc::default(), Arc::default());
        Self { file, geometry, layout, written, counters, flushes, is_written }
    }

    /// The same of an image that has another shape now; blocks that came are erased.
    pub(super) fn of_shape(&self, geometry: Geometry, layout: Layout) -> Self {
        let known = self.written.iter().map(|written| written.load(Ordering::Acquire));
        let all = known.chain(core::iter::repeat(0)).take(geometry.blocks as usize);
        Self {
            file: Arc::clone(&self.file),
            geometry,
            layout,
            written: all.map(AtomicU32::new).collect(),
            counters: Arc::clone(&self.counters),
            flushes: Arc::clone(&self.flushes),
            is_written: self.is_written,
        }
    }

    /// The file has so many pages of `block` now.
    pub(super) fn set_written(&self, block: BlockAddress, pages: u32) {
        if let Some(written) = self.written.get(block.0 as usize) {
            written.store(pages, Ordering::Release);
        }
    }

    /// Lets the host read several runs from its disk at the same time, unless it seems to have them
    /// in memory.
    fn announce(&self, runs: &[PageRun<'_>]) {
        let shape = &self.geometry;
        let exist = |run: &&PageRun<'_>| shape.check_run(run.first, run.data.len(), run.spare.len()).is_ok();
        let is_cached = |run: &PageRun<'_>| self.file.is_cached(self.data_offset(run.first));
        if runs.len() < 2 || runs.iter().find(exist).is_none_or(is_cached) {
            return;
        }
        for run in runs.iter().filter(exist) {
            self.file.announce(self.data_offset(run.first), run.data.len() as u64);
            self.file.announce(self.spare_offset(run.first), run.spare.len() as u64);
        }
    }

    pub(super) fn data_offset(&self, page: PageAddress) -> u64 {
        let shape = &self.geometry;
        self.layout.data(shape, shape.block_of(page).0, shape.index_in_block(page))
    }

    pub(super) fn spare_offset(&self, page: PageAddress) -> u64 {
        let shape = &self.geometry;
        self.layout.spare(shape, shape.block_of(page).0, shape.index_in_block(page))
    }

    /// Reads pages of one block, which were checked to exist.
    pub(super) fn read_pages(&self, first: PageAddress, pages: u32, data: &mut [u8], spare: &mut [u8]) -> Result<()> {
        let address = self.geometry.block_of(first);
        let written = self.written.get(address.0 as usize).map_or(LOST, |written| written.load(Ordering::Acquire));
        if written == LOST {
            let detail = format!("page {}: the table entry of block {} is damaged", first.0, address.0);
            return Err(Error::new(MediaErrorKind::Uncorrectable, detail));
        }
        let index = self.geometry.index_in_block(first);
        let written = written.saturating_sub(index).min(pages) as usize;
        let (there, erased) = data.split_at_mut(data.len().min(written * self.geometry.page_bytes as usize));
        if !there.is_empty() {
            self.file.read(self.data_offset(first), there)?;
        }
        erased.fill(0xff);
        let (there, erased) = spare.split_at_mut(spare.len().min(written * self.geometry.spare_bytes as usize));
        if !there.is_empty() {
            // Inverted in the file, so that a hole reads as erased.
            self.file.read(self.spare_offset(first), there)?;
            there.iter_mut().for_each(|byte| *byte = !*byte);
        }
        erased.fill(0xff);
        Ok(())
    }
}

impl SharedNand for ImageShared {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry.check_run(first, data.len(), spare.len())?;
        self.counters.lock().of_mut(tag).reads += u64::from(pages);
        self.read_pages(first, pages, data, spare)
    }

    fn read_runs(&self, runs: &mut [PageRun<'_>], tag: IoTag) {
        self.announce(runs);
        read_in_turn(runs, |first, data, spare| self.read_run(first, data, spare, tag));
    }

    fn finish_flush(&self) -> Result<()> {
        if self.is_written { self.flushes.run(|| self.file.sync()) } else { Ok(()) }
    }
}

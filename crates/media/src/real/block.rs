//! A NAND on a block device, a partition or a plain file: pages without spare, erase blocks that
//! the device knows nothing of.
//!
//! It keeps true: a page is on the device when `program` returns and survives a failure of the host
//! after the next [`flush`](Nand::flush); a run of pages is one request.
//!
//! **Erased pages.** An erase tells the device that a block holds nothing ([`BlockDev::discard`]).
//! Most devices then read as zeros, and a page of zeros is shown as erased; so a page that was
//! programmed with nothing but zeros reads as erased once the medium was reopened. Some devices go
//! on showing what was there. While the medium is open it knows which pages it erased itself; when
//! it is reopened such pages show what they held in an earlier life, and the user has to tell lives
//! apart, as the flash device does by sequence numbers. Erases tagged [`IoTag::Anchor`] are for
//! places where nothing tells them apart: they write zeros if the device offers nothing better, and
//! flush.

use super::host::DeviceFile;
use super::label::{BadBlocks, DATA_OFFSET, LABEL_COPIES, LABEL_MAGIC, LIST_ENTRIES, Label};
use super::order::Order;
use crate::blockdev::{BlockDev, SECTOR_BYTES, too_short};
use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::image::OpenMode;
use crate::nand::{BlockAddress, Flushes, Geometry, Nand, PageAddress, PageRun, SharedNand, read_in_turn};
use crate::tag::IoTag;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use onode_base::sync::{Mutex, rank};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

mod resizing;
mod shared;
#[cfg(test)]
mod tests;

use shared::{BlockShared, Place, read_pages};

/// A NAND on a block device.
pub struct BlockNand<S = DeviceFile> {
    storage: S,
    mode: OpenMode,
    label: Label,
    order: Arc<Order>,
    bad: BadBlocks,
    counters: Arc<Mutex<Counters, rank::MediumNotes>>,
    flushes: Arc<Flushes>,
}

/// What fits on a device of `bytes` with pages and blocks like those of `shape`; `None` if not one
/// block does.
#[must_use]
pub fn blocks_that_fit(bytes: u64, page_bytes: u32, pages_per_block: u32) -> Option<u32> {
    let block_bytes = u64::from(page_bytes) * u64::from(pages_per_block);
    let blocks = bytes.checked_sub(DATA_OFFSET + SECTOR_BYTES as u64)?.checked_div(block_bytes)?;
    Some(u32::try_from(blocks).unwrap_or(u32::MAX))
}

/// Whether a file or device whose start is gone has the label of [`BlockNand::create`] at its end.
/// One that cannot be read has none.
#[must_use]
pub fn has_far_label(file: &File) -> bool {
    let mut first = [0; 8];
    let mut at_end = file;
    at_end.seek(SeekFrom::End(0)).is_ok_and(|bytes| {
        bytes >= DATA_OFFSET && file.read_exact_at(&mut first, far_label(bytes)).is_ok() && is_labelled(&first)
    })
}

/// Whether a file or device begins with the label of [`BlockNand::create`], of whose mark some bits
/// are wrong.
#[must_use]
pub fn has_label_without_mark(file: &File) -> bool {
    let mut first = [0; SECTOR_BYTES];
    file.read_exact_at(&mut first, 0).is_ok() && Label::decode_without_mark(&first).is_some()
}

/// Whether something that begins with `first` was divided by [`BlockNand::create`].
#[must_use]
pub fn is_labelled(first: &[u8]) -> bool {
    first.starts_with(&LABEL_MAGIC)
}

/// Bytes that a device or file must have to hold `geometry`, and the label at its end.
#[must_use]
pub const fn bytes_for(geometry: &Geometry) -> u64 {
    DATA_OFFSET + geometry.bytes() + SECTOR_BYTES as u64
}

/// Where the label at the end of something of `bytes` lies.
const fn far_label(bytes: u64) -> u64 {
    (bytes / SECTOR_BYTES as u64).saturating_sub(1) * SECTOR_BYTES as u64
}

impl BlockNand {
    /// Divides the device or file at `path` into pages and blocks; all that it held is lost. A file
    /// is made longer if it is too short.
    ///
    /// # Errors
    /// `OutOfRange` (geometry, or a device that is too small), and those of [`DeviceFile::open`].
    pub fn create(path: impl AsRef<Path>, geometry: Geometry, uuid: [u8; 16]) -> Result<Self> {
        geometry.validate()?;
        let mut device = DeviceFile::open(path.as_ref(), OpenMode::ReadWrite)?;
        device.extend(bytes_for(&geometry))?;
        Self::create_on(device, geometry, uuid)
    }

    /// Opens the device or file at `path`.
    ///
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged` (label, or the device is too short), and those of
    /// [`DeviceFile::open`].
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<Self> {
        Self::open_on(DeviceFile::open(path.as_ref(), mode)?, mode)
    }
}

impl<S: BlockDev> BlockNand<S> {
    /// Divides `storage` into pages and blocks; all that it held is lost.
    ///
    /// # Errors
    /// `OutOfRange` (geometry, or too small), `Host`.
    pub fn create_on(mut storage: S, geometry: Geometry, uuid: [u8; 16]) -> Result<Self> {
        geometry.validate()?;
        if geometry.spare_bytes > 0 || geometry.chips != 1 || (geometry.page_bytes as usize) < SECTOR_BYTES {
            let detail = format!("a block device has one chip, no spare and pages of at least {SECTOR_BYTES} bytes");
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        let label = Label { geometry, data_offset: DATA_OFFSET, uuid };
        if storage.bytes() < label.end() {
            return Err(too_short(storage.name(), storage.bytes(), label.end()));
        }
        // What was there before must not be found again, least of all the start of another file
        // system.
        storage.zero(0, DATA_OFFSET)?;
        storage.discard(DATA_OFFSET, geometry.bytes())?;
        write_labels(&mut storage, &label, |_| Ok(()))?;
        storage.flush()?;
        Ok(Self::of(storage, OpenMode::ReadWrite, label, Order::erased(&geometry), BadBlocks::default()))
    }

    /// Opens what [`create_on`](Self::create_on) made.
    ///
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`, `Uncorrectable`, `Host`.
    pub fn open_on(mut storage: S, mode: OpenMode) -> Result<Self> {
        let (label, is_first_damaged) = read_label(&mut storage)?;
        if storage.bytes() < label.end() {
            let (name, bytes) = (storage.name(), storage.bytes());
            let detail = format!("{name} is cut short: {bytes} bytes of {}", label.end());
            return Err(Error::new(MediaErrorKind::Damaged, detail));
        }
        let bad = read_bad_blocks(&mut storage, &label)?;
        if is_first_damaged && mode == OpenMode::ReadWrite {
            write_labels(&mut storage, &label, |_| Ok(()))?;
        }
        Ok(Self::of(storage, mode, label, Order::unknown(&label.geometry), bad))
    }

    fn of(storage: S, mode: OpenMode, label: Label, order: Order, bad: BadBlocks) -> Self {
        let (order, counters, flushes) = (Arc::new(order), Arc::default(), Arc::default());
        Self { storage, mode, label, order, bad, counters, flushes }
    }

    /// The identity given when the device was divided.
    #[must_use]
    pub const fn uuid(&self) -> [u8; 16] {
        self.label.uuid
    }

    /// What lies below, given back.
    #[must_use]
    pub fn into_storage(self) -> S {
        self.storage
    }

    const fn offset(&self, page: PageAddress) -> u64 {
        self.place().offset(page)
    }

    const fn block_bytes(&self) -> u64 {
        self.label.geometry.page_bytes as u64 * self.label.geometry.pages_per_block as u64
    }

    fn check_writable(&self) -> Result<()> {
        self.mode.check_writable(self.storage.name())
    }

    fn check_good(&self, block: BlockAddress) -> Result<()> {
        self.label.geometry.check_block(block)?;
        if self.bad.blocks.contains(&block.0) {
            return Err(Error::new(MediaErrorKind::BadBlock, format!("block {}", block.0)));
        }
        Ok(())
    }

    const fn place(&self) -> Place {
        Place { geometry: self.label.geometry, data_offset: self.label.data_offset }
    }

    fn program_pages(&mut self, first: PageAddress, data: &[u8], tag: IoTag) -> Result<()> {
        self.check_writable()?;
        let shape = self.label.geometry;
        let (block, index) = (shape.block_of(first), shape.index_in_block(first));
        self.check_good(block)?;
        let skipped = self.order.skipped(&shape, first)?;
        if skipped > 0 {
            // They must not show what they held before the erase.
            let bytes = skipped as usize * shape.page_bytes as usize;
            let from = PageAddress(first.0 - u64::from(skipped));
            self.storage.write_at(self.offset(from), &vec![0xff; bytes], tag)?;
        }
        self.storage.write_at(self.offset(first), data, tag)?;
        self.order.set(block, index + (data.len() / shape.page_bytes as usize) as u32);
        Ok(())
    }
}

impl<S: BlockDev> Nand for BlockNand<S> {
    fn geometry(&self) -> Geometry {
        self.label.geometry
    }

    fn most_blocks(&mut self) -> Result<u32> {
        self.blocks_with_room()
    }

    fn grow(&mut self, blocks: u32) -> Result<()> {
        self.grow_to(blocks)
    }

    fn shrink(&mut self, blocks: u32) -> Result<()> {
        self.shrink_to(blocks)
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.label.geometry.check_read(page, data.len(), spare.len())?;
        self.counters.lock().of_mut(tag).reads += 1;
        spare.fill(0xff);
        read_pages(self.place(), &self.order, page, data, |offset, out| self.storage.read_at(offset, out, tag))
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.label.geometry.check_program(page, data.len(), spare.len())?;
        self.program_pages(page, data, tag)?;
        self.counters.lock().of_mut(tag).programs += 1;
        Ok(())
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.check_writable()?;
        self.check_good(block)?;
        let (offset, bytes) = (self.offset(self.label.geometry.first_page(block)), self.block_bytes());
        if tag == IoTag::Anchor {
            self.storage.zero(offset, bytes)?;
            self.flushes.run(|| self.storage.flush())?;
        } else {
            self.storage.discard(offset, bytes)?;
        }
        self.order.set(block, 0);
        self.counters.lock().of_mut(tag).erases += 1;
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.label.geometry.check_block(block)?;
        Ok(self.bad.blocks.contains(&block.0))
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.check_writable()?;
        self.label.geometry.check_block(block)?;
        let mut bad = self.bad.clone();
        if !bad.blocks.insert(block.0) {
            return Ok(());
        }
        if bad.blocks.len() > LIST_ENTRIES {
            let detail = format!("{} has more than {LIST_ENTRIES} bad blocks; replace it", self.storage.name());
            return Err(Error::new(MediaErrorKind::Host, detail));
        }
        bad.generation += 1;
        self.storage.write_at(bad.offset(), &bad.encode(&self.label.uuid), IoTag::Anchor)?;
        self.flushes.run(|| self.storage.flush())?;
        self.bad = bad;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        match self.mode {
            OpenMode::ReadWrite => self.flushes.run(|| self.storage.flush()),
            OpenMode::ReadOnly => Ok(()),
        }
    }

    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        let shared: Arc<dyn SharedNand> = Arc::new(BlockShared {
            storage: self.storage.shared()?,
            place: self.place(),
            order: Arc::clone(&self.order),
            counters: Arc::clone(&self.counters),
            flushes: Arc::clone(&self.flushes),
            is_written: self.mode == OpenMode::ReadWrite,
        });
        Some(shared)
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.label.geometry.check_run(first, data.len(), spare.len())?;
        self.counters.lock().of_mut(tag).reads += u64::from(pages);
        spare.fill(0xff);
        read_pages(self.place(), &self.order, first, data, |offset, out| self.storage.read_at(offset, out, tag))
    }

    // The owner waits for a batch once, too.
    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        match self.shared().filter(|_| runs.len() > 1) {
            Some(shared) => shared.read_runs(runs, tag),
            None => read_in_turn(runs, |first, data, spare| self.read_run(first, data, spare, tag)),
        }
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let pages = self.label.geometry.check_program_run(first, data.len(), spare.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.program_pages(first, data, tag)?;
        self.counters.lock().of_mut(tag).programs += u64::from(pages);
        Ok(())
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.lock().clone())
    }
}

/// Writes the label to all its places, from the end on: what is not finished begins with none.
/// Where the last block reaches to the end there is no room for one behind it. `between` is done
/// after each of them.
fn write_labels<S: BlockDev>(
    storage: &mut S,
    label: &Label,
    mut between: impl FnMut(&mut S) -> Result<()>,
) -> Result<()> {
    let at_end = far_label(storage.bytes());
    let at_start = (0..LABEL_COPIES).rev().map(|copy| copy * SECTOR_BYTES as u64);
    for offset in (at_end >= label.end()).then_some(at_end).into_iter().chain(at_start) {
        storage.write_at(offset, &label.encode(), IoTag::Anchor)?;
        between(storage)?;
    }
    Ok(())
}

/// The label, and whether the first is to be written again. Its copies count only if the first is
/// damaged or gone: where somebody wrote something else, the volume is gone.
fn read_label<S: BlockDev>(storage: &mut S) -> Result<(Label, bool)> {
    let read = |storage: &mut S, offset: u64| {
        let mut bytes = [0; SECTOR_BYTES];
        storage.read_at(offset, &mut bytes, IoTag::Recovery)?;
        Label::decode(&bytes)
    };
    if storage.bytes() < DATA_OFFSET {
        return Err(Error::new(MediaErrorKind::NotAnImage, format!("{} is too short for a volume", storage.name())));
    }
    let error = match read(storage, 0) {
        Ok(label) => return Ok((label, false)),
        Err(error) => error,
    };
    let mut first = [0; SECTOR_BYTES];
    if storage.read_at(0, &mut first, IoTag::Recovery).is_ok()
        && let Some(label) = Label::decode_without_mark(&first)
    {
        return Ok((label, true));
    }
    let is_damaged = matches!(error.kind, MediaErrorKind::Damaged | MediaErrorKind::Uncorrectable);
    if is_damaged && let Ok(label) = read(storage, SECTOR_BYTES as u64) {
        return Ok((label, false));
    }
    let at_end = far_label(storage.bytes());
    if (is_damaged || is_wiped(storage))
        && let Ok(label) = read(storage, at_end)
        && label.end() <= at_end
    {
        return Ok((label, true));
    }
    Err(Error::new(error.kind, format!("{}: {}", storage.name(), error.detail)))
}

/// Whether the place of labels and lists is all zeros: other file systems leave their marks there.
fn is_wiped<S: BlockDev>(storage: &mut S) -> bool {
    let mut start = vec![0; DATA_OFFSET as usize];
    storage.read_at(0, &mut start, IoTag::Recovery).is_ok() && start.iter().all(|byte| *byte == 0)
}

/// The newest list of bad blocks. A slot that cannot be read is none: a cut may have hit it.
fn read_bad_blocks<S: BlockDev>(storage: &mut S, label: &Label) -> Result<BadBlocks> {
    let mut newest = BadBlocks::default();
    let first = LABEL_COPIES * SECTOR_BYTES as u64;
    let mut slots = vec![0; (DATA_OFFSET - first) as usize];
    if let Err(error) = storage.read_at(first, &mut slots, IoTag::Recovery) {
        if error.kind != MediaErrorKind::Uncorrectable {
            return Err(error);
        }
        for (slot, bytes) in slots.chunks_exact_mut(SECTOR_BYTES).enumerate() {
            if storage.read_at(first + (slot * SECTOR_BYTES) as u64, bytes, IoTag::Recovery).is_err() {
                bytes.fill(0);
            }
        }
    }
    for bytes in slots.chunks_exact(SECTOR_BYTES) {
        if let Ok(bytes) = <&[u8; SECTOR_BYTES]>::try_from(bytes)
            && let Some(list) = BadBlocks::decode(bytes, &label.uuid)
            && list.generation > newest.generation
        {
            newest = list;
        }
    }
    Ok(newest)
}

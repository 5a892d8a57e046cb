//! A NAND in a sparse file: the rules of the chip, kept over processes.
//!
//! It keeps true: a program writes data and spare bytes before the table entry that counts the
//! page, so a killed process never shows half a page as written; an erase empties the block before
//! the entry says so, which leaves at worst what a cut erase leaves; a run of pages is one write
//! for the data and one for the spare bytes. After a failure of the *host*, everything before the
//! last [`flush`](Nand::flush) is there, and what came later may be there in part and in any order:
//! who moved content must flush before erasing its old place. Header and block table stand at the
//! end of the file, too, the table as it was at the last flush: with the start of the file gone
//! everything else is still found. Virtual time is not kept; wrap it in
//! [`Latency`](crate::wrap::Latency) for that.

use super::format::{BlockState, ENTRY_BYTES, HEADER_BYTES, Header, ImageShape, TableEntry};
use super::host::{HostFile, fill};
use super::shared::ImageShared;
use super::watermark::Notes;
use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, PageRun, SharedNand, Watermark};
use crate::tag::IoTag;
use crate::wear::Wear;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::fs::OpenOptions;
use std::path::Path;
use zerocopy::{FromBytes, IntoBytes};

mod resizing;
#[cfg(test)]
mod tests;

/// How a new image is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The identity of the image. Randomness is the caller's; this crate has none.
    pub uuid: [u8; 16],
    /// Replace a file that exists; its content is lost.
    pub overwrite: bool,
}

/// How an image is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// By one user, who may change it.
    ReadWrite,
    /// By many users, and nobody changes it.
    ReadOnly,
}

impl OpenMode {
    /// An error if nobody changes the medium `name`.
    pub(crate) fn check_writable(self, name: impl core::fmt::Display) -> Result<()> {
        match self {
            Self::ReadWrite => Ok(()),
            Self::ReadOnly => Err(Error::new(MediaErrorKind::ReadOnly, format!("{name} is open for reads only"))),
        }
    }
}

/// What is known of a block while the image is open.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    state: BlockState,
    /// Its table entry is damaged: its pages cannot be told apart from garbage until it is erased.
    lost: bool,
    /// The spare bytes of its erased pages are known to be zero in the file. A process that was
    /// killed within a program may have left others.
    spare_is_clean: bool,
}

impl OpenBlock {
    /// One that was never used.
    const NEW: Self =
        Self { state: BlockState { erases: 0, written_pages: 0, bad: false }, lost: false, spare_is_clean: true };
}

/// A NAND in a file.
pub struct ImageNand {
    shared: Arc<ImageShared>,
    mode: OpenMode,
    shape: ImageShape,
    blocks: Vec<OpenBlock>,
    /// Blocks whose entry in the copy of the table is older than the one in the table.
    not_copied: BTreeSet<u32>,
    /// Spare bytes in the inverted form of the file.
    inverted: Vec<u8>,
    notes: Notes,
}

impl ImageNand {
    /// Makes a new image, all erased, and opens it. It takes little space on the host until it is
    /// filled.
    ///
    /// # Errors
    /// `Exists`, `OutOfRange` (geometry), `Locked`, `HostFull`, `ReadOnly`, `Host`.
    pub fn create(path: impl AsRef<Path>, geometry: Geometry, options: CreateOptions) -> Result<Self> {
        geometry.validate()?;
        let path = path.as_ref();
        let mut how = OpenOptions::new();
        how.read(true).write(true);
        if options.overwrite {
            how.create(true).truncate(false);
        } else {
            how.create_new(true);
        }
        let file = HostFile::open(path, &how, true)?;
        let shape = ImageShape::of_new(geometry, options.uuid);
        let written = (|| {
            file.set_bytes(0)?;
            file.set_bytes(shape.layout.end + Notes::AREA_BYTES)?;
            let header = Header::new(&shape);
            if let Some(copies) = shape.layout.copies {
                file.write(copies.header, header.as_bytes())?;
            }
            // Last, so that an image that was not finished is not taken for one.
            file.write(0, header.as_bytes())?;
            file.sync_all()
        })();
        if let Err(error) = written {
            if !options.overwrite {
                // Only what was made here is removed; if that fails too, the first error says more.
                let _ = std::fs::remove_file(path);
            }
            return Err(error);
        }
        let blocks = vec![OpenBlock::NEW; geometry.blocks as usize];
        Ok(Self::of(file, OpenMode::ReadWrite, shape, blocks))
    }

    /// Opens an image.
    ///
    /// # Errors
    /// `NotFound`, `NotAnImage`, `NewerFormat`, `Damaged` (header, or cut short), `Locked`,
    /// `ReadOnly` (it may not be written), `Host`.
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<Self> {
        let path = path.as_ref();
        let write = mode == OpenMode::ReadWrite;
        let file = HostFile::open(path, OpenOptions::new().read(true).write(write), write)?;
        let bytes = file.bytes()?;
        let shape = read_header(&file, bytes)
            .map_err(|error| Error::new(error.kind, format!("{}: {}", path.display(), error.detail)))?;
        let (geometry, layout) = (shape.geometry, &shape.layout);
        if bytes < layout.end {
            let detail = format!("{} is cut short: {bytes} bytes of {}", path.display(), layout.end);
            return Err(Error::new(MediaErrorKind::Damaged, detail));
        }
        let table = read_table(&file, layout.table, geometry)?;
        let copy = layout.copies.map_or(Ok(table.clone()), |copies| read_table(&file, copies.table, geometry))?;
        let states: Vec<_> = table.iter().zip(&copy).map(|(state, copy)| newer(*state, *copy)).collect();
        let open = |state: Option<BlockState>| {
            let lost = BlockState { written_pages: geometry.pages_per_block, ..BlockState::default() };
            OpenBlock { state: state.unwrap_or(lost), lost: state.is_none(), spare_is_clean: false }
        };
        let mut image = Self::of(file, mode, shape, states.iter().copied().map(open).collect());
        image.notes = Notes::read(&image.shared.file, image.shared.layout.end, &image.shape.uuid, bytes)?;
        let differ = |of: &[Option<BlockState>]| {
            (0..).zip(of).zip(&states).filter(|((_, one), state)| one != state).map(|((block, _), _)| block).collect()
        };
        let behind: BTreeSet<u32> = differ(&table);
        image.not_copied = differ(&copy);
        if mode == OpenMode::ReadWrite {
            image.heal(behind)?;
            image.cut_off_rest()?;
        }
        Ok(image)
    }

    /// Writes what is damaged of one end as the other end has it; `behind` are the blocks whose
    /// entry at the start is.
    fn heal(&mut self, behind: BTreeSet<u32>) -> Result<()> {
        let header = Header::new(&self.shape);
        let mut there = [0; HEADER_BYTES];
        for offset in [0].into_iter().chain(self.shared.layout.copies.map(|copies| copies.header)) {
            self.shared.file.read(offset, &mut there)?;
            if there != header.as_bytes() {
                self.shared.file.write(offset, header.as_bytes())?;
            }
        }
        for block in behind.into_iter().map(BlockAddress) {
            // One that neither end knows stays as it is until the block is erased.
            if let Ok(open) = self.block(block)
                && !open.lost
            {
                self.set_state(block, open)?;
            }
        }
        Ok(())
    }

    fn of(file: HostFile, mode: OpenMode, shape: ImageShape, blocks: Vec<OpenBlock>) -> Self {
        let written = blocks.iter().map(|block: &OpenBlock| (!block.lost).then_some(block.state.written_pages));
        let layout = shape.layout.clone();
        let shared = Arc::new(ImageShared::new(file, shape.geometry, layout, written, mode == OpenMode::ReadWrite));
        let (not_copied, inverted) = (BTreeSet::new(), Vec::new());
        Self { shared, mode, shape, blocks, not_copied, inverted, notes: Notes::default() }
    }

    /// The identity given when the image was made.
    #[must_use]
    pub const fn uuid(&self) -> [u8; 16] {
        self.shape.uuid
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.shared.file.path()
    }

    /// Erases of `block` so far; `None` past the end.
    #[must_use]
    pub fn erase_count(&self, block: BlockAddress) -> Option<u32> {
        self.blocks.get(block.0 as usize).map(|block| block.state.erases)
    }

    /// The spread of erases over all blocks that are not bad.
    #[must_use]
    pub fn wear(&self) -> Wear {
        Wear::over(self.blocks.iter().filter(|block| !block.state.bad).map(|block| block.state.erases))
    }

    /// Blocks whose entry in the table is damaged: unreadable until they are erased.
    pub fn lost_blocks(&self) -> impl Iterator<Item = BlockAddress> + '_ {
        (0..).zip(&self.blocks).filter(|(_, block)| block.lost).map(|(number, _)| BlockAddress(number))
    }

    fn block(&self, address: BlockAddress) -> Result<OpenBlock> {
        self.shared.geometry.check_block(address)?;
        match self.blocks.get(address.0 as usize) {
            Some(block) => Ok(*block),
            None => Err(Error::new(MediaErrorKind::OutOfRange, format!("block {}", address.0))),
        }
    }

    fn good_block(&self, address: BlockAddress) -> Result<OpenBlock> {
        let block = self.block(address)?;
        if block.state.bad {
            return Err(Error::new(MediaErrorKind::BadBlock, format!("block {}", address.0)));
        }
        Ok(block)
    }

    fn check_writable(&self) -> Result<()> {
        self.mode.check_writable(self.path().display())
    }

    /// Writes the table entry of a block and then believes it.
    fn set_state(&mut self, address: BlockAddress, block: OpenBlock) -> Result<()> {
        let entry = TableEntry::encode(address.0, block.state);
        self.shared
            .file
            .write(self.shared.layout.table + u64::from(address.0) * ENTRY_BYTES as u64, entry.as_bytes())?;
        if let Some(slot) = self.blocks.get_mut(address.0 as usize) {
            *slot = block;
        }
        if !block.lost {
            self.shared.set_written(address, block.state.written_pages);
        }
        if self.shared.layout.copies.is_some() {
            self.not_copied.insert(address.0);
        }
        Ok(())
    }

    /// Brings the copy of the table to what the table says.
    fn copy_table(&mut self) -> Result<()> {
        let Some(copies) = self.shared.layout.copies else { return Ok(()) };
        while let Some(&block) = self.not_copied.first() {
            if let Some(open) = self.blocks.get(block as usize) {
                let entry = TableEntry::encode(block, open.state);
                self.shared.file.write(copies.table + u64::from(block) * ENTRY_BYTES as u64, entry.as_bytes())?;
            }
            self.not_copied.pop_first();
        }
        Ok(())
    }

    /// Writes spare bytes, inverted so that a hole reads as erased.
    fn write_spare(&mut self, first: PageAddress, spare: &[u8]) -> Result<()> {
        let mut inverted = core::mem::take(&mut self.inverted);
        inverted.clear();
        inverted.extend(spare.iter().map(|byte| !byte));
        let result = self.shared.file.write(self.shared.spare_offset(first), &inverted);
        self.inverted = inverted;
        result
    }

    /// Zeroes the spare bytes, as the file holds them, from page `index` to the end of the block.
    fn clean_spare(&mut self, address: BlockAddress, index: u32) -> Result<()> {
        let from = PageAddress(self.shared.geometry.first_page(address).0 + u64::from(index));
        let pages = u64::from(self.shared.geometry.pages_per_block - index);
        self.shared.file.zero(self.shared.spare_offset(from), pages * u64::from(self.shared.geometry.spare_bytes))
    }

    fn program_pages(&mut self, first: PageAddress, pages: u32, data: &[u8], spare: &[u8]) -> Result<()> {
        self.check_writable()?;
        let (address, index) = (self.shared.geometry.block_of(first), self.shared.geometry.index_in_block(first));
        let mut block = self.good_block(address)?;
        let next = block.state.written_pages;
        if index < next {
            let detail = format!("page {} is number {index} of block {}, {next} is next", first.0, address.0);
            return Err(Error::new(MediaErrorKind::ProgramOrder, detail));
        }
        if self.shared.geometry.spare_bytes > 0 && !block.spare_is_clean {
            self.clean_spare(address, next)?;
        }
        if index > next {
            let skipped = PageAddress(first.0 - u64::from(index - next));
            fill(
                &self.shared.file,
                self.shared.data_offset(skipped),
                u64::from(index - next) * u64::from(self.shared.geometry.page_bytes),
                0xff,
            )?;
        }
        self.shared.file.write(self.shared.data_offset(first), data)?;
        if !spare.is_empty() {
            // If this fails half-way, the next program of the page has to clean up.
            if let Some(slot) = self.blocks.get_mut(address.0 as usize) {
                slot.spare_is_clean = false;
            }
            self.write_spare(first, spare)?;
        }
        block.spare_is_clean = true;
        block.state.written_pages = index + pages;
        self.set_state(address, block)
    }
}

/// The header of an image of `bytes`. The one at the end counts where the start is zeros or
/// damaged, not where somebody wrote something else: what begins otherwise and goes on as an image
/// does is damaged.
fn read_header(file: &HostFile, bytes: u64) -> Result<ImageShape> {
    let mut header = [0; HEADER_BYTES];
    let there = usize::try_from(bytes).unwrap_or(HEADER_BYTES).min(HEADER_BYTES);
    file.read(0, &mut header[..there])?;
    let error = match Header::decode(&header[..there]) {
        Ok(header) => return Ok(header),
        Err(error) => error,
    };
    if let Some(image) = Header::decode_without_mark(&header[..there]) {
        return Ok(image);
    }
    let is_wiped = header.iter().all(|byte| *byte == 0);
    let at_end = bytes / HEADER_BYTES as u64 * HEADER_BYTES as u64;
    if (is_wiped || error.kind == MediaErrorKind::Damaged) && at_end > HEADER_BYTES as u64 {
        let offset = at_end - HEADER_BYTES as u64;
        file.read(offset, &mut header)?;
        if let Ok(copy) = Header::decode(&header)
            && copy.layout.copies.is_some_and(|copies| copies.header == offset)
        {
            return Ok(copy);
        }
    }
    Err(error)
}

/// What a table says of each block; nothing where its entry is damaged.
fn read_table(file: &HostFile, offset: u64, geometry: Geometry) -> Result<Vec<Option<BlockState>>> {
    let mut table = vec![0; geometry.blocks as usize * ENTRY_BYTES];
    file.read(offset, &mut table)?;
    let decode = |(block, bytes): (u32, &[u8])| {
        TableEntry::read_from_bytes(bytes).ok().and_then(|entry| entry.decode(block, geometry))
    };
    Ok((0..).zip(table.chunks_exact(ENTRY_BYTES)).map(decode).collect())
}

/// The later one of two states of a block: it is erased and written, and nothing of that is ever
/// taken back. An entry of zeros, as of a block that was never used, may be what is left of a
/// damaged table.
fn newer(one: Option<BlockState>, copy: Option<BlockState>) -> Option<BlockState> {
    let (Some(state), Some(of_copy)) = (one, copy) else { return one.or(copy) };
    let age = |state: &BlockState| (state.erases, state.written_pages);
    let newer = if age(&of_copy) > age(&state) { of_copy } else { state };
    Some(BlockState { bad: state.bad || of_copy.bad, ..newer })
}

impl Nand for ImageNand {
    fn geometry(&self) -> Geometry {
        self.shared.geometry
    }

    fn grow(&mut self, blocks: u32) -> Result<()> {
        self.grow_to(blocks)
    }

    fn shrink(&mut self, blocks: u32) -> Result<()> {
        self.shrink_to(blocks)
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.shared.geometry.check_read(page, data.len(), spare.len())?;
        self.shared.counters.lock().of_mut(tag).reads += 1;
        self.shared.read_pages(page, 1, data, spare)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.shared.geometry.check_program(page, data.len(), spare.len())?;
        self.program_pages(page, 1, data, spare)?;
        self.shared.counters.lock().of_mut(tag).programs += 1;
        Ok(())
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.check_writable()?;
        let mut erased = self.good_block(block)?;
        if self.shared.geometry.spare_bytes > 0 && (erased.state.written_pages > 0 || !erased.spare_is_clean) {
            self.clean_spare(block, 0)?;
        }
        // The data stays in the file, unseen: devices erase right before they write, and a host
        // takes far longer to hand out fresh blocks and memory than to overwrite what it has.
        erased.state.erases = erased.state.erases.saturating_add(1);
        erased.state.written_pages = 0;
        erased.lost = false;
        erased.spare_is_clean = true;
        self.set_state(block, erased)?;
        self.shared.counters.lock().of_mut(tag).erases += 1;
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        Ok(self.block(block)?.state.bad)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.check_writable()?;
        let mut marked = self.block(block)?;
        marked.state.bad = true;
        self.set_state(block, marked)
    }

    fn flush(&mut self) -> Result<()> {
        match self.mode {
            OpenMode::ReadWrite => {
                self.copy_table()?;
                self.shared.finish_flush()
            }
            OpenMode::ReadOnly => Ok(()),
        }
    }

    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        let shared: Arc<dyn SharedNand> = self.shared.clone();
        Some(shared)
    }

    fn begin_flush(&mut self) -> Result<()> {
        if self.mode == OpenMode::ReadWrite { self.copy_table() } else { Ok(()) }
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.shared.geometry.check_run(first, data.len(), spare.len())?;
        self.shared.counters.lock().of_mut(tag).reads += u64::from(pages);
        self.shared.read_pages(first, pages, data, spare)
    }

    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        self.shared.read_runs(runs, tag);
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let pages = self.shared.geometry.check_program_run(first, data.len(), spare.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.program_pages(first, pages, data, spare)?;
        self.shared.counters.lock().of_mut(tag).programs += u64::from(pages);
        Ok(())
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn set_watermark(&mut self, number: u64) -> Result<()> {
        if self.notes.has(number) || self.mode == OpenMode::ReadOnly {
            return Ok(());
        }
        self.notes.write(number, &self.shared.file, self.shared.layout.end, &self.shape.uuid)
    }

    fn watermark(&mut self) -> Result<Watermark> {
        Ok(self.notes.watermark())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.shared.counters.lock().clone())
    }
}

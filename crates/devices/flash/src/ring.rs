//! Superblocks in turn: where the next one goes and which one counts.
//!
//! Superblocks fill the superblock erase blocks page by page, block after block. A block is erased
//! right before its first page is programmed, and a session never goes on in a block of an earlier
//! session, because its next page may have been hit by a cut. The newest superblock found by a
//! mount may itself be such a page, readable now and not the next time. So the first write of
//! every session repeats it.

use crate::core::Core;
use crate::errors::damaged;
use crate::format::{
    BlobReference, FEATURE_BUFFERED, FEATURE_COMPACT_RECORDS, FEATURE_DEFERRED, FEATURES_KNOWN, FORMAT_MAJOR,
    FORMAT_MINOR, PageKind, SUPERBLOCK_MAGIC, Superblock,
};
use crate::layout::Layout;
use crate::page::{self, PageFault, PageInfo};
use crate::segments::SegmentTable;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::{BlockAddress, IoTag, Nand, PageAddress};
use onode_object::{Error, ObjectId, Result};
use zerocopy::{FromBytes, IntoBytes};

/// State of the superblock area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Block of the newest superblock.
    block: u32,
    /// Page after it, if this session may go on in that block.
    next_page: Option<u32>,
    /// Its generation.
    pub generation: u32,
    /// Generation of the first superblock of its checkpoint.
    pub checkpoint_generation: u32,
    /// It says that the memory beside the flash may have commits that the flash lacks.
    pub buffered: bool,
}

/// A superblock found on the medium.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its fixed part.
    pub superblock: Superblock,
    /// References to the pieces of the segment table.
    pub pieces: Vec<BlobReference>,
    /// Reference to deferred changes.
    pub deferred: Option<BlobReference>,
    /// Block in which it lies.
    pub block: u32,
}

impl Ring {
    /// The area of a new volume.
    pub const fn fresh() -> Self {
        Self { block: u32::MAX, next_page: None, generation: 0, checkpoint_generation: 1, buffered: false }
    }

    /// The newest superblock on the medium is in `block` and has this number.
    pub const fn stands_at(&mut self, block: u32, generation: u32) {
        self.block = block;
        self.generation = generation;
    }

    /// The area after a mount found `found`.
    pub fn after_mount(found: &Found) -> Self {
        let superblock = &found.superblock;
        Self {
            block: found.block,
            next_page: None,
            generation: superblock.generation.get(),
            checkpoint_generation: superblock.checkpoint_generation.get(),
            buffered: found.is_buffered(),
        }
    }
}

impl Found {
    /// Whether the memory beside the flash may have commits that were promised and that the flash lacks.
    pub const fn is_buffered(&self) -> bool {
        self.superblock.compatible.get() & FEATURE_BUFFERED != 0
    }
}

impl Core {
    /// Writes a superblock of the present checkpoint. `first` says that the checkpoint is a new one.
    pub fn write_superblock(&mut self, first: bool) -> Result<()> {
        let layout = self.log.store.layout;
        let mut failed: Vec<u32> = Vec::new();
        // A few rounds: a block whose program failed once may take the next one.
        let mut steps = 1..=3 * layout.superblock_blocks;
        // That of a clean volume starts a block, where a mount finds it with few reads.
        let mut place = match self.ring.next_page.filter(|_| !(first && self.checkpoint_state.clean)) {
            Some(page) if page < layout.geometry.pages_per_block => (self.ring.block, page),
            _ => (self.next_superblock_block(&mut steps, &mut failed)?, 0),
        };
        let mut generation = self.ring.generation;
        let mut changes_wait = first;
        loop {
            // A page whose program failed may yet be readable: the next attempt has a number of its own.
            generation += 1;
            if first {
                self.ring.checkpoint_generation = generation;
            }
            let is_full = core::mem::take(&mut changes_wait);
            if !self.fold(is_full, self.closes(first), generation)? {
                // No anchor may fit, whatever became of the last one.
                generation += 2;
                if first {
                    self.ring.checkpoint_generation = generation;
                }
            }
            let (block, page) = place;
            self.ring.buffered = self.buffers_writes() && !self.closes(first);
            let bytes = self.encode_superblock(generation);
            let address = PageAddress(layout.geometry.first_page(BlockAddress(block)).0 + u64::from(page));
            let info = PageInfo {
                kind: PageKind::Superblock,
                record_bytes: 0,
                echo_bytes: 0,
                sequence: generation,
                spare_bytes: 0,
                flushed: false,
            };
            let (data, spare) = seal_page(&layout, self.log.store.seed(), address, info, &bytes);
            if self.log.store.try_program(|nand| nand.program(address, &data, &spare, IoTag::Anchor))? {
                self.log.store.flush()?;
                self.ring = Ring { block, next_page: Some(page + 1), generation, ..self.ring };
                return self.retire_superblock_blocks(&failed);
            }
            failed.push(block);
            place = (self.next_superblock_block(&mut steps, &mut failed)?, 0);
        }
    }

    /// Whether nothing follows the superblock that is about to be written, `first` of its checkpoint or not.
    const fn closes(&self, first: bool) -> bool {
        self.checkpoint_state.clean && (first || self.clean)
    }

    /// Erases the next usable superblock block; `steps` are the ones not tried yet, counted from the block
    /// with the newest superblock. Blocks that refuse are added to `failed`.
    fn next_superblock_block(
        &mut self,
        steps: &mut core::ops::RangeInclusive<u32>,
        failed: &mut Vec<u32>,
    ) -> Result<u32> {
        let blocks = self.log.store.layout.superblock_blocks;
        for step in steps {
            let block = (self.ring.block.wrapping_add(step)) % blocks;
            let block = if is_planted(Bug::NewestErased) && self.ring.block < blocks { self.ring.block } else { block };
            if block == self.ring.block && !is_planted(Bug::NewestErased) {
                continue;
            }
            let address = BlockAddress(block);
            let bad = self.log.store.write("look for bad blocks", |nand| nand.is_bad(address))?;
            if bad {
                continue;
            }
            match self.log.store.nand().erase(address, IoTag::Anchor) {
                Ok(()) => return Ok(block),
                Err(_) => failed.push(block),
            }
        }
        self.log.store.latch("no sound superblock block is left");
        Err(Error::new(ErrorKind::Media, "no sound superblock block is left"))
    }

    /// Marks blocks bad in which a program or an erase failed, as long as two others are left: without two there can
    /// be no next superblock, and a block that fails now and then is better than none.
    fn retire_superblock_blocks(&mut self, failed: &[u32]) -> Result<()> {
        for &block in failed.iter().filter(|block| **block != self.ring.block) {
            let mut sound = 0;
            for other in (0..self.log.store.layout.superblock_blocks).filter(|other| *other != block) {
                let bad = self.log.store.write("look for bad blocks", |nand| nand.is_bad(BlockAddress(other)))?;
                sound += u32::from(!bad);
            }
            if sound >= 2 {
                self.log.store.write("mark bad block", |nand| nand.mark_bad(BlockAddress(block)))?;
            }
        }
        Ok(())
    }

    pub fn encode_superblock(&self, generation: u32) -> Vec<u8> {
        let layout = &self.log.store.layout;
        let shape = &layout.geometry;
        let checkpoint = &self.checkpoint_state;
        let (root, root_level) = checkpoint.root;
        let (placement, victim) = self.policies.bytes();
        let deferred = if checkpoint.deferred.is_some() { FEATURE_DEFERRED } else { 0 };
        let buffered = if self.ring.buffered { FEATURE_BUFFERED } else { 0 };
        let superblock = Superblock {
            magic: SUPERBLOCK_MAGIC,
            major: FORMAT_MAJOR.into(),
            minor: FORMAT_MINOR.into(),
            incompatible: (self.incompatible | deferred).into(),
            read_only_compatible: 0.into(),
            compatible: (self.policies.compatible() | buffered).into(),
            uuid: self.uuid,
            page_bytes: shape.page_bytes.into(),
            pages_per_block: shape.pages_per_block.into(),
            blocks: shape.blocks.into(),
            chips: (shape.chips as u16).into(),
            blocks_per_segment: (layout.blocks_per_segment as u16).into(),
            generation: generation.into(),
            checkpoint_generation: self.ring.checkpoint_generation.into(),
            root,
            root_level,
            placement,
            clean: checkpoint.clean.into(),
            victim,
            table_pieces: (checkpoint.pieces.len() as u32).into(),
            journal_segment: checkpoint.journal_segment.into(),
            journal_page: checkpoint.journal_page.into(),
            journal_sequence: checkpoint.journal_sequence.into(),
            journal_next_segment: checkpoint.journal_next.0.into(),
            journal_next_sequence: checkpoint.journal_next.1.into(),
            next_sequence: checkpoint.next_sequence.into(),
            next_object: checkpoint.next_object.into(),
            transaction: checkpoint.transaction.into(),
            objects: checkpoint.objects.into(),
            extents: checkpoint.extents.into(),
        };
        let mut bytes = superblock.as_bytes().to_vec();
        bytes.extend_from_slice(checkpoint.pieces.as_bytes());
        bytes.extend_from_slice(checkpoint.deferred.as_slice().as_bytes());
        bytes
    }
}

/// A page with its trailer, ready to be programmed: data and spare.
fn seal_page(layout: &Layout, seed: u32, address: PageAddress, info: PageInfo, payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut data = vec![0; layout.geometry.page_bytes as usize];
    data[..payload.len()].copy_from_slice(payload);
    let size = layout.payload_bytes as usize;
    let trailer = page::seal(seed, address, info, &data[..size], &[]);
    if Layout::trailer_in_spare(&layout.geometry) {
        let mut spare = trailer.as_bytes().to_vec();
        spare.resize(layout.geometry.spare_bytes as usize, 0xff);
        (data, spare)
    } else {
        data[size..].copy_from_slice(trailer.as_bytes());
        (data, Vec::new())
    }
}

/// All readable superblocks of a medium, oldest first. Unreadable pages are passed over: a cut leaves them.
///
/// # Errors
/// Only if the medium itself cannot be read; an empty result means that this is no volume.
pub fn find_all(nand: &mut dyn Nand) -> Result<Vec<Found>> {
    let shape = nand.geometry();
    let mut all = Vec::new();
    for block in 0..Layout::superblock_blocks(&shape) {
        for page in 0..shape.pages_per_block {
            all.extend(read_superblock(nand, block, page)?.ok());
        }
    }
    all.sort_by_key(|found| found.superblock.generation.get());
    Ok(all)
}

/// The newest readable superblock of a medium, found with few reads. `expected` is its number, if that is known from
/// elsewhere: a guess that only says where to look first.
///
/// # Errors
/// Only if the medium itself cannot be read; without a result this is no volume.
pub fn find(nand: &mut dyn Nand, expected: Option<u32>) -> Result<Option<Found>> {
    let shape = nand.geometry();
    let mut heads = Vec::new();
    for block in 0..Layout::superblock_blocks(&shape) {
        match read_superblock(nand, block, 0)? {
            Ok(found) => heads.push((found.superblock.generation.get(), block, Some(found))),
            // The first page may be unreadable while later ones are not.
            Err(PageFault::Erased) => {}
            Err(_) => heads.push((u32::MAX, block, None)),
        }
    }
    // Blocks are filled in turn, so the youngest readable one holds the newest superblock.
    heads.sort_unstable_by_key(|(generation, block, _)| (*generation, *block));
    for (_, block, head) in heads.into_iter().rev() {
        let (mut last, found) = last_programmed(nand, block, head, expected)?;
        if found.is_some() {
            return Ok(found);
        }
        while let Some(page) = last {
            if let Ok(found) = read_superblock(nand, block, page)? {
                return Ok(Some(found));
            }
            last = page.checked_sub(1);
        }
    }
    Ok(None)
}

/// The last page of `block` that is not erased, and the superblock on it if it was read on the way: pages are
/// programmed in order. `head` is what its first page holds, which is not erased.
fn last_programmed(
    nand: &mut dyn Nand,
    block: u32,
    head: Option<Found>,
    expected: Option<u32>,
) -> Result<(Option<u32>, Option<Found>)> {
    let (mut low, mut high) = (1, nand.geometry().pages_per_block);
    let first = match (&head, expected) {
        // Numbers ascend by one from page to page. The page behind the last one is erased.
        (Some(head), Some(expected)) => {
            let page = expected.wrapping_sub(head.superblock.generation.get());
            [page.wrapping_add(1), page, page.wrapping_sub(1)]
        }
        // A clean volume has its newest superblock in the first two pages.
        (Some(head), None) if head.superblock.clean == 0 => [0; 3],
        _ => [2, 0, 0],
    };
    let mut first = first.into_iter();
    // A first page is to be read once more: a cut may have left it readable just once, and where there are two blocks the
    // next superblock takes the place of those before it.
    let mut newest = None;
    while low < high {
        let page = first.find(|page| (low..high).contains(page)).unwrap_or(low + (high - low) / 2);
        match read_superblock(nand, block, page)? {
            Err(PageFault::Erased) => high = page,
            found => (low, newest) = (page + 1, found.ok()),
        }
    }
    Ok((Some(low - 1), newest))
}

fn read_superblock(nand: &mut dyn Nand, block: u32, page: u32) -> Result<core::result::Result<Found, PageFault>> {
    let shape = nand.geometry();
    let address = PageAddress(shape.first_page(BlockAddress(block)).0 + u64::from(page));
    let in_spare = Layout::trailer_in_spare(&shape);
    let mut data = vec![0; shape.page_bytes as usize];
    let mut spare = vec![0; if in_spare { shape.spare_bytes as usize } else { 0 }];
    match nand.read(address, &mut data, &mut spare, IoTag::Anchor) {
        Ok(()) => {}
        Err(error) if error.kind == onode_media::MediaErrorKind::Uncorrectable => return Ok(Err(PageFault::Checksum)),
        Err(error) => return Err(crate::errors::from_media("read superblock", &error)),
    }
    if data.iter().chain(&spare).all(|&byte| byte == 0xff) {
        return Ok(Err(PageFault::Erased));
    }
    let (payload, rest) = data.split_at(Layout::payload_bytes(&shape) as usize);
    let trailer = if in_spare { &spare[..] } else { rest };
    // The checksum is seeded with the uuid, which only the superblock itself tells.
    let Some((superblock, pieces, deferred)) = parse_superblock(payload) else { return Ok(Err(PageFault::Checksum)) };
    let seed = page::volume_seed(&superblock.uuid);
    let info = match page::verify(seed, address, None, trailer, payload) {
        Ok(info) => info,
        Err(fault) => return Ok(Err(fault)),
    };
    let sound = info.kind == PageKind::Superblock && info.sequence == superblock.generation.get();
    Ok(if sound { Ok(Found { superblock, pieces, deferred, block }) } else { Err(PageFault::Checksum) })
}

/// A superblock and its references, to the segment table and to deferred changes, from the bytes of one.
pub fn parse_superblock(bytes: &[u8]) -> Option<(Superblock, Vec<BlobReference>, Option<BlobReference>)> {
    let (superblock, after) = Superblock::read_from_prefix(bytes).ok()?;
    let (pieces, deferred) = superblock.references(after)?;
    (superblock.magic == SUPERBLOCK_MAGIC).then_some((superblock, pieces, deferred))
}

/// Checks that this code can use the volume and that the medium has its shape.
///
/// # Errors
/// `Invalid` for another format or shape, `Corrupt` for fields that make no sense.
pub fn check_superblock(found: &Found, nand: &dyn Nand) -> Result<Layout> {
    let superblock = &found.superblock;
    if superblock.major.get() != FORMAT_MAJOR || superblock.incompatible.get() & !FEATURES_KNOWN != 0 {
        let detail = format!(
            "the volume has flash format {}.{} with features {:#x}; this program knows format {FORMAT_MAJOR}",
            superblock.major.get(),
            superblock.minor.get(),
            superblock.incompatible.get()
        );
        return Err(Error::new(ErrorKind::NotSupported, detail));
    }
    let shape = nand.geometry();
    let stored = (superblock.page_bytes.get(), superblock.pages_per_block.get(), superblock.blocks.get());
    if stored != (shape.page_bytes, shape.pages_per_block, shape.blocks)
        || u32::from(superblock.chips.get()) != shape.chips
    {
        let detail = format!("the volume was made for pages, block and size {stored:?}, the medium is {shape:?}");
        return Err(Error::new(ErrorKind::Invalid, detail));
    }
    let mut layout = Layout::new(shape, superblock.blocks_per_segment.get())?;
    if superblock.incompatible.get() & FEATURE_COMPACT_RECORDS != 0 {
        layout = layout.with_records_in_spare();
    }
    let journal_sound =
        superblock.journal_segment.get() < layout.segments && superblock.journal_page.get() <= layout.segment_pages;
    if found.pieces.len() != SegmentTable::piece_count(&layout)
        || superblock.root_level > crate::tree::Tree::MAX_LEVEL
        || !journal_sound
        || !numbers_are_possible(superblock, &layout)
        || superblock.journal_next_segment.get() >= layout.segments
    {
        return Err(damaged(format!("superblock {} makes no sense", superblock.generation.get())));
    }
    Ok(layout)
}

/// Whether the counters of a superblock are ones that a volume can reach, with room to count on.
pub fn numbers_are_possible(superblock: &Superblock, layout: &Layout) -> bool {
    let bytes = u64::from(layout.segments) * layout.segment_bytes();
    // An object takes more than one byte of a node, an extent has at least one byte.
    superblock.objects.get() <= bytes
        && superblock.extents.get() <= bytes
        && superblock.next_object.get() < ObjectId::FIRST_OF_DEVICE.0
        && superblock.transaction.get() < 1 << 62
        && superblock.next_sequence.get() < LAST_SEQUENCE
        && superblock.generation.get() < LAST_SEQUENCE
        && superblock.checkpoint_generation.get() <= superblock.generation.get()
}

/// Sequence numbers and generations end here: a session may still count on for a while.
const LAST_SEQUENCE: u32 = 0xf000_0000;

#[cfg(test)]
mod tests;

//! Superblocks in turn: where the next ones go and which one counts.
//!
//! Each superblock is written twice, first at the start of the medium, then at its end, so that
//! what destroys one end leaves the other. At each end superblocks fill erase blocks page by page,
//! block after block. A block is erased right before its first page is programmed, and a session
//! never goes on in a block of an earlier session, because its next page may have been hit by a
//! cut. The newest superblock found by a mount may itself be such a page, readable now and not the
//! next time. So the first write of every session repeats it.
//!
//! It keeps true: the block with the newest superblock of an end is not erased before that
//! superblock, or a newer one, is at the other end. Tiny media and volumes of before have one end.

use crate::core::Core;
use crate::medium::format::{
    FEATURE_BUFFERED, FEATURE_DEFERRED, FEATURE_SAVED_PAGES, FORMAT_MAJOR, FORMAT_MINOR, PageKind, SUPERBLOCK_MAGIC,
    Superblock,
};
use crate::medium::layout::{End, Layout};
use crate::medium::page::{self, PageInfo};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::{BlockAddress, IoTag, PageAddress};
use onode_object::{Error, Result};
use zerocopy::IntoBytes;

mod find;
mod saved;
mod sound;
#[cfg(test)]
mod tests;

pub use find::{Found, blocks_of, find, find_all, parse_superblock};
pub use saved::{SavedPages, is_copy};
pub use sound::{check_superblock, numbers_are_possible};

/// State of the superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Those at the start and at the end.
    turns: [Turn; 2],
    /// Number of the newest one.
    pub generation: u32,
    /// Generation of the first superblock of its checkpoint.
    pub checkpoint_generation: u32,
    /// It says that the memory beside the flash may have commits that the flash lacks.
    pub buffered: bool,
}

/// The newest superblock at one end of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its block; [`u32::MAX`] if none is known.
    pub block: u32,
    /// Page after it, if this session may go on in that block.
    next_page: Option<u32>,
    /// Its generation, 0 if none is known.
    pub generation: u32,
}

impl Turn {
    /// No superblock is known.
    pub const NONE: Self = Self { block: u32::MAX, next_page: None, generation: 0 };

    /// Block and page for the next superblock, if it does not begin a block.
    pub const fn goes_on(&self) -> Option<(u32, u32)> {
        match self.next_page {
            Some(page) => Some((self.block, page)),
            None => None,
        }
    }

    /// One of an earlier session.
    pub const fn found(block: u32, generation: u32) -> Self {
        Self { block, next_page: None, generation }
    }
}

impl Ring {
    /// The state of a new volume.
    pub const fn fresh() -> Self {
        Self { turns: [Turn::NONE; 2], generation: 0, checkpoint_generation: 1, buffered: false }
    }

    /// The newest superblock on the medium is `found`, whatever was known before.
    pub const fn stands_at(&mut self, found: &Found) {
        self.turns = found.turns;
        self.generation = found.superblock.generation.get();
    }

    /// The state after a mount found `found`.
    pub const fn after_mount(found: &Found) -> Self {
        let superblock = &found.superblock;
        Self {
            turns: found.turns,
            generation: superblock.generation.get(),
            checkpoint_generation: superblock.checkpoint_generation.get(),
            buffered: found.is_buffered(),
        }
    }

    /// The next superblock at this end begins a block.
    const fn end_block(&mut self, end: End) {
        self.turns[end as usize].next_page = None;
    }

    /// The newest superblock at one end.
    pub const fn turn(&self, end: End) -> &Turn {
        &self.turns[end as usize]
    }

    /// Whether the newest superblock stands at that end.
    pub const fn is_at(&self, end: End) -> bool {
        let turn = self.turn(end);
        turn.block != u32::MAX && turn.generation == self.generation
    }
}

impl Core {
    /// Writes a superblock of the present checkpoint. `first` says that the checkpoint is a new
    /// one.
    pub fn write_superblock(&mut self, first: bool) -> Result<()> {
        let layout = self.log.store.layout;
        let mut failed: Vec<u32> = Vec::new();
        // That of a clean volume starts a block, where a mount finds it with few reads.
        if first && self.checkpoint_state.clean {
            self.ring.turns.iter_mut().for_each(|turn| turn.next_page = None);
        }
        let mut generation = self.ring.generation;
        let mut changes_wait = first;
        let mut written: Option<Vec<u8>> = None;
        // Where one block is left at the start, it can be erased when the end has the new one.
        for end in [End::Start, End::Far, End::Start] {
            if written.is_some() && self.ring.is_at(end) {
                continue;
            }
            // A few rounds: a block whose program failed once may take the next one.
            let mut steps = 1..=3 * layout.superblocks.in_use() as u32;
            while let Some((block, page)) = self.next_place(end, written.is_some(), &mut steps, &mut failed)? {
                if written.is_none() {
                    // A page whose program failed may yet be readable: the next attempt has a
                    // number of its own.
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
                    self.ring.buffered = self.buffers_writes() && !self.closes(first);
                }
                let is_copy = written.is_some();
                let bytes = written.take().unwrap_or_else(|| self.encode_superblock(generation));
                if self.program_superblock(block, page, generation, &bytes)? {
                    self.ring.generation = generation;
                    self.ring.turns[end as usize] = Turn { block, next_page: Some(page + 1), generation };
                    written = Some(bytes);
                    break;
                }
                failed.push(block);
                self.ring.turns[end as usize].next_page = None;
                written = is_copy.then_some(bytes);
            }
        }
        if written.is_none() {
            self.log.store.latch("no sound superblock block is left");
            return Err(Error::new(ErrorKind::Media, "no sound superblock block is left"));
        }
        self.log.store.flush()?;
        self.retire_superblock_blocks(&failed)
    }

    fn program_superblock(&mut self, block: u32, page: u32, generation: u32, bytes: &[u8]) -> Result<bool> {
        let layout = self.log.store.layout;
        let address = PageAddress(layout.geometry.first_page(BlockAddress(block)).0 + u64::from(page));
        let info = PageInfo {
            kind: PageKind::Superblock,
            record_bytes: 0,
            echo_bytes: 0,
            sequence: generation,
            spare_bytes: 0,
            flushed: false,
        };
        let (data, spare) = seal_page(&layout, self.log.store.seed(), address, info, bytes);
        self.log.store.try_program(|nand| nand.program(address, &data, &spare, IoTag::Anchor))
    }

    /// Whether nothing follows the superblock that is about to be written, `first` of its
    /// checkpoint or not.
    const fn closes(&self, first: bool) -> bool {
        self.checkpoint_state.clean && (first || self.clean)
    }

    /// Block and page for the next superblock at `end`; nothing if no block is left there. A block
    /// that is begun is erased; `steps` are the ones not tried yet, counted from the block with the
    /// newest superblock. Blocks that refuse are added to `failed`. `is_copy` says that the
    /// superblock stands at the other end already.
    fn next_place(
        &mut self,
        end: End,
        is_copy: bool,
        steps: &mut core::ops::RangeInclusive<u32>,
        failed: &mut Vec<u32>,
    ) -> Result<Option<(u32, u32)>> {
        let layout = self.log.store.layout;
        let turn = *self.ring.turn(end);
        if let Some(page) = turn.next_page
            && page < layout.geometry.pages_per_block
        {
            return Ok(Some((turn.block, page)));
        }
        let blocks = self.log.store.write("look for bad blocks", |nand| find::in_use(nand, layout.superblocks, end))?;
        let newest = blocks.iter().position(|&block| block == turn.block);
        if is_planted(Bug::NewestErased) && newest.is_some() && !is_copy {
            self.erase_newest()?;
            return Ok(Some((turn.block, 0)));
        }
        for step in steps.filter(|_| !blocks.is_empty()) {
            let at = newest.map_or(step as usize - 1, |newest| newest + step as usize) % blocks.len();
            let block = blocks[at];
            if block == turn.block && !self.ring.is_at(end.other()) {
                continue;
            }
            let address = BlockAddress(block);
            let bad = self.log.store.write("look for bad blocks", |nand| nand.is_bad(address))?;
            if bad {
                continue;
            }
            if is_copy {
                // That at the other end has to be there first.
                self.log.store.flush()?;
            }
            match self.log.store.nand().erase(address, IoTag::Anchor) {
                Ok(()) => return Ok(Some((block, 0))),
                Err(_) => failed.push(block),
            }
        }
        Ok(None)
    }

    /// Erases the newest superblock wherever it is: a planted bug.
    fn erase_newest(&mut self) -> Result<()> {
        for turn in self.ring.turns.into_iter().filter(|turn| turn.block != u32::MAX) {
            let erased = self.log.store.nand().erase(BlockAddress(turn.block), IoTag::Anchor);
            erased.map_err(|error| crate::medium::errors::from_media("erase superblocks", &error))?;
        }
        self.ring.turns.iter_mut().for_each(|turn| turn.next_page = None);
        Ok(())
    }

    /// Marks blocks bad in which a program or an erase failed, as long as two others are left:
    /// without two there can be no next superblock, and a block that fails now and then is better
    /// than none.
    fn retire_superblock_blocks(&mut self, failed: &[u32]) -> Result<()> {
        let superblocks = self.log.store.layout.superblocks;
        let turns = self.ring.turns;
        for &block in failed.iter().filter(|block| turns.iter().all(|turn| turn.block != **block)) {
            let mut sound = 0;
            for other in superblocks.all().filter(|other| *other != block) {
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
        let deferred = if checkpoint.references.deferred.is_some() { FEATURE_DEFERRED } else { 0 };
        let buffered = if self.ring.buffered { FEATURE_BUFFERED } else { 0 };
        let saved = if checkpoint.references.saved.is_empty() { 0 } else { FEATURE_SAVED_PAGES };
        let superblock = Superblock {
            magic: SUPERBLOCK_MAGIC,
            major: FORMAT_MAJOR.into(),
            minor: FORMAT_MINOR.into(),
            incompatible: (self.incompatible | deferred).into(),
            read_only_compatible: 0.into(),
            compatible: (self.policies.compatible() | buffered | saved).into(),
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
            table_pieces: (checkpoint.references.pieces.len() as u32).into(),
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
        bytes.extend_from_slice(&checkpoint.references.encode());
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

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
//!
//! It does not know what a superblock says.

use crate::medium::format::PageKind;
use crate::medium::layout::{End, Layout};
use crate::medium::page::{self, PageInfo};
use crate::medium::store::Store;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use onode_base::planted::{Bug, is_planted};
use onode_media::{BlockAddress, IoTag, Nand, PageAddress};
use onode_object::Result;
use zerocopy::IntoBytes;

mod copies;
mod find;
mod sound;
#[cfg(test)]
mod tests;

pub use find::{Found, blocks_of, find, find_all, parse_superblock};
pub use sound::{check_superblock, is_shape_of, numbers_are_possible};

/// State of the superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Those at the start and at the end.
    turns: [Turn; 2],
    /// Number of the newest one.
    generation: u32,
    /// Generation of the first superblock of its checkpoint.
    checkpoint_generation: u32,
    /// It says that the memory beside the flash may have commits that the flash lacks.
    buffered: bool,
}

/// The newest superblock at one end of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its block; [`u32::MAX`] if none is known.
    block: u32,
    /// Page after it, if this session may go on in that block.
    next_page: Option<u32>,
    /// Its generation, 0 if none is known.
    generation: u32,
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

    /// The far end is another one: there is no superblock yet.
    pub const fn forget_far(&mut self) {
        self.turns[End::Far as usize] = Turn::NONE;
    }

    /// Number of the newest superblock.
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Number of the first superblock of its checkpoint.
    pub const fn checkpoint_generation(&self) -> u32 {
        self.checkpoint_generation
    }

    /// A new checkpoint begins with the superblock of this number.
    pub const fn begin_checkpoint(&mut self, generation: u32) {
        self.checkpoint_generation = generation;
    }

    /// Whether the newest superblock says that the memory beside the flash may have commits that
    /// the flash lacks.
    pub const fn is_buffered(&self) -> bool {
        self.buffered
    }

    /// Whether superblocks say so from now on.
    pub const fn set_buffered(&mut self, buffered: bool) {
        self.buffered = buffered;
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

/// Where a superblock goes.
pub struct SuperblockPlace {
    end: End,
    block: u32,
    page: u32,
}

/// What was tried to write a superblock at one end.
pub struct Attempt {
    /// Blocks that were not tried yet, counted from the one with the newest superblock.
    steps: RangeInclusive<u32>,
    /// Those that refused.
    failed: Vec<u32>,
}

impl Attempt {
    /// A few rounds: a block whose program failed once may take the next one.
    pub fn new(store: &Store) -> Self {
        Self { steps: 1..=3 * store.layout().superblocks.in_use() as u32, failed: Vec::new() }
    }

    /// A program failed in this block.
    pub fn note_failed(&mut self, place: &SuperblockPlace) {
        self.failed.push(place.block);
    }

    /// The blocks that refused.
    pub fn failed(self) -> Vec<u32> {
        self.failed
    }
}

impl Ring {
    /// The next superblock at each end begins a block.
    pub fn end_blocks(&mut self) {
        self.turns.iter_mut().for_each(|turn| turn.next_page = None);
    }

    /// Programs the superblock with the number `generation` at a place of `end`; false if its block
    /// refuses, which then is one of `failed`.
    pub fn program(
        &mut self,
        store: &mut Store,
        place: &SuperblockPlace,
        generation: u32,
        bytes: &[u8],
    ) -> Result<bool> {
        let layout = *store.layout();
        let &SuperblockPlace { end, block, page } = place;
        let address = PageAddress(layout.geometry.first_page(BlockAddress(block)).0 + u64::from(page));
        let info = PageInfo {
            kind: PageKind::Superblock,
            record_bytes: 0,
            echo_bytes: 0,
            sequence: generation,
            spare_bytes: 0,
            flushed: false,
        };
        let (data, spare) = seal_page(&layout, store.seed(), address, info, bytes);
        let is_programmed = store.try_program(|nand| nand.program(address, &data, &spare, IoTag::Anchor))?;
        if is_programmed {
            self.generation = generation;
            self.turns[end as usize] = Turn { block, next_page: Some(page + 1), generation };
        } else {
            self.end_block(end);
        }
        Ok(is_programmed)
    }

    /// Block and page for the next superblock at `end`; nothing if no block is left there. A block
    /// that is begun is erased. `is_copy` says that the superblock stands at the other end already.
    pub fn next_place(
        &mut self,
        store: &mut Store,
        end: End,
        is_copy: bool,
        attempt: &mut Attempt,
    ) -> Result<Option<SuperblockPlace>> {
        let layout = *store.layout();
        let turn = *self.turn(end);
        let at = |block: u32, page: u32| Some(SuperblockPlace { end, block, page });
        if let Some(page) = turn.next_page
            && page < layout.geometry.pages_per_block
        {
            return Ok(at(turn.block, page));
        }
        let blocks = store.write("look for bad blocks", |nand| find::in_use(nand, layout.superblocks, end))?;
        let newest = blocks.iter().position(|&block| block == turn.block);
        if is_planted(Bug::NewestErased) && newest.is_some() && !is_copy {
            self.erase_newest(store)?;
            return Ok(at(turn.block, 0));
        }
        for step in attempt.steps.by_ref().filter(|_| !blocks.is_empty()) {
            let turn_of = newest.map_or(step as usize - 1, |newest| newest + step as usize) % blocks.len();
            let block = blocks[turn_of];
            if block == turn.block && !self.is_at(end.other()) {
                continue;
            }
            let address = BlockAddress(block);
            let bad = store.write("look for bad blocks", |nand| nand.is_bad(address))?;
            if bad {
                continue;
            }
            if is_copy {
                // That at the other end has to be there first.
                store.flush()?;
            }
            match store.nand().erase(address, IoTag::Anchor) {
                Ok(()) => return Ok(at(block, 0)),
                Err(_) => attempt.failed.push(block),
            }
        }
        Ok(None)
    }

    /// Erases the newest superblock wherever it is: a planted bug.
    fn erase_newest(&mut self, store: &mut Store) -> Result<()> {
        for turn in self.turns.into_iter().filter(|turn| turn.block != u32::MAX) {
            let erased = store.nand().erase(BlockAddress(turn.block), IoTag::Anchor);
            erased.map_err(|error| crate::medium::errors::from_media("erase superblocks", &error))?;
        }
        self.turns.iter_mut().for_each(|turn| turn.next_page = None);
        Ok(())
    }

    /// Marks blocks bad in which a program or an erase failed, as long as two others are left:
    /// without two there can be no next superblock, and a block that fails now and then is better
    /// than none.
    pub fn retire(&self, store: &mut Store, failed: &[u32]) -> Result<()> {
        let superblocks = store.layout().superblocks;
        for &block in failed.iter().filter(|block| self.turns.iter().all(|turn| turn.block != **block)) {
            let mut sound = 0;
            for other in superblocks.all().filter(|other| *other != block) {
                let bad = store.write("look for bad blocks", |nand| nand.is_bad(BlockAddress(other)))?;
                sound += u32::from(!bad);
            }
            if sound >= 2 {
                store.write("mark bad block", |nand| nand.mark_bad(BlockAddress(block)))?;
            }
        }
        Ok(())
    }
}

/// Erases a block in which superblocks stand or stood. One that refuses is bad.
///
/// # Errors
/// If the medium itself fails.
pub fn clear_block(nand: &mut dyn Nand, block: u32) -> onode_media::Result<()> {
    let block = BlockAddress(block);
    if !nand.is_bad(block)? && nand.erase(block, IoTag::Anchor).is_err() {
        nand.mark_bad(block)?;
    }
    Ok(())
}

/// A page with its trailer, ready to be programmed: data and spare.
fn seal_page(layout: &Layout, seed: u32, address: PageAddress, info: PageInfo, payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut data = vec![0; layout.geometry.page_bytes as usize];
    data[..payload.len()].copy_from_slice(payload);
    let size = Layout::payload_bytes(&layout.geometry) as usize;
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

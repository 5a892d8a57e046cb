//! A log ring: records one behind the other in whole blocks, none across the end.
//!
//! A record that does not fit before the end stands at the beginning, and a ring may leave a gap
//! behind what was waited for. What lies behind the last checkpoint is never overwritten. Records
//! are appended in memory and written in one request as far as they lie in a row.

use crate::log::record::{self, HEADER_BYTES, Header, Seal};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use crate::medium::superblock::Mark;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};

/// One disk's ring.
#[derive(Debug, Default)]
pub struct Ring {
    /// The first block.
    first: u64,
    /// Blocks in it.
    blocks: u64,
    /// Blocks left out behind what was waited for.
    gap: u64,
    /// The gap is to be left out before the next record.
    is_gap_due: bool,
    position: u64,
    used: u64,
    /// Of these, blocks that a checkpoint under way sets free.
    leaving: u64,
    /// Records are left out here until the next checkpoint: only the other disk has them.
    is_behind: bool,
    /// What is still to be written: the offset on the disk and the bytes.
    backlog: Vec<(u64, Vec<u8>)>,
    /// Of this, requests that a checkpoint under way makes needless.
    needless: usize,
    newest: Mark,
    /// The last record that was durable here, and where it stands.
    durable: Mark,
}

impl Ring {
    /// The ring of `blocks` from `first` on; the next record stands at `position`. Behind what was
    /// waited for `gap` blocks are left out.
    #[must_use]
    pub fn new(first: u64, blocks: u64, position: u64, gap: u64) -> Self {
        Self { first, blocks, gap, position, ..Self::default() }
    }

    /// The ring of a disk that joins again, of whose earlier records `durable` is the last: the
    /// next one stands at a multiple of `stripe`, at `position` or behind it.
    #[must_use]
    pub fn rejoined(first: u64, blocks: u64, position: u64, durable: Mark, stripe: u64) -> Self {
        let mut ring = Self { durable, ..Self::new(first, blocks, position, 0) };
        ring.align(stripe);
        ring.mark();
        ring.release();
        ring
    }

    /// The last record that was durable here, and where it stands.
    #[must_use]
    pub const fn durable(&self) -> Mark {
        self.durable
    }

    /// Whether half of it is used.
    #[must_use]
    pub const fn is_half_full(&self) -> bool {
        self.used() * 2 >= self.blocks
    }

    /// Whether a record of `blocks` fits into it and is no more than half of it.
    #[must_use]
    pub const fn takes(&self, blocks: u64) -> bool {
        blocks * 2 <= self.blocks && self.fits(blocks)
    }

    /// Where the next record stands.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Blocks between the checkpoint, be it under way, and the next record.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used - self.leaving
    }

    /// Bytes not written yet.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.backlog.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// The next record stands at a multiple of `blocks`, counted from the start of the disk.
    pub const fn align(&mut self, blocks: u64) {
        let next = (self.first + self.position).next_multiple_of(blocks) - self.first;
        let is_inside = next < self.blocks;
        self.used += if is_inside { next } else { self.blocks } - self.position;
        self.position = if is_inside { next } else { 0 };
    }

    /// Whether there is room for a record of `blocks`.
    #[must_use]
    pub const fn fits(&self, blocks: u64) -> bool {
        self.used + self.skipped(blocks) + blocks <= self.blocks
    }

    /// Blocks left out before a record of `blocks`.
    const fn skipped(&self, blocks: u64) -> u64 {
        let gap = if self.is_gap_due { self.gap } else { 0 };
        if self.position + gap + blocks <= self.blocks {
            gap
        } else if self.position + blocks > self.blocks || gap > 0 {
            self.blocks - self.position
        } else {
            0
        }
    }

    /// Whether records are left out until the next checkpoint.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Leaves out what is not written yet, and all that comes until the next checkpoint.
    pub fn skip_until_checkpoint(&mut self) {
        self.is_behind = true;
        self.backlog.truncate(self.needless);
    }

    /// Blocks that are free, those left out for the stripe or at the end not counted.
    #[must_use]
    pub const fn room(&self) -> u64 {
        self.blocks.saturating_sub(self.used)
    }

    /// Appends a record that fits; returns its first byte on the disk.
    pub fn append(&mut self, bytes: &[u8], sequence: u64, crc: u32) -> u64 {
        let blocks = bytes.len() as u64 / BLOCK;
        let skipped = self.skipped(blocks);
        self.used += skipped;
        self.position = (self.position + skipped) % self.blocks;
        self.is_gap_due = false;
        let offset = (self.first + self.position) * BLOCK;
        let is_needed = self.backlog.len() > self.needless;
        match self.backlog.last_mut() {
            Some((start, last)) if is_needed && *start + last.len() as u64 == offset => last.extend_from_slice(bytes),
            _ => self.backlog.push((offset, bytes.to_vec())),
        }
        self.newest = Mark { position: self.position, sequence, chain: crc };
        self.position += blocks;
        self.used += blocks;
        offset
    }

    /// What is to be written now.
    pub fn take_backlog(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.needless = 0;
        core::mem::take(&mut self.backlog)
    }

    /// The newest record.
    #[must_use]
    pub const fn newest(&self) -> Mark {
        self.newest
    }

    /// All that was written up to `newest` is durable.
    pub const fn set_durable(&mut self, newest: Mark) {
        if newest.sequence > self.durable.sequence {
            self.durable = newest;
            self.is_gap_due = true;
        }
    }

    /// A checkpoint begins that has everything until now; returns where the next record stands.
    pub const fn mark(&mut self) -> u64 {
        (self.leaving, self.needless, self.is_behind) = (self.used, self.backlog.len(), false);
        self.position
    }

    /// That checkpoint is durable: nothing before it is needed any more.
    pub fn release(&mut self) {
        self.used -= core::mem::take(&mut self.leaving);
        self.backlog.drain(..core::mem::take(&mut self.needless));
    }
}

/// A record that was found. Its content stays on the disk until it is asked for: a log may be
/// larger than memory.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// What it says of itself.
    pub header: Header,
    /// Where it stands.
    pub position: u64,
    /// Where the next one stands, unless it had to go to the beginning.
    pub next: u64,
}

impl Found {
    /// Its content, from the ring that begins at `first`; `None` if that cannot be read as it was
    /// any more.
    pub fn payload(&self, first: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Option<Vec<u8>> {
        let mut bytes = vec![0; record::blocks_of(self.header.length as usize) as usize * BLOCK_BYTES];
        if !read(first + self.position, &mut bytes) {
            return None;
        }
        record::payload(&self.header, &bytes)?;
        bytes.truncate(HEADER_BYTES + self.header.length as usize);
        bytes.drain(..HEADER_BYTES);
        Some(bytes)
    }
}

/// Where a ring lies that is read, and what its records are like.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The first block.
    pub first: u64,
    /// Blocks in it.
    pub blocks: u64,
    /// Blocks that may be left out behind a record.
    pub gap: u64,
    /// Records begin at a multiple of it behind a checkpoint.
    pub stripe: u64,
    /// How its headers are checked by themselves.
    pub seal: Seal,
}

/// What records say of others: the last one that was durable on each disk when they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// On the fast disk.
    pub fast: u64,
    /// On the big disk.
    pub big: u64,
}

impl Claims {
    /// Adds what one record says.
    pub fn add(&mut self, header: &Header) {
        self.fast = self.fast.max(header.fast_durable);
        self.big = self.big.max(header.big_durable);
    }
}

/// Reads the records behind `from` as far as they are sound and follow each other. A block that
/// cannot be read ends them.
pub fn scan(area: &Area, from: Mark, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    let (mut at, mut before) = (from.position, from);
    let mut left = area.blocks;
    // Where records go on behind the mark of a checkpoint that was never finished.
    let aligned = |at: u64| (area.first + at).next_multiple_of(area.stripe.max(1)) - area.first;
    loop {
        let found = [at, at + area.gap, aligned(at), 0]
            .into_iter()
            .find_map(|position| read_record(area, position, before, read));
        let Some(found) = found else { return all };
        let length = if found.position >= at { found.next - at } else { found.next - found.position };
        if length > left {
            return all;
        }
        left -= length;
        at = found.next;
        before = Mark { position: found.position, sequence: found.header.sequence, chain: found.header.crc };
        all.push(found);
    }
}

/// What the records in the ring behind `newest` say, wherever they stand: something behind `newest`
/// was durable if one of them says so, and it is lost. A record may be torn, and so may those
/// before it that were written together with it; its header is enough, for it calls durable only
/// what a flush covered before it was made. Records of sessions before `session` are left from a
/// history that was given up.
pub fn claims_behind(area: &Area, newest: u64, session: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Claims {
    let mut claims = Claims::default();
    let mut bytes = vec![0; BLOCK_BYTES];
    for position in 0..area.blocks {
        if !read(area.first + position, &mut bytes) {
            continue;
        }
        let header = record::header(&bytes, area.seal).filter(|it| it.sequence > newest && it.session >= session);
        let Some(header) = header else { continue };
        let before = Mark { position: 0, sequence: header.sequence - 1, chain: header.chain };
        let is_believed = area.seal.is_there() && !is_planted(Bug::DamagedTierHeaderIgnored);
        if is_believed || read_record(area, position, before, read).is_some() {
            claims.add(&header);
        }
    }
    claims
}

/// Reads a ring block by block in large requests, and not all of it at once in memory.
pub struct Pieces<'a> {
    area: Area,
    first: u64,
    piece: Vec<u8>,
    read: &'a mut dyn FnMut(u64, &mut [u8]) -> bool,
}

impl<'a> Pieces<'a> {
    /// Blocks of the ring that are read at once.
    const BLOCKS: u64 = 256;

    /// Of the ring in `area`.
    pub fn new(area: &Area, read: &'a mut dyn FnMut(u64, &mut [u8]) -> bool) -> Self {
        Self { area: *area, first: area.first, piece: Vec::new(), read }
    }

    /// Reads blocks of it; false if they cannot be read.
    pub fn read(&mut self, block: u64, out: &mut [u8]) -> bool {
        let blocks = out.len() as u64 / BLOCK;
        if block < self.first || (block + blocks - self.first) * BLOCK > self.piece.len() as u64 {
            let end = self.area.first + self.area.blocks;
            let count = Self::BLOCKS.max(blocks).min(end.saturating_sub(block));
            self.first = block;
            self.piece = vec![0; (count * BLOCK) as usize];
            if !(self.read)(block, &mut self.piece) {
                self.piece.clear();
                // One block of it may be what cannot be read.
                return (self.read)(block, out);
            }
        }
        let from = ((block - self.first) * BLOCK) as usize;
        let found = self.piece.get(from..from + out.len());
        found.map(|bytes| out.copy_from_slice(bytes)).is_some()
    }
}

/// Whether that very record stands where it is said to. It may be one of an earlier format.
pub fn stands(area: &Area, mark: Mark, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> bool {
    let area = Area { seal: Seal::NONE, ..*area };
    let mut bytes = vec![0; BLOCK_BYTES];
    if mark.position >= area.blocks || !read(area.first + mark.position, &mut bytes) {
        return false;
    }
    let Some(header) = record::header(&bytes, area.seal) else { return false };
    let Some(before) = header.sequence.checked_sub(1) else { return false };
    let before = Mark { position: 0, sequence: before, chain: header.chain };
    let found = read_record(&area, mark.position, before, read);
    found.is_some_and(|found| found.header.sequence == mark.sequence && found.header.crc == mark.chain)
}

/// The record at a position, if it is the one that follows `before`.
fn read_record(
    area: &Area,
    position: u64,
    before: Mark,
    read: &mut dyn FnMut(u64, &mut [u8]) -> bool,
) -> Option<Found> {
    if position >= area.blocks {
        return None;
    }
    let mut bytes = vec![0; BLOCK_BYTES];
    if !read(area.first + position, &mut bytes) {
        return None;
    }
    let header = record::header(&bytes, area.seal)?;
    let length = record::blocks_of(header.length as usize);
    let follows = header.sequence == before.sequence.checked_add(1)? && header.chain == before.chain;
    if !follows || position + length > area.blocks {
        return None;
    }
    let is_sound = record::is_sound(&header, &bytes, &mut |block, out| read(area.first + position + block, out));
    is_sound.then_some(Found { header, position, next: position + length })
}

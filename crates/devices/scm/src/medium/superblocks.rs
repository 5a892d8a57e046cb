//! Which superblock counts: the newest of two that take turns, or, where they are damaged, a copy
//! far from both.

use crate::medium::errors::damaged;
use crate::medium::format::{
    FEATURE_COPY, FEATURE_EXCLUSIVE, FORMAT_VERSION, SMALLEST_BYTES, SUPERBLOCKS, Superblock, copy_at,
};
use onode_base::ErrorKind;
use onode_engine::{Copies, Fault};
use onode_media::Pmem;
use onode_object::{Error, Result};
use std::ops::Range;

/// Copies lie in pages of their own.
const PAGE_BYTES: u64 = 4096;

/// The superblock that counts.
pub(crate) struct FoundSuperblock {
    pub superblock: Superblock,
    /// Where one is damaged: the one that counts may be an older one, and the log knows better.
    pub damaged: Vec<u64>,
}

/// The superblock that counts, of a memory that is as long as it says.
pub(crate) fn find_superblock<P: Pmem + ?Sized>(memory: &P) -> Result<FoundSuperblock> {
    let found = newest_superblock(memory)?;
    if found.superblock.length > memory.length() {
        let (length, there) = (found.superblock.length, memory.length());
        return Err(damaged(format!("the device has {length} bytes, the memory only {there}: it was cut short")));
    }
    Ok(found)
}

/// Whether one process at a time uses the device on a memory and maps none of its objects.
///
/// # Errors
/// As mounting it.
pub fn is_exclusive<P: Pmem + ?Sized>(memory: &P) -> Result<bool> {
    Ok(newest_superblock(memory)?.superblock.features & FEATURE_EXCLUSIVE != 0)
}

/// Where the superblock of a generation lies: two take turns.
pub(crate) const fn slot_of(generation: u64) -> u64 {
    SUPERBLOCKS[(generation % 2) as usize]
}

/// Writes a superblock over the older one; durable after a fence.
pub(crate) fn store_superblock<P: Pmem + ?Sized>(memory: &P, superblock: &Superblock) {
    memory.write_through(slot_of(superblock.generation), &superblock.encode());
}

/// Writes the copy that lies far from both; durable after a fence.
pub(crate) fn store_copy<P: Pmem + ?Sized>(memory: &P, superblock: &Superblock) {
    if superblock.features & FEATURE_COPY != 0 {
        memory.write_through(copy_at(superblock.length), &superblock.encode());
    }
}

fn superblock_at<P: Pmem + ?Sized>(memory: &P, at: u64) -> std::result::Result<Superblock, Fault> {
    let mut bytes = [0; Superblock::BYTES];
    memory.read(at, &mut bytes);
    Superblock::decode(&bytes)
}

fn newest_superblock<P: Pmem + ?Sized>(memory: &P) -> Result<FoundSuperblock> {
    let nothing = || Error::new(ErrorKind::Invalid, "there is no device on this memory");
    if memory.length() < SMALLEST_BYTES {
        return Err(nothing());
    }
    let mut copies = Copies::default();
    for slot in SUPERBLOCKS {
        copies.add(slot, superblock_at(memory, slot));
    }
    let damaged_ones: Vec<u64> = copies.missing().collect();
    let last = copy_at(memory.length());
    if !damaged_ones.is_empty() && !copies.add(last, superblock_at(memory, last)) && copies.newest().is_none() {
        // The memory may have become longer since.
        let mut pages = (1..last / PAGE_BYTES).rev().map(|page| page * PAGE_BYTES);
        if let Some((at, superblock)) = pages.find_map(|at| Some((at, superblock_at(memory, at).ok()?))) {
            copies.add(at, Ok(superblock));
        }
    }
    if let Some(version) = copies.newer_format() {
        let detail = format!("the device has format {version}, this program knows formats up to {FORMAT_VERSION}");
        return Err(Error::new(ErrorKind::NotSupported, detail));
    }
    let any_damaged = copies.any_damaged();
    match copies.into_newest() {
        Some((superblock, _)) => Ok(FoundSuperblock { superblock, damaged: damaged_ones }),
        None if any_damaged => Err(damaged("all superblocks are damaged")),
        None => Err(nothing()),
    }
}

/// A device whose place in a memory was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostDevice {
    /// Where it lies.
    pub place: Range<u64>,
    /// Its unique number.
    pub uuid: [u8; 16],
}

/// Looks for a device somewhere in a memory, by the copy of its superblock that is its last page.
pub fn find_device<P: Pmem + ?Sized>(memory: &P) -> Option<LostDevice> {
    let pages = (0..memory.length() / PAGE_BYTES).rev().map(|page| page * PAGE_BYTES);
    pages.into_iter().find_map(|at| {
        let superblock = superblock_at(memory, at).ok()?;
        let start = at.checked_sub(copy_at(superblock.length))?;
        let end = start.checked_add(superblock.length).filter(|end| *end <= memory.length())?;
        let is_copy = superblock.features & FEATURE_COPY != 0 && superblock.length >= SMALLEST_BYTES;
        is_copy.then_some(LostDevice { place: start..end, uuid: superblock.uuid })
    })
}

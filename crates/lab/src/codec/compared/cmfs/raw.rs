//! The records as bytes, field after field as Figure 3 has them, little-endian.

use super::{Block, BlockState, Device, Object, ValidityMarker};

/// Bytes of an object without pages.
pub const OBJECT_BYTES: usize = 24;
/// Bytes of a part of the page table: its place and sixteen pages.
pub const PAT_BYTES: usize = 36;
/// Bytes of the partition information.
pub const PARTITION_BYTES: usize = 40;
/// Bytes of a block.
const BLOCK_BYTES: usize = 8;
/// Pages of a part of the page table. Page 0 of a file is entry 1 of the first: entry 0 is not
/// used.
pub(super) const LEAF_PAGES: usize = 16;
const STRUCT_OBJECT: u32 = 1;
const STATES: [BlockState; 3] = [BlockState::Empty, BlockState::Allocating, BlockState::Full];

/// A part of the page table: its number and its entries.
pub(super) type Leaf = (u32, [u16; LEAF_PAGES]);

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

impl ValidityMarker {
    /// Its eight bytes.
    pub fn encode(self) -> [u8; 8] {
        let mut out = [0; 8];
        out[0] = u8::from(self.records);
        out[4] = u8::from(self.data);
        out
    }

    /// The marker; `None` if the bytes are none.
    pub fn decode(bytes: [u8; 8]) -> Option<Self> {
        match bytes {
            [records @ 0..=1, 0, 0, 0, data @ 0..=1, 0, 0, 0] => Some(Self { records: records == 1, data: data == 1 }),
            _ => None,
        }
    }
}

impl Device {
    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PARTITION_BYTES + BLOCK_BYTES * self.blocks.len());
        for field in self.partition {
            out.extend_from_slice(&field.to_le_bytes());
        }
        for block in &self.blocks {
            let state = STATES.iter().position(|&state| state == block.state).unwrap_or(0) as u32;
            let counts = u32::from(block.soft_deletions & 0x3ff) | u32::from(block.pages_in_use & 0x3ff) << 10;
            out.extend_from_slice(&(counts | state << 20).to_le_bytes());
            out.extend_from_slice(&block.sequence.to_le_bytes());
        }
        out
    }

    /// The device; `None` if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut device = Self::default();
        for (index, field) in device.partition.iter_mut().enumerate() {
            *field = word(bytes, index * 4)?;
        }
        for block in bytes.get(PARTITION_BYTES..)?.chunks(BLOCK_BYTES) {
            let (flags, sequence) = (word(block, 0)?, word(block, 4)?);
            if flags >> 24 != 0 {
                return None;
            }
            device.blocks.push(Block {
                state: *STATES.get((flags >> 20) as usize)?,
                pages_in_use: (flags >> 10 & 0x3ff) as u16,
                soft_deletions: (flags & 0x3ff) as u16,
                sequence,
            });
        }
        Some(device)
    }
}

impl Object {
    /// Bytes of the record.
    pub fn raw_bytes(&self) -> usize {
        OBJECT_BYTES + PAT_BYTES * self.leaves().map_or(0, |leaves| leaves.len())
    }

    /// The parts of the page table that have a page; `None` if a page number needs more than 16
    /// bits.
    pub(super) fn leaves(&self) -> Option<Vec<Leaf>> {
        let mut leaves: Vec<Leaf> = Vec::with_capacity(self.pages.len() / LEAF_PAGES + 1);
        for (index, &page) in (1usize..).zip(&self.pages) {
            let page = u16::try_from(page).ok()?;
            let number = u32::try_from(index / LEAF_PAGES).ok()?;
            if page == 0 {
                continue;
            }
            if leaves.last().is_none_or(|leaf| leaf.0 != number) {
                leaves.push((number, [0; LEAF_PAGES]));
            }
            if let Some((_, pages)) = leaves.last_mut() {
                pages[index % LEAF_PAGES] = page;
            }
        }
        Some(leaves)
    }

    /// The pages that such parts name, of a file of at most `pages_max` pages; `None` if they are
    /// not in order.
    pub(super) fn pages_of(leaves: &[Leaf], pages_max: usize) -> Option<Vec<u32>> {
        let mut pages = Vec::new();
        for (number, entries) in leaves {
            let first = usize::try_from(*number).ok()?.checked_mul(LEAF_PAGES)?;
            // The last page of the part before, counted from 1, is below.
            if first < pages.len() + usize::from(!pages.is_empty()) || first > pages_max || entries == &[0; LEAF_PAGES]
            {
                return None;
            }
            let used = entries.iter().rposition(|&page| page != 0)?;
            for (entry, &page) in entries.iter().enumerate().take(used + 1) {
                match (first + entry).checked_sub(1) {
                    None if page != 0 => return None,
                    None => {}
                    Some(index) => {
                        pages.resize(index, 0);
                        pages.push(u32::from(page));
                    }
                }
            }
        }
        Some(pages)
    }

    /// The first bytes of the record.
    pub(super) fn encode_fixed(&self) -> Option<[u8; OBJECT_BYTES]> {
        let mut out = [0; OBJECT_BYTES];
        let mapped = self.pages.iter().filter(|&&page| page != 0).count();
        let words = [STRUCT_OBJECT, self.id, self.parent, self.header];
        for (four, word) in out.chunks_exact_mut(4).zip(words) {
            four.copy_from_slice(&word.to_le_bytes());
        }
        out[16] = self.kind;
        out[18] = self.flags;
        out[19] = self.serial;
        out[20..].copy_from_slice(&u32::try_from(mapped).ok()?.to_le_bytes());
        (self.kind < 8 && self.flags < 64).then_some(out)
    }

    /// Takes the first bytes apart: an object without pages, and how many it should have.
    pub(super) fn decode_fixed(bytes: &[u8]) -> Option<(Self, u32)> {
        let &[kind, zero, flags, serial] = bytes.get(16..20)?.first_chunk()?;
        if word(bytes, 0)? != STRUCT_OBJECT || zero != 0 || kind >= 8 || flags >= 64 {
            return None;
        }
        let (id, parent, header) = (word(bytes, 4)?, word(bytes, 8)?, word(bytes, 12)?);
        Some((Self { id, parent, header, kind, flags, serial, pages: Vec::new() }, word(bytes, 20)?))
    }

    /// The record as bytes; `None` if it has a page beyond 16 bits or fields beyond theirs.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let leaves = self.leaves()?;
        let mut out = Vec::with_capacity(OBJECT_BYTES + PAT_BYTES * leaves.len());
        out.extend_from_slice(&self.encode_fixed()?);
        for (number, pages) in leaves {
            out.extend_from_slice(&number.to_le_bytes());
            for page in pages {
                out.extend_from_slice(&page.to_le_bytes());
            }
        }
        Some(out)
    }

    /// The object; `None` if the bytes are none or it has more than 65,536 pages.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut object, mapped) = Self::decode_fixed(bytes)?;
        let table = bytes.get(OBJECT_BYTES..)?;
        let mut leaves = Vec::with_capacity(table.len() / PAT_BYTES);
        for part in table.chunks(PAT_BYTES) {
            let (number, entries) = part.split_first_chunk::<4>()?;
            let mut leaf = (u32::from_le_bytes(*number), [0; LEAF_PAGES]);
            if entries.len() != 2 * LEAF_PAGES {
                return None;
            }
            for (page, pair) in leaf.1.iter_mut().zip(entries.chunks_exact(2)) {
                *page = pair.first_chunk().map(|pair| u16::from_le_bytes(*pair))?;
            }
            leaves.push(leaf);
        }
        object.pages = Self::pages_of(&leaves, 1 << 16)?;
        let found = object.pages.iter().filter(|&&page| page != 0).count();
        (u32::try_from(found) == Ok(mapped)).then_some(object)
    }
}

//! What a checkpoint is on the medium: a record that says where its pages lie.
//!
//! ```text
//! 0    magic            8
//! 8    format version   4
//! 12   checksum         4   crc32c of the rest of the record, from byte 16 on
//! 16   sequence         8   its own number
//! 24   parent           8   the record that it adds to; 0 for none: it names all pages
//! 32   pages            8   of the arena
//! 40   entries          8
//! 48   reserved        16   zeros
//! 64   entries         12 each: page 4, slot 4 (all ones: the page is zeros), crc32c of the page 4; in order of pages
//! ```
//! All numbers are little-endian. A record never changes.

use onode_base::checksum::crc32c;

const MAGIC: [u8; 8] = *b"ONODECKP";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 64;
const ENTRY_BYTES: usize = 12;

/// Where a page lies and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    pub slot: u32,
    pub crc: u32,
}

impl Saved {
    /// A page of zeros, which lies nowhere.
    pub(crate) const ZEROS: Self = Self { slot: u32::MAX, crc: 0 };

    pub(crate) const fn is_zeros(self) -> bool {
        self.slot == u32::MAX
    }
}

/// A record in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub sequence: u64,
    pub parent: u64,
    pub pages: u64,
    pub entries: Vec<(u32, Saved)>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

impl Record {
    /// Bytes of a record with so many entries.
    pub(crate) const fn bytes(entries: usize) -> usize {
        HEAD_BYTES + entries * ENTRY_BYTES
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::bytes(self.entries.len()));
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for number in [self.sequence, self.parent, self.pages, self.entries.len() as u64, 0, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (page, saved) in &self.entries {
            for number in [*page, saved.slot, saved.crc] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        let crc = crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The record in `bytes`, or what is wrong with them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let short = "it is cut short";
        if bytes.get(..8) != Some(&MAGIC) {
            return Err("it is no record of a checkpoint");
        }
        if word(bytes, 8) != Some(VERSION) {
            return Err("it has another format version");
        }
        let count = usize::try_from(long(bytes, 40).ok_or(short)?).map_err(|_| short)?;
        let body = count.checked_mul(ENTRY_BYTES).and_then(|body| body.checked_add(HEAD_BYTES)).ok_or(short)?;
        let bytes = bytes.get(..body).ok_or(short)?;
        if word(bytes, 12) != Some(crc32c(&bytes[16..])) {
            return Err("its checksum is wrong");
        }
        let pages = long(bytes, 32).ok_or(short)?;
        let mut entries = Vec::with_capacity(count);
        for entry in bytes[HEAD_BYTES..].chunks_exact(ENTRY_BYTES) {
            let (Some(page), Some(slot), Some(crc)) = (word(entry, 0), word(entry, 4), word(entry, 8)) else {
                return Err(short);
            };
            if u64::from(page) >= pages || entries.last().is_some_and(|(last, _)| *last >= page) {
                return Err("its pages are not in order");
            }
            entries.push((page, Saved { slot, crc }));
        }
        let (sequence, parent) = (long(bytes, 16).ok_or(short)?, long(bytes, 24).ok_or(short)?);
        if parent >= sequence {
            return Err("it comes before what it adds to");
        }
        Ok(Self { sequence, parent, pages, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_no_changed_byte_passes() {
        let entries = vec![(0, Saved { slot: 7, crc: 1 }), (5, Saved::ZEROS), (9, Saved { slot: 8, crc: 3 })];
        let record = Record { sequence: 4, parent: 2, pages: 10, entries };
        let bytes = record.encode();
        assert_eq!(bytes.len(), Record::bytes(3));
        assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Record::decode(&changed).is_err(), "byte {at}");
            assert!(Record::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn pages_out_of_order_or_outside_are_refused() {
        for pages in [vec![1, 1], vec![2, 1], vec![10]] {
            let entries = pages.into_iter().map(|page| (page, Saved::ZEROS)).collect();
            assert!(Record::decode(&Record { sequence: 4, parent: 0, pages: 10, entries }.encode()).is_err());
        }
    }
}

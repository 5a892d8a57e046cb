//! Snapshots of the map, in two slots in turn.
//!
//! A snapshot is a hint that ages: its entries are checked against the tree and the checksums on
//! the big disk before they count. What makes an old one harmless is that blocks given up after it
//! stay as they were until the next is durable.

use super::format::{Division, ENTRY_BYTES, MapEntry, SnapshotHead};
use super::map::Copy;
use super::{BLOCK, Fast};
use crate::medium::errors::from_media;
use crate::space::discard_queue::AT_ONCE;
use alloc::vec::Vec;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_media::blockdev::BlockDev;
use onode_media::tag::IoTag;
use onode_object::Result;

/// Bytes that are read or written at once.
const PIECE_BYTES: usize = 1 << 20;

impl Fast {
    /// Writes the map, makes it and all copies written so far durable, and frees what was given up
    /// before.
    ///
    /// # Errors
    /// `Media`: nothing was freed, and the fast disk should be given up.
    pub fn snapshot(&mut self) -> Result<()> {
        if !self.is_changed && !self.sections.iter().any(|section| section.has_given_up()) {
            return Ok(());
        }
        let mut entries = Vec::new();
        for (block, copy) in self.map.iter() {
            // What waits to be written is in the next one.
            if !self.collection.holds_any(copy.fast..copy.fast + u64::from(copy.blocks)) {
                let Copy { born, fast, object, pinned, placed, .. } = *copy;
                let section = self.sections.iter().find(|section| section.holds(fast, 1));
                let heat = section.map_or(0, |section| section.heat(block, placed).0);
                let blocks = copy.blocks as u16;
                MapEntry { block, born, fast, blocks, pinned, placed, heat, object }.encode(&mut entries);
            }
        }
        let head = SnapshotHead {
            own: self.superblock.own,
            sequence: self.snapshots + 1,
            entries: entries.len() as u64 / ENTRY_BYTES,
            crc: crc32c(&entries),
        };
        let mut bytes = head.encode();
        bytes.append(&mut entries);
        bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
        let division = &self.superblock.division;
        let slot = division.slot_first + (head.sequence % 2) * division.slot_blocks;
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let offset = slot * BLOCK + (number * PIECE_BYTES) as u64;
            self.disk
                .write_at(offset, piece, IoTag::Summary)
                .map_err(|error| from_media("writing the map of the fast disk", &error))?;
        }
        self.disk.flush().map_err(|error| from_media("flushing the map of the fast disk", &error))?;
        self.snapshots = head.sequence;
        self.counts.snapshot_blocks += bytes.len() as u64 / BLOCK;
        self.is_changed = false;
        self.sections.iter_mut().for_each(|section| section.release());
        self.discard(AT_ONCE);
        Ok(())
    }

    /// Tells the disk of blocks that nobody needs, in `most` requests at most, and returns how many
    /// there were. A disk that refuses is not told again.
    pub fn discard(&mut self, most: u32) -> u32 {
        let mut done = 0;
        for section in &mut self.sections {
            if !self.settings.discard {
                section.discards.forget();
            }
            while done < most
                && let Some((first, count)) = section.discards.take()
            {
                self.settings.discard &= self.disk.discard(first * BLOCK, count * BLOCK).is_ok();
                done += 1;
            }
        }
        done
    }

    /// Reads the newest sound snapshot into the map.
    ///
    /// # Errors
    /// `Media`, if the disk itself failed; a snapshot that cannot be read is as none.
    pub(super) fn read_snapshot(&mut self) -> Result<()> {
        let division = &self.superblock.division;
        let (first, blocks) = (division.slot_first, division.slot_blocks);
        let mut heads = Vec::new();
        for slot in [first, first + blocks] {
            let mut block = alloc::vec![0; BLOCK as usize];
            if self.disk.read_at(slot * BLOCK, &mut block, IoTag::Recovery).is_ok()
                && let Some(head) = SnapshotHead::decode(&block)
                && head.own == self.superblock.own
            {
                heads.push((head, slot));
            }
        }
        heads.sort_by_key(|(head, _)| core::cmp::Reverse(head.sequence));
        self.snapshots = heads.first().map_or(0, |(head, _)| head.sequence);
        for (head, slot) in heads {
            if let Some(bytes) = read_entries(self.disk.as_mut(), slot, &head, blocks) {
                // The next one goes to the other slot.
                self.snapshots = head.sequence;
                self.load(&bytes);
                return Ok(());
            }
            self.counts.snapshots_lost += 1;
        }
        Ok(())
    }

    /// Takes over entries as far as they can be true.
    fn load(&mut self, bytes: &[u8]) {
        let input = &mut &*bytes;
        while let Some(entry) = MapEntry::decode(input) {
            let blocks = u32::from(entry.blocks);
            let MapEntry { born, fast, object, pinned, placed, heat, .. } = entry;
            let copy = Copy { born, blocks, fast, object, pinned, placed, is_new: false };
            let number = self.sections.iter().position(|section| section.holds(fast, blocks));
            let is_possible = blocks > 0 && !self.map.overlaps(entry.block, &copy);
            let taken = number.filter(|_| is_possible).and_then(|number| self.sections.get_mut(number));
            let Some(section) = taken else {
                self.counts.entries_dropped += 1;
                continue;
            };
            if !section.take(fast, blocks) {
                self.counts.entries_dropped += 1;
                continue;
            }
            if pinned {
                section.pinned_blocks += u64::from(blocks);
            } else {
                section.policy(placed).insert_warm(entry.block, u64::from(blocks), heat);
            }
            self.tick += 1;
            self.map.insert(entry.block, copy);
        }
    }
}

/// Whether there is a map of the disk with that number.
pub fn has_map_of(disk: &mut dyn BlockDev, own: &[u8; 16], division: &Division) -> bool {
    [division.slot_first, division.slot_first + division.slot_blocks].into_iter().any(|slot| {
        let mut block = alloc::vec![0; BLOCK as usize];
        let is_read = disk.read_at(slot * BLOCK, &mut block, IoTag::Recovery).is_ok();
        SnapshotHead::decode(&block).is_some_and(|head| is_read && head.own == *own)
    })
}

/// The entries behind a head, if they are what it says.
fn read_entries(disk: &mut dyn BlockDev, slot: u64, head: &SnapshotHead, slot_blocks: u64) -> Option<Vec<u8>> {
    let bytes = head.entries.checked_mul(ENTRY_BYTES)?;
    if bytes > (slot_blocks - 1) * BLOCK {
        return None;
    }
    let mut entries = alloc::vec![0; bytes.next_multiple_of(BLOCK) as usize];
    for (number, piece) in entries.chunks_mut(PIECE_BYTES).enumerate() {
        let offset = (slot + 1) * BLOCK + (number * PIECE_BYTES) as u64;
        disk.read_at(offset, piece, IoTag::Recovery).ok()?;
    }
    entries.truncate(bytes as usize);
    let crc = entries.chunks(PIECE_BYTES).fold(0, crc32c_append);
    (crc == head.crc).then_some(entries)
}

//! Reads nodes of the tree, several at once when they are wanted one behind the other.
//!
//! A checkpoint writes the nodes that changed in the order of their keys, so the leaves of a file
//! that was written from front to back lie close together. Read one at a time they cost a hard disk
//! two seeks for every few MiB of content: there, and back to the content. So a node that lies a
//! little behind the one before is read with what follows it.

use crate::disks::Disks;
use crate::index::tree::ReadNodes;
use crate::medium::layout::{BLOCK, BLOCK_BYTES, Layout};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Error, ErrorKind, Result};

/// Blocks read at once: to transfer them takes a hard disk about an eighth of the time of a seek.
const AHEAD: u64 = 32;

/// A node that is lacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMiss {
    /// Its block.
    pub block: u64,
    /// Its checksum.
    pub crc: u32,
    /// Blocks that are read, with those behind it.
    pub count: u64,
    /// What the read counts as.
    pub tag: IoTag,
}

/// The walk has to begin anew.
#[must_use]
pub fn lacks() -> Error {
    Error::new(ErrorKind::Busy, "something has to be read first")
}

/// Reads nodes of the tree.
pub struct NodeReader {
    disks: Arc<Disks>,
    /// The division of the big disk.
    pub layout: Layout,
    /// What the reads count as.
    pub tag: IoTag,
    /// The block of the node before.
    before: u64,
    /// Where what was read ahead begins.
    first: u64,
    /// What was read ahead. It may be of another time than the reference to a node: only its
    /// checksum says that it is the node that is meant.
    ahead: Vec<u8>,
    /// A node that is not in memory is not read here: [`miss`](Self::miss) says what is lacking.
    pub can_miss: bool,
    /// What is lacking.
    pub miss: Option<NodeMiss>,
    /// A node that was lacking, and what was read of it.
    given: Option<(NodeMiss, Option<Vec<u8>>)>,
    /// A damaged node is written again from its copy on the fast disk, if there is a good one. The
    /// place need not change: what refers to the node says what it has to be.
    pub repairs: bool,
    /// Nodes that were.
    pub repaired: u64,
}

impl NodeReader {
    /// Reads nodes of a volume divided by `layout`; the reads count as `tag`.
    pub const fn new(disks: Arc<Disks>, layout: Layout, tag: IoTag) -> Self {
        let ahead = Vec::new();
        let (can_miss, miss, given, repairs, repaired) = (false, None, None, false, 0);
        Self { disks, layout, tag, before: 0, first: 0, ahead, can_miss, miss, given, repairs, repaired }
    }

    /// Memory for what was read ahead.
    pub const fn ram_bytes(&self) -> u64 {
        self.ahead.capacity() as u64
    }

    /// The node in `block`, if it is among what was read ahead.
    fn held(&self, block: u64, crc: u32) -> Option<Vec<u8>> {
        let from = usize::try_from(block.checked_sub(self.first)?).ok()?.checked_mul(BLOCK_BYTES)?;
        let bytes = self.ahead.get(from..from + BLOCK_BYTES)?;
        (crc32c(bytes) == crc).then(|| bytes.to_vec())
    }

    /// Blocks that are read ahead from `block` on.
    fn ahead_of(&self, block: u64) -> u64 {
        AHEAD.min(self.layout.blocks.saturating_sub(block))
    }

    /// What was lacking was read, or could not be.
    pub fn give(&mut self, miss: NodeMiss, bytes: Option<Vec<u8>>) {
        if miss.count == 1 {
            self.given = Some((miss, bytes));
            return;
        }
        (self.first, self.ahead) = (miss.block, bytes.unwrap_or_default());
        // Who wants more of it now begins where this was wanted.
        self.before = miss.block;
    }

    /// What was given of a node, if it was that which was lacking; and if it is that which is
    /// wanted.
    fn take_given(&mut self, block: u64, crc: u32) -> Option<Option<Vec<u8>>> {
        let (miss, bytes) = self.given.take()?;
        if is_planted(Bug::ManyTierNodeBelieved) {
            return Some(bytes);
        }
        (miss.block == block && miss.crc == crc).then(|| bytes.filter(|bytes| crc32c(bytes) == crc))
    }

    /// A node that was read and is not what it should be, or could not be read.
    fn rescue(&mut self, block: u64, crc: u32) -> Option<Vec<u8>> {
        if !self.repairs {
            return None;
        }
        let copy = self.disks.copy_of_node(block, crc)?;
        if self.disks.write(block, &copy, IoTag::Index).is_ok() {
            self.repaired += 1;
        }
        Some(copy)
    }

    /// Reads ahead from `block` on. What cannot be read is for whoever wants it to find out.
    fn read_ahead(&mut self, block: u64) {
        let count = self.ahead_of(block);
        self.first = block;
        self.ahead.resize((count * BLOCK) as usize, 0);
        if self.disks.read(block, &mut self.ahead, self.tag).is_err() {
            self.ahead.clear();
        }
    }
}

impl ReadNodes for NodeReader {
    fn read_node(&mut self, block: u64, crc: u32) -> Result<Vec<u8>> {
        let before = core::mem::replace(&mut self.before, block);
        if let Some(held) = self.held(block, crc) {
            return Ok(held);
        }
        // Not what was lacking, or damaged: only who reads it under the lock knows.
        let is_given = match self.take_given(block, crc) {
            Some(Some(bytes)) => return Ok(bytes),
            Some(None) => true,
            None => false,
        };
        let goes_on = !is_given && (before + 1..=before + AHEAD).contains(&block);
        if self.can_miss && !is_given {
            let count = if goes_on { self.ahead_of(block) } else { 1 };
            self.miss = Some(NodeMiss { block, crc, count, tag: self.tag });
            return Err(lacks());
        }
        if goes_on {
            self.read_ahead(block);
            if let Some(held) = self.held(block, crc) {
                return Ok(held);
            }
        }
        let mut bytes = vec![0; BLOCK_BYTES];
        let read = self.disks.read(block, &mut bytes, self.tag);
        let is_sound = read.is_ok() && (crc32c(&bytes) == crc || is_planted(Bug::DamagedTierNodeBelieved));
        if let Some(copy) = (!is_sound).then(|| self.rescue(block, crc)).flatten() {
            return Ok(copy);
        }
        read.map(|()| bytes)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::fast_disk::FastDisk;
    use alloc::boxed::Box;
    use onode_media::BlockDev;
    use onode_media::sim::disk::SimDisk;

    const BLOCKS: u64 = 4096;

    /// A disk whose every block holds what `content` makes of its number, and a reader of it.
    fn disk_and_reader() -> (SimDisk, NodeReader) {
        let bytes = BLOCKS * BLOCK;
        let mut disk = SimDisk::new("big", bytes);
        for block in 0..BLOCKS {
            disk.write_at(block * BLOCK, &content(block, 0), IoTag::Index).unwrap();
        }
        let disks = Disks::new(Box::new(disk.clone()), FastDisk::default(), None);
        let layout = Layout::new(bytes, None, None).unwrap();
        (disk, NodeReader::new(Arc::new(disks), layout, IoTag::Index))
    }

    fn content(block: u64, time: u64) -> Vec<u8> {
        [block, time].map(u64::to_le_bytes).concat().repeat(BLOCK_BYTES / 16)
    }

    /// Reads a node as the tree does: with the checksum of what it is to hold.
    fn read(reader: &mut NodeReader, block: u64, time: u64) -> Vec<u8> {
        let expected = content(block, time);
        let bytes = reader.read_node(block, crc32c(&expected)).unwrap();
        assert_eq!(bytes, expected, "block {block}");
        bytes
    }

    fn reads(disk: &SimDisk) -> u64 {
        disk.counters().unwrap().total().reads
    }

    #[test]
    fn nodes_one_behind_the_other_are_read_together() {
        let (disk, mut reader) = disk_and_reader();
        let before = reads(&disk);
        (1000..1320).for_each(|block| drop(read(&mut reader, block, 0)));
        assert_eq!(reads(&disk) - before, 1 + 319u64.div_ceil(AHEAD));
    }

    #[test]
    fn nodes_here_and_there_are_read_by_themselves() {
        let (disk, mut reader) = disk_and_reader();
        (1..20).for_each(|n| drop(read(&mut reader, 4000 - n * 40, 0)));
        assert_eq!((reads(&disk), reader.ram_bytes()), (19, 0));
    }

    #[test]
    fn what_was_read_ahead_is_not_taken_for_what_is_there_now() {
        let (mut disk, mut reader) = disk_and_reader();
        (1000..1002).for_each(|block| drop(read(&mut reader, block, 0)));
        disk.write_at(1005 * BLOCK, &content(1005, 1), IoTag::Index).unwrap();
        read(&mut reader, 1004, 0);
        read(&mut reader, 1005, 1);
    }

    #[test]
    fn an_unreadable_block_ahead_costs_no_node_before_it() {
        let (disk, mut reader) = disk_and_reader();
        disk.make_unreadable(1003 * BLOCK);
        (1000..1003).for_each(|block| drop(read(&mut reader, block, 0)));
        assert!(reader.read_node(1003, 0).is_err());
        read(&mut reader, 1004, 0);
    }

    #[test]
    fn the_end_of_the_disk_is_the_end_of_what_is_read_ahead() {
        let (_disk, mut reader) = disk_and_reader();
        (BLOCKS - 9..BLOCKS).for_each(|block| drop(read(&mut reader, block, 0)));
        assert!(reader.read_node(BLOCKS, 0).is_err());
    }
}

//! Write collection: content that has its place and waits until it fills a stripe.

use crate::medium::errors::from_media;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use onode_media::blockdev::{BlockDev, SECTOR_BYTES};
use onode_media::tag::IoTag;
use onode_object::Result;

/// Blocks that are not written yet, by their place.
#[derive(Default)]
pub(super) struct Collection {
    blocks: BTreeMap<u64, Box<[u8]>>,
    /// When the oldest of them came.
    since: u64,
    /// Batches written, and blocks in them.
    pub batches: u64,
    pub blocks_written: u64,
}

/// The longest write.
const MOST_BATCH_BLOCKS: usize = 1024;

impl Collection {
    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        (self.blocks.len() * SECTOR_BYTES) as u64
    }

    /// Whether anything came before `moment`.
    pub fn is_older_than(&self, moment: u64) -> bool {
        !self.blocks.is_empty() && self.since < moment
    }

    /// Puts content at its place.
    pub fn put(&mut self, fast: u64, data: &[u8], now: u64) {
        if self.blocks.is_empty() {
            self.since = now;
        }
        for (block, bytes) in (fast..).zip(data.chunks_exact(SECTOR_BYTES)) {
            self.blocks.insert(block, Box::from(bytes));
        }
    }

    /// Whether any of a range waits.
    pub fn holds_any(&self, range: Range<u64>) -> bool {
        self.blocks.range(range).next().is_some()
    }

    /// Reads what waits; false if not all of it does.
    pub fn read(&self, fast: u64, out: &mut [u8]) -> bool {
        (fast..).zip(out.chunks_exact_mut(SECTOR_BYTES)).all(|(block, out)| match self.blocks.get(&block) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                true
            }
            None => false,
        })
    }

    /// Writes all that waits and is not in `kept`, in the order of addresses and in few requests.
    ///
    /// # Errors
    /// `Media`; what was not written waits still.
    pub fn write(&mut self, disk: &mut dyn BlockDev, kept: &[Range<u64>]) -> Result<()> {
        let mut from = 0;
        while let Some(first) = self.blocks.range(from..).map(|(block, _)| *block).next() {
            if let Some(range) = kept.iter().find(|range| range.contains(&first)) {
                from = range.end;
                continue;
            }
            let mut batch: Vec<u8> = Vec::new();
            let mut next = first;
            while batch.len() < MOST_BATCH_BLOCKS * SECTOR_BYTES
                && !kept.iter().any(|range| range.contains(&next))
                && let Some(bytes) = self.blocks.get(&next)
            {
                batch.extend_from_slice(bytes);
                next += 1;
            }
            disk.write_at(first * SECTOR_BYTES as u64, &batch, IoTag::Data)
                .map_err(|error| from_media("writing copies to the fast disk", &error))?;
            self.batches += 1;
            self.blocks_written += next - first;
            for block in first..next {
                self.blocks.remove(&block);
            }
            from = next;
        }
        Ok(())
    }
}

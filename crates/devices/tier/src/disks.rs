//! The disks of a volume, each behind a lock of its own, so that one thread reads while another waits for a flush.

use crate::errors::from_media;
use crate::layout::{BLOCK, Layout};
use crate::slot::FastSlot;
use crate::tree::ReadNodes;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::sync::Mutex;
use onode_media::{BlockDev, IoTag};
use onode_object::Result;

/// The disks.
pub struct Disks {
    /// The big disk.
    pub big: Mutex<Box<dyn BlockDev>>,
    /// The fast disk.
    pub fast: Mutex<FastSlot>,
}

impl Disks {
    /// Reads blocks of the big disk.
    ///
    /// # Errors
    /// The medium's.
    pub fn read(&self, block: u64, out: &mut [u8], tag: IoTag) -> Result<()> {
        let read = self.big.lock().read_at(block * BLOCK, out, tag);
        read.map_err(|error| from_media("reading the big disk", &error))
    }

    /// Writes blocks of the big disk.
    ///
    /// # Errors
    /// The medium's.
    pub fn write(&self, block: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        let written = self.big.lock().write_at(block * BLOCK, bytes, tag);
        written.map_err(|error| from_media("writing the big disk", &error))
    }

    /// Waits until the big disk has made durable what was written.
    ///
    /// # Errors
    /// The medium's.
    pub fn flush(&self) -> Result<()> {
        self.big.lock().flush().map_err(|error| from_media("flushing the big disk", &error))
    }

    /// Writes single blocks, those that lie in a row in one request.
    ///
    /// # Errors
    /// The medium's.
    pub fn write_sorted(&self, mut blocks: Vec<(u64, Vec<u8>)>, tag: IoTag) -> Result<()> {
        const MOST_BYTES: usize = 1 << 20;
        blocks.sort_unstable_by_key(|(block, _)| *block);
        let mut run: Option<(u64, Vec<u8>)> = None;
        for (block, bytes) in blocks {
            match run.as_mut() {
                Some((first, all)) if *first + all.len() as u64 / BLOCK == block && all.len() < MOST_BYTES => {
                    all.extend_from_slice(&bytes);
                }
                _ => {
                    if let Some((first, all)) = run.replace((block, bytes)) {
                        self.write(first, &all, tag)?;
                    }
                }
            }
        }
        run.map_or(Ok(()), |(first, all)| self.write(first, &all, tag))
    }
}

/// Reads nodes of the tree.
pub struct NodeReader {
    /// From here.
    pub disks: Arc<Disks>,
    /// The division of the big disk.
    pub layout: Layout,
    /// What the reads count as.
    pub tag: IoTag,
}

impl ReadNodes for NodeReader {
    fn read_node(&mut self, block: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; BLOCK as usize];
        self.disks.read(block, &mut bytes, self.tag)?;
        Ok(bytes)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }
}

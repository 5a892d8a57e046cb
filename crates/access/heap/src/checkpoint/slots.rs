//! The saved pages of an arena: slots of one page in files whose content is one block each.
//!
//! A slot that a checkpoint refers to is never written to. Which ones those are is not noted
//! anywhere: it follows from the records, and is found by looking at them when the free slots are
//! used up.

use super::memory::PAGE_BYTES;
use super::record::Saved;
use crate::caller::owner;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::mapping::Mapping;
use onode_base::ErrorKind;
use onode_base::checksum::crc32c;
use onode_media::Pmem;

pub(crate) struct CheckpointSlots {
    heap: Heap,
    directory: Vec<u8>,
    segment_slots: usize,
    segments: Vec<Mapping>,
    /// The next to take comes last.
    free: Vec<u32>,
}

impl CheckpointSlots {
    /// The slots in `directory`, none of which is free so far.
    pub(crate) fn open(heap: &Heap, directory: &[u8], segment_bytes: usize) -> Result<Self> {
        let mut slots = Self {
            heap: heap.clone(),
            directory: directory.to_vec(),
            segment_slots: segment_bytes / PAGE_BYTES,
            segments: Vec::new(),
            free: Vec::new(),
        };
        loop {
            let mapping = match heap.map(&slots.path_of(slots.segments.len())) {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(slots),
                other => other?,
            };
            if mapping.len() != segment_bytes || mapping.is_stitched() {
                let why = format!("pages of a checkpoint are missing: a segment has {} bytes", mapping.len());
                return Err(Error::new(ErrorKind::Corrupt, why));
            }
            slots.segments.push(mapping);
        }
    }

    fn path_of(&self, segment: usize) -> Vec<u8> {
        [&self.directory[..], format!("/slots-{segment:06}").as_bytes()].concat()
    }

    pub(crate) const fn count(&self) -> usize {
        self.segments.len() * self.segment_slots
    }

    pub(crate) const fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Says which slots are free: those that `is_live` does not name.
    pub(crate) fn set_free(&mut self, is_live: &[bool]) {
        let slots = (0..self.count()).rev().filter(|slot| !is_live.get(*slot).copied().unwrap_or(false));
        self.free = slots.map(|slot| slot as u32).collect();
    }

    /// Adds a segment of free slots.
    pub(crate) fn grow(&mut self) -> Result<()> {
        let path = self.path_of(self.segments.len());
        let block = self.heap.allocate(self.segment_slots * PAGE_BYTES)?;
        // What is in it says nothing yet.
        let content = onode_fs::Block { address: block.address(), bytes: block.len() as u64, is_durable: true };
        let files = self.heap.files();
        let made = files
            .resolve_parent(&path)
            .and_then(|(parent, name)| files.publish(&owner(), parent, name, 0o600, content));
        made.map_err(|error| Error::of_files("cannot make room for a checkpoint", &error))?;
        block.leave();
        self.segments.push(self.heap.map(&path)?);
        let first = self.count() - self.segment_slots;
        let fresh = (first..self.count()).rev().map(|slot| slot as u32);
        self.free.splice(0..0, fresh);
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    fn address_of(&self, slot: u32) -> Result<u64> {
        let slot = slot as usize;
        let segment = self.segments.get(slot / self.segment_slots).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("a checkpoint names the saved page {slot}, which is not there"))
        })?;
        Ok(segment.address + (slot % self.segment_slots * PAGE_BYTES) as u64)
    }

    /// Writes a page to a slot; durable after a fence.
    pub(crate) fn write(&self, slot: u32, page: &[u8; PAGE_BYTES]) -> Result<()> {
        self.heap.shared().memory().write_through(self.address_of(slot)?, page);
        Ok(())
    }

    /// Makes the pages written so far durable.
    pub(crate) fn fence(&self) -> Result<()> {
        let fenced = self.heap.shared().memory().fence();
        fenced.map_err(|error| Error::new(ErrorKind::Media, format!("pages of a checkpoint are not durable: {error}")))
    }

    /// Reads a saved page as it is.
    pub(crate) fn read(&self, saved: Saved, page: &mut [u8; PAGE_BYTES]) -> Result<()> {
        if saved.is_zeros() {
            page.fill(0);
        } else {
            self.heap.shared().memory().read(self.address_of(saved.slot)?, page);
        }
        Ok(())
    }

    /// Reads a saved page; `Corrupt` if it is not what was saved.
    pub(crate) fn read_verified(&self, number: usize, saved: Saved, page: &mut [u8; PAGE_BYTES]) -> Result<()> {
        self.read(saved, page)?;
        if !saved.is_zeros() && crc32c(page) != saved.crc {
            let why = format!("page {number} of the checkpoint is damaged: its checksum is wrong");
            return Err(Error::new(ErrorKind::Corrupt, why));
        }
        Ok(())
    }
}

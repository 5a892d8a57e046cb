//! The memory beside the flash at checkpoints: it follows every superblock, takes syncs in its
//! write buffer, and is given up when it fails.
//!
//! It keeps true: the memory stands where the flash stands, or one superblock ahead; what its write
//! buffer alone has is put on the flash before the memory goes.

use super::Checkpoints;
use crate::index::Index;
use crate::index::bpram::{Bpram, Moment};
use crate::log::Log;
use crate::medium::errors::from_media;
use crate::policy::Stream;
use alloc::format;
use alloc::string::String;
use onode_object::Result;

/// Bytes of content for one of the memory, as long as nobody knows better: a volume has a
/// thousandth of memory.
const CONTENT_EACH: u64 = 1024;

/// Entries that a rebuild takes over between two folds.
const REFILL_ENTRIES: usize = 512;

/// How the volume takes to its memory.
#[derive(Debug, Default)]
pub struct MemoryState {
    /// Why it was given up, if it was.
    lost: Option<String>,
    /// Entries that the memory has no room for stay on flash alone.
    spills: bool,
    /// Syncs end in the memory's write buffer, if it has one.
    buffers: bool,
}

impl Checkpoints {
    /// A memory takes part from now on.
    pub fn use_memory(&mut self, spills: bool, buffers: bool) {
        (self.memory.spills, self.memory.buffers) = (spills, buffers);
    }

    /// Why the memory was given up, if it was.
    pub fn memory_lost(&self) -> Option<&str> {
        self.memory.lost.as_deref()
    }

    /// Another memory takes the place of one that was given up.
    pub fn forget_memory_lost(&mut self) {
        self.memory.lost = None;
    }

    /// Whether entries that the memory has no room for stay on flash alone.
    pub const fn spills(&self) -> bool {
        self.memory.spills
    }

    /// Brings the memory to the superblock that is about to get the number `generation`; `is_full`
    /// says that it is of a new checkpoint, `closed` that nothing will follow it. False if there
    /// was a memory and it had to be given up.
    pub fn fold(
        &mut self,
        index: &mut Index,
        log: &mut Log,
        is_full: bool,
        closed: bool,
        generation: u32,
    ) -> Result<bool> {
        let Some(mut bpram) = index.entries_mut().take_memory() else { return Ok(true) };
        let layout = *log.layout();
        let (uuid, spills) = (self.uuid, self.memory.spills);
        let moment = Moment { uuid, superblock: self.encode_superblock(log, generation), closed, layout, spills };
        let folded = if is_full { bpram.fold(&moment, log.table()) } else { bpram.repeat(&moment) };
        match folded {
            Ok(()) => {
                index.entries_mut().put_memory(bpram);
                self.folds += u64::from(is_full);
            }
            // The flash has everything, or is about to: it goes on without.
            Err(error) => {
                self.save_held(log)?;
                // Until the coming superblock a write buffer may be the only place of what was made
                // durable.
                if !bpram.has_buffer() {
                    bpram.abandon();
                }
                self.memory.lost = Some(format!("{error}"));
            }
        }
        Ok(index.entries().memory().is_some())
    }

    /// The same for the superblock that there is.
    fn fold_now(&mut self, index: &mut Index, log: &mut Log, is_full: bool) -> Result<()> {
        let generation = self.ring.generation();
        if self.fold(index, log, is_full, false, generation)? {
            Ok(())
        } else {
            self.write_superblock(index, log, false)
        }
    }

    /// Something will follow the anchor that says that nothing does.
    pub fn reopen_memory(&mut self, index: &mut Index, log: &mut Log) -> Result<()> {
        if index.entries().memory().is_some_and(|bpram| bpram.is_closed()) {
            self.fold_now(index, log, false)?;
            // Both anchors have to say so: that of before fits the same superblock, and should the
            // newer one be damaged it would have a mount believe that nothing followed.
            self.fold_now(index, log, false)?;
        }
        Ok(())
    }

    /// Says that nothing follows the anchor of a volume that was found closed, or was made so
    /// without its memory.
    pub fn close_memory(&mut self, index: &mut Index, log: &mut Log) -> Result<()> {
        let is_open = index.entries().memory().is_some_and(|bpram| !bpram.is_closed());
        if is_open && self.state.clean {
            self.fold(index, log, false, true, self.ring.generation())?;
        }
        Ok(())
    }

    /// Whether the changed buckets want a checkpoint.
    pub fn memory_is_due(&self, index: &Index) -> bool {
        index.entries().memory().is_some_and(|bpram| bpram.fold_is_due(self.memory.spills))
    }

    /// Bytes of content that the memory has room for the places of, by what it needs for those that
    /// there are.
    pub fn memory_allows(&self, index: &Index, log: &Log) -> u64 {
        let Some(bpram) = index.entries().memory().filter(|_| !self.memory.spills) else { return u64::MAX };
        let (room, used) = bpram.entry_room();
        let content = log.table().live_bytes().max(1);
        // Of few entries nothing can be told yet.
        let few = used < room / 8;
        let each = if few { CONTENT_EACH.max(content / used.max(1)) } else { content / used.max(1) };
        room.saturating_mul(each)
    }

    /// Takes over from the tree what the memory does not hold, as far as it has room. `progress` is
    /// told how many entries were taken over.
    pub fn refill_memory(&mut self, index: &mut Index, log: &mut Log, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut done = 0;
        while let Some(taken) = index.entries_mut().refill(log, REFILL_ENTRIES)? {
            done += taken;
            self.fold_now(index, log, true)?;
            progress(done);
        }
        Ok(())
    }

    /// Whether syncs end in the write buffer.
    pub fn buffers_writes(&self, index: &Index) -> bool {
        self.memory.buffers && index.entries().memory().is_some_and(Bpram::has_buffer)
    }

    /// Makes every commit so far durable without the page of the journal that waits to be full.
    /// False if that cannot be.
    pub fn sync_to_memory(&mut self, index: &mut Index, log: &mut Log) -> Result<bool> {
        if !self.buffers_writes(index) || log.is_chain_broken() {
            return Ok(false);
        }
        if !self.ring.is_buffered() {
            // The flash has to know first that it may not have everything.
            self.write_superblock(index, log, false)?;
        }
        if !self.buffers_writes(index) {
            return Ok(false);
        }
        // Content that pages of its own are for is programmed, before what places it is durable:
        // also what of it would wait for its page to fill, of which the buffer has no copy.
        log.program_all_users()?;
        if log.is_chain_broken() {
            return Ok(false);
        }
        if log.store().has_unflushed() {
            log.flush()?;
        }
        let (Some(bpram), Some((place, content, frames))) = (index.entries_mut().memory_mut(), log.waiting_journal())
        else {
            return Ok(true);
        };
        match bpram.keep(place, content, frames) {
            Ok(kept) => Ok(kept),
            Err(error) => {
                let error = from_media("write to the memory beside the flash", &error);
                self.give_memory_up(index, log, format!("{error}"))?;
                Ok(false)
            }
        }
    }

    /// Goes on without the memory, whose anchors the flash moves away from.
    pub fn give_memory_up(&mut self, index: &mut Index, log: &mut Log, why: String) -> Result<()> {
        self.save_held(log)?;
        let given_up = index.entries_mut().take_memory().filter(|_| !log.is_chain_broken());
        self.memory.lost = Some(why);
        // The first says that the flash has everything: a cut behind it asks for no consent.
        self.write_superblock(index, log, false)?;
        self.write_superblock(index, log, false)?;
        if let Some(mut bpram) = given_up {
            bpram.abandon();
        }
        Ok(())
    }

    /// Puts on the flash what the write buffer alone may have.
    fn save_held(&self, log: &mut Log) -> Result<()> {
        if self.memory.buffers && !log.is_chain_broken() {
            log.program_page(Stream::Journal)?;
            log.flush()?;
        }
        Ok(())
    }
}

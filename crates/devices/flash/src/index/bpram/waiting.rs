//! Syncs that end in the write buffer instead of a page of flash, and mounts that find there what
//! the flash lacks.

use super::Bpram;
use super::buffer::Area;
use crate::core::Core;
use crate::medium::errors::from_media;
use crate::medium::layout::Layout;
use crate::policy::Stream;
use alloc::format;
use alloc::string::String;
use onode_base::ErrorKind;
use onode_object::{Error, Result};

/// The buffer that `wanted` asks for in a memory of so many bytes.
///
/// # Errors
/// `Invalid` if the memory has no room for it.
pub fn area_for(memory_bytes: u64, layout: &Layout, wanted: Option<u64>) -> Result<Area> {
    Area::new(memory_bytes, layout.journal_bytes(), wanted).ok_or_else(|| {
        let detail = format!("a memory of {memory_bytes} bytes has no room for a write buffer; give it a larger one");
        Error::new(ErrorKind::Invalid, detail)
    })
}

impl Core {
    /// Whether syncs end in the write buffer.
    pub fn buffers_writes(&self) -> bool {
        self.buffers && self.bpram.as_ref().is_some_and(Bpram::has_buffer)
    }

    /// Makes every commit so far durable without the page of the journal that waits to be full.
    /// False if that cannot be.
    pub fn sync_to_memory(&mut self) -> Result<bool> {
        if !self.buffers_writes() || self.log.chain_broken {
            return Ok(false);
        }
        if !self.ring.buffered {
            // The flash has to know first that it may not have everything.
            self.write_superblock(false)?;
        }
        if !self.buffers_writes() {
            return Ok(false);
        }
        // Content that pages of its own are for is programmed, before what places it is durable.
        self.log.program_users()?;
        if self.log.chain_broken {
            return Ok(false);
        }
        if self.log.store.unflushed {
            self.log.store.flush()?;
        }
        let (Some(bpram), Some((place, content, frames))) = (&mut self.bpram, self.log.waiting_journal()) else {
            return Ok(true);
        };
        match bpram.keep(place, content, frames) {
            Ok(kept) => Ok(kept),
            Err(error) => {
                let error = from_media("write to the memory beside the flash", &error);
                self.give_memory_up(format!("{error}"))?;
                Ok(false)
            }
        }
    }

    /// Goes on without the memory, whose anchors the flash moves away from.
    pub fn give_memory_up(&mut self, why: String) -> Result<()> {
        self.save_held()?;
        let given_up = self.bpram.take().filter(|_| !self.log.chain_broken);
        self.memory_lost = Some(why);
        // The first says that the flash has everything: a cut behind it asks for no consent.
        self.write_superblock(false)?;
        self.write_superblock(false)?;
        if let Some(mut bpram) = given_up {
            bpram.abandon();
        }
        Ok(())
    }

    /// Puts on the flash what the write buffer alone may have.
    pub fn save_held(&mut self) -> Result<()> {
        if self.buffers && !self.log.chain_broken {
            self.log.program_page(Stream::Journal)?;
            self.log.store.flush()?;
        }
        Ok(())
    }
}

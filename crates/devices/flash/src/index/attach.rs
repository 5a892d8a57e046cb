//! The memory beside the flash of a mounted volume comes and goes.
//!
//! It goes when the flash has everything. What comes is filled from the flash, whatever it held: a
//! memory that was away knows nothing of what was done since.

use crate::core::Core;
use crate::device::FlashDevice;
use crate::index::beside::MemoryOptions;
use crate::index::bpram::format::read_anchors;
use crate::medium::format::FEATURE_MEMORY;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::powers::Attach;
use onode_object::{Condition, Error, Result, Severity};

/// Finds the memory of a volume again while that is mounted.
pub trait FindMemory: Send + Sync {
    /// The memory, whatever it holds, and how the volume takes to it.
    ///
    /// # Errors
    /// Those of opening it; `Invalid` for what is no memory.
    fn find(&self) -> Result<(Box<dyn Pmem>, MemoryOptions)>;
}

fn invalid(detail: &str) -> Error {
    Error::new(ErrorKind::Invalid, detail)
}

impl FlashDevice {
    /// Says who finds the memory when it is to take part again.
    pub fn set_finder(&self, finder: Arc<dyn FindMemory>) {
        self.core.lock().finder = Some(finder);
    }

    /// Goes on with the flash alone, which has everything then.
    ///
    /// # Errors
    /// `Invalid` if there is no memory; `Media`, `ReadOnly`.
    pub fn detach_memory(&self) -> Result<()> {
        self.core()?.detach_memory()
    }

    /// `memory` takes part from now on; what it held is gone. `progress` is told how many entries
    /// it got.
    ///
    /// # Errors
    /// `Invalid` if there is one already, if the volume is made for none, or if it is too small;
    /// `Media`, `ReadOnly`.
    pub fn attach_memory(
        &self,
        memory: Box<dyn Pmem>,
        options: &MemoryOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        self.core()?.attach_memory(memory, options, progress)
    }
}

impl Attach for FlashDevice {
    fn part(&self) -> &'static str {
        "the memory"
    }

    fn is_attached(&self) -> bool {
        self.core.lock().bpram.is_some()
    }

    fn detach(&self) -> Result<()> {
        self.detach_memory()
    }

    fn attach(&self, empty: bool) -> Result<()> {
        let mut core = self.core()?;
        core.check_attachable()?;
        let why = "nobody knows where the memory is";
        let finder = core.finder.clone().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        let (memory, options) = finder.find()?;
        let belongs = |memory: &dyn Pmem| read_anchors(memory).iter().all(|(_, anchor)| anchor.uuid == core.uuid);
        if !empty && !belongs(&*memory) {
            return Err(Error::new(ErrorKind::WrongPart, "the memory is that of another volume"));
        }
        core.attach_memory(memory, &options, &mut |_| {})
    }
}

impl Core {
    fn detach_memory(&mut self) -> Result<()> {
        self.log.store.check_writable()?;
        if self.bpram.is_none() {
            return Err(invalid("there is no memory to detach"));
        }
        self.prepare_writing()?;
        if self.log.chain_broken {
            self.checkpoint(false)?;
        }
        self.give_memory_up(String::from("it was detached"))
    }

    fn check_attachable(&self) -> Result<()> {
        self.log.store.check_writable()?;
        if self.incompatible & FEATURE_MEMORY == 0 {
            return Err(invalid("the volume is made for no memory beside the flash"));
        }
        if self.bpram.is_some() {
            return Err(invalid("there is a memory already"));
        }
        Ok(())
    }

    fn attach_memory(
        &mut self,
        memory: Box<dyn Pmem>,
        options: &MemoryOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        self.check_attachable()?;
        let blank = self.blank_memory(memory, options)?;
        self.prepare_writing()?;
        // Two superblocks further no memory of before fits the flash any more, wherever it comes
        // from.
        self.write_superblock(false)?;
        self.write_superblock(false)?;
        (self.bpram, self.memory_lost) = (Some(blank), None);
        (self.spills, self.buffers) = (options.spill, options.buffer);
        self.checkpoint(false)?;
        self.refill_memory(progress)?;
        if let Some(why) = &self.memory_lost {
            return Err(invalid(why));
        }
        let text = String::from("the memory beside the flash was attached and filled from the flash");
        self.events.push(Condition::new("memory-rebuilt", Severity::Notice, text));
        Ok(())
    }
}

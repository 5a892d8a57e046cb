//! The device with a memory beside the flash: making and mounting it, and letting the memory of a
//! mounted volume come and go.

use super::FlashDevice;
use crate::core::{Core, mount_beside};
use crate::index::beside::{FindMemory, MemoryOptions, MountPath};
use crate::index::bpram::MemoryUse;
use crate::index::bpram::format::read_anchors;
use crate::options::{FormatOptions, MountOptions};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::DerefMut;
use onode_base::ErrorKind;
use onode_codec::exact::Entry;
use onode_media::{Nand, Pmem};
use onode_object::powers::Attach;
use onode_object::{Error, Result};

impl FlashDevice {
    /// Makes an empty volume on `nand` with its index in `memory`; everything on both is lost.
    ///
    /// # Errors
    /// As [`format`](Self::format); `Invalid` if the memory is too small.
    pub fn format_beside(
        nand: impl Nand + 'static,
        memory: impl Pmem + 'static,
        options: &FormatOptions,
        mount: &MountOptions,
        beside: &MemoryOptions,
    ) -> Result<Self> {
        let mut core = Core::format(Box::new(nand), Some((Box::new(memory), beside)), options, mount)?;
        core.volume().checkpoints.use_memory(beside.spill, beside.buffer);
        Ok(Self::over(core))
    }

    /// Mounts the volume on `nand` with its index in `memory`. A memory that holds none, or a
    /// damaged one, is filled from the flash; `progress` is told how many entries it got.
    ///
    /// # Errors
    /// As [`mount`](Self::mount); `Stale` if the flash was used without the memory, `Invalid` if
    /// the memory is that of another volume. Both go away with [`MemoryOptions::rebuild`], and both
    /// may show at the first access only, because a volume that was closed is mounted without a
    /// look at the flash.
    pub fn mount_beside(
        nand: impl Nand + 'static,
        memory: impl Pmem + 'static,
        options: &MountOptions,
        beside: &MemoryOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Self, MountPath)> {
        let (core, path) = mount_beside(Box::new(nand), Box::new(memory), options, beside, progress)?;
        Ok((Self::over(core), path))
    }

    /// What the memory beside the flash holds; `None` without one.
    #[must_use]
    pub fn memory_use(&self) -> Option<MemoryUse> {
        self.core.lock().memory_use()
    }

    /// Everything that the memory beside the flash answers for, in the terms of the codec.
    ///
    /// # Errors
    /// If what the memory has no room for cannot be read from the flash.
    pub fn memory_entries(&self) -> Result<Vec<Entry>> {
        self.with_index(|index, log| index.entries_mut().memory_entries(log))
    }

    /// Whether the write buffer in the memory had synced changes that the flash lacks.
    #[must_use]
    pub fn had_buffered(&self) -> bool {
        self.core.lock().recovery().held_fits()
    }

    /// What memory and flash do not agree on, in words.
    ///
    /// # Errors
    /// If the index on flash cannot be read.
    pub fn compare_memory(&self) -> Result<Vec<String>> {
        self.with_index(|index, log| index.entries_mut().compare_memory(log))
    }

    /// Makes sure that flash and memory belong together.
    ///
    /// # Errors
    /// As [`mount_beside`](Self::mount_beside).
    pub fn confirm(&self) -> Result<()> {
        self.core().map(|_| ())
    }

    /// The state, once it is sure to be that of this flash.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn core(&self) -> Result<impl DerefMut<Target = Core> + '_> {
        let mut core = self.core.lock();
        core.confirm_once()?;
        Ok(core)
    }
}

impl FlashDevice {
    /// Says who finds the memory when it is to take part again.
    pub fn set_finder(&self, finder: Arc<dyn FindMemory>) {
        self.core.lock().set_finder(finder);
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
        self.core.lock().index().entries().memory().is_some()
    }

    fn detach(&self) -> Result<()> {
        self.detach_memory()
    }

    fn attach(&self, empty: bool) -> Result<()> {
        let mut core = self.core()?;
        core.check_attachable()?;
        let why = "nobody knows where the memory is";
        let finder = core.finder().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        let (memory, options) = finder.find()?;
        let belongs = |memory: &dyn Pmem| {
            read_anchors(memory).iter().all(|(_, anchor)| anchor.uuid == *core.checkpoints().uuid())
        };
        if !empty && !belongs(&*memory) {
            return Err(Error::new(ErrorKind::WrongPart, "the memory is that of another volume"));
        }
        core.attach_memory(memory, &options, &mut |_| {})
    }
}

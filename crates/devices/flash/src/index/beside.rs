//! Volumes with their index in a memory beside the flash: the device `flash+scm` of paper 3.
//!
//! A mount goes one of three ways, which lead to the same volume. What the memory says is taken as
//! it is if it was closed with the flash: no page is read. If the memory stands at an earlier
//! checkpoint, the journal on flash is replayed from there. And without a memory that can be
//! believed, the flash tells everything, and the memory is filled anew.

use crate::core::Core;
use crate::device::FlashDevice;
use crate::index::bpram::mount::{Opened, Refused, held_in, stands_with};
use crate::index::bpram::waiting::area_for;
use crate::index::bpram::{Bpram, MemoryUse};
use crate::medium::errors::damaged;
use crate::medium::ring;
use crate::options::{FormatOptions, MountOptions};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::DerefMut;
use onode_base::ErrorKind;
use onode_codec::exact::Entry;
use onode_media::{Nand, Pmem};
use onode_object::{Condition, Error, Result, Severity};

/// How a volume takes to the memory beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Whatever the memory holds, even of another volume, is given up, and it is filled from the
    /// flash.
    pub rebuild: bool,
    /// What a full memory has no room for stays on flash alone, where it is slower to find; else
    /// what needs room is refused.
    pub spill: bool,
    /// Syncs end in the memory instead of a page of flash that is not full. The memory then has
    /// commits that the flash lacks, up to a page of them: without it the volume is an earlier one.
    pub buffer: bool,
    /// Bytes of the memory for that, when it is made; `None` chooses by its size.
    pub log_bytes: Option<u64>,
}

/// Which way a mount went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountPath {
    /// The memory had everything.
    Memory,
    /// The memory had the last checkpoint, the flash what followed.
    Behind,
    /// The flash alone, for this reason.
    Rebuilt(String),
}

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
        (core.spills, core.buffers) = (beside.spill, beside.buffer);
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
        let (core, path) = Core::mount_beside(Box::new(nand), Box::new(memory), options, beside, progress)?;
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
        self.core()?.memory_entries()
    }

    /// Whether the write buffer in the memory had synced changes that the flash lacks.
    #[must_use]
    pub fn had_buffered(&self) -> bool {
        self.core.lock().held_fits
    }

    /// What memory and flash do not agree on, in words.
    ///
    /// # Errors
    /// If the index on flash cannot be read.
    pub fn compare_memory(&self) -> Result<Vec<String>> {
        self.core()?.compare_memory()
    }

    /// Makes sure that flash and memory belong together.
    ///
    /// # Errors
    /// As [`mount_beside`](Self::mount_beside).
    pub fn confirm(&self) -> Result<()> {
        self.core().map(|_| ())
    }

    /// The state, once it is sure to be that of this flash.
    pub(crate) fn core(&self) -> Result<impl DerefMut<Target = Core> + '_> {
        let mut core = self.core.lock();
        if core.unconfirmed {
            core.confirm()?;
        }
        Ok(core)
    }
}

impl Core {
    fn mount_beside(
        nand: Box<dyn Nand>,
        memory: Box<dyn Pmem>,
        options: &MountOptions,
        beside: &MemoryOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Self, MountPath)> {
        options.validate()?;
        let opened = if beside.rebuild {
            Err(Refused { memory, why: "as it was asked".into() })
        } else {
            Bpram::open(memory, !options.read_only)
        };
        let opened = opened.and_then(|opened| {
            let lacks_buffer = beside.buffer && !opened.bpram.has_buffer() && !options.read_only;
            if lacks_buffer {
                Err(opened.bpram.refused("it has no room set apart for a write buffer"))
            } else {
                Ok(opened)
            }
        });
        let (mut core, path) = match opened {
            Ok(opened) if opened.bpram.is_closed => (Self::of_closed(nand, opened, options)?, MountPath::Memory),
            Ok(opened) => (Self::of_earlier(nand, opened, options)?, MountPath::Behind),
            Err(Refused { memory, why }) => {
                let mut core = Self::rebuilt(nand, memory, (options, beside), progress)?;
                if core.bpram.is_some() {
                    let text = format!("the memory beside the flash was filled anew from the flash: {why}");
                    core.events.push(Condition::new("memory-rebuilt", Severity::Notice, text));
                }
                (core, MountPath::Rebuilt(why))
            }
        };
        (core.spills, core.buffers) = (beside.spill, beside.buffer);
        Ok((core, path))
    }

    /// An index with nothing in it, and the room for a write buffer if one is wanted.
    pub fn blank_memory(&self, memory: Box<dyn Pmem>, beside: &MemoryOptions) -> Result<Bpram> {
        let layout = &self.log.store.layout;
        let wanted = (beside.buffer || beside.log_bytes.is_some()).then_some(beside.log_bytes);
        let area = wanted.map(|wanted| area_for(memory.length(), layout, wanted)).transpose()?;
        Bpram::blank(memory, &self.uuid, layout.payload_bytes, area)
    }

    fn of_memory(nand: Box<dyn Nand>, opened: Opened, options: &MountOptions) -> Result<Self> {
        let Opened { bpram, found, table, held } = opened;
        let mut core = Self::of_superblock(nand, &found, options)?;
        let layout = core.log.store.layout;
        for (piece, (reference, bytes)) in found.references.pieces.iter().zip(&table).enumerate() {
            core.log.table.load_packed(piece, *reference, bytes, &layout)?;
        }
        core.log.table.finish_loading();
        core.bpram = Some(bpram);
        core.held = held;
        Ok(core)
    }

    /// Nothing followed the anchor: there is nothing to be read.
    fn of_closed(nand: Box<dyn Nand>, opened: Opened, options: &MountOptions) -> Result<Self> {
        let mut core = Self::of_memory(nand, opened, options)?;
        core.held = None;
        core.finish_segments();
        core.unconfirmed = true;
        if options.read_only {
            core.log.store.latch("the volume is mounted read-only");
        }
        Ok(core)
    }

    /// The journal goes on behind the checkpoint that the memory knows.
    fn of_earlier(nand: Box<dyn Nand>, opened: Opened, options: &MountOptions) -> Result<Self> {
        let mut core = Self::of_memory(nand, opened, options)?;
        core.confirm()?;
        core.replay()?;
        core.recovered(options)
    }

    /// Everything from the flash.
    fn rebuilt(
        mut nand: Box<dyn Nand>,
        memory: Box<dyn Pmem>,
        (options, beside): (&MountOptions, &MemoryOptions),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self> {
        let Some(found) = ring::find(&mut *nand, None)? else {
            return Err(Error::new(ErrorKind::Invalid, "no superblock: this is not an Onode flash volume"));
        };
        if found.superblock.incompatible.get() & crate::medium::format::FEATURE_MEMORY == 0 {
            return Err(Error::new(ErrorKind::Invalid, "the volume has no memory beside it: open it as flash"));
        }
        // Whatever became of the rest of the memory, its write buffer may have what the flash
        // lacks.
        let uuid = &found.superblock.uuid;
        let held = held_in(&*memory, uuid);
        let is_ours = stands_with(&*memory, uuid, found.superblock.generation.get());
        let mut core = Self::mount_found(nand, &found, options, held)?;
        if found.is_buffered() && !is_ours && !core.held_fits {
            core.accept(
                "the memory beside the flash held the last synced changes, up to a page of them, and it is missing, or \
                 another one than it was",
            )?;
        }
        if options.read_only || core.journal_damage.is_some() {
            return core.recovered(options);
        }
        // Two superblocks further no memory of before fits the flash any more, wherever it comes
        // from.
        core.clean = false;
        core.prepare_writing()?;
        core.write_superblock(false)?;
        let mut core = core.recovered(options)?;
        if core.log.store.read_only().is_some() {
            return Ok(core);
        }
        core.bpram = Some(core.blank_memory(memory, beside)?);
        core.checkpoint(false)?;
        core.refill_memory(progress)?;
        Ok(core)
    }

    /// Makes sure that the flash stands where the memory says, or one superblock before: the memory
    /// goes first.
    fn confirm(&mut self) -> Result<()> {
        let known = self.ring.generation;
        let Some(newest) = ring::find(self.log.store.nand(), Some(known))? else {
            return Err(damaged("no superblock is left on the flash"));
        };
        if newest.superblock.uuid != self.uuid {
            let detail = "the memory is that of another volume than the flash";
            return Err(Error::new(ErrorKind::WrongPart, detail));
        }
        let found = newest.superblock.generation.get();
        if !(known.saturating_sub(1)..=known).contains(&found) {
            let detail = format!("the flash stands at superblock {found}, the memory beside it at {known}");
            return Err(Error::new(ErrorKind::Stale, detail));
        }
        // A superblock that the memory alone knows gives its number to the next one, or the two
        // would part further.
        self.ring.stands_at(&newest);
        self.unconfirmed = false;
        Ok(())
    }
}

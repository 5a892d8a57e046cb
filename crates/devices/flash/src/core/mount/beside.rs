//! Volumes with their index in a memory beside the flash: the device `flash+scm` of paper 3.
//!
//! A mount goes one of three ways, which lead to the same volume. What the memory says is taken as
//! it is if it was closed with the flash: no page is read. If the memory stands at an earlier
//! checkpoint, the journal on flash is replayed from there. And without a memory that can be
//! believed, the flash tells everything, and the memory is filled anew.

use super::of_another_volume;
use crate::core::Core;
use crate::index::beside::{MemoryOptions, MountPath};
use crate::index::bpram::Bpram;
use crate::index::bpram::mount::{Opened, Refused, has_write_buffer, held_in, is_of_another, standing_with};
use crate::index::bpram::waiting::area_for;
use crate::medium::ring;
use crate::options::MountOptions;
use crate::recover::replay::{Recovery, finish_segments};
use alloc::boxed::Box;
use alloc::format;
use onode_base::ErrorKind;
use onode_media::{Nand, Pmem};
use onode_object::{Condition, Error, Result, Severity};

/// Mounts the volume on `nand` with its index in `memory`.
pub fn mount_beside(
    nand: Box<dyn Nand>,
    memory: Box<dyn Pmem>,
    options: &MountOptions,
    beside: &MemoryOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<(Core, MountPath)> {
    options.validate()?;
    let opened = if beside.rebuild {
        Err(Refused { memory, why: "as it was asked".into() })
    } else {
        Bpram::open(memory, !options.read_only)
    };
    let opened = opened.and_then(|opened| {
        let lacks_buffer = beside.buffer && !opened.bpram.has_buffer() && !options.read_only;
        if lacks_buffer { Err(opened.bpram.refused("it has no room set apart for a write buffer")) } else { Ok(opened) }
    });
    let (mut core, path) = match opened {
        Ok(opened) if opened.bpram.is_closed() => (of_closed(nand, opened, options)?, MountPath::Memory),
        Ok(opened) => (of_earlier(nand, opened, options)?, MountPath::Behind),
        Err(Refused { memory, why }) => {
            let mut core = rebuilt(nand, memory, options, beside, progress)?;
            if core.index.entries().memory().is_some() {
                let text = format!("the memory beside the flash was filled anew from the flash: {why}");
                core.events.push(Condition::new("memory-rebuilt", Severity::Notice, text));
            }
            (core, MountPath::Rebuilt(why))
        }
    };
    core.checkpoints.use_memory(beside.spill, beside.buffer);
    Ok((core, path))
}

fn of_memory(nand: Box<dyn Nand>, opened: Opened, options: &MountOptions) -> Result<Core> {
    let Opened { bpram, found, table, held } = opened;
    let mut core = Core::of_superblock(nand, &found, options)?;
    let layout = *core.log.layout();
    for (piece, (reference, bytes)) in found.references.pieces.iter().zip(&table).enumerate() {
        core.log.table_mut().load_packed(piece, *reference, bytes, &layout)?;
    }
    core.log.table_mut().finish_loading();
    core.index.entries_mut().put_memory(bpram);
    core.recovery = Recovery::new(held);
    Ok(core)
}

/// Nothing followed the anchor: there is nothing to be read.
fn of_closed(nand: Box<dyn Nand>, opened: Opened, options: &MountOptions) -> Result<Core> {
    let mut core = of_memory(nand, opened, options)?;
    core.recovery = Recovery::default();
    finish_segments(&mut core.log);
    core.unconfirmed = true;
    if options.read_only {
        core.log.latch().close();
    }
    Ok(core)
}

/// The journal goes on behind the checkpoint that the memory knows.
fn of_earlier(nand: Box<dyn Nand>, opened: Opened, options: &MountOptions) -> Result<Core> {
    let mut core = of_memory(nand, opened, options)?;
    core.confirm()?;
    core.replay()?;
    core.recovered(options)
}

/// Everything from the flash.
fn rebuilt(
    mut nand: Box<dyn Nand>,
    memory: Box<dyn Pmem>,
    options: &MountOptions,
    beside: &MemoryOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Core> {
    let Some(found) = ring::find(&mut *nand, None)? else {
        return Err(Error::new(ErrorKind::Invalid, "no superblock: this is not an Onode flash volume"));
    };
    if found.superblock.incompatible.get() & crate::medium::format::FEATURE_MEMORY == 0 {
        return Err(Error::new(ErrorKind::Invalid, "the volume has no memory beside it: open it as flash"));
    }
    // Whatever became of the rest of the memory, its write buffer may have what the flash
    // lacks.
    let uuid = &found.superblock.uuid;
    if !beside.rebuild && is_of_another(&*memory, uuid) {
        return Err(of_another_volume());
    }
    let held = held_in(&*memory, uuid);
    let has_buffer = has_write_buffer(&*memory);
    let standing = standing_with(&*memory, uuid, found.superblock.generation.get());
    let mut core = Core::mount_found(nand, &found, options, held)?;
    if found.is_buffered() && !(standing.is_some() && has_buffer) && !core.recovery.held_fits() {
        core.accept(
            "the memory beside the flash held the last synced changes, up to a page of them, and it is missing, or \
             another one than it was",
        )?;
    }
    if options.read_only || core.recovery.damage().is_some() {
        return core.recovered(options);
    }
    if beside.buffer
        && let Err(error) = area_for(memory.length(), core.log.layout(), beside.log_bytes)
    {
        return Err(Error::new(ErrorKind::PartNeeded, error.detail));
    }
    // Two superblocks further no memory of before fits the flash any more, wherever it comes
    // from.
    core.checkpoints.set_clean(false);
    core.prepare_writing()?;
    core.checkpoints.write_superblock(&mut core.index, &mut core.log, false)?;
    // Nor does this one, which is ahead of a flash whose last superblocks a cut took: until it is
    // blank it must not be taken for the state that the flash goes on from.
    while standing.is_some_and(|known| known >= core.checkpoints.ring().generation()) {
        core.checkpoints.write_superblock(&mut core.index, &mut core.log, false)?;
    }
    let mut core = core.recovered(options)?;
    if core.log.store().latch().why().is_some() {
        return Ok(core);
    }
    let blank = core.blank_memory(memory, beside)?;
    core.index.entries_mut().put_memory(blank);
    core.checkpoint(false)?;
    core.checkpoints.refill_memory(&mut core.index, &mut core.log, progress)?;
    Ok(core)
}

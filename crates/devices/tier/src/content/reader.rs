//! Reads of content under the lock of the state, where nothing moves.
//!
//! What it keeps true: whatever is read has its checksum. Only here is anything called damaged, and
//! only here is it repaired, from a good copy, unless nothing may be written.
//!
//! What it does not do: read without the lock, see [`read`](crate::content::read), or pin.

use crate::content::buffers::Buffers;
use crate::content::pending::{Held, Logged};
use crate::content::plan::{ReadPlan, Source, Unsound, copy_part};
use crate::disks::Disks;
use crate::disks::read_plan::PlannedRun;
use crate::index::Index;
use crate::medium::errors::{bug, within_mut};
use crate::medium::layout::BLOCK;
use crate::space::extent::Extent;
use alloc::format;
use alloc::vec::Vec;
use onode_engine::Latch;
use onode_media::IoTag;
use onode_object::{Error, ObjectId, Result};

/// What a read needs of the state, borrowed side by side.
pub struct Reader<'a> {
    /// The disks.
    pub disks: &'a Disks,
    /// Where things are.
    pub index: &'a mut Index,
    /// Content in memory.
    pub buffers: &'a mut Buffers,
    /// Whether anything may be written.
    pub latch: &'a Latch,
}

impl Reader<'_> {
    /// Reads into `buffer` from `offset`, from `source`; returns how many bytes there were.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` with the range of the first damaged block; `Media`.
    pub fn read(&mut self, object: ObjectId, offset: u64, buffer: &mut [u8], source: Source) -> Result<usize> {
        let mut plan = self.plan(object, offset, buffer)?;
        if plan.is_empty() {
            return Ok(plan.count);
        }
        let part = within_mut(buffer, 0..plan.count)?;
        self.fetch(&mut plan, source)?;
        plan.copy_stored(part)?;
        plan.load(self.disks, part)?;
        Ok(plan.count)
    }

    /// Looks up where the content is, and copies what is in memory.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    pub fn plan(&mut self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<ReadPlan> {
        let onode = self.index.known(object)?;
        let count = onode.size.saturating_sub(offset).min(buffer.len() as u64);
        let (size, class) = (onode.size, onode.hints.placement_class);
        let (wanted, logged) = (Vec::new(), Vec::new());
        let mut plan = ReadPlan { object, offset, count: count as usize, size, class, wanted, logged };
        let buffer = within_mut(buffer, 0..count as usize)?;
        if buffer.is_empty() {
            return Ok(plan);
        }
        buffer.fill(0);
        if !onode.has_blocks {
            let inline = self.index.inline(object)?;
            copy_part(buffer, offset, 0, &inline)?;
            return Ok(plan);
        }
        let (first, last) = (offset / BLOCK, (offset + count).div_ceil(BLOCK));
        plan.wanted = self.wanted(object, first, last)?;
        plan.logged = self.copy_pending(object, offset, buffer)?;
        Ok(plan)
    }

    /// Copies what of an object is in memory; returns where the log of the fast disk has more.
    ///
    /// # Errors
    /// `Bug`.
    pub fn copy_pending(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<Vec<(u64, Logged)>> {
        let (first, last) = (offset / BLOCK, (offset + buffer.len() as u64).div_ceil(BLOCK));
        let mut logged = Vec::new();
        for (block, held) in self.buffers.pending().range(object.0, first, last) {
            match held {
                Held::Bytes(bytes) => copy_part(buffer, offset, block * BLOCK, bytes)?,
                Held::Logged(at) => logged.push((block, *at)),
            }
        }
        Ok(logged)
    }

    /// The stored parts of `first..last`, cut to that range; what lies in a row on the disk comes
    /// as one.
    fn wanted(&mut self, object: ObjectId, first: u64, last: u64) -> Result<Vec<PlannedRun>> {
        let cut = |(at, extent): (u64, Extent)| {
            let skip = first.saturating_sub(at);
            let end = extent.blocks().min(last - at);
            (at + skip, extent.part(skip, end - skip))
        };
        let mut runs: Vec<(u64, Extent)> = Vec::new();
        for (at, extent) in self.index.extents(object, first, last)?.into_iter().map(cut) {
            match runs.last_mut() {
                Some((start, run)) if *start + run.blocks() == at && run.is_continued_by(&extent) => {
                    run.sums.extend(extent.sums);
                }
                _ => runs.push((at, extent)),
            }
        }
        Ok(runs.into_iter().map(|(at, extent)| PlannedRun::new(at, extent)).collect())
    }

    /// Finds all that is wanted, and repairs what is damaged if it can.
    fn fetch(&mut self, plan: &mut ReadPlan, source: Source) -> Result<()> {
        let found = self.disks.fetch(&mut plan.wanted, source)?;
        self.buffers.count_read(&found);
        for unsound in &found.unsound {
            let it = plan.wanted.get_mut(unsound.which).ok_or_else(nothing_wanted)?;
            if let Err(also) = self.rescue(it, unsound.number, source) {
                return Err(told(plan, *unsound, also));
            }
        }
        if self.latch.is_read_only() || source == Source::Big {
            return Ok(());
        }
        self.disks.consider(plan.object, plan.class, &plan.wanted, &found.from_big)
    }

    /// A block of the big disk is damaged: takes the copy on the fast disk, if there is a good one,
    /// and writes it back. The place need not change: a write that is cut leaves, of each part,
    /// what was there or what should be. A scrub that may not write reports the damage; what else
    /// there is to say of it is the error.
    fn rescue(&mut self, it: &mut PlannedRun, number: usize, source: Source) -> core::result::Result<(), &'static str> {
        self.buffers.count_damaged();
        let place = it.extent.block + number as u64;
        let mut copy = [PlannedRun::new(it.at, it.extent.part(number as u64, 1))];
        self.disks.fast.lock().read(&mut copy);
        let [copy] = copy;
        let Some(block) = it.block(number).filter(|_| copy.is_there == [true]) else { return Err("") };
        block.copy_from_slice(&copy.bytes);
        let is_written = self.latch.may_write() && self.disks.write(place, block, IoTag::Data).is_ok();
        if is_written {
            self.buffers.count_repaired();
        }
        it.verify(number);
        if is_written || source == Source::Any { Ok(()) } else { Err("; its copy on the fast disk is good") }
    }

    /// The verified content of one stored block, or more, of an object.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn read_stored(&mut self, object: ObjectId, block: u64, extent: &Extent, source: Source) -> Result<Vec<u8>> {
        let mut plan = self.plan_run(object, block, extent.clone())?;
        self.fetch(&mut plan, source)?;
        Ok(plan.wanted.pop().map(|it| it.bytes).unwrap_or_default())
    }

    /// Plans a read of one stored run, of an object that may be gone.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn plan_run(&mut self, object: ObjectId, block: u64, extent: Extent) -> Result<ReadPlan> {
        let class = self.index.onode(object)?.unwrap_or_default().hints.placement_class;
        Ok(ReadPlan::of_run(object, class, block, extent))
    }
}

fn nothing_wanted() -> Error {
    bug("a block of nothing that is wanted is damaged")
}

/// A damaged block, as the reader is told of it.
fn told(plan: &ReadPlan, unsound: Unsound, also: &str) -> Error {
    let Some(it) = plan.wanted.get(unsound.which) else { return nothing_wanted() };
    let from = (it.at + unsound.number as u64) * BLOCK;
    let what = if unsound.is_read { "does not have its checksum" } else { "cannot be read" };
    let range = from..(from + BLOCK).min(plan.size.max(from + 1));
    let place = it.extent.block + unsound.number as u64;
    Error::corrupt(plan.object, range, format!("block {place} of the big disk {what}{also}"))
}

//! Scrub: every block of an object is read and compared with its checksum, on both disks.
//!
//! Small objects are read many together, in the order in which they lie on the big disk and without
//! the lock of the state: a hard disk then passes over them, where it would seek for each. If
//! anything is wrong with one of them, each is read by itself, under the lock, where it is repaired
//! or told.

use crate::content::plan::{ReadPlan, Source};
use crate::content::ranges::data_ranges;
use crate::core::Core;
use crate::device::TierDevice;
use crate::disks::read_plan::PlannedRun;
use crate::fast::Piece;
use crate::medium::layout::BLOCK;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_object::powers::{Scrub, ScrubPart, ScrubReport};
use onode_object::{Error, ErrorKind, ObjectId, Result};

/// What is verified at a time.
const STEP_BYTES: usize = 1 << 20;
/// Objects up to this are verified together.
const SMALL_BYTES: u64 = 1 << 20;
/// So much of them at a time.
const GROUP_BYTES: u64 = 4 << 20;

impl Scrub for TierDevice {
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport> {
        let mut report = ScrubReport::default();
        let mut next = Some(from.0);
        while let Some(from) = next.filter(|_| report.objects < limit as u64) {
            let group = self.group_of_small(from, limit - report.objects as usize)?;
            if group.len() > 1 && self.scrub_together(&group, &mut report) {
                next = group.last().and_then(|last| last.0.checked_add(1));
                continue;
            }
            for _ in 0..group.len().max(1) {
                let Some(from) = next else { break };
                let mut core = self.volume.core.lock();
                let core = &mut *core;
                let Some(object) = core.index_mut().next_object(from)? else {
                    return Ok(report);
                };
                scrub_bytes(core, object, 0..u64::MAX, &mut report);
                report.objects += 1;
                next = object.0.checked_add(1);
            }
        }
        report.next = next.map(ObjectId);
        Ok(report)
    }

    fn scrub_part(&self, object: ObjectId, from: u64, limit: u64) -> Result<Option<ScrubPart>> {
        let mut core = self.volume.core.lock();
        let mut part = ScrubPart::default();
        let end = from.saturating_add(limit.max(1)).checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        part.next = scrub_bytes(&mut core, object, from..end, &mut part.found);
        part.found.objects = u64::from(part.next.is_none());
        Ok(Some(part))
    }
}

impl TierDevice {
    /// The next objects from `from` on, at most `limit`, as long as they are small.
    fn group_of_small(&self, from: u64, limit: usize) -> Result<Vec<ObjectId>> {
        let mut core = self.volume.core.lock();
        let (mut group, mut bytes, mut from) = (Vec::new(), 0, from);
        while group.len() < limit {
            let Some(object) = core.index_mut().next_object(from)? else { break };
            let Ok(onode) = core.index_mut().known(object) else { break };
            bytes += onode.size;
            if onode.size > SMALL_BYTES || bytes > GROUP_BYTES {
                break;
            }
            group.push(object);
            let Some(next) = object.0.checked_add(1) else { break };
            from = next;
        }
        Ok(group)
    }

    /// Verifies objects together; false if anything is wrong with one of them, which is not told.
    fn scrub_together(&self, objects: &[ObjectId], report: &mut ScrubReport) -> bool {
        let planned = self.volume.look(|core, _| {
            let mut all = ReadPlan::of_runs(Vec::new());
            let mut bytes = 0;
            for &object in objects {
                let mut buffer = vec![0; core.index_mut().known(object)?.size as usize];
                let plan = core.reader().plan(object, 0, &mut buffer)?;
                let (index, _, pending) = core.parts();
                let ranges = data_ranges(index, pending, object, 0, usize::MAX)?;
                bytes += ranges.iter().map(|(_, length)| length).sum::<u64>();
                if !plan.logged.is_empty() {
                    // What the log of the fast disk has is read with its object.
                    return Ok(None);
                }
                all.wanted.extend(plan.wanted);
            }
            all.wanted.sort_unstable_by_key(|it| it.extent.block);
            core.pin(&all);
            Ok(Some((Arc::clone(core.disks()), all, bytes)))
        });
        let Ok(Some((disks, mut all, bytes))) = planned else { return false };
        let found = disks.fetch(&mut all.wanted, Source::Big);
        let mut core = self.volume.core.lock();
        core.unpin(&all);
        let Some(found) = found.ok().filter(|found| found.unsound.is_empty()) else { return false };
        core.count_read(&found);
        drop(core);
        report.objects += objects.len() as u64;
        report.bytes += bytes;
        for &object in objects {
            // What is wrong with an extent was told of its content.
            _ = scrub_copies(&mut self.volume.core.lock(), object, 0..u64::MAX);
        }
        true
    }
}

/// Verifies a range of an object on both disks; returns where to go on if the object has content
/// behind the range.
fn scrub_bytes(core: &mut Core, object: ObjectId, range: Range<u64>, report: &mut ScrubReport) -> Option<u64> {
    let repaired = core.buffers().figures().repaired_blocks;
    let next = scrub_content(core, object, range.clone(), report);
    // What is wrong with an extent was told of its content.
    _ = scrub_copies(core, object, range.start / BLOCK..next.map_or(u64::MAX, |next| next / BLOCK));
    report.repaired += (core.buffers().figures().repaired_blocks - repaired) * BLOCK;
    next
}

/// Reads the copies of the extents that begin in a range of blocks; one that is damaged is given
/// up.
fn scrub_copies(core: &mut Core, object: ObjectId, blocks: Range<u64>) -> Result<()> {
    let last = core.index_mut().known(object)?.size.div_ceil(BLOCK).min(blocks.end);
    let mut from = blocks.start;
    while let Some((index, extent)) = core.index_mut().next_extent(object, from, last)? {
        from = index + extent.blocks();
        // One that begins before belongs to the part before.
        if index < blocks.start {
            continue;
        }
        if index >= last {
            break;
        }
        let (block, born, blocks) = (extent.block, extent.born, extent.blocks() as u32);
        let piece = Piece { block, born, blocks, object: object.0, index, class: 0 };
        let mut slot = core.disks().fast.lock();
        if slot.get().is_some_and(|fast| fast.copied(&piece) > 0) {
            slot.read(&mut [PlannedRun::new(index, extent)]);
        }
    }
    Ok(())
}

fn scrub_content(core: &mut Core, object: ObjectId, range: Range<u64>, report: &mut ScrubReport) -> Option<u64> {
    let size = match core.index_mut().known(object) {
        Ok(onode) => onode.size,
        Err(error) => {
            report.damaged.push(error);
            return None;
        }
    };
    let mut buffer = vec![0; STEP_BYTES];
    let mut offset = range.start;
    while offset < size {
        let (index, _, pending) = core.parts();
        let ranges = match data_ranges(index, pending, object, offset, 1) {
            Ok(ranges) => ranges,
            Err(error) => {
                report.damaged.push(error);
                return None;
            }
        };
        let (start, length) = ranges.first().copied()?;
        if start >= range.end {
            return Some(start);
        }
        let step = length.min(STEP_BYTES as u64).min(range.end - start);
        let part = buffer.get_mut(..step as usize)?;
        match core.reader().read(object, start, part, Source::Big) {
            Ok(_) => {
                report.bytes += step;
                offset = start + step;
            }
            Err(error) => {
                // Behind the damaged block there may be others.
                let behind = error.range.as_ref().map_or(start + step, |range| range.end);
                report.damaged.push(error);
                offset = behind.max(start + 1).next_multiple_of(BLOCK);
            }
        }
        if report.damaged.len() > 10_000 {
            report.damaged.push(Error::of(ErrorKind::Corrupt, object, "and more"));
            return None;
        }
    }
    None
}

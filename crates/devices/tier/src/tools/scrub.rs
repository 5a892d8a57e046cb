//! Scrub: every block of an object is read and compared with its checksum, on both disks.

use crate::content::plan::Source;
use crate::content::ranges::data_ranges;
use crate::core::Core;
use crate::device::TierDevice;
use crate::disks::read_plan::PlannedRun;
use crate::fast::Piece;
use crate::medium::layout::BLOCK;
use alloc::vec;
use onode_object::powers::{Scrub, ScrubReport};
use onode_object::{Error, ErrorKind, ObjectId, Result};

/// What is verified at a time.
const STEP_BYTES: usize = 1 << 20;

impl Scrub for TierDevice {
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport> {
        let mut report = ScrubReport::default();
        let mut next = Some(from.0);
        for _ in 0..limit {
            let Some(start) = next else { break };
            let mut core = self.volume.core.lock();
            let core = &mut *core;
            let Some(object) = core.index_mut().next_object(start)? else {
                return Ok(report);
            };
            let repaired = core.buffers().figures().repaired_blocks;
            scrub_object(core, object, &mut report);
            // What is wrong with an extent was told of its content.
            _ = scrub_copies(core, object);
            report.repaired += (core.buffers().figures().repaired_blocks - repaired) * BLOCK;
            report.objects += 1;
            next = object.0.checked_add(1);
        }
        report.next = next.map(ObjectId);
        Ok(report)
    }
}

/// Reads the copies of an object; one that is damaged is given up.
fn scrub_copies(core: &mut Core, object: ObjectId) -> Result<()> {
    let last = core.index_mut().known(object)?.size.div_ceil(BLOCK);
    let mut from = 0;
    while let Some((index, extent)) = core.index_mut().next_extent(object, from, last)? {
        from = index + extent.blocks();
        let (block, born, blocks) = (extent.block, extent.born, extent.blocks() as u32);
        let piece = Piece { block, born, blocks, object: object.0, index, class: 0 };
        let mut slot = core.disks().fast.lock();
        if slot.get().is_some_and(|fast| fast.copied(&piece) > 0) {
            slot.read(&mut [PlannedRun::new(index, extent)]);
        }
    }
    Ok(())
}

fn scrub_object(core: &mut Core, object: ObjectId, report: &mut ScrubReport) {
    let size = match core.index_mut().known(object) {
        Ok(onode) => onode.size,
        Err(error) => return report.damaged.push(error),
    };
    let mut buffer = vec![0; STEP_BYTES];
    let mut offset = 0;
    while offset < size {
        let (index, _, pending) = core.parts();
        let ranges = match data_ranges(index, pending, object, offset, 1) {
            Ok(ranges) => ranges,
            Err(error) => return report.damaged.push(error),
        };
        let Some((start, length)) = ranges.first().copied() else { return };
        let step = length.min(STEP_BYTES as u64);
        let Some(part) = buffer.get_mut(..step as usize) else { return };
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
            return report.damaged.push(Error::of(ErrorKind::Corrupt, object, "and more"));
        }
    }
}

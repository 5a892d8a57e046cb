//! A read of content, planned under the device's lock and carried out with or without it.
//!
//! The plan has the place of every page that is needed; holes and what waits in memory are in the
//! buffer before the lock is given back, so the whole read shows the object at one moment. It keeps
//! true: a damaged page is told as the exact range of the object that it costs. It pins nothing
//! itself: who carries it out without the lock does.

use crate::index::Index;
use crate::index::apply::Extent;
use crate::log::Log;
use crate::medium::pages::{Failed, PageReader, Want};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, ObjectId, Result};

#[cfg(test)]
mod tests;

/// So many extents are looked up at once.
const EXTENTS_AT_ONCE: usize = 64;

/// What is left to be read.
pub struct ReadPlan {
    object: ObjectId,
    offset: u64,
    length: usize,
    wants: Vec<Want>,
    /// Index of the first want of each extent, and behind the last.
    bounds: Vec<usize>,
}

impl Index {
    /// Plans a read of `object` into `buffer`, from `offset` on. Holes are zeros.
    pub fn plan_read(&mut self, log: &mut Log, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<ReadPlan> {
        let onode = self.require(log, object)?;
        let length = onode.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..length];
        let mut plan = ReadPlan { object, offset, length, wants: Vec::new(), bounds: Vec::from([0]) };
        let until = offset + length as u64;
        let mut at = offset;
        while at < until {
            let extents = self.extents(log, object, at..until, EXTENTS_AT_ONCE)?;
            let Some(last) = extents.last() else { break };
            let covered = if extents.len() < EXTENTS_AT_ONCE { until } else { last.end().min(until) };
            for extent in &extents {
                let (start, end) = (extent.offset.max(at), extent.end().min(until));
                buffer[(at - offset) as usize..(start - offset) as usize].fill(0);
                plan.add_extent(log, extent, start..end, buffer)?;
                at = end;
            }
            buffer[(at - offset) as usize..(covered - offset) as usize].fill(0);
            at = covered;
        }
        if at < until {
            buffer[(at - offset) as usize..].fill(0);
        }
        Ok(plan)
    }
}

/// Plans a read of a part of one extent, to see whether it is sound.
pub fn plan_part(
    log: &Log,
    object: ObjectId,
    extent: &Extent,
    part: Range<u64>,
    buffer: &mut [u8],
) -> Result<ReadPlan> {
    let (offset, length) = (part.start, (part.end - part.start) as usize);
    let mut plan = ReadPlan { object, offset, length, wants: Vec::new(), bounds: Vec::from([0]) };
    plan.add_extent(log, extent, part, buffer)?;
    Ok(plan)
}

impl ReadPlan {
    fn add_extent(&mut self, log: &Log, extent: &Extent, part: Range<u64>, buffer: &mut [u8]) -> Result<()> {
        let location = extent.piece.location + (part.start - extent.offset);
        let to = (part.start - self.offset) as usize..(part.end - self.offset) as usize;
        match log.plan(location, buffer, to.clone(), &mut self.wants) {
            Ok(()) => self.bounds.push(self.wants.len()),
            Err(error) => return Err(self.locate_impossible(log, location, to, error)),
        }
        Ok(())
    }

    /// Narrows content whose place makes no sense down to the pages of which that is true.
    fn locate_impossible(&self, log: &Log, location: u64, to: Range<usize>, error: Error) -> Error {
        let payload = u64::from(log.layout().payload_bytes);
        let mut damage = Damage::default();
        let (mut at, end) = (location, location + to.len() as u64);
        while at < end {
            let next = (at - at % payload + payload).min(end);
            let mut bytes = alloc::vec![0; (next - at) as usize];
            let range = 0..bytes.len();
            if let Err(error) = log.plan(at, &mut bytes, range, &mut Vec::new()) {
                damage.add(to.start + (at - location) as usize..to.start + (next - location) as usize, error);
            }
            at = next;
        }
        damage.told(self, error)
    }

    /// The pages that are needed.
    pub fn wants(&self) -> &[Want] {
        &self.wants
    }

    /// The segments that they lie on.
    pub fn segments(&self) -> Vec<u32> {
        let segments: BTreeSet<u32> = self.wants.iter().map(|want| want.at.segment).collect();
        let most = if is_planted(Bug::ManyPinOfOne) { 1 } else { segments.len() };
        segments.into_iter().take(most).collect()
    }

    /// Reads what is left; returns how many bytes of the object there are in `buffer`.
    ///
    /// # Errors
    /// `Corrupt` with the range of the first damage, `Media`.
    pub fn carry_out(&self, reader: &mut dyn PageReader, buffer: &mut [u8]) -> Result<usize> {
        match reader.read(&self.wants, buffer) {
            Ok(()) => Ok(self.length),
            Err(failed) if failed.error.kind == ErrorKind::Corrupt => Err(self.locate(reader, buffer, failed)),
            Err(failed) => Err(failed.error.about(self.object)),
        }
    }

    /// Narrows a failed read down to the pages that are damaged, in the first extent that has any.
    fn locate(&self, reader: &mut dyn PageReader, buffer: &mut [u8], failed: Failed) -> Error {
        for bounds in self.bounds.windows(2) {
            let [first, behind] = bounds else { continue };
            if *behind <= failed.wants.start || *first >= failed.wants.end {
                continue;
            }
            let mut damage = Damage::default();
            for want in &self.wants[*first..*behind] {
                if let Err(failed) = reader.read(core::slice::from_ref(want), buffer) {
                    damage.add(want.to.clone(), failed.error);
                }
            }
            if damage.0.is_some() {
                return damage.told(self, failed.error);
            }
        }
        failed.error.about(self.object)
    }
}

/// The first damage of a read: where in the buffer, and what was found.
#[derive(Default)]
struct Damage(Option<(Range<usize>, Error)>);

impl Damage {
    /// These bytes are damaged, too; those before were looked at before.
    fn add(&mut self, to: Range<usize>, error: Error) {
        match &mut self.0 {
            None => self.0 = Some((to, error)),
            Some((known, _)) if known.end == to.start => known.end = to.end,
            Some(_) => {}
        }
    }

    /// The error that says so; `error` if there is none.
    fn told(self, plan: &ReadPlan, error: Error) -> Error {
        match self.0 {
            Some((at, error)) => {
                let range = plan.offset + at.start as u64..plan.offset + at.end as u64;
                Error::corrupt(plan.object, range, error.detail)
            }
            None => error.about(plan.object),
        }
    }
}

//! Verification of everything stored: objects, and rows of pages with parity.
//!
//! It keeps true: a scrub changes nothing by itself; what it finds to be moved is moved by
//! background work, or when the volume is closed.

use super::FlashDevice;
use crate::medium::layout::Row;
use crate::volume::Volume;
use onode_media::IoTag;
use onode_object::powers::{GroupScrub, Scrub, ScrubReport};
use onode_object::{ObjectId, Result};

impl Scrub for FlashDevice {
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport> {
        let mut core = self.core()?;
        let Volume { log, index, .. } = core.volume();
        let objects = index.list(log, from, limit)?;
        let mut report = ScrubReport { objects: objects.len() as u64, ..ScrubReport::default() };
        report.bytes = index.verify(log, &objects, &mut report.damaged)?;
        report.next = objects.last().filter(|_| objects.len() == limit).map(|last| ObjectId(last.0 + 1));
        Ok(report)
    }

    /// Groups are rows, those of segments that hold nothing among them.
    fn scrub_groups(&self, from: u64, limit: u32) -> Result<GroupScrub> {
        let mut core = self.core()?;
        let Volume { log, .. } = core.volume();
        let layout = *log.layout();
        if !layout.has_parity() {
            return Ok(GroupScrub::default());
        }
        let rows = u64::from(layout.geometry.pages_per_block);
        let all = u64::from(layout.segments) * rows;
        let until = from.saturating_add(u64::from(limit)).min(all);
        let mut report = GroupScrub { all, next: (until < all).then_some(until), ..GroupScrub::default() };
        for number in from..until {
            let row = Row::beside(log.page((number / rows) as u32), (number % rows) as u32);
            report.groups += 1;
            let Some(state) = log.examine_row(row, IoTag::Check)? else { continue };
            report.rebuilt += state.rebuilt.len() as u64;
            report.lost += (state.lost.len() + state.doubtful.len()) as u64;
            report.unprotected += u64::from(state.lacks_parity());
        }
        Ok(report)
    }
}

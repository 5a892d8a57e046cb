//! Whether the journal ends where it seems to: a cut is told from damage by what is found behind.
//!
//! It keeps true: on a medium that keeps the order of programs any page behind the end proves
//! damage; on others only what says that the page missing here had been flushed.

use super::{Cursor, Recovery};
use crate::log::record::{Assembler, Record, flushed_before};
use crate::medium::layout::SegmentPage;
use crate::medium::page::{Examined, PageFault};
use crate::medium::pages::VerifiedPage;
use crate::policy::Stream;
use crate::recover::scan::Scanned;
use crate::volume::Volume;
use alloc::vec::Vec;
use onode_object::Result;

/// Behind the end of the journal so many pages are looked at: damage of fewer in a row is told from
/// a cut.
const DAMAGED_IN_A_ROW: u32 = 8;

impl Recovery {
    /// On a medium that may lose what was not flushed in any order: how many journal pages from the
    /// start of the replay are known to have been flushed with all that they place. The pages after
    /// them may miss some of their content, and a page missing among those is no damage.
    pub(super) fn sure_pages(&mut self, volume: &mut Volume<'_>) -> Result<u64> {
        let mut cursor = self.journal_start(volume);
        let mut assembler = Assembler::default();
        let layout = *volume.log.layout();
        let (mut places, mut sure) = (Vec::new(), 0);
        while let Examined::Sound(records) = self.next_page(volume, &mut cursor)? {
            if cursor.last.as_ref().is_some_and(|(_, page)| page.info.flushed) {
                sure = places.len();
            }
            places.extend(cursor.last.as_ref().map(|(at, _)| *at));
            let noted = &mut |record: Record| {
                match record {
                    Record::Chain { segment, sequence } => cursor.next = (segment, sequence),
                    Record::Flushed { before } => sure = sure.max(count_before(&places, layout.page_of(before).0)),
                    _ => {}
                }
                Ok(())
            };
            if assembler.page(&records, noted).is_err() || cursor.next.0 >= layout.segments {
                break;
            }
        }
        let pages = places.len() as u64;
        // Whether a page says that the one missing here had been flushed.
        let tells = |found: &VerifiedPage| {
            let before = flushed_before(found.records()).map(|before| layout.page_of(before).0);
            let is_behind = |before: SegmentPage| {
                let is_here = before.segment == cursor.at.segment && before.page > cursor.at.page;
                is_here || (before.segment == cursor.next.0 && cursor.next.1 > cursor.sequence)
            };
            found.info.flushed || before.is_some_and(is_behind)
        };
        let mut erased = 0;
        for page in cursor.at.page + 1..layout.segment_pages {
            match volume.log.look(SegmentPage { page, ..cursor.at }, cursor.sequence)? {
                // The page missing here had been flushed: one more than were found is sure to have
                // existed.
                Examined::Sound(found) if tells(&found) => return Ok(pages + 1),
                // Some that look so may have been programmed.
                Examined::Unsound(PageFault::Erased) if erased == DAMAGED_IN_A_ROW => break,
                Examined::Unsound(PageFault::Erased) => erased += 1,
                _ => erased = 0,
            }
        }
        // The last page of a segment has those that follow it in the next one.
        for at in self.next_segment(volume, &cursor, 1 + DAMAGED_IN_A_ROW) {
            let found = volume.log.look(at, cursor.next.1)?;
            if found.sound().is_some_and(|found| tells(&found)) {
                return Ok(pages + 1);
            }
        }
        Ok(sure as u64)
    }

    /// The first `count` pages of the journal segment after this one, if it has a name.
    fn next_segment(
        &self,
        volume: &Volume<'_>,
        cursor: &Cursor,
        count: u32,
    ) -> impl Iterator<Item = SegmentPage> + use<> {
        let layout = *volume.log.layout();
        let (segment, sequence) = cursor.next;
        let is_named = sequence > cursor.sequence && segment < layout.segments;
        let count = if is_named { count.min(layout.segment_pages) } else { 0 };
        (0..count).map(move |page| layout.page(Stream::Journal, segment, page))
    }

    /// Whether the page behind the one at which the journal seems to end is one of the journal.
    pub(super) fn next_page_is_sound(&mut self, volume: &mut Volume<'_>, cursor: &Cursor) -> Result<bool> {
        let at = SegmentPage { page: cursor.at.page + 1, ..cursor.at };
        let layout = *volume.log.layout();
        if at.page >= layout.segment_pages || matches!(cursor.scanned.get(&at), Some(Scanned::Nothing)) {
            return Ok(false);
        }
        Ok(volume.log.look(at, cursor.sequence)?.is_sound())
    }

    /// Whether the journal goes on behind the page at which it seems to end, in the same segment or
    /// in the next one. A cut hits only the last page, so then that page was damaged later. A page
    /// of a later life of the segment says the same: this superblock is not the newest any more.
    pub(super) fn journal_goes_on(
        &mut self,
        volume: &mut Volume<'_>,
        cursor: &Cursor,
        fault: PageFault,
    ) -> Result<bool> {
        if matches!(fault, PageFault::Sequence { found } if found > cursor.sequence) {
            return Ok(true);
        }
        let layout = *volume.log.layout();
        let near = cursor.at.page + 1..layout.segment_pages.min(cursor.at.page + 1 + DAMAGED_IN_A_ROW);
        let here = near.map(|page| (SegmentPage { page, ..cursor.at }, cursor.sequence));
        let count = if volume.log.store().keeps_order() { 1 } else { 1 + DAMAGED_IN_A_ROW };
        let there = self.next_segment(volume, cursor, count).map(|at| (at, cursor.next.1));
        for (at, sequence) in here.chain(there) {
            let is_known = matches!(cursor.scanned.get(&at), Some(Scanned::Nothing));
            if !is_known && volume.log.look(at, sequence)?.is_sound() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How many of the journal pages at `places`, in the order of the journal, come before `before`: a
/// page among them, or one behind those of its segment.
fn count_before(places: &[SegmentPage], before: SegmentPage) -> usize {
    let last = places.iter().rposition(|at| at.segment == before.segment && at.page < before.page);
    last.map(|last| last + 1).or_else(|| places.iter().position(|at| *at == before)).unwrap_or(0)
}

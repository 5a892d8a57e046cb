//! The pages of the journal one after another, along the chain of its segments.
//!
//! It keeps true: a journal segment that is entered is in the segment table with the sequence
//! number that its pages have, and the way never leads back.

use super::{Cursor, Recovery};
use crate::medium::errors::damaged;
use crate::medium::format::{NO_SUMMARY, PageKind};
use crate::medium::layout::SegmentPage;
use crate::medium::page::{Examined, PageFault};
use crate::policy::Stream;
use crate::recover::scan::{Scan, Scanned};
use crate::space::segments::SegmentState;
use crate::volume::Volume;
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Recovery {
    /// Where the replay begins.
    pub(super) fn journal_start(&self, volume: &Volume<'_>) -> Cursor {
        let start = volume.checkpoints.state();
        Cursor {
            at: volume.log.layout().page(Stream::Journal, start.journal_segment, start.journal_page),
            sequence: start.journal_sequence,
            next: start.journal_next,
            last: None,
            scanned: Scan::new(),
        }
    }

    /// The record bytes of the next journal page, following the chain; the fault that ends the
    /// journal otherwise.
    pub(super) fn next_page(&mut self, volume: &mut Volume<'_>, cursor: &mut Cursor) -> Result<Examined<Vec<u8>>> {
        let layout = *volume.log.layout();
        loop {
            let scanned = cursor.scanned.remove(&cursor.at);
            if let Some(Scanned::Nothing) = scanned {
                return Ok(Examined::Unsound(PageFault::Erased));
            }
            if is_planted(Bug::MixedPageEnds) && matches!(&scanned, Some(Scanned::Records(all)) if all.is_empty()) {
                return Ok(Examined::Unsound(PageFault::Erased));
            }
            if let Some(Scanned::Records(records)) = scanned {
                self.enter_journal_segment(volume, cursor);
                cursor.at.page += 1;
                return Ok(Examined::Sound(records));
            }
            if let Some(Scanned::Last(page)) = scanned {
                let records = page.records().to_vec();
                self.enter_journal_segment(volume, cursor);
                cursor.last = Some((cursor.at, page));
                cursor.at.page += 1;
                return Ok(Examined::Sound(records));
            }
            if cursor.at.page < layout.segment_pages && scanned.is_none() {
                match volume.log.examine(cursor.at, Some(cursor.sequence))? {
                    Examined::Sound(page) if page.info.kind == PageKind::Journal => {
                        let records = page.records().to_vec();
                        self.enter_journal_segment(volume, cursor);
                        cursor.last = Some((cursor.at, page));
                        cursor.at.page += 1;
                        return Ok(Examined::Sound(records));
                    }
                    Examined::Sound(page) if page.info.kind == PageKind::Summary => {}
                    // What another stream once left here ends the journal like any other life of
                    // the segment.
                    Examined::Sound(page) => {
                        return Ok(Examined::Unsound(PageFault::Sequence { found: page.info.sequence }));
                    }
                    Examined::Unsound(fault) => return Ok(Examined::Unsound(fault)),
                }
            }
            self.enter_journal_segment(volume, cursor);
            if volume.log.table().get(cursor.at.segment).summary_page == NO_SUMMARY
                && cursor.at.page < layout.segment_pages
            {
                volume.log.table_mut().update(cursor.at.segment, |entry| entry.summary_page = cursor.at.page as u16);
            }
            // A chain never leads back: sequence numbers ascend.
            if cursor.next.1 <= cursor.sequence {
                return Err(damaged("the journal runs in a circle"));
            }
            if self.lost_to(volume, cursor.next.0, cursor.next.1) {
                let segment = cursor.next.0;
                self.damage = Some(format!("the journal goes on in segment {segment}, which the checkpoint needs"));
                return Ok(Examined::Unsound(PageFault::Erased));
            }
            cursor.at = SegmentPage { segment: cursor.next.0, page: 0, ..cursor.at };
            cursor.sequence = cursor.next.1;
            cursor.next = (cursor.next.0, 0);
        }
    }

    /// Whether the checkpoint, if it is an older one, or what was replayed behind it, has something
    /// in a segment that is opened with `sequence`. What is there now is of later, and could not be
    /// told from what was there.
    pub(super) fn lost_to(&self, volume: &Volume<'_>, segment: u32, sequence: u32) -> bool {
        let one = volume.log.table().get(segment);
        let has_something = !matches!(one.state, SegmentState::Free | SegmentState::Held);
        self.of_older && has_something && one.sequence != sequence
    }

    /// A page of this journal segment was found: it is in use with this sequence number.
    pub(super) fn enter_journal_segment(&mut self, volume: &mut Volume<'_>, cursor: &Cursor) {
        volume.log.table_mut().update(cursor.at.segment, |entry| {
            if entry.sequence != cursor.sequence || entry.stream != Stream::Journal {
                entry.summary_page = NO_SUMMARY;
            }
            entry.state = SegmentState::Full;
            entry.stream = Stream::Journal;
            entry.sequence = cursor.sequence;
        });
        volume.log.table_mut().skip_to(cursor.sequence + 1);
    }
}

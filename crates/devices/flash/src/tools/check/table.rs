//! The segment table as the newest superblock names it.

use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::Medium;
use super::superblocks::{self, Located};
use super::{Context, unreadable};
use crate::medium::format::Superblock;
use crate::medium::layout::Layout;
use crate::policy::Stream;
use crate::space::segments::{Segment, SegmentState, SegmentTable, piece};
use alloc::format;
use alloc::vec::Vec;

/// All segments.
pub(crate) struct Table {
    pub(crate) segments: Vec<Segment>,
}

/// Reads every piece; `None` if one is lost, for nothing can be verified without it.
pub(crate) fn load(medium: &mut Medium<'_>, newest: &Located, context: &mut Context<'_>) -> Option<Table> {
    let layout = *medium.layout();
    let piece_entries = SegmentTable::piece_entries(&layout);
    let mut segments = Vec::with_capacity(layout.segments as usize);
    let mut sound = true;
    for (number, reference) in newest.references.pieces.iter().enumerate() {
        let place = Place::TablePiece { piece: number as u32 };
        let first = number * piece_entries;
        let count = piece_entries.min((layout.segments as usize).saturating_sub(first));
        let bytes = match medium.blob(reference, None) {
            Ok(bytes) => bytes,
            Err(fault) => {
                context.add(unreadable(Severity::Fatal, FindingKind::TableUnreadable, place, &fault));
                sound = false;
                continue;
            }
        };
        match piece::decode(&bytes, count, &layout) {
            Ok(entries) => segments.extend(entries),
            Err(found) => {
                let finding = Finding::new(Severity::Fatal, FindingKind::TableMalformed, place);
                context.add(finding.expected(format!("{count} entries")).found(found));
                sound = false;
            }
        }
    }
    sound.then_some(Table { segments })
}

impl Table {
    /// The segment that holds `location`, if that is inside the medium.
    pub(crate) fn of(&self, layout: &Layout, location: u64) -> Option<&Segment> {
        self.segments.get(layout.segment_of(location) as usize)
    }

    /// The sequence number that pages at `location` must have.
    pub(crate) fn sequence(&self, layout: &Layout, location: u64) -> Option<u32> {
        self.of(layout, location).map(|segment| segment.sequence)
    }

    /// About how many pages a check will read.
    pub(crate) fn pages_in_use(&self, layout: &Layout, data: bool) -> u64 {
        let read = self.segments.iter().filter(|one| data || one.stream == Stream::Index);
        let bytes: u64 = read.map(|one| u64::from(one.live_bytes)).sum();
        let summaries = self.segments.iter().filter(|one| one.state == SegmentState::Full).count();
        bytes.div_ceil(u64::from(layout.payload_bytes)) + summaries as u64
    }

    /// Checks what the table says by itself and with the superblock.
    pub(crate) fn judge(&self, medium: &mut Medium<'_>, superblock: &Superblock, context: &mut Context<'_>) {
        let next_sequence = superblock.next_sequence.get();
        for (segment, one) in (0u32..).zip(&self.segments) {
            let counts = &mut context.report.segments;
            *match one.state {
                SegmentState::Free => &mut counts.free,
                SegmentState::Held => &mut counts.held,
                SegmentState::Open => &mut counts.open,
                SegmentState::Full => &mut counts.full,
                SegmentState::Failing => &mut counts.failing,
                SegmentState::Bad => &mut counts.bad,
            } += 1;
            let place = Place::Segment { segment };
            if one.sequence >= next_sequence {
                let finding = Finding::new(Severity::Error, FindingKind::TableMalformed, place);
                let found = format!("sequence number {}", one.sequence);
                context.add(finding.expected(format!("below {next_sequence}")).found(found));
            }
            match superblocks::bad_blocks(medium, segment) {
                // The device meets a bad block when it erases it and retires the segment then.
                Ok(bad) if bad > 0 && one.state == SegmentState::Free => {
                    let finding = Finding::new(Severity::Warning, FindingKind::TableMalformed, place);
                    context.add(finding.expected("state bad").found(format!("free with {bad} bad erase blocks")));
                }
                Ok(_) => {}
                Err(error) => {
                    let finding = Finding::new(Severity::Fatal, FindingKind::MediumFailed, place);
                    context.add(finding.found(format!("{error}")));
                }
            }
        }
        let reserved = [
            (superblock.journal_segment.get(), superblock.journal_sequence.get()),
            (superblock.journal_next_segment.get(), superblock.journal_next_sequence.get()),
        ];
        for (segment, sequence) in reserved {
            let Some(one) = self.segments.get(segment as usize) else { continue };
            if one.state != SegmentState::Open || one.stream != Stream::Journal || one.sequence != sequence {
                let place = Place::Segment { segment };
                let finding = Finding::new(Severity::Error, FindingKind::JournalReservation, place);
                let describe =
                    |state: &str, stream: &str, sequence| format!("{state} {stream} with sequence {sequence}");
                let found = describe(one.state.name(), one.stream.name(), one.sequence);
                context.add(finding.expected(describe("open", "journal", sequence)).found(found));
            }
        }
    }
}

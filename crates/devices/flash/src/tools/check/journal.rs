//! The journal behind the newest checkpoint, read to its end.

use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::{Fault, Medium, Page};
use super::superblocks::Located;
use super::table::Table;
use super::{Context, JournalEnd, unreadable};
use crate::index::deferred;
use crate::log::record::{Assembler, Change, Record, flushed_before};
use crate::medium::format::{FEATURE_BUFFERED, PageKind, Superblock};
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::PageFault;
use crate::policy::Stream;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

/// The records behind a checkpoint, those that it took over unapplied, and the segments that the
/// journal entered.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) records: Vec<Record>,
    /// How many of them are known to have been on the medium with all their content.
    pub(crate) sure: usize,
    /// Changes before all of them that the checkpoint's tree does not have.
    pub(crate) deferred: Vec<Change>,
    /// Segment and sequence number.
    pub(crate) entered: Vec<(u32, u32)>,
}

impl Journal {
    /// The objects that the records change.
    pub(crate) fn touched(&self) -> BTreeSet<u64> {
        let mut touched = BTreeSet::new();
        for change in self.records.iter().flat_map(changes_of).chain(&self.deferred) {
            match change {
                Change::Place { object, .. } | Change::Patch { object, .. } => _ = touched.insert(object.0),
                Change::Mutation(mutation) => touched.extend(mutation.objects().map(|object| object.0)),
            }
        }
        touched
    }
}

/// What a record changes.
fn changes_of(record: &Record) -> &[Change] {
    if let Record::Commit { changes, .. } = record { changes } else { &[] }
}

/// Where the reading stands.
struct JournalCursor {
    at: SegmentPage,
    sequence: u32,
    next: (u32, u32),
}

impl JournalCursor {
    /// The pages of its segment from here on. All of them are looked at: where the journal ends it
    /// must not go on.
    fn rest(&self, layout: &Layout) -> impl Iterator<Item = SegmentPage> + use<> {
        let at = self.at;
        (at.page..layout.segment_pages).map(move |page| SegmentPage { page, ..at })
    }
}

/// Reads the changes that the checkpoint of `newest` did not apply.
pub(crate) fn read_deferred(
    medium: &mut Medium<'_>,
    newest: &Located,
    table: &Table,
    context: &mut Context<'_>,
) -> Vec<Change> {
    let Some(reference) = &newest.references.deferred else { return Vec::new() };
    let place = Place::Bytes { location: reference.location.get(), length: u64::from(reference.length.get()) };
    match medium.blob(reference, table.sequence(medium.layout(), reference.location.get())) {
        Ok(bytes) => match deferred::decode(&bytes) {
            Ok(changes) => return changes,
            Err(error) => {
                let finding = Finding::new(Severity::Error, FindingKind::JournalRecordWrong, place);
                context.add(finding.found(error.detail));
            }
        },
        Err(fault) => context.add(unreadable(Severity::Error, FindingKind::JournalDamaged, place, &fault)),
    }
    Vec::new()
}

/// Reads the journal that starts where `superblock` says.
pub(crate) fn read(medium: &mut Medium<'_>, superblock: &Superblock, context: &mut Context<'_>) -> Journal {
    let layout = *medium.layout();
    let mut cursor = JournalCursor {
        at: layout.page(Stream::Journal, superblock.journal_segment.get(), superblock.journal_page.get()),
        sequence: superblock.journal_sequence.get(),
        next: (superblock.journal_next_segment.get(), superblock.journal_next_sequence.get()),
    };
    let mut journal = Journal::default();
    let mut assembler = Assembler::default();
    let keeps_order = medium.nand().keeps_order();
    let noted = medium.nand().watermark();
    let is_damaged = noted.as_ref().map_or(true, |noted| noted.is_damaged);
    if is_damaged {
        let finding = Finding::new(Severity::Warning, FindingKind::WatermarkDamaged, Place::Volume);
        context.add(finding.found("unless the volume was closed in order, its last syncs may be missing"));
    }
    let watermark = noted.map_or(0, |noted| noted.number);
    let mut last = superblock.transaction.get();
    // The pages so far, and how many records ended before each.
    let mut pages: Vec<(SegmentPage, usize)> = Vec::new();
    let layout = *medium.layout();
    medium.expect(cursor.rest(&layout));
    loop {
        let mut sealed = cursor.at.page >= layout.segment_pages;
        if !sealed {
            match medium.page(cursor.at, Some(cursor.sequence)) {
                Ok(page) if page.info.kind == PageKind::Journal => {
                    context.report.journal_pages += 1;
                    journal.enter(&cursor);
                    if page.info.flushed {
                        journal.sure = journal.records.len();
                    }
                    pages.push((cursor.at, journal.records.len()));
                    let bytes = page.records();
                    if let Some((before, _)) = flushed_before(bytes).map(|before| layout.page_of(before)) {
                        // The first page that the flush did not cover.
                        let first = pages.iter().find(|(at, _)| at.segment == before.segment && at.page >= before.page);
                        journal.sure = first.map_or(journal.sure, |(_, records)| journal.sure.max(*records));
                    }
                    let records = &mut journal.records;
                    if keeps_order {
                        // What waits no longer has been programmed.
                        medium.waiting_mut().clear();
                    }
                    let waiting = medium.waiting_mut();
                    let taken = assembler.page(bytes, &mut |record| {
                        match record {
                            Record::Chain { segment, sequence } => cursor.next = (segment, sequence),
                            Record::Commit { transaction, .. } => last = transaction,
                            Record::Waiting { location, bytes } => return waiting.add(&layout, location, bytes),
                            Record::Flushed { .. } => return Ok(()),
                            _ => {}
                        }
                        records.push(record);
                        if last <= watermark {
                            journal.sure = records.len();
                        }
                        Ok(())
                    });
                    if let Err(error) = taken {
                        let place = Place::Page { segment: cursor.at.segment, page: cursor.at.page };
                        let finding = Finding::new(Severity::Error, FindingKind::JournalRecordWrong, place);
                        context.add(finding.found(error.detail));
                        context.report.journal_end = JournalEnd::Damaged;
                        break;
                    }
                    cursor.at.page += 1;
                    continue;
                }
                Ok(page) if page.info.kind == PageKind::Summary => sealed = true,
                Ok(_) => {
                    end(medium, &cursor, Fault::Page(cursor.at, PageFault::Checksum), keeps_order, context);
                    break;
                }
                Err(fault) => {
                    end(medium, &cursor, fault, keeps_order, context);
                    break;
                }
            }
        }
        if sealed {
            journal.enter(&cursor);
            let (segment, sequence) = cursor.next;
            if sequence <= cursor.sequence || segment >= medium.layout().segments {
                let place = Place::Segment { segment: cursor.at.segment };
                let finding = Finding::new(Severity::Error, FindingKind::JournalRecordWrong, place);
                context.add(finding.found("the journal goes nowhere from here"));
                context.report.journal_end = JournalEnd::Damaged;
                break;
            }
            cursor = JournalCursor { at: layout.page(Stream::Journal, segment, 0), sequence, next: (segment, 0) };
            medium.expect(cursor.rest(&layout));
        }
    }
    // What a write buffer has beside the flash was durable, too: the mount with it tells.
    let is_alone = superblock.compatible.get() & FEATURE_BUFFERED == 0;
    if is_alone && last < watermark && context.report.journal_end != JournalEnd::Damaged {
        context.report.journal_end = JournalEnd::Damaged;
        let place = Place::Page { segment: cursor.at.segment, page: cursor.at.page };
        let finding = Finding::new(Severity::Error, FindingKind::JournalDamaged, place);
        context.add(finding.found(format!("it ends with commit {last}, and all up to {watermark} was durable once")));
    }
    if keeps_order || context.report.journal_end == JournalEnd::Damaged {
        journal.sure = journal.records.len();
    }
    context.report.journal_records = journal.records.len() as u64;
    journal
}

impl Journal {
    fn enter(&mut self, cursor: &JournalCursor) {
        let entry = (cursor.at.segment, cursor.sequence);
        if self.entered.last() != Some(&entry) {
            self.entered.push(entry);
        }
    }
}

/// The journal ends at `cursor`: in order, at a page that a cut hit, or because of a later damage.
fn end(medium: &mut Medium<'_>, cursor: &JournalCursor, fault: Fault, keeps_order: bool, context: &mut Context<'_>) {
    let place = Place::Page { segment: cursor.at.segment, page: cursor.at.page };
    let reused = matches!(fault, Fault::Page(_, PageFault::Sequence { found }) if found > cursor.sequence);
    let failed = matches!(fault, Fault::Medium(_) | Fault::Outside);
    if reused || failed || goes_on(medium, cursor, keeps_order) {
        context.report.journal_end = JournalEnd::Damaged;
        context.add(unreadable(Severity::Error, FindingKind::JournalDamaged, place, &fault));
    } else if fault == Fault::Page(cursor.at, PageFault::Checksum) {
        context.report.journal_end = JournalEnd::Torn;
    }
}

/// Whether pages of the journal follow that prove that this one had been there. A cut hits only the
/// last page, so any sound page proves it; where the host may lose pages out of order, only one
/// that was programmed after a flush does, or one that says of this page that it had been flushed.
fn goes_on(medium: &mut Medium<'_>, cursor: &JournalCursor, keeps_order: bool) -> bool {
    let rest = cursor.at.page + 1..medium.layout().segment_pages;
    let here = rest.into_iter().map(|page| (SegmentPage { page, ..cursor.at }, cursor.sequence));
    let there = (cursor.next.1 > cursor.sequence)
        .then_some((SegmentPage { segment: cursor.next.0, page: 0, ..cursor.at }, cursor.next.1));
    let layout = *medium.layout();
    let tells = |page: &Page| {
        let before = flushed_before(page.records()).map(|before| layout.page_of(before).0);
        page.info.flushed
            || before.is_some_and(|before| match before.segment == cursor.at.segment {
                true => before.page > cursor.at.page,
                false => cursor.next.1 > cursor.sequence && before.segment == cursor.next.0,
            })
    };
    here.chain(there)
        .any(|(at, sequence)| medium.page(at, Some(sequence)).is_ok_and(|page| keeps_order || tells(&page)))
}

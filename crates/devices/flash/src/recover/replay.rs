//! Roll-forward: what the journal holds after the newest checkpoint, noted down, and applied by the
//! same `apply` as live commits when it is needed ([`crate::index::deferred`]).
//!
//! The journal ends at the first page that is not a sound page of the expected segment life.
//! Whatever stood in the last sound page is moved, because a cut may have hit that page in a way
//! that shows only later, and a new checkpoint is written before the mount returns: a second crash
//! finds the same state.

mod unfinished;

use crate::core::Core;
use crate::index::bpram::buffer::{HeldPage, PagePlace};
use crate::log::record::{Assembler, Change, Piece, Record, flushed_before};
use crate::log::waiting::WaitingPages;
use crate::medium::errors::damaged;
use crate::medium::format::PageKind;
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::{PageFault, PageInfo};
use crate::medium::pages::VerifiedPage;
use crate::policy::Stream;
use crate::recover::gather::{Gathered, Gathering};
use crate::space::segments::SegmentState;
use alloc::format;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Condition, Error, ObjectId, Result, Severity};

/// Behind the end of the journal so many pages are looked at: damage of fewer in a row is told from
/// a cut.
const DAMAGED_IN_A_ROW: u32 = 8;

/// Content that a record of the last page placed: object, offset, place.
type Placed = (ObjectId, u64, Piece);

/// What a replay leaves to be done before anything else is written: content in the last page of the
/// journal moves, because that page may be readable now and not the next time. So does content
/// whose page may never have been programmed.
#[derive(Default)]
pub struct Recovery {
    last: Option<(SegmentPage, VerifiedPage)>,
    traces: Traces,
}

/// Content placed by the records that were replayed, as far as it may have to move.
#[derive(Default)]
struct Traces {
    /// By those of the last page.
    last: Vec<Placed>,
    /// With the last bytes that were placed in a segment.
    ends: Vec<Placed>,
    /// The page being replayed is known to have been flushed with all that it places.
    sure: bool,
    /// Commits up to this one are known to have been flushed with all that they place.
    watermark: u64,
}

impl Traces {
    fn add(&mut self, layout: &Layout, placed: Placed) {
        let end = |piece: Piece| layout.page_of((piece.location + u64::from(piece.length)).saturating_sub(1)).0;
        let at = end(placed.2);
        if self.sure {
            // What follows in another page proves that the one before was programmed.
            self.ends.retain(|(.., piece)| {
                let other = end(*piece);
                other.segment != at.segment || other.page >= at.page
            });
        }
        self.ends.push(placed);
        self.last.push(placed);
    }
}

/// How many of the journal pages at `places`, in the order of the journal, come before `before`: a
/// page among them, or one behind those of its segment.
fn count_before(places: &[SegmentPage], before: SegmentPage) -> usize {
    let last = places.iter().rposition(|at| at.segment == before.segment && at.page < before.page);
    last.map(|last| last + 1).or_else(|| places.iter().position(|at| *at == before)).unwrap_or(0)
}

/// Where the replay stands.
struct Cursor {
    at: SegmentPage,
    sequence: u32,
    /// The journal segment after this one.
    next: (u32, u32),
    /// The last sound page and what it holds.
    last: Option<(SegmentPage, VerifiedPage)>,
    /// Pages that need not be read any more.
    gathered: Gathering,
}

impl Core {
    /// Replays the journal in memory; nothing is written.
    pub fn replay(&mut self) -> Result<()> {
        let was_clean = self.checkpoint_state.clean;
        let keeps_order = self.log.store.nand().keeps_order();
        let noted = self.log.store.watermark()?;
        let watermark = noted.unwrap_or(0);
        let sure_pages = if keeps_order { u64::MAX } else { self.sure_pages()? };
        let mut cursor = self.journal_start();
        if keeps_order {
            cursor.gathered = self.gather()?;
        }
        let mut assembler = Assembler::default();
        let mut traces = Traces { watermark, ..Traces::default() };
        let fault = loop {
            if self.journal_damage.is_some() {
                // What came before this part of it is lost.
                break PageFault::Checksum;
            }
            let page = match self.next_page(&mut cursor)? {
                Ok(page) => page,
                Err(fault) => break fault,
            };
            self.statistics.pages_replayed += 1;
            traces.last.clear();
            traces.sure = self.statistics.pages_replayed <= sure_pages;
            let synced = self.synced_by_buffer(&cursor, &assembler);
            if let Err(error) = self.replay_page(&page, &mut assembler, &mut cursor, &mut traces) {
                match error.kind {
                    ErrorKind::Corrupt => {}
                    // All before what a write buffer has was durable: content that is missing there
                    // was lost since.
                    ErrorKind::Stale if self.log.transaction < synced => {}
                    // Content of a commit that was never flushed is lost: the commit never
                    // happened.
                    ErrorKind::Stale => break PageFault::Checksum,
                    _ => return Err(error),
                }
                self.journal_damage = Some(format!("the journal is damaged: {error}"));
                break PageFault::Checksum;
            }
        };
        let sure = self.statistics.pages_replayed < sure_pages;
        if let Some(held) = self.held.take().filter(|_| self.journal_damage.is_none()) {
            let (end, lost) = (PagePlace { at: cursor.at, sequence: cursor.sequence }, held.lost);
            self.replay_held(held, &mut assembler, &mut cursor, &mut traces)?;
            if lost == Some(end) && self.journal_damage.is_none() {
                let (segment, page) = (end.at.segment, end.at.page);
                let detail = format!("what the memory has of segment {segment} page {page} is damaged in its middle");
                self.journal_damage = Some(format!("the journal is damaged: {detail}"));
            }
        }
        // Pages are programmed in order: behind one that never was, not even the next one is.
        let goes_on = if keeps_order && fault == PageFault::Erased {
            self.next_page_is_sound(&cursor)?
        } else {
            sure && self.journal_goes_on(&cursor, fault)?
        };
        if self.journal_damage.is_none() && goes_on {
            let (segment, page) = (cursor.at.segment, cursor.at.page);
            self.journal_damage = Some(format!("the journal is damaged at segment {segment} page {page}"));
        }
        if self.journal_damage.is_none() && self.log.transaction < watermark {
            let (segment, page, last) = (cursor.at.segment, cursor.at.page, self.log.transaction);
            let ends = format!("the journal ends at segment {segment} page {page} with commit {last}");
            self.journal_short = Some(format!("{ends}, and all up to commit {watermark} was durable once"));
        }
        self.log.next_journal = (cursor.at.segment, cursor.sequence);
        let found_nothing = cursor.last.is_none() && matches!(fault, PageFault::Erased | PageFault::Sequence { .. });
        self.clean = was_clean && found_nothing;
        if noted.is_none() && !self.clean {
            let text = "the note of what was durable last is damaged: syncs right before the crash may be missing";
            let remedy = "compare what was synced last with its source";
            self.events.push(Condition::new("watermark-damaged", Severity::Degraded, text).remedy(remedy));
        }
        self.replay_access_times()?;
        self.finish_segments();
        // What never reached the medium is no damage.
        self.log.store.pages().forget_damaged_reads();
        self.pending = Recovery { last: cursor.last, traces };
        Ok(())
    }

    fn replay_page(
        &mut self,
        bytes: &[u8],
        assembler: &mut Assembler,
        cursor: &mut Cursor,
        traces: &mut Traces,
    ) -> Result<()> {
        let (mut records, mut waiting) = (Vec::new(), WaitingPages::default());
        let layout = self.log.store.layout;
        assembler.page(bytes, &mut |record| match record {
            Record::Waiting { location, bytes } => waiting.add(&layout, location, bytes),
            // `sure_pages` has asked for these.
            Record::Flushed { .. } => Ok(()),
            record => {
                records.push(record);
                Ok(())
            }
        })?;
        // What waits no longer was programmed before this page, if everything before it is sure to
        // be there.
        if traces.sure {
            self.log.waiting_pages.clear();
        }
        if !is_planted(Bug::WaitingForgotten) {
            self.log.waiting_pages.extend(waiting);
        }
        if is_planted(Bug::LastRecordDropped) && records.len() > 1 {
            records.pop();
        }
        for record in records {
            if let Record::Commit { transaction, changes } = &record
                && !traces.sure
                && *transaction > traces.watermark
            {
                self.require_content(changes)?;
            }
            self.replay_record(record, cursor, traces)?;
        }
        Ok(())
    }

    /// Replays the page that the write buffer has, if it is the one at which the journal on flash
    /// ends: it was never programmed, or the cut hit it. All before it was made durable first.
    fn replay_held(
        &mut self,
        held: HeldPage,
        assembler: &mut Assembler,
        cursor: &mut Cursor,
        traces: &mut Traces,
    ) -> Result<()> {
        let HeldPage { place: PagePlace { at, sequence }, content, frames, .. } = held;
        if (at, sequence) != (cursor.at, cursor.sequence) || is_planted(Bug::BesideHeldForgotten) {
            // Without an index in the memory this may be one that others wrote to the flash since.
            if (sequence, at.page) > (cursor.sequence, cursor.at.page) && self.bpram.is_some() {
                let detail = format!("the memory has page {} of segment {} of it", at.page, at.segment);
                self.journal_damage = Some(format!("the journal is damaged: {detail}, which ends before"));
            }
            return Ok(());
        }
        self.held_fits = true;
        self.enter_journal_segment(cursor);
        traces.last.clear();
        traces.sure = true;
        match self.replay_page(&frames, assembler, cursor, traces) {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                self.journal_damage = Some(format!("the journal is damaged: {error}"));
            }
            replayed => replayed?,
        }
        let layout = self.log.store.layout;
        let info = PageInfo {
            kind: PageKind::Journal,
            record_bytes: 0,
            echo_bytes: 0,
            sequence,
            spare_bytes: 0,
            flushed: false,
        };
        cursor.last = Some((at, VerifiedPage { payload: content.as_slice().into(), info }));
        if content.is_empty() {
            return Ok(());
        }
        self.log.waiting_pages.add(&layout, layout.location(at, 0), content)
    }

    /// Commits up to this one were synced, as the write buffer knows: all of them if it has a page
    /// behind the one that was read last, those that it has of this page as it was at the last
    /// sync, else none. `assembler` is that of before this page.
    fn synced_by_buffer(&self, cursor: &Cursor, assembler: &Assembler) -> u64 {
        let Some(held) = &self.held else { return 0 };
        let (held_at, read_up_to) = ((held.place.sequence, held.place.at.page), (cursor.sequence, cursor.at.page));
        if held_at >= read_up_to {
            return u64::MAX;
        }
        let mut last = 0;
        if (held_at.0, held_at.1 + 1) == read_up_to {
            let read = assembler.clone().page(&held.frames, &mut |record| {
                if let Record::Commit { transaction, .. } = record {
                    last = transaction;
                }
                Ok(())
            });
            if read.is_err() {
                return 0;
            }
        }
        last
    }

    /// Where the replay begins.
    fn journal_start(&self) -> Cursor {
        let start = &self.checkpoint_state;
        Cursor {
            at: SegmentPage { segment: start.journal_segment, page: start.journal_page },
            sequence: start.journal_sequence,
            next: start.journal_next,
            last: None,
            gathered: Gathering::new(),
        }
    }

    /// On a medium that may lose what was not flushed in any order: how many journal pages from the
    /// start of the replay are known to have been flushed with all that they place. The pages after
    /// them may miss some of their content, and a page missing among those is no damage.
    fn sure_pages(&mut self) -> Result<u64> {
        let mut cursor = self.journal_start();
        let mut assembler = Assembler::default();
        let layout = self.log.store.layout;
        let (mut places, mut sure) = (Vec::new(), 0);
        while let Ok(page) = self.next_page(&mut cursor)? {
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
            if assembler.page(&page, noted).is_err() || cursor.next.0 >= layout.segments {
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
            let address = layout.address(SegmentPage { page, ..cursor.at });
            match self.log.store.examine(address, Some(cursor.sequence), IoTag::Recovery)? {
                // The page missing here had been flushed: one more than were found is sure to have
                // existed.
                Ok(found) if tells(&found) => return Ok(pages + 1),
                // Some that look so may have been programmed.
                Err(PageFault::Erased) if erased == DAMAGED_IN_A_ROW => break,
                Err(PageFault::Erased) => erased += 1,
                _ => erased = 0,
            }
        }
        // The last page of a segment has those that follow it in the next one.
        for at in self.next_segment(&cursor, 1 + DAMAGED_IN_A_ROW) {
            let found = self.log.store.examine(layout.address(at), Some(cursor.next.1), IoTag::Recovery)?;
            if found.is_ok_and(|found| tells(&found)) {
                return Ok(pages + 1);
            }
        }
        Ok(sure as u64)
    }

    /// The first `count` pages of the journal segment after this one, if it has a name.
    fn next_segment(&self, cursor: &Cursor, count: u32) -> impl Iterator<Item = SegmentPage> + use<> {
        let layout = self.log.store.layout;
        let (segment, sequence) = cursor.next;
        let is_named = sequence > cursor.sequence && segment < layout.segments;
        let count = if is_named { count.min(layout.segment_pages) } else { 0 };
        (0..count).map(move |page| SegmentPage { segment, page })
    }

    /// Refuses a commit some of whose content did not reach the medium.
    fn require_content(&mut self, changes: &[Change]) -> Result<()> {
        for change in changes {
            let Change::Place { object, pieces, .. } = change else { continue };
            for piece in pieces {
                let mut bytes = alloc::vec![0; piece.length as usize];
                if let Err(error) = self.log.read(piece.location, &mut bytes, IoTag::Recovery) {
                    let kind = if error.kind == ErrorKind::Corrupt { ErrorKind::Stale } else { error.kind };
                    return Err(Error { kind, object: Some(*object), ..error });
                }
            }
        }
        Ok(())
    }

    /// Whether the page behind the one at which the journal seems to end is one of the journal.
    fn next_page_is_sound(&mut self, cursor: &Cursor) -> Result<bool> {
        let at = SegmentPage { page: cursor.at.page + 1, ..cursor.at };
        let layout = self.log.store.layout;
        if at.page >= layout.segment_pages || matches!(cursor.gathered.get(&at), Some(Gathered::Nothing)) {
            return Ok(false);
        }
        Ok(self.log.store.examine(layout.address(at), Some(cursor.sequence), IoTag::Recovery)?.is_ok())
    }

    /// Whether the journal goes on behind the page at which it seems to end, in the same segment or
    /// in the next one. A cut hits only the last page, so then that page was damaged later. A page
    /// of a later life of the segment says the same: this superblock is not the newest any more.
    fn journal_goes_on(&mut self, cursor: &Cursor, fault: PageFault) -> Result<bool> {
        if matches!(fault, PageFault::Sequence { found } if found > cursor.sequence) {
            return Ok(true);
        }
        let layout = self.log.store.layout;
        let near = cursor.at.page + 1..layout.segment_pages.min(cursor.at.page + 1 + DAMAGED_IN_A_ROW);
        let here = near.map(|page| (SegmentPage { page, ..cursor.at }, cursor.sequence));
        let count = if self.log.store.nand().keeps_order() { 1 } else { 1 + DAMAGED_IN_A_ROW };
        let there = self.next_segment(cursor, count).map(|at| (at, cursor.next.1));
        for (at, sequence) in here.chain(there) {
            let is_known = matches!(cursor.gathered.get(&at), Some(Gathered::Nothing));
            if !is_known && self.log.store.examine(layout.address(at), Some(sequence), IoTag::Recovery)?.is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The record bytes of the next journal page, following the chain; the fault that ends the
    /// journal otherwise.
    fn next_page(&mut self, cursor: &mut Cursor) -> Result<core::result::Result<Vec<u8>, PageFault>> {
        let layout = self.log.store.layout;
        loop {
            let gathered = cursor.gathered.remove(&cursor.at);
            if let Some(Gathered::Nothing) = gathered {
                return Ok(Err(PageFault::Erased));
            }
            if is_planted(Bug::MixedPageEnds) && matches!(&gathered, Some(Gathered::Records(all)) if all.is_empty()) {
                return Ok(Err(PageFault::Erased));
            }
            if let Some(Gathered::Records(records)) = gathered {
                self.enter_journal_segment(cursor);
                cursor.at.page += 1;
                return Ok(Ok(records));
            }
            if let Some(Gathered::Last(page)) = gathered {
                let records = page.records().to_vec();
                self.enter_journal_segment(cursor);
                cursor.last = Some((cursor.at, page));
                cursor.at.page += 1;
                return Ok(Ok(records));
            }
            if cursor.at.page < layout.segment_pages && gathered.is_none() {
                let address = layout.address(cursor.at);
                match self.log.store.examine(address, Some(cursor.sequence), IoTag::Recovery)? {
                    Ok(page) if page.info.kind == PageKind::Journal => {
                        let records = page.records().to_vec();
                        self.enter_journal_segment(cursor);
                        cursor.last = Some((cursor.at, page));
                        cursor.at.page += 1;
                        return Ok(Ok(records));
                    }
                    Ok(page) if page.info.kind == PageKind::Summary => {}
                    // What another stream once left here ends the journal like any other life of
                    // the segment.
                    Ok(page) => return Ok(Err(PageFault::Sequence { found: page.info.sequence })),
                    Err(fault) => return Ok(Err(fault)),
                }
            }
            self.enter_journal_segment(cursor);
            if self.log.table.get(cursor.at.segment).summary_page == crate::medium::format::NO_SUMMARY
                && cursor.at.page < layout.segment_pages
            {
                self.log.table.update(cursor.at.segment, |entry| entry.summary_page = cursor.at.page as u16);
            }
            // A chain never leads back: sequence numbers ascend.
            if cursor.next.1 <= cursor.sequence {
                return Err(damaged("the journal runs in a circle"));
            }
            cursor.at = SegmentPage { segment: cursor.next.0, page: 0 };
            cursor.sequence = cursor.next.1;
            cursor.next = (cursor.next.0, 0);
        }
    }

    /// A page of this journal segment was found: it is in use with this sequence number.
    fn enter_journal_segment(&mut self, cursor: &Cursor) {
        self.log.table.update(cursor.at.segment, |entry| {
            if entry.sequence != cursor.sequence || entry.stream != Stream::Journal {
                entry.summary_page = crate::medium::format::NO_SUMMARY;
            }
            entry.state = SegmentState::Full;
            entry.stream = Stream::Journal;
            entry.sequence = cursor.sequence;
        });
        let next_sequence = &mut self.log.table.next_sequence;
        *next_sequence = (*next_sequence).max(cursor.sequence + 1);
    }

    fn replay_record(&mut self, record: Record, cursor: &mut Cursor, traces: &mut Traces) -> Result<()> {
        self.statistics.records_replayed += 1;
        let segments = self.log.store.layout.segments;
        match record {
            // Taken from the page before its other records.
            Record::Waiting { .. } | Record::Flushed { .. } => Ok(()),
            Record::Chain { segment, sequence }
            | Record::Opened { segment, sequence, .. }
            | Record::OpenedAtime { segment, sequence, .. }
                if segment >= segments || sequence == u32::MAX =>
            {
                Err(damaged(format!("the journal names segment {segment} of {segments}")))
            }
            Record::Chain { segment, sequence } => {
                cursor.next = (segment, sequence);
                let next_sequence = &mut self.log.table.next_sequence;
                *next_sequence = (*next_sequence).max(sequence + 1);
                Ok(())
            }
            Record::Opened { segment, sequence, erases } | Record::OpenedAtime { segment, sequence, erases } => {
                // The log of access times is read afterwards, in segments that are open.
                let (state, stream) = match record {
                    Record::OpenedAtime { .. } => (SegmentState::Open, Stream::Atime),
                    _ => (SegmentState::Full, Stream::Data),
                };
                self.log.table.update(segment, |entry| {
                    entry.state = state;
                    entry.stream = stream;
                    entry.sequence = sequence;
                    entry.erases = erases;
                    entry.summary_page = crate::medium::format::NO_SUMMARY;
                });
                let next_sequence = &mut self.log.table.next_sequence;
                *next_sequence = (*next_sequence).max(sequence + 1);
                Ok(())
            }
            Record::Commit { transaction, changes } => {
                if transaction != self.log.transaction + 1 {
                    let expected = self.log.transaction + 1;
                    return Err(damaged(format!("the journal holds commit {transaction} where {expected} should be")));
                }
                self.log.transaction = transaction;
                for change in changes {
                    if let Change::Place { object, offset, pieces } = &change {
                        let mut at = *offset;
                        for piece in pieces {
                            traces.add(&self.log.store.layout, (*object, at, *piece));
                            at += u64::from(piece.length);
                        }
                    }
                    self.defer(change)?;
                }
                Ok(())
            }
        }
    }
}

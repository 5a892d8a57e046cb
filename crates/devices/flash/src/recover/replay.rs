//! Roll-forward: what the journal holds after the newest checkpoint, noted down, and applied by the
//! same `apply` as live commits when it is needed ([`crate::index::deferred`]).
//!
//! The journal ends at the first page that is not a sound page of the expected segment life.
//! Whatever stood in the last sound page is moved, because a cut may have hit that page in a way
//! that shows only later, and a new checkpoint is written before the mount returns: a second crash
//! finds the same state.

mod ending;
mod held;
mod pages;
mod unfinished;

pub use unfinished::finish_segments;

use crate::index::bpram::buffer::{HeldPage, PagePlace};
use crate::log::record::{Assembler, Change, Piece, Record};
use crate::log::waiting::WaitingPages;
use crate::medium::errors::damaged;
use crate::medium::format::FEATURE_MEMORY;
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::{Examined, PageFault};
use crate::medium::pages::VerifiedPage;
use crate::policy::Stream;
use crate::recover::scan::{Scan, scan_journal};
use crate::space::segments::SegmentState;
use crate::volume::Volume;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Condition, Error, Mutation, ObjectId, Result, Severity};

/// Content that a record of the last page placed: object, offset, place.
type Placed = (ObjectId, u64, Piece);

/// What a replay leaves to be done before anything else is written: content in the last page of the
/// journal moves, because that page may be readable now and not the next time. So does content
/// whose page may never have been programmed.
#[derive(Default)]
struct Pending {
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

/// Where the replay stands.
struct Cursor {
    at: SegmentPage,
    sequence: u32,
    /// The journal segment after this one.
    next: (u32, u32),
    /// The last sound page and what it holds.
    last: Option<(SegmentPage, VerifiedPage)>,
    /// Pages that need not be read any more.
    scanned: Scan,
}

/// What a mount finds behind the newest checkpoint.
#[derive(Default)]
pub struct Recovery {
    /// What a write buffer has of the journal, until it is replayed.
    held: Option<HeldPage>,
    /// That was the page at which the journal on flash ends.
    held_fits: bool,
    /// Where and how the journal is damaged, if it is.
    damage: Option<String>,
    /// That it ends before what was durable once, if it does: nothing follows that could be damaged
    /// by going on.
    short: Option<String>,
    /// The checkpoint is not the newest one: later ones may have let go what it refers to.
    of_older: bool,
    /// What is left to be done.
    pending: Pending,
    /// Journal pages that were read.
    pages: u64,
    /// Records that were replayed.
    records: u64,
}

impl Recovery {
    /// Nothing was found yet; `held` is what a write buffer has of the journal.
    pub fn new(held: Option<HeldPage>) -> Self {
        Self { held, ..Self::default() }
    }

    /// Of a checkpoint that is not the newest one: the replay ends where a segment was opened anew
    /// that has something of it, and all before that is as it was.
    pub fn of_older() -> Self {
        Self { of_older: true, ..Self::default() }
    }

    /// Whether the write buffer had synced changes that the flash lacks.
    pub const fn held_fits(&self) -> bool {
        self.held_fits
    }

    /// Where and how the journal is damaged, if it is.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// That the journal ends before what was durable once, if it does.
    pub fn short(&self) -> Option<&str> {
        self.short.as_deref()
    }

    /// What the checkpoint took over of the journal is damaged.
    pub fn note_deferred_damaged(&mut self, error: &Error) {
        self.damage = Some(format!("what a checkpoint took over of the journal is damaged: {error}"));
    }

    /// What is wrong with the journal, which is no longer said then: the volume goes on without.
    pub fn take_loss(&mut self) -> Option<String> {
        self.damage.take().or(self.short.take())
    }

    /// Journal pages that were read, and records that were replayed.
    pub const fn replayed(&self) -> (u64, u64) {
        (self.pages, self.records)
    }

    /// Replays the journal in memory; nothing is written. Returns what should be told about it.
    pub fn replay(&mut self, volume: &mut Volume<'_>) -> Result<Option<Condition>> {
        let was_clean = volume.checkpoints.state().clean;
        let keeps_order = volume.log.store().keeps_order();
        let noted = volume.log.watermark()?;
        let watermark = noted.number;
        let sure_pages = if keeps_order { u64::MAX } else { self.sure_pages(volume)? };
        let mut cursor = self.journal_start(volume);
        if keeps_order {
            cursor.scanned = scan_journal(volume.log, volume.checkpoints.state())?;
        }
        let mut assembler = Assembler::default();
        let mut traces = Traces { watermark, ..Traces::default() };
        let fault = loop {
            if self.damage.is_some() {
                // What came before this part of it is lost.
                break PageFault::Checksum;
            }
            let records = match self.next_page(volume, &mut cursor)? {
                Examined::Sound(records) => records,
                Examined::Unsound(fault) => break fault,
            };
            self.pages += 1;
            traces.last.clear();
            traces.sure = self.pages <= sure_pages;
            let synced = self.synced_by_buffer(&cursor, &assembler);
            if let Err(error) = self.replay_page(volume, &records, &mut assembler, &mut cursor, &mut traces) {
                match error.kind {
                    ErrorKind::Corrupt => {}
                    // All before what a write buffer has was durable: content that is missing there
                    // was lost since.
                    ErrorKind::Stale if volume.log.transaction() < synced => {}
                    // Content of a commit that was never flushed is lost: the commit never
                    // happened.
                    ErrorKind::Stale => break PageFault::Checksum,
                    _ => return Err(error),
                }
                self.damage = Some(format!("the journal is damaged: {error}"));
                break PageFault::Checksum;
            }
        };
        let sure = self.pages < sure_pages;
        if let Some(held) = self.held.take().filter(|_| self.damage.is_none()) {
            let (end, lost) = (PagePlace::of(cursor.at, cursor.sequence), held.lost);
            self.replay_held(volume, held, &mut assembler, &mut cursor, &mut traces)?;
            if lost == Some(end) && self.damage.is_none() {
                let (segment, page, last) = (end.segment, end.page, volume.log.transaction());
                // No page of flash comes behind it, so the volume can go on from here.
                self.short = Some(format!(
                    "what the write buffer has of segment {segment} page {page} is damaged in its middle, and what was \
                     done after commit {last} is not found"
                ));
            }
        }
        // Pages are programmed in order: behind one that never was, not even the next one is.
        let goes_on = if keeps_order && fault == PageFault::Erased {
            self.next_page_is_sound(volume, &cursor)?
        } else {
            sure && self.journal_goes_on(volume, &cursor, fault)?
        };
        if self.damage.is_none() && goes_on {
            let (segment, page) = (cursor.at.segment, cursor.at.page);
            self.damage = Some(format!("the journal is damaged at segment {segment} page {page}"));
        }
        if self.damage.is_none() && self.short.is_none() && volume.log.transaction() < watermark {
            let (segment, page, last) = (cursor.at.segment, cursor.at.page, volume.log.transaction());
            let ends = format!("the journal ends at segment {segment} page {page} with commit {last}");
            self.short = Some(format!("{ends}, and all up to commit {watermark} was durable once"));
        }
        volume.log.set_next_journal(cursor.at.segment, cursor.sequence);
        let found_nothing = cursor.last.is_none() && matches!(fault, PageFault::Erased | PageFault::Sequence { .. });
        // What was given up would be missing again, were nothing written in its place.
        volume.checkpoints.set_clean(was_clean && found_nothing && self.short.is_none());
        // A volume that seems to be closed may have had one commit since, in a page that is lost.
        let told = noted.is_damaged.then(|| {
            let text = "a note of what was durable last is damaged: unless the volume was closed in order, its last \
                        syncs may be missing";
            let remedy = "compare what was synced last with its source";
            Condition::new("watermark-damaged", Severity::Degraded, text).remedy(remedy)
        });
        volume.replay_access_times()?;
        finish_segments(volume.log);
        // What never reached the medium is no damage.
        volume.log.store().pages().forget_damaged_reads();
        self.pending = Pending { last: cursor.last, traces };
        Ok(told)
    }

    fn replay_page(
        &mut self,
        volume: &mut Volume<'_>,
        bytes: &[u8],
        assembler: &mut Assembler,
        cursor: &mut Cursor,
        traces: &mut Traces,
    ) -> Result<()> {
        let (mut records, mut waiting) = (Vec::new(), WaitingPages::default());
        let layout = *volume.log.layout();
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
            volume.log.waiting_pages_mut().clear();
        }
        if !is_planted(Bug::WaitingForgotten) {
            volume.log.waiting_pages_mut().extend(waiting);
        }
        if is_planted(Bug::LastRecordDropped) && records.len() > 1 {
            records.pop();
        }
        for record in records {
            if let Record::Commit { transaction, changes } = &record
                && !traces.sure
                && *transaction > traces.watermark
            {
                self.require_content(volume, changes)?;
            }
            self.replay_record(volume, record, cursor, traces)?;
        }
        Ok(())
    }

    /// Refuses a commit some of whose content did not reach the medium.
    fn require_content(&mut self, volume: &mut Volume<'_>, changes: &[Change]) -> Result<()> {
        for change in changes {
            let Change::Place { object, pieces, .. } = change else { continue };
            for piece in pieces {
                let mut bytes = alloc::vec![0; piece.length as usize];
                if let Err(error) = volume.log.read(piece.location, &mut bytes, IoTag::Recovery) {
                    let mut error = error.about(*object);
                    if error.kind == ErrorKind::Corrupt {
                        error.kind = ErrorKind::Stale;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn replay_record(
        &mut self,
        volume: &mut Volume<'_>,
        record: Record,
        cursor: &mut Cursor,
        traces: &mut Traces,
    ) -> Result<()> {
        self.records += 1;
        let segments = volume.log.layout().segments;
        match record {
            // Taken from the page before its other records.
            Record::Waiting { .. } | Record::Flushed { .. } => Ok(()),
            Record::Chain { segment, sequence } | Record::Opened { segment, sequence, .. }
                if segment >= segments || sequence == u32::MAX =>
            {
                Err(damaged(format!("the journal names segment {segment} of {segments}")))
            }
            Record::Opened { segment, stream, .. } if !volume.log.layout().has_stream(stream) => {
                let stream = stream.name();
                Err(damaged(format!("the journal opens segment {segment} for {stream}, which the volume has not")))
            }
            Record::Opened { segment, sequence, .. } if self.lost_to(volume, segment, sequence) => {
                Err(damaged(format!("segment {segment} was opened anew, and the checkpoint is of before")))
            }
            Record::Chain { segment, sequence } => {
                cursor.next = (segment, sequence);
                volume.log.table_mut().skip_to(sequence + 1);
                Ok(())
            }
            Record::Opened { segment, sequence, erases, stream } => {
                // The log of access times is read afterwards, in segments that are open.
                let state = if stream == Stream::Atime { SegmentState::Open } else { SegmentState::Full };
                volume.log.table_mut().update(segment, |entry| {
                    entry.state = state;
                    entry.stream = stream;
                    entry.sequence = sequence;
                    entry.erases = erases;
                    entry.summary_page = crate::medium::format::NO_SUMMARY;
                });
                volume.log.table_mut().skip_to(sequence + 1);
                Ok(())
            }
            Record::Commit { transaction, changes } => {
                if transaction != volume.log.transaction() + 1 {
                    let expected = volume.log.transaction() + 1;
                    return Err(damaged(format!("the journal holds commit {transaction} where {expected} should be")));
                }
                volume.log.set_transaction(transaction);
                let at_once = volume.checkpoints.has_feature(FEATURE_MEMORY);
                for change in changes {
                    if matches!(change, Change::Mutation(Mutation::SetHints { .. }))
                        && volume.log.layout().chosen_parity.is_some()
                    {
                        volume.checkpoints.set_parity_pending(true);
                    }
                    if let Change::Place { object, offset, pieces } = &change {
                        let mut at = *offset;
                        for piece in pieces {
                            traces.add(volume.log.layout(), (*object, at, *piece));
                            at += u64::from(piece.length);
                        }
                    }
                    volume.index.defer(volume.log, change, at_once)?;
                }
                Ok(())
            }
        }
    }
}

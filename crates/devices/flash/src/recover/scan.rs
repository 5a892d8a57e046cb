//! Scanning the journal backward: the records behind a checkpoint from a few pages, with the help
//! of echoes.
//!
//! The journal is programmed in order, so its last page is found by bisection; from the last page
//! of each segment the way leads backward, past the pages that an echo repeats. What is found this
//! way goes through the same replay as pages read one by one. Whatever does not fit ends the
//! scan without a result, and the replay reads every page.

use crate::commit::checkpoint::CheckpointState;
use crate::log::Log;
use crate::log::echo;
use crate::log::record::{Record, first_record};
use crate::medium::format::PageKind;
use crate::medium::layout::SegmentPage;
use crate::medium::page::{Examined, PageFault};
use crate::medium::pages::VerifiedPage;
use crate::policy::Stream;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::Error;

/// What was scanned of one page of a journal segment.
pub enum Scanned {
    /// Its records, repeated by a later page or read.
    Records(Vec<u8>),
    /// The last page of the journal itself.
    Last(VerifiedPage),
    /// The summary starts here.
    Summary,
    /// It was never programmed: the journal ends before it.
    Nothing,
}

/// What was scanned, by place.
pub type Scan = BTreeMap<SegmentPage, Scanned>;

/// A journal segment: its number, sequence number and the first page to be replayed.
#[derive(Clone, Copy)]
struct JournalSegment {
    segment: u32,
    sequence: u32,
    first: u32,
}

/// Why a scan ended before its end.
enum Stop {
    /// Something does not fit: the journal has to be read page by page.
    Odd,
    /// The medium failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Result<T> = core::result::Result<T, Stop>;

/// A scan in progress.
struct Scanner<'a> {
    log: &'a mut Log,
    /// Where the journal begins.
    start: &'a CheckpointState,
    /// Pages looked at while searching; some are needed again. Those of the way back are not: they
    /// may be many.
    seen: BTreeMap<SegmentPage, Examined<VerifiedPage>>,
    scan: Scan,
}

/// Scans the journal behind the checkpoint `start`; empty if that does not work.
///
/// # Errors
/// Of the medium.
pub fn scan_journal(log: &mut Log, start: &CheckpointState) -> onode_object::Result<Scan> {
    let mut scanner = Scanner { log, start, seen: BTreeMap::new(), scan: Scan::new() };
    match scanner.run() {
        Ok(()) => {}
        Err(Stop::Odd) => scanner.scan.clear(),
        Err(Stop::Failed(error)) => return Err(error),
    }
    let Scanner { seen, mut scan, .. } = scanner;
    // What was seen to be erased need not be read again, above all the page after the last.
    let erased = seen.into_iter().filter(|(_, found)| found.is_erased());
    scan.extend(erased.map(|(at, _)| (at, Scanned::Nothing)));
    Ok(scan)
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<()> {
        let parts = self.parts()?;
        let count = parts.len();
        for (number, part) in (1..).zip(parts) {
            self.part(part, number == count)?;
        }
        Ok(())
    }

    /// The segments that the journal went through, along the chain.
    fn parts(&mut self) -> Result<Vec<JournalSegment>> {
        let start = self.start;
        let mut part = JournalSegment {
            segment: start.journal_segment,
            sequence: start.journal_sequence,
            first: start.journal_page,
        };
        let mut next = start.journal_next;
        let mut parts = Vec::new();
        if part.first == 0 {
            // Its own first page names the next one.
            next = self.chain(part)?.ok_or(Stop::Odd)?;
        }
        loop {
            parts.push(part);
            if next.1 <= part.sequence || next.0 >= self.log.layout().segments {
                return Ok(parts);
            }
            part = JournalSegment { segment: next.0, sequence: next.1, first: 0 };
            match self.chain(part)? {
                Some(chain) => next = chain,
                None => return Ok(parts),
            }
        }
    }

    /// Where the first page of a journal segment says that the journal goes on; `None` without such
    /// a page.
    fn chain(&mut self, part: JournalSegment) -> Result<Option<(u32, u32)>> {
        let Examined::Sound(page) = self.look(part, 0)? else { return Ok(None) };
        Ok(match first_record(page.records()) {
            Some(Record::Chain { segment, sequence }) if page.info.kind == PageKind::Journal => {
                Some((segment, sequence))
            }
            _ => None,
        })
    }

    /// Scans the pages of one segment, the last one first.
    fn part(&mut self, part: JournalSegment, is_last: bool) -> Result<()> {
        let (mut after, mut last_wanted) = (self.programmed(part, is_last)?, is_last);
        let end = after;
        while after > part.first {
            let at = self.page(part, after - 1);
            let seen = self.seen.remove(&at);
            let found = match seen.map_or_else(|| self.read(part, at.page), Ok)? {
                Examined::Sound(found) => found,
                // A cut hit the last page; the replay will end there.
                Examined::Unsound(PageFault::Checksum) if is_last && after == end => {
                    after -= 1;
                    continue;
                }
                Examined::Unsound(_) => return Err(Stop::Odd),
            };
            match found.info.kind {
                PageKind::Summary if last_wanted == is_last => {
                    self.scan.remove(&SegmentPage { page: after, ..at });
                    self.scan.insert(at, Scanned::Summary);
                }
                PageKind::Journal => {
                    let mut echoed = echo::decode(found.echo()).ok_or(Stop::Odd)?;
                    if is_planted(Bug::EchoReversed) {
                        echoed.reverse();
                    }
                    for records in echoed.iter().take((at.page - part.first) as usize) {
                        after -= 1;
                        let before = SegmentPage { page: after - 1, ..at };
                        self.scan.insert(before, Scanned::Records(records.to_vec()));
                    }
                    let scanned = if core::mem::take(&mut last_wanted) {
                        Scanned::Last(found)
                    } else {
                        Scanned::Records(found.records().to_vec())
                    };
                    self.scan.insert(at, scanned);
                }
                _ => return Err(Stop::Odd),
            }
            after -= 1;
        }
        Ok(())
    }

    /// The page after the last one of a segment that is not erased.
    fn programmed(&mut self, part: JournalSegment, is_last: bool) -> Result<u32> {
        let pages = self.log.layout().segment_pages;
        let (mut low, mut high) = (part.first, pages);
        // A segment that was filled ends with its summary. If the page before it is one of the
        // journal, the summary has the last page alone, and need not be looked at: what names the
        // next segment was written behind it.
        let summary = self.page(part, pages - 1);
        let is_journal = |found: &Examined<VerifiedPage>| matches!(found, Examined::Sound(page) if page.info.kind == PageKind::Journal);
        if !is_last && low < pages {
            let before = if low < summary.page { Some(self.look(part, summary.page - 1)?) } else { None };
            match before {
                Some(Examined::Unsound(PageFault::Erased)) => high = summary.page - 1,
                Some(found) if !is_journal(&found) => {
                    let is_erased = self.look(part, summary.page)?.is_erased();
                    return Ok(if is_erased { summary.page } else { pages });
                }
                _ => {
                    self.scan.insert(summary, Scanned::Summary);
                    return Ok(summary.page);
                }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.look(part, middle)?.is_erased() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    const fn page(&self, part: JournalSegment, page: u32) -> SegmentPage {
        self.log.layout().page(Stream::Journal, part.segment, page)
    }

    /// Page `page` of a segment; it is read once.
    fn look(&mut self, part: JournalSegment, page: u32) -> Result<Examined<VerifiedPage>> {
        let at = self.page(part, page);
        if let Some(seen) = self.seen.get(&at) {
            return Ok(seen.clone());
        }
        let found = self.read(part, page)?;
        self.seen.insert(at, found.clone());
        Ok(found)
    }

    fn read(&mut self, part: JournalSegment, page: u32) -> Result<Examined<VerifiedPage>> {
        Ok(self.log.examine(self.page(part, page), Some(part.sequence))?)
    }
}

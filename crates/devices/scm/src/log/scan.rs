//! Reading the log back: which segments, which records, and where it ends.
//!
//! The log ends at the first record that is not sound, because every record before it was durable
//! or could not be missed. If more was promised, be it by a record further on, the superblock or
//! the mark ([`mark`](crate::log::mark)), the memory is damaged: what is missing is noted, and the
//! log goes on with what is there. Whoever opens it decides about that.

use crate::log::losses::Losses;
use crate::log::search::FoundSegments;
use crate::medium::format::{FIRST_RECORD, RECORD_HEADER, RecordHead, SegmentHead, Superblock, record_key, salt_of};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_media::pmem::LINE_BYTES;
use onode_object::Result;
use std::ops::Range;

/// Records behind the end of the log are looked for from so many sessions.
const MOST_SESSIONS_TRIED: usize = 16;

/// The records of one segment in memory, one after another, verified.
pub(crate) struct Records<'a> {
    segment: &'a [u8],
    key: u32,
    position: usize,
    sequence: u64,
}

/// A verified record: where its items begin in the segment, and they.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub head: RecordHead,
    /// Where the record begins in the segment.
    pub start: u64,
    pub items: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records of a segment with this head.
    pub(crate) fn of_segment(segment: &'a [u8], salt: u64, head: &SegmentHead) -> Self {
        let key = record_key(salt, head.session);
        Self { segment, key, position: FIRST_RECORD as usize, sequence: head.first_record }
    }

    fn at(&self, position: usize) -> Option<Record<'a>> {
        let rest = self.segment.get(position..)?;
        let head = RecordHead::peek(rest, self.sequence)?;
        let record = rest.get(..head.bytes as usize)?;
        let sound = head.is_sound(record, self.key);
        sound.then_some(Record { head, start: position as u64, items: &record[RECORD_HEADER as usize..] })
    }

    /// Whether a sound record behind the end says that the next one had been durable.
    fn misses_one(&self) -> bool {
        self.behind().any(|record| says_durable(&record.head, self.sequence))
    }

    /// Sound records behind the end.
    fn behind(&self) -> impl Iterator<Item = Record<'a>> {
        let lines = (self.position..self.segment.len()).step_by(LINE_BYTES as usize);
        lines.filter_map(|position| self.at(position)).filter(|record| record.head.sequence > self.sequence)
    }

    /// Goes on with the first sound record behind the end, if there is one; the numbers of those
    /// that are left out, and their bytes.
    pub(crate) fn resume(&mut self) -> Option<(Range<u64>, &'a [u8])> {
        let next = self.behind().next()?;
        let (numbers, bytes) =
            (self.sequence..next.head.sequence, self.segment.get(self.position..next.start as usize)?);
        (self.position, self.sequence) = (next.start as usize, next.head.sequence);
        Some((numbers, bytes))
    }
}

/// Whether a record says that the one of this number was durable before it was written.
fn says_durable(head: &RecordHead, sequence: u64) -> bool {
    head.sequence > sequence && head.sequence - u64::from(head.unfenced) > sequence
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = self.at(self.position).filter(|record| record.head.sequence == self.sequence)?;
        self.position = (self.position + record.head.bytes as usize).next_multiple_of(LINE_BYTES as usize);
        self.sequence += 1;
        Some(record)
    }
}

/// A record on the memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordAt {
    pub head: RecordHead,
    pub address: u64,
}

/// What a log holds.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Segments that hold records of the log, oldest first.
    pub segments: Vec<(u64, SegmentHead)>,
    pub records: Vec<RecordAt>,
    /// What was promised and is not there.
    pub losses: Losses,
}

/// Where the log is read from, and how far it has to reach.
struct LogSource<'a, P: Pmem + ?Sized> {
    memory: &'a P,
    superblock: &'a Superblock,
    area: Range<u64>,
    salt: u64,
    /// Records below this number are durable.
    promised: u64,
    /// Segments that lie anywhere in the area, once somebody asked.
    found: Option<FoundSegments>,
    segment: Vec<u8>,
}

impl<P: Pmem + ?Sized> LogSource<'_, P> {
    fn segment_bytes(&self) -> u64 {
        u64::from(self.superblock.chunk_bytes)
    }

    /// Whether a segment may lie there.
    fn is_inside(&self, address: u64) -> bool {
        let bytes = self.segment_bytes();
        address.is_multiple_of(bytes) && address >= self.area.start && address.saturating_add(bytes) <= self.area.end
    }

    /// The head at an address, if it is that of the segment of a number. A session above the
    /// superblock's tells that the superblock is an older one.
    fn head_at(&self, address: u64, number: u64, session: u64) -> Option<SegmentHead> {
        if !self.is_inside(address) {
            return None;
        }
        let mut bytes = [0; SegmentHead::BYTES];
        self.memory.read(address, &mut bytes);
        SegmentHead::decode(&bytes, self.salt).filter(|head| head.sequence == number && head.session >= session)
    }

    /// The first segment from a number on, wherever it is.
    fn find(&mut self, number: u64) -> Option<(u64, SegmentHead)> {
        let (memory, area, bytes, salt) = (self.memory, self.area.clone(), self.segment_bytes(), self.salt);
        self.found.get_or_insert_with(|| FoundSegments::in_area(memory, area, bytes, salt)).first_from(number)
    }
}

impl Scan {
    /// Reads the log that the superblock names. Records below `promised` are durable.
    pub(crate) fn read<P: Pmem + ?Sized>(
        memory: &P,
        superblock: &Superblock,
        area: Range<u64>,
        promised: u64,
    ) -> Result<Self> {
        let (salt, segment) = (salt_of(&superblock.uuid), vec![0; superblock.chunk_bytes as usize]);
        let mut reading = LogSource { memory, superblock, area, salt, promised, found: None, segment };
        let mut scan = Self::default();
        let (mut address, mut number, mut session) = (superblock.tail, superblock.tail_sequence, 0);
        loop {
            let mut next = reading.head_at(address, number, session).map(|head| (address, head));
            let goes_on = next.is_some_and(|(_, head)| scan.segments.is_empty() || scan.goes_on(&head, session));
            if !goes_on {
                if !scan.misses_more(&mut reading, address, session) {
                    break;
                }
                if next.is_none() {
                    next = scan.headless(&mut reading, address, number, session);
                }
                let Some((there, head)) = next.or_else(|| reading.find(number)) else { break };
                scan.note_gap(&head, there);
                next = Some((there, head));
            }
            let Some((there, head)) = next else { break };
            scan.read_segment(&mut reading, there, head);
            session = head.session;
            (address, number) = (head.next, head.sequence + 1);
        }
        scan.leave_out_old();
        let is_lent = scan.cut_lent(superblock.tail);
        scan.cut_incomplete();
        if scan.end() < promised && !is_lent {
            let first = scan.end();
            scan.losses.note_records(first..promised, &[], "the log ends before them");
        }
        Ok(scan)
    }

    /// Number of the record after the last.
    pub(crate) fn end(&self) -> u64 {
        match (self.records.last(), self.segments.first()) {
            (Some(last), _) => last.head.sequence + 1,
            (None, Some((_, head))) => head.first_record,
            (None, None) => 0,
        }
    }

    /// Whether a segment with this head follows what was read. A later session may go on before the
    /// end of an earlier one, whose last records it did not accept.
    fn goes_on(&mut self, head: &SegmentHead, session: u64) -> bool {
        let end = self.end();
        if head.first_record < end && head.session > session {
            self.records.retain(|record| record.head.sequence < head.first_record);
        }
        head.first_record == self.end()
    }

    /// Takes the records of a segment. Where some are damaged that had been durable, it goes on
    /// behind them.
    fn read_segment<P: Pmem + ?Sized>(&mut self, reading: &mut LogSource<'_, P>, address: u64, head: SegmentHead) {
        reading.memory.read(address, &mut reading.segment);
        let mut records = Records::of_segment(&reading.segment, reading.salt, &head);
        let superblock = reading.superblock;
        // The mount that wrote the superblock did not accept these, be its own segment on the
        // memory yet or not.
        let is_of_before = head.session < superblock.session && superblock.accepted > 0;
        // A later session goes on where it found the end, whatever lies behind that.
        let later = reading.head_at(head.next, head.sequence + 1, head.session + 1);
        let is_end = |sequence: u64| later.is_some_and(|later| later.first_record <= sequence);
        loop {
            for record in records.by_ref() {
                if is_of_before && record.head.sequence >= superblock.accepted {
                    continue;
                }
                self.records.push(RecordAt { head: record.head, address: address + record.start });
            }
            let is_cut = is_of_before && records.sequence >= superblock.accepted;
            let was_durable =
                !is_cut && (records.misses_one() || records.sequence < reading.promised && !is_end(records.sequence));
            let place = address + records.position as u64;
            match records.resume().filter(|_| was_durable) {
                Some((numbers, bytes)) => self.losses.note_records(numbers, bytes, &format!("damaged at byte {place}")),
                None => break,
            }
        }
        self.segments.push((address, head));
    }

    /// Whether the log, which seems to end, goes on: more was promised, or records in what should
    /// be its next segment say so.
    fn misses_more<P: Pmem + ?Sized>(&self, reading: &mut LogSource<'_, P>, address: u64, session: u64) -> bool {
        if self.segments.is_empty() || self.end() < reading.promised {
            return true;
        }
        if !reading.is_inside(address) {
            return false;
        }
        reading.memory.read(address, &mut reading.segment);
        let head = SegmentHead { first_record: self.end(), ..SegmentHead::default() };
        let sessions = session..=reading.superblock.session.max(session);
        sessions.take(MOST_SESSIONS_TRIED).any(|session| {
            Records::of_segment(&reading.segment, reading.salt, &SegmentHead { session, ..head }).misses_one()
        })
    }

    /// A segment whose head is damaged and whose records are not.
    fn headless<P: Pmem + ?Sized>(
        &self,
        reading: &mut LogSource<'_, P>,
        address: u64,
        number: u64,
        session: u64,
    ) -> Option<(u64, SegmentHead)> {
        if !reading.is_inside(address) || self.segments.is_empty() {
            return None;
        }
        reading.memory.read(address, &mut reading.segment);
        let next = reading.find(number + 1).map_or(0, |(address, _)| address);
        let head = SegmentHead { sequence: number, first_record: self.end(), next, session, tail_sequence: 0 };
        let sessions = (session..=reading.superblock.session.max(session)).take(MOST_SESSIONS_TRIED);
        let mut heads = sessions.map(|session| SegmentHead { session, ..head });
        let has_records =
            |head: &SegmentHead| Records::of_segment(&reading.segment, reading.salt, head).next().is_some();
        heads.find(has_records).map(|head| (address, head))
    }

    /// Says what lies between the end so far and a segment that does not follow it.
    fn note_gap(&mut self, head: &SegmentHead, address: u64) {
        let end = self.end();
        if self.segments.is_empty() {
            self.losses.note_first(address);
        } else if head.first_record > end {
            self.losses.note_records(end..head.first_record, &[], "a segment of the log is missing");
        } else {
            self.records.retain(|record| record.head.sequence < head.first_record);
            self.losses.note_mended(format!("the head of the log's segment before byte {address} is damaged"));
        }
    }

    /// Leaves out what was not part of the log any more when its newest segment was opened.
    fn leave_out_old(&mut self) {
        let tail = self.segments.iter().map(|(_, head)| head.tail_sequence).max().unwrap_or(0);
        if self.losses.is_empty() || self.segments.first().is_none_or(|(_, head)| head.sequence >= tail) {
            return;
        }
        self.segments.retain(|(_, head)| head.sequence >= tail);
        let first = self.segments.first().map_or(0, |(_, head)| head.first_record);
        self.records.retain(|record| record.head.sequence >= first);
        self.losses.forget_records_below(first);
    }

    /// Has the segments follow each other: numbers without gaps up to the last, and the superblock
    /// name the first. For a log that is going to be said again.
    pub(crate) fn join_segments(&mut self, superblock: &mut Superblock) {
        let Some((_, last)) = self.segments.last() else { return };
        superblock.tail_sequence = (last.sequence + 1).saturating_sub(self.segments.len() as u64);
        superblock.tail = self.segments.first().map_or(0, |(address, _)| *address);
        let addresses: Vec<u64> = self.segments.iter().map(|(address, _)| *address).collect();
        for ((_, head), next) in self.segments.iter_mut().zip(addresses.into_iter().skip(1)) {
            head.next = next;
        }
    }

    /// Has the last segment name the one to come.
    pub(crate) fn follow_with(&mut self, next: u64) {
        if let Some((_, head)) = self.segments.last_mut() {
            head.next = next;
        }
    }

    /// Writes the heads that are not as they were read.
    pub(crate) fn write_heads<P: Pmem + ?Sized>(&self, memory: &P, salt: u64) {
        if self.losses.is_empty() {
            return;
        }
        for (address, head) in &self.segments {
            memory.write_through(*address, &head.encode(salt));
        }
    }

    /// Leaves out a last segment that names the first one as the next: all it holds is what the
    /// first one says, and the first one was not let go. Whether there was one.
    fn cut_lent(&mut self, first: u64) -> bool {
        let lent = match self.segments[..] {
            [_, .., (_, head)] => Some(head).filter(|head| head.next == first),
            _ => None,
        };
        if let Some(head) = lent {
            self.records.retain(|record| record.head.sequence < head.first_record);
            self.segments.pop();
        }
        lent.is_some()
    }

    /// Leaves out the records of a transaction whose last one is missing.
    fn cut_incomplete(&mut self) {
        while self.records.last().is_some_and(|record| record.head.more) && !is_planted(Bug::ScmIncompleteKept) {
            self.records.pop();
        }
        self.cut_segments();
    }

    /// Leaves out this record, those after it and those of the same transaction.
    pub(crate) fn cut_at(&mut self, sequence: u64) {
        self.records.retain(|record| record.head.sequence < sequence);
        self.cut_incomplete();
    }

    /// Leaves out the segments at the end that hold no record any more.
    fn cut_segments(&mut self) {
        let end = self.end();
        while self.segments.len() > 1 && self.segments.last().is_some_and(|(_, head)| head.first_record >= end) {
            self.segments.pop();
        }
    }
}

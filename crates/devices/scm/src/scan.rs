//! Reading the log back: which segments, which records, and where it ends.
//!
//! The log ends at the first record that is not sound, because every record before it was durable or could not be missed.
//! If a record further on says that the missing one had been durable, the memory is damaged, and that is an error.

use crate::errors::damaged;
use crate::format::{FIRST_RECORD, RECORD_HEADER, RecordHead, SegmentHead, Superblock, record_key, salt_of};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_media::pmem::LINE_BYTES;
use onode_object::Result;

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
        let lines = (self.position..self.segment.len()).step_by(LINE_BYTES as usize);
        lines.filter_map(|position| self.at(position)).any(|record| says_durable(&record.head, self.sequence))
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
#[derive(Debug)]
pub(crate) struct Scan {
    /// Segments that hold records of the log, oldest first.
    pub segments: Vec<(u64, SegmentHead)>,
    pub records: Vec<RecordAt>,
}

impl Scan {
    /// Reads the log that the superblock names.
    pub(crate) fn read<P: Pmem + ?Sized>(memory: &P, superblock: &Superblock, area_start: u64) -> Result<Self> {
        let salt = salt_of(&superblock.uuid);
        let bytes = u64::from(superblock.chunk_bytes);
        let mut scan = Self { segments: Vec::new(), records: Vec::new() };
        let mut address = superblock.tail;
        let mut number = superblock.tail_sequence;
        let mut segment = vec![0; bytes as usize];
        let mut session = 0;
        loop {
            let inside = address.is_multiple_of(bytes) && address >= area_start && address <= superblock.length - bytes;
            let mut head_bytes = [0; SegmentHead::BYTES];
            if inside {
                memory.read(address, &mut head_bytes);
            }
            let head = SegmentHead::decode(&head_bytes, salt).filter(|head| {
                inside && head.sequence == number && head.session >= session && head.session <= superblock.session
            });
            let Some(head) = head else {
                if scan.segments.is_empty() {
                    return Err(damaged(format!("the log's first segment, at byte {address}, is not there")));
                }
                if inside {
                    scan.expect_end(memory, address, salt, session..=superblock.session, &mut segment)?;
                }
                break;
            };
            if !scan.segments.is_empty() && !scan.goes_on(&head, session) {
                scan.expect_end(memory, address, salt, session..=superblock.session, &mut segment)?;
                break;
            }
            memory.read(address, &mut segment);
            let mut records = Records::of_segment(&segment, salt, &head);
            // The mount that wrote the superblock did not accept these, be its own segment on the memory yet or not.
            let is_of_before = head.session < superblock.session && superblock.accepted > 0;
            for record in records.by_ref() {
                if is_of_before && record.head.sequence >= superblock.accepted {
                    continue;
                }
                scan.records.push(RecordAt { head: record.head, address: address + record.start });
            }
            if records.misses_one() {
                let place = address + records.position as u64;
                return Err(damaged(format!("the log is damaged at byte {place} (record {})", records.sequence)));
            }
            scan.segments.push((address, head));
            session = head.session;
            (address, number) = (head.next, number + 1);
        }
        scan.cut_incomplete();
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

    /// Whether a segment with this head follows what was read. A later session may go on before the end of an earlier one,
    /// whose last records it did not accept.
    fn goes_on(&mut self, head: &SegmentHead, session: u64) -> bool {
        let end = self.end();
        if head.first_record < end && head.session > session {
            self.records.retain(|record| record.head.sequence < head.first_record);
        }
        head.first_record == self.end()
    }

    /// The log may end here, unless records in what should be its next segment say that there was more.
    fn expect_end<P: Pmem + ?Sized>(
        &self,
        memory: &P,
        address: u64,
        salt: u64,
        sessions: std::ops::RangeInclusive<u64>,
        segment: &mut [u8],
    ) -> Result<()> {
        memory.read(address, segment);
        for session in sessions.take(MOST_SESSIONS_TRIED) {
            let head = SegmentHead { sequence: 0, first_record: self.end(), next: 0, session };
            if Records::of_segment(segment, salt, &head).misses_one() {
                return Err(damaged(format!("the log's segment at byte {address} (record {})", self.end())));
            }
        }
        Ok(())
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

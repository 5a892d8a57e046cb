//! Pages of the journal: content from the front, record frames up to the end, which may lie in the
//! spare area, and between them what earlier pages hold, repeated.

use super::{Log, not_open};
use crate::index::bpram::buffer::PagePlace;
use crate::log::record::{self, Changes, FRAME_HEADER_BYTES, Record};
use crate::medium::format::PageKind;
use crate::medium::page::PageInfo;
use crate::medium::store::Programmed;
use crate::policy::Stream;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

impl Log {
    /// Appends a record to the journal.
    pub fn append_record(&mut self, record: &Record) -> Result<()> {
        self.append_encoded(&record.encode(), matches!(record, Record::Chain { .. }))
    }

    /// Appends the record of the changes of the transaction that began last.
    pub fn append_changes(&mut self, changes: &Changes) -> Result<()> {
        self.append_encoded(&changes.record(self.transaction()), false)
    }

    fn append_encoded(&mut self, bytes: &[u8], is_chain: bool) -> Result<()> {
        let (mut rest, mut first) = (bytes, true);
        while first || !rest.is_empty() {
            if self.chain_broken && !is_chain {
                // The checkpoint that is due stands in for it.
                return Ok(());
            }
            self.prepare(Stream::Journal, 1)?;
            self.tell_flushed();
            let room = self.store.layout().journal_bytes();
            let Some(open) = &mut self.open[Stream::Journal as usize] else { return Err(not_open(Stream::Journal)) };
            let used = open.front.len() + open.records.len();
            let limit = usize::from(u16::MAX) - open.records.len();
            match record::put_frame(&mut open.records, rest, first, (room - used).min(limit)) {
                Some(taken) => {
                    rest = &rest[taken..];
                    first = false;
                }
                None => self.program_page(Stream::Journal)?,
            }
        }
        Ok(())
    }

    /// The journal page that waits to be full: its place, its content and its record frames.
    pub fn waiting_journal(&self) -> Option<(PagePlace, &[u8], &[u8])> {
        let open = self.open[Stream::Journal as usize].as_ref()?;
        let at = open.at();
        let waits = !open.front.is_empty() || !open.records.is_empty();
        waits.then_some((PagePlace::of(at, open.sequence), &open.front, &open.records))
    }

    /// Whether content would begin at the start of a journal page, beside at most `spare` bytes of
    /// records.
    pub fn journal_starts_page(&self, spare: usize) -> bool {
        let open = self.open[Stream::Journal as usize].as_ref();
        open.is_none_or(|open| open.front.is_empty() && open.records.len() <= spare)
    }

    /// Programs the page of the journal that waits, and after many that had no room for echoes one
    /// with nothing else.
    pub(super) fn program_journal_page(&mut self) -> Result<()> {
        let Some(open) = &mut self.open[Stream::Journal as usize] else { return Ok(()) };
        if open.front.is_empty() && open.records.is_empty() {
            return Ok(());
        }
        open.users_wait = false;
        let content = core::mem::take(&mut open.front);
        let records = core::mem::take(&mut open.records);
        if !self.program_one_journal_page(content, &records)? {
            return Ok(());
        }
        let room = self.store.layout().journal_bytes();
        // Pages without records may belong to a run that nothing must break.
        let is_wanted = !records.is_empty() && self.echoes.want_a_page(room) && self.store.nand().keeps_order();
        if is_wanted && self.pages_left(Stream::Journal) > 0 {
            self.program_one_journal_page(Vec::new(), &[])?;
        }
        Ok(())
    }

    /// Programs one page of the journal. False if the segment had to be given up; the content is
    /// then readable from memory, the records are not needed any more.
    fn program_one_journal_page(&mut self, content: Vec<u8>, records: &[u8]) -> Result<bool> {
        let flushed = self.store.take_flushed();
        let layout = *self.store.layout();
        let waiting = self.waiting_frames(layout.journal_bytes() - content.len() - records.len());
        let Some(open) = &mut self.open[Stream::Journal as usize] else { return Ok(false) };
        let record_bytes = records.len() + waiting.len();
        let (echo, repeated) = self.echoes.encode(layout.journal_bytes() - content.len() - record_bytes);
        let info = PageInfo {
            kind: PageKind::Journal,
            record_bytes,
            echo_bytes: echo.len(),
            sequence: open.sequence,
            spare_bytes: layout.spare_record_bytes as usize,
            flushed,
        };
        let mut page = Vec::with_capacity(layout.journal_bytes());
        page.extend_from_slice(&content);
        page.resize(layout.journal_bytes() - record_bytes - echo.len(), 0);
        page.extend_from_slice(&echo);
        page.extend_from_slice(records);
        page.extend_from_slice(&waiting);
        let tag = if records.is_empty() && !content.is_empty() { open.front_tag } else { IoTag::Journal };
        let at = open.at();
        match self.store.program_journal(at, info, &page, tag) {
            Ok(Programmed::Whole) => {}
            Ok(Programmed::Failed(failed)) => {
                open.front = content;
                self.fail(Stream::Journal, failed);
                return Ok(false);
            }
            Err(error) => {
                open.front = content;
                return Err(error);
            }
        }
        open.page += 1;
        if !is_planted(Bug::EchoSkipped) || !echo.is_empty() || content.len() + records.len() < layout.journal_bytes() {
            self.note_journal_page(records, repeated);
        }
        Ok(true)
    }

    /// Lets the journal page that something is about to be appended to say what is known to be
    /// flushed and no page says yet, where a replay asks for it. A page without room leaves it to
    /// the next one.
    pub(super) fn tell_flushed(&mut self) {
        // Without that feature programs that do not know the record may know no copies either.
        let Some(before) = self.store.flushed_before().filter(|_| self.copies_waiting) else { return };
        if self.store.nand().keeps_order() {
            return;
        }
        let Some(open) = &mut self.open[Stream::Journal as usize] else { return };
        let record = Record::Flushed { before: self.store.layout().location(before, 0) }.encode();
        let bytes = FRAME_HEADER_BYTES + record.len();
        let used = open.front.len() + open.records.len();
        let fits = used + bytes <= self.store.layout().journal_bytes();
        if fits && open.records.len() + bytes <= usize::from(u16::MAX) {
            record::put_frame(&mut open.records, &record, true, bytes);
            self.store.note_flushed_told();
        }
    }

    /// A journal page with these records was programmed that repeats `repeated` pages.
    pub(super) fn note_journal_page(&mut self, records: &[u8], repeated: usize) {
        let pages = if records.is_empty() { &mut self.mixed_pages } else { &mut self.journal_pages };
        *pages += 1;
        self.echoes.push(records, repeated, self.store.layout().payload_bytes as usize);
    }
}

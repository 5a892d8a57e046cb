//! The log: streams of bytes over the segments; reading back what they hold is in [`reading`].
//!
//! The journal fills one page in memory at a time, content from the front, record frames from the
//! back, and programs it when it is full or has to be durable. The other streams collect a few
//! pages, so that media with a cost per request see few. Bytes are readable from the moment they
//! were appended. A segment is sealed with a summary once only the summary's room is left. What
//! happens when a program fails is told in [`failure`].

pub mod access;
mod below;
mod content;
pub mod echo;
mod failure;
mod journal;
pub mod patch;
mod placing;
mod progress;
mod reading;
pub mod record;
mod summary;
pub mod waiting;

use crate::log::echo::Echoes;
use crate::log::record::{Piece, Record};
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, NO_SUMMARY, PageKind, SUMMARY_MAGIC, SummaryHeader};
use crate::medium::layout::SegmentPage;
use crate::medium::page::PageInfo;
use crate::medium::store::{Programmed, Store, kind_and_tag};
use crate::policy::{Classifier, Placement, Stream};
use crate::space::heavy_hitters::HeavyHitters;
use crate::space::items::{Item, Items, Owner};
use crate::space::segments::{SegmentState, SegmentTable};
use access::AccessLog;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use failure::{LooseItems, Stranded};
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Error, Result};
use waiting::WaitingPages;
use zerocopy::IntoBytes;

/// A segment that a stream fills.
pub struct OpenSegment {
    segment: u32,
    sequence: u32,
    /// The first page that is not programmed yet.
    page: u32,
    /// Content of that page and, except in the journal, of those after it.
    front: Vec<u8>,
    records: Vec<u8>,
    items: Items,
    /// Content from users went there: the journal says that it was opened.
    from_users: bool,
    /// Some of it waits in `front`: it goes before the journal page that places it.
    users_wait: bool,
    /// What was last put into `front`, for the accounts of a journal page without records.
    front_tag: IoTag,
}

impl OpenSegment {
    /// Where the next byte of content goes: page, and byte of that page.
    fn position(&self, payload: usize) -> (SegmentPage, usize) {
        let page = self.page + (self.front.len() / payload) as u32;
        (SegmentPage { segment: self.segment, page }, self.front.len() % payload)
    }
}

/// Pages that the streams of moved content collect at most.
const COLD_PAGES_MAX: usize = 16;

/// The streams over the store.
pub struct Log {
    /// Pages on the medium.
    store: Store,
    /// Use of the segments.
    table: SegmentTable,
    open: [Option<OpenSegment>; Stream::ALL.len()],
    buffer_pages: usize,
    /// Where tree nodes and the segment table go: the index stream, or the journal.
    index_stream: Stream,
    /// The journal segment after the open one, reserved with its sequence number.
    next_journal: (u32, u32),
    /// An erase or a program failed: what was logged since the last checkpoint is not all to be
    /// found, and the next checkpoint, due as soon as a transaction is complete, has to stand in
    /// for it.
    chain_broken: bool,
    /// Content of failed programs, readable from memory only.
    stranded: Vec<Stranded>,
    /// Items of segments that were given up without a summary.
    loose_items: BTreeMap<u32, LooseItems>,
    /// Journal pages with records programmed since the last checkpoint.
    journal_pages: u32,
    /// Journal pages without records programmed since the last checkpoint.
    mixed_pages: u32,
    /// What the next journal page can repeat.
    echoes: Echoes,
    /// Pages of content may wait for more after a sync: the journal copies them.
    copies_waiting: bool,
    /// After a replay: copies of pages that may never have been programmed.
    waiting_pages: WaitingPages,
    /// Access times.
    access: AccessLog,
    /// Commits so far; the age in summaries.
    transaction: u64,
    /// Where content goes.
    placement: Classifier,
    /// The objects that cost the most programs.
    costliest: HeavyHitters,
    /// Bytes of content, and of tree nodes, that were moved for the sake of what lay beside them.
    moved_content: u64,
    moved_nodes: u64,
}

impl Log {
    /// Streams over `store`, none of them open. Each but the journal collects up to `buffer_bytes`.
    pub fn new(store: Store, table: SegmentTable, placement: Classifier, buffer_bytes: usize) -> Self {
        let buffer_pages = (buffer_bytes / store.layout().payload_bytes as usize).clamp(1, 256);
        Self {
            buffer_pages,
            store,
            table,
            open: [const { None }; Stream::ALL.len()],
            index_stream: Stream::Index,
            next_journal: (0, 0),
            chain_broken: false,
            stranded: Vec::new(),
            loose_items: BTreeMap::new(),
            journal_pages: 0,
            mixed_pages: 0,
            echoes: Echoes::default(),
            copies_waiting: false,
            waiting_pages: WaitingPages::default(),
            access: AccessLog::default(),
            transaction: 0,
            placement,
            costliest: HeavyHitters::default(),
            moved_content: 0,
            moved_nodes: 0,
        }
    }

    /// Memory that the open segments hold: pages to be programmed, records and items.
    pub fn memory_bytes(&self) -> usize {
        let of = |open: &OpenSegment| open.front.capacity() + open.records.capacity() + open.items.memory_bytes();
        self.open.iter().flatten().map(of).sum::<usize>()
            + self.failure_bytes()
            + self.echoes.memory_bytes()
            + self.waiting_pages.memory_bytes()
    }

    const fn payload(&self) -> usize {
        self.store.layout().payload_bytes as usize
    }

    /// Segment and page at which the journal goes on, and the sequence number there.
    pub fn journal_position(&self) -> (SegmentPage, u32) {
        match &self.open[Stream::Journal as usize] {
            Some(open) => (SegmentPage { segment: open.segment, page: open.page }, open.sequence),
            None => (SegmentPage { segment: self.next_journal.0, page: 0 }, self.next_journal.1),
        }
    }

    /// Reserves the journal segment that follows the next one to be opened.
    pub fn reserve_journal(&mut self) -> Result<()> {
        let segment = self.take_free(Stream::Journal)?;
        let sequence = self.table.open(segment, Stream::Journal);
        self.next_journal = (segment, sequence);
        Ok(())
    }

    fn take_free(&mut self, stream: Stream) -> Result<u32> {
        self.table
            .choose_free(stream)
            .ok_or_else(|| Error::new(ErrorKind::NoSpace, "no free segment is left; the reserve is exhausted"))
    }

    /// Opens a segment for `stream`.
    fn open(&mut self, stream: Stream) -> Result<()> {
        self.store.check_writable()?;
        let (segment, sequence) = if stream == Stream::Journal {
            let (segment, sequence) = self.next_journal;
            if self.erase(segment)? {
                (segment, sequence)
            } else {
                self.chain_broken = true;
                self.open_any(stream)?
            }
        } else {
            self.open_any(stream)?
        };
        let opened = OpenSegment {
            segment,
            sequence,
            page: 0,
            front: Vec::new(),
            records: Vec::new(),
            items: Items::default(),
            from_users: false,
            users_wait: false,
            front_tag: IoTag::Journal,
        };
        self.open[stream as usize] = Some(opened);
        if stream == Stream::Journal {
            self.echoes.clear();
            self.reserve_journal()?;
            let (segment, sequence) = self.next_journal;
            self.append_record(&Record::Chain { segment, sequence })?;
        }
        Ok(())
    }

    /// Logs that the open segment of `stream` exists, before the first record places content there.
    /// What only the cleaner fills needs no record: until a checkpoint knows it, nothing refers to
    /// it.
    fn log_opened(&mut self, stream: Stream) -> Result<()> {
        let Some(open) = self.open[stream as usize].as_mut().filter(|open| !open.from_users) else { return Ok(()) };
        open.from_users = true;
        let (segment, sequence) = (open.segment, open.sequence);
        if is_planted(Bug::OpenedUnlogged) {
            return Ok(());
        }
        let erases = self.table.get(segment).erases;
        self.append_record(&Record::Opened { segment, sequence, erases })
    }

    /// Finds, erases and enters a free segment.
    fn open_any(&mut self, stream: Stream) -> Result<(u32, u32)> {
        loop {
            let segment = self.take_free(stream)?;
            if self.erase(segment)? {
                return Ok((segment, self.table.open(segment, stream)));
            }
        }
    }

    /// Erases a segment; false if it had to be retired.
    fn erase(&mut self, segment: u32) -> Result<bool> {
        debug_assert!(!self.table.is_pinned(segment), "somebody reads segment {segment}");
        self.loose_items.remove(&segment);
        let sound = self.store.erase_segment(segment)?;
        self.table.update(segment, |entry| {
            entry.erases = entry.erases.saturating_add(1);
            if !sound {
                entry.state = SegmentState::Bad;
            }
        });
        Ok(sound)
    }

    /// Pages that `stream` can still fill in its open segment, the one it is at included.
    fn pages_left(&self, stream: Stream) -> u32 {
        let Some(open) = &self.open[stream as usize] else { return 0 };
        let (at, _) = open.position(self.payload());
        let summary = size_of::<SummaryHeader>() + open.items.bytes_with_one_more();
        let summary_pages = summary.div_ceil(self.payload()) as u32;
        self.store.layout().segment_pages.saturating_sub(at.page + summary_pages)
    }

    /// Bytes of nodes that the open segment of the index stream is sure to take.
    pub fn index_room(&self) -> u64 {
        let node_pages = self.store.layout().node_bytes().div_ceil(self.payload()) as u32;
        u64::from(self.pages_left(Stream::Index).saturating_sub(node_pages)) * self.payload() as u64 / 32 * 31
    }

    /// Makes sure that the open segment of `stream` takes content, with at least `pages` pages
    /// left.
    fn prepare(&mut self, stream: Stream, pages: u32) -> Result<()> {
        if self.open[stream as usize].is_some() && self.pages_left(stream) < pages.max(1) {
            self.seal(stream)?;
        }
        if self.open[stream as usize].is_none() {
            self.open(stream)?;
        }
        Ok(())
    }

    /// Bytes that the buffer of `stream` holds before it has to be programmed.
    fn buffer_bytes(&self, stream: Stream) -> usize {
        let pages = match stream {
            Stream::Journal => return self.store.layout().journal_bytes(),
            Stream::Data | Stream::Index => self.buffer_pages,
            // What a step of the cleaner moved is programmed with it, and not all at once by a
            // checkpoint.
            _ => self.buffer_pages.min(COLD_PAGES_MAX),
        };
        self.payload() * pages
    }

    /// Appends as much of `bytes` as goes into one unbroken run; returns where it lies. At least
    /// one byte is taken. `owner` is that of the first byte.
    pub fn append(&mut self, stream: Stream, writer: Writer, bytes: &[u8], owner: Owner) -> Result<Piece> {
        loop {
            if let Some(piece) = self.append_some(stream, writer, bytes, owner)? {
                return Ok(piece);
            }
        }
    }

    /// As [`append`](Self::append); `None` if the open segment had to be given up.
    fn append_some(&mut self, stream: Stream, writer: Writer, bytes: &[u8], owner: Owner) -> Result<Option<Piece>> {
        self.prepare(stream, 1)?;
        if stream == Stream::Journal {
            self.tell_flushed();
        }
        if self.is_buffer_full(stream) || self.content_room(stream) == 0 {
            self.program_page(stream)?;
            self.prepare(stream, 1)?;
        }
        let users = stream.is_content() && writer == Writer::User;
        if users {
            self.log_opened(stream)?;
        }
        let payload = self.payload();
        let pages_left = self.pages_left(stream) as usize;
        let (limit, room) = (self.buffer_bytes(stream), self.content_room(stream));
        let Some(open) = &mut self.open[stream as usize] else { return Err(not_open(stream)) };
        let (at, offset) = open.position(payload);
        let location = self.store.layout().location(at, offset as u32);
        let start = (location % self.store.layout().segment_bytes()) as u32;
        // A page of the journal waits for the record that may go with it.
        let is_direct = stream != Stream::Journal || self.store.layout().spare_record_bytes == 0;
        let is_empty = open.front.is_empty() && open.records.is_empty();
        let mut direct_pages = 0;
        let taken = if is_direct && is_empty && bytes.len() >= payload.max(limit / 2) {
            // Many whole pages go straight to the medium.
            let in_journal = stream == Stream::Journal;
            // Only the first page after a flush may say that all before it had been flushed.
            let flushed = in_journal && self.store.take_flushed();
            let count = if flushed { 1 } else { (bytes.len() / payload).min(pages_left) };
            let (kind, tag) = kind_and_tag(stream, users);
            let tag = if in_journal { writer.tag() } else { tag };
            let sequence = open.sequence;
            let info = PageInfo { kind, record_bytes: 0, echo_bytes: 0, sequence, spare_bytes: 0, flushed };
            if let Programmed::Failed(failed) = self.store.program(at, info, &bytes[..count * payload], tag)? {
                self.fail(stream, failed);
                return Ok(None);
            }
            open.page += count as u32;
            direct_pages = count;
            count * payload
        } else {
            let count = bytes.len().min(room.min(pages_left * payload - offset));
            open.front.extend_from_slice(&bytes[..count]);
            open.users_wait |= users;
            open.front_tag = writer.tag();
            count
        };
        open.items.push(Item { start, length: taken as u32, owner });
        for _ in 0..if stream == Stream::Journal { direct_pages } else { 0 } {
            self.note_journal_page(&[], 0);
        }
        if self.is_buffer_full(stream) {
            self.program_page(stream)?;
        }
        Ok(Some(Piece { location, length: taken as u32 }))
    }

    /// Appends `bytes` in one unbroken run.
    pub fn append_whole(&mut self, stream: Stream, bytes: &[u8], owner: Owner) -> Result<u64> {
        loop {
            if let Some(location) = self.append_run(stream, bytes, owner)? {
                return Ok(location);
            }
        }
    }

    /// As [`append_whole`](Self::append_whole); `None` if the open segment had to be given up
    /// half-way.
    fn append_run(&mut self, stream: Stream, bytes: &[u8], owner: Owner) -> Result<Option<u64>> {
        let payload = self.payload();
        let open = self.open[stream as usize].as_ref();
        let within = open.map_or(0, |open| open.position(payload).1);
        // A page that ends with records ends the run: then it begins on the next one, or behind a
        // page of echoes.
        let follows = stream == Stream::Journal && open.is_none_or(|open| !open.records.is_empty());
        let before = if follows { 2 } else { 0 };
        self.prepare(stream, before + (within + bytes.len()).div_ceil(payload) as u32)?;
        let has_records = self.open[stream as usize].as_ref().is_some_and(|open| !open.records.is_empty());
        if has_records && self.content_room(stream) < bytes.len() {
            self.program_page(stream)?;
            if self.open[stream as usize].is_none() {
                return Ok(None);
            }
        }
        let Some(open) = &mut self.open[stream as usize] else { return Err(not_open(stream)) };
        let (at, offset) = open.position(payload);
        let location = self.store.layout().location(at, offset as u32);
        let start = (location % self.store.layout().segment_bytes()) as u32;
        open.items.push(Item { start, length: bytes.len() as u32, owner });
        open.front_tag = IoTag::Index;
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.content_room(stream);
            let Some(open) = &mut self.open[stream as usize] else { return Ok(None) };
            let count = rest.len().min(room);
            open.front.extend_from_slice(&rest[..count]);
            rest = &rest[count..];
            if self.is_buffer_full(stream) || (!rest.is_empty() && self.content_room(stream) == 0) {
                self.program_page(stream)?;
            }
        }
        Ok(Some(location))
    }

    /// Bytes of content that the buffer of `stream` takes before it has to be programmed: in the
    /// journal no more than a page, whose records may go on in the spare area.
    fn content_room(&self, stream: Stream) -> usize {
        let Some(open) = &self.open[stream as usize] else { return 0 };
        let room = self.buffer_bytes(stream).saturating_sub(open.front.len() + open.records.len());
        if stream == Stream::Journal { room.min(self.payload() - open.front.len()) } else { room }
    }

    fn is_buffer_full(&self, stream: Stream) -> bool {
        self.open[stream as usize]
            .as_ref()
            .is_some_and(|open| open.front.len() + open.records.len() >= self.buffer_bytes(stream))
    }

    /// Programs what waits in the buffer of `stream`. Content goes before the journal page that
    /// places it.
    pub fn program_page(&mut self, stream: Stream) -> Result<()> {
        if stream == Stream::Journal && !is_planted(Bug::RecordBeforeData) {
            self.program_users()?;
        }
        if stream == Stream::Journal {
            return self.program_journal_page();
        }
        let waits = self.open[stream as usize].as_ref().map_or(0, |open| open.front.len());
        self.program_front(stream, waits)
    }

    /// Programs the full pages that wait in the buffer of `stream`.
    fn program_whole_pages(&mut self, stream: Stream) -> Result<()> {
        let waits = self.open[stream as usize].as_ref().map_or(0, |open| open.front.len());
        self.program_front(stream, waits - waits % self.payload())
    }

    /// Programs the first `bytes` that wait in the buffer of `stream`: whole pages, or all of them.
    fn program_front(&mut self, stream: Stream, bytes: usize) -> Result<()> {
        let payload = self.payload();
        let Some(open) = &mut self.open[stream as usize] else { return Ok(()) };
        if bytes == 0 {
            return Ok(());
        }
        let (kind, tag) = kind_and_tag(stream, open.users_wait);
        open.users_wait &= bytes < open.front.len();
        let mut pages = core::mem::take(&mut open.front);
        let info =
            PageInfo { kind, record_bytes: 0, echo_bytes: 0, sequence: open.sequence, spare_bytes: 0, flushed: false };
        let at = SegmentPage { segment: open.segment, page: open.page };
        let programmed = self.store.program(at, info, &pages[..bytes], tag);
        let count = bytes.div_ceil(payload) as u32;
        // After a failure the content stays readable from memory.
        if matches!(programmed, Ok(Programmed::Whole)) {
            pages.drain(..bytes);
        }
        open.front = pages;
        if let Programmed::Failed(failed) = programmed? {
            self.fail(stream, failed);
            return Ok(());
        }
        open.page += count;
        Ok(())
    }

    /// Closes the open segment of `stream` with its summary.
    pub fn seal(&mut self, stream: Stream) -> Result<()> {
        self.program_page(stream)?;
        let Some(open) = &mut self.open[stream as usize] else { return Ok(()) };
        let (segment, page, sequence) = (open.segment, open.page, open.sequence);
        let entry = *self.table.get(segment);
        let (items, count) = core::mem::take(&mut open.items).finish();
        let header = SummaryHeader {
            magic: SUMMARY_MAGIC,
            sequence: sequence.into(),
            transaction: self.transaction.into(),
            live_bytes: entry.live_bytes.into(),
            items: count.into(),
            item_bytes: (items.len() as u32).into(),
            checksum: onode_base::checksum::crc32c(&items).into(),
        };
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(&items);
        let pages = bytes.len().div_ceil(self.payload()) as u32;
        let fits = page + pages <= self.store.layout().segment_pages;
        debug_assert!(fits, "a summary has no room in segment {segment}");
        if fits {
            let kind = PageKind::Summary;
            let info = PageInfo { kind, record_bytes: 0, echo_bytes: 0, sequence, spare_bytes: 0, flushed: false };
            let at = SegmentPage { segment, page };
            if let Programmed::Failed(failed) = self.store.program(at, info, &bytes, IoTag::Summary)? {
                self.fail(stream, failed);
                self.keep_items(segment, items, count);
                return Ok(());
            }
        }
        self.open[stream as usize] = None;
        self.table.update(segment, |entry| {
            entry.summary_page = if fits { page as u16 } else { NO_SUMMARY };
            entry.state = SegmentState::Full;
        });
        self.store.finish(segment)
    }

    /// Programs every page that content waits in, so that all places handed out are on the medium.
    pub fn program_content(&mut self) -> Result<()> {
        for stream in Stream::CONTENT {
            self.program_page(stream)?;
        }
        self.program_index()
    }

    /// Programs what waits of tree nodes and the segment table.
    pub fn program_index(&mut self) -> Result<()> {
        self.program_page(Stream::Index)?;
        self.program_page(self.index_stream)
    }

    /// Writes a blob to where the index goes and counts it as referred to.
    pub fn write_blob(&mut self, bytes: &[u8], owner: Owner) -> Result<BlobReference> {
        let location = self.append_whole(self.index_stream, bytes, owner)?;
        self.retain(location, bytes.len() as u64);
        Ok(BlobReference {
            location: location.into(),
            length: (bytes.len() as u32).into(),
            checksum: onode_base::checksum::crc32c(bytes).into(),
        })
    }
}

fn not_open(stream: Stream) -> Error {
    damaged(format!("the {} stream has no open segment", stream.name()))
}

/// On whose behalf content is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A user: a record in the journal will place it.
    User,
    /// The cleaner: nothing refers to it before the next checkpoint.
    Cleaner,
}

impl Writer {
    /// What its content counts as.
    const fn tag(self) -> IoTag {
        match self {
            Self::User => IoTag::Data,
            Self::Cleaner => IoTag::Cleaning,
        }
    }
}

impl Log {
    /// Makes sure that the open segment for the index takes `bytes`; returns that segment.
    pub fn reserve_index(&mut self, bytes: usize) -> Result<u32> {
        let stream = self.index_stream;
        // In the journal they begin behind the page that says how it goes on.
        let before = if stream == Stream::Journal { 3 } else { 1 };
        self.prepare(stream, (bytes.div_ceil(self.payload()) + before) as u32)?;
        self.open[stream as usize].as_ref().map(|open| open.segment).ok_or_else(|| not_open(stream))
    }
}

impl Log {
    /// Bytes that the content streams still take in their open segments, those apart that users
    /// alone fill and that only gives worn segments rest: so much is moved before a segment is
    /// opened.
    pub fn moving_room(&self) -> u64 {
        let placement = self.placement();
        let takes = |stream: &Stream| match stream {
            Stream::Journal => placement == Placement::Combined,
            Stream::Data => placement.moves_to_data(),
            stream if *stream == Stream::resting(placement) => false,
            stream => stream.is_content(),
        };
        let moving = Stream::ALL.into_iter().filter(takes);
        moving.map(|stream| u64::from(self.pages_left(stream)) * self.payload() as u64).sum()
    }
}

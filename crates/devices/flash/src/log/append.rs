//! Appending to the streams, and programming what waits in their buffers.
//!
//! It keeps true: what is appended lies in one unbroken run, readable from the moment it was
//! appended, and content is programmed before the journal page that places it.

use super::{Log, not_open};
use crate::log::record::Piece;
use crate::medium::format::BlobReference;
use crate::medium::page::PageInfo;
use crate::medium::store::{Programmed, kind_and_tag};
use crate::policy::Stream;
use crate::space::items::{Item, Owner};
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

/// Pages that the streams of moved content collect at most.
const COLD_PAGES_MAX: usize = 16;

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
        let start = self.store.layout().within(location);
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
        let start = self.store.layout().within(location);
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

/// What waits in buffers.
impl Log {
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
    pub(super) fn program_whole_pages(&mut self, stream: Stream) -> Result<()> {
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
        let at = open.at();
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
}

//! The log: streams of bytes over the segments, each of which fills one open segment after another.
//!
//! The journal fills one page in memory at a time, content from the front, record frames from the
//! back, and programs it when it is full or has to be durable. The other streams collect a few
//! pages, so that media with a cost per request see few. Bytes are readable from the moment they
//! were appended. Appending is in [`append`], reading back in [`reading`], and what happens when a
//! program fails in [`failure`].
//!
//! It keeps true: a page is programmed only into a segment that a stream opened and erased in this
//! session, and the segment table has every such segment as open. It does not know what the bytes
//! mean, nor when they have to be durable.

pub mod access;
mod append;
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
use crate::log::record::Record;
use crate::medium::errors::damaged;
use crate::medium::format::SummaryHeader;
use crate::medium::layout::SegmentPage;
use crate::medium::store::Store;
use crate::policy::{Classifier, Placement, Stream};
use crate::space::heavy_hitters::HeavyHitters;
use crate::space::items::Items;
use crate::space::segments::{SegmentState, SegmentTable};
use access::AccessLog;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
pub use append::Writer;
use failure::{LooseItems, Stranded};
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::{Gap, IoTag};
use onode_object::{Error, Result};
use waiting::WaitingPages;

/// A segment that a stream fills.
pub struct OpenSegment {
    segment: u32,
    sequence: u32,
    /// Pages of parity in each of its rows.
    parity: u8,
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
        (SegmentPage { page, ..self.at() }, self.front.len() % payload)
    }

    /// The first page that is not programmed yet.
    const fn at(&self) -> SegmentPage {
        SegmentPage { segment: self.segment, page: self.page, parity: self.parity }
    }
}

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
            Some(open) => (open.at(), open.sequence),
            None => (self.store.layout().page(Stream::Journal, self.next_journal.0, 0), self.next_journal.1),
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
        let Self { table, store, .. } = self;
        table
            .choose_free(stream, || store.shared().iter().for_each(|shared| shared.tell(Gap::Waits)))
            .ok_or_else(|| Error::new(ErrorKind::NoSpace, "no free segment is left; the reserve is exhausted"))
    }

    /// Opens a segment for `stream`.
    fn open(&mut self, stream: Stream) -> Result<()> {
        self.store.latch().check()?;
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
            parity: self.store.layout().parity_of(stream),
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
        let stream = if is_planted(Bug::WishOpenedUnlogged) { Stream::Data } else { stream };
        self.append_record(&Record::Opened { segment, sequence, erases, stream })
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
        if self.is_row_closed(stream) {
            return 0;
        }
        let (at, _) = open.position(self.payload());
        let summary = size_of::<SummaryHeader>() + open.items.bytes_with_one_more();
        let summary_pages = summary.div_ceil(self.payload()) as u32;
        self.store.layout().pages_with(at.parity).saturating_sub(at.page + summary_pages)
    }

    /// Whether what comes to `stream` next would lie in a row whose parity was programmed.
    fn is_row_closed(&self, stream: Stream) -> bool {
        let at = self.open[stream as usize].as_ref().map(|open| open.position(self.payload()).0);
        at.is_some_and(|at| self.store.is_row_closed(at))
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

    /// Makes sure that the open segment for the index takes `bytes`; returns that segment.
    pub fn reserve_index(&mut self, bytes: usize) -> Result<u32> {
        let stream = self.index_stream;
        // In the journal they begin behind the page that says how it goes on.
        let before = if stream == Stream::Journal { 3 } else { 1 };
        self.prepare(stream, (bytes.div_ceil(self.payload()) + before) as u32)?;
        self.open[stream as usize].as_ref().map(|open| open.segment).ok_or_else(|| not_open(stream))
    }

    /// Bytes that the content streams still take in their open segments, those apart that users
    /// alone fill and that only gives worn segments rest: so much is moved before a segment is
    /// opened.
    pub fn moving_room(&self) -> u64 {
        let placement = self.placement();
        let takes = |stream: &Stream| match stream {
            Stream::Journal => placement == Placement::Combined,
            Stream::Data => placement.moves_to_data(),
            stream if *stream == Stream::resting(placement) => false,
            // What has an unusual parity goes to a segment of its own: others cannot count on that.
            stream if stream.wished_parity().is_some() => false,
            stream => stream.is_content(),
        };
        let moving = Stream::ALL.into_iter().filter(takes);
        moving.map(|stream| u64::from(self.pages_left(stream)) * self.payload() as u64).sum()
    }
}

fn not_open(stream: Stream) -> Error {
    damaged(format!("the {} stream has no open segment", stream.name()))
}

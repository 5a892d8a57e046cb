//! Reading pages of segments: what the device under its lock and readers beside it do in the same
//! way.
//!
//! A read is a list of [`Want`]s, one for each page. Pages that follow each other on the medium are
//! one request, whatever extents of an object they belong to, and requests are made together
//! (`batch`); pages that are used in part are kept for the next read.
//!
//! It keeps true: what counts as read was verified against the checksum, the place and the sequence
//! number of its page. It does not know where content lies (`log` does) nor what may be erased
//! meanwhile (`pins`).

use crate::medium::errors::{damaged, from_media};
use crate::medium::format::PageTrailer;
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::{self, PageFault, PageInfo};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;
use onode_base::evict::Lru;
use onode_base::sync::{Mutex, rank};
use onode_media::{IoTag, PageAddress, PageRun, SharedNand};
use onode_object::Error;

mod batch;
mod rebuild;

pub use rebuild::RowState;

/// A verified page: its payload and what it says about itself.
#[derive(Clone, Debug)]
pub struct VerifiedPage {
    /// The payload, with what of it is in the spare area.
    pub payload: Arc<[u8]>,
    /// Kind, records, sequence.
    pub info: PageInfo,
}

impl VerifiedPage {
    /// The page that says this of itself, with what `trailer`, which holds its trailer first, has
    /// of its payload.
    fn of(info: PageInfo, payload: &[u8], trailer: &[u8]) -> Self {
        let more = &trailer[size_of::<PageTrailer>()..][..info.spare_bytes];
        let payload = if more.is_empty() { payload.into() } else { [payload, more].concat().into() };
        Self { payload, info }
    }

    /// The record frames at its end.
    pub fn records(&self) -> &[u8] {
        &self.payload[self.payload.len() - self.info.record_bytes..]
    }

    /// The records of the pages before it, which it repeats.
    pub fn echo(&self) -> &[u8] {
        let end = self.payload.len() - self.info.record_bytes;
        &self.payload[end - self.info.echo_bytes..end]
    }
}

/// Bytes of one page that somebody wants to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The page.
    pub at: SegmentPage,
    /// The sequence number of its segment.
    pub sequence: u32,
    /// The byte of its payload at which they begin.
    pub from: usize,
    /// Where they go in the buffer.
    pub to: Range<usize>,
    /// The page is looked for among those that were kept, and kept. It is not if all of it is part
    /// of a run.
    pub kept: bool,
}

/// A read that failed: the wants whose page or pages could not be read, and why.
#[derive(Debug)]
pub struct Failed {
    /// Of the list.
    pub wants: Range<usize>,
    /// Why.
    pub error: Error,
}

/// Who reads pages: the owner of the medium or somebody beside him.
pub trait PageReader {
    /// Fills `out` with what `wants` ask for.
    fn read(&mut self, wants: &[Want], out: &mut [u8]) -> core::result::Result<(), Failed>;
}

/// How a run of pages is asked of the medium: first page, data, spare bytes.
pub type ReadRun<'a> = dyn FnMut(PageAddress, &mut [u8], &mut [u8]) -> onode_media::Result<()> + 'a;

/// How several runs are asked of the medium together, which leaves in each how it ended.
pub type ReadRuns<'a> = dyn FnMut(&mut [PageRun<'_>]) + 'a;

/// Asks for one run of a medium that takes several.
fn read_alone(
    medium: &mut ReadRuns<'_>,
    first: PageAddress,
    data: &mut [u8],
    spare: &mut [u8],
) -> onode_media::Result<()> {
    let mut alone = [PageRun::new(first, data, spare)];
    medium(&mut alone);
    let [run] = alone;
    run.result
}

/// Why a run could not be read.
pub enum Cause {
    /// A page is not what was written.
    Damaged(SegmentPage, PageFault),
    /// The medium failed.
    Medium(onode_media::Error),
}

/// What owner and readers of the pages share.
pub struct Pages {
    layout: Layout,
    seed: u32,
    state: Mutex<State, rank::FlashPages>,
}

struct State {
    kept: Lru<(u64, u32), VerifiedPage>,
    /// Reads that failed because a page is not what was written.
    damaged_reads: u64,
    /// Reads that the medium refused, and why the last of them.
    refused_reads: u64,
    refused_last: String,
    /// Pages that something is wrong with: what lies there is to be moved.
    to_move: BTreeSet<SegmentPage>,
    /// Pages that were found again from parity since the mount.
    rebuilt_pages: u64,
}

impl Pages {
    /// Pages of a volume of which up to `cache_bytes` are kept.
    pub const fn new(layout: Layout, seed: u32, cache_bytes: usize) -> Self {
        Self {
            layout,
            seed,
            state: Mutex::new(State {
                kept: Lru::new(cache_bytes),
                damaged_reads: 0,
                refused_reads: 0,
                refused_last: String::new(),
                to_move: BTreeSet::new(),
                rebuilt_pages: 0,
            }),
        }
    }

    /// Bytes of pages that are kept.
    pub fn kept_bytes(&self) -> usize {
        self.state.lock().kept.bytes()
    }

    /// Bytes of pages that are kept at most.
    pub fn budget_bytes(&self) -> usize {
        self.state.lock().kept.budget_bytes()
    }

    /// Reads that failed because a page is not what was written.
    pub fn damaged_reads(&self) -> u64 {
        self.state.lock().damaged_reads
    }

    /// Reads that the medium refused, and why the last of them; nothing if there were none.
    pub fn refused_reads(&self) -> Option<(u64, String)> {
        let state = self.state.lock();
        (state.refused_reads > 0).then(|| (state.refused_reads, state.refused_last.clone()))
    }

    /// The medium refused a read, of which nobody can say what is there.
    pub fn note_refused(&self, error: &onode_media::Error) -> Error {
        let told = from_media("read", error);
        let mut state = self.state.lock();
        state.refused_reads += 1;
        state.refused_last.clone_from(&told.detail);
        told
    }

    /// Those so far were expected.
    pub fn forget_damaged_reads(&self) {
        self.state.lock().damaged_reads = 0;
    }

    /// Nothing is left of segments from `end` on.
    pub fn forget_from(&self, end: u32) {
        self.state.lock().to_move.retain(|at| at.segment < end);
    }

    /// A page is not what was written.
    pub fn note_damaged(&self, at: SegmentPage, fault: &PageFault) -> Error {
        self.state.lock().damaged_reads += 1;
        damaged(format!("segment {} page {}: {fault:?}", at.segment, at.page))
    }

    /// The error of a run that could not be read.
    pub fn note(&self, cause: &Cause) -> Error {
        match cause {
            Cause::Damaged(at, fault) => self.note_damaged(*at, fault),
            Cause::Medium(error) => self.note_refused(error),
        }
    }

    /// A page that was kept when its segment had this sequence number.
    pub fn kept(&self, address: PageAddress, sequence: u32) -> Option<VerifiedPage> {
        self.state.lock().kept.get(&(address.0, sequence)).cloned()
    }

    /// Keeps a page: it will be read under its sequence number.
    pub fn keep(&self, address: PageAddress, page: VerifiedPage) {
        let bytes = page.payload.len();
        self.state.lock().kept.insert((address.0, page.info.sequence), page, bytes);
    }

    /// The page that was read from `address`, with what `trailer`, which holds its trailer first,
    /// has of its payload.
    pub fn verified(
        &self,
        address: PageAddress,
        sequence: Option<u32>,
        payload: &[u8],
        trailer: &[u8],
    ) -> core::result::Result<VerifiedPage, PageFault> {
        let info = page::verify(self.seed, address, sequence, trailer, payload)?;
        Ok(VerifiedPage::of(info, payload, trailer))
    }
}

/// Somebody who reads beside the owner of the medium, without his lock.
pub struct Beside {
    /// What both share.
    pages: Arc<Pages>,
    /// The medium's part for such.
    medium: Arc<dyn SharedNand>,
    /// What the reads are for.
    tag: IoTag,
}

impl Beside {
    /// Reads of `pages` through `medium` for `tag`.
    pub const fn new(pages: Arc<Pages>, medium: Arc<dyn SharedNand>, tag: IoTag) -> Self {
        Self { pages, medium, tag }
    }
}

impl PageReader for Beside {
    fn read(&mut self, wants: &[Want], out: &mut [u8]) -> core::result::Result<(), Failed> {
        let Self { pages, medium, tag } = self;
        let read = pages.read(wants, out, &mut |runs| medium.read_runs(runs, *tag));
        read.map_err(|(wants, cause)| Failed { wants, error: pages.note(&cause) })
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

//! Pages of segments on the medium: erasing, and the latch that turns the device read-only when the
//! medium refuses to be written. Programming is in [`programming`] and, for parity, [`rows`],
//! reading under the device's lock in [`reading`], flushing in [`flush`].
//!
//! It keeps true: after a write that the medium as a whole refused nothing is written any more. A
//! program that fails for its block alone is told to the caller. It does not know which pages are
//! needed.

use crate::medium::errors::from_media;
use crate::medium::format::PageKind;
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page;
use crate::medium::pages::{Pages, VerifiedPage};
use crate::medium::saved::SavedPages;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use onode_base::planted::{Bug, is_planted};
use onode_engine::Latch;
use onode_media::{IoTag, Nand, SharedNand, Watermark};
use onode_object::Result;
use rows::OpenRows;

mod flush;
mod programming;
mod reading;
mod rows;

pub use flush::FlushBegun;
pub use reading::Reader;

/// The medium behind the segments.
pub struct Store {
    nand: Box<dyn Nand>,
    /// The division of the medium.
    layout: Layout,
    seed: u32,
    /// What readers beside the store share with it.
    pages: Arc<Pages>,
    /// The medium's part for them, if it has one.
    shared: Option<Arc<dyn SharedNand>>,
    /// Copies that stand in for pages that are damaged.
    saved: SavedPages,
    /// Pages that were read from their copies, in memory until a checkpoint has moved what is on
    /// them.
    restored: BTreeMap<SegmentPage, VerifiedPage>,
    /// Parity of the rows that are being filled.
    rows: OpenRows,
    /// Whether all was flushed since the last journal page was programmed.
    flushed: bool,
    /// The journal page before which all was flushed, if that is not all and no page says so yet.
    flushed_before: Option<SegmentPage>,
    /// Whether something was programmed since the last flush.
    unflushed: bool,
    /// Programs so far, and those of journal pages.
    programs: u64,
    journal_programs: u64,
    /// The last commit that this session noted as durable.
    noted: Option<u64>,
    /// Programs that failed one after another.
    failures: u32,
    latch: Latch,
}

/// So many programs that fail one after another are no bad blocks: the medium as a whole refuses.
const FAILURES_MAX: u32 = 8;

/// How a program ended that the medium as a whole did not refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Programmed {
    /// All of it is on the medium.
    Whole,
    /// A chip could not program this page of its block. What was to be programmed counts as lost
    /// from the first page on.
    Failed(SegmentPage),
}

impl Store {
    /// A store over `nand` for the volume `uuid`.
    pub fn new(nand: Box<dyn Nand>, layout: Layout, uuid: &[u8; 16], cache_bytes: usize) -> Self {
        let (seed, shared) = (page::volume_seed(uuid), nand.shared());
        Self {
            nand,
            layout,
            seed,
            pages: Arc::new(Pages::new(layout, seed, cache_bytes)),
            shared,
            saved: SavedPages::default(),
            restored: BTreeMap::new(),
            rows: OpenRows::default(),
            flushed: false,
            flushed_before: None,
            unflushed: false,
            programs: 0,
            journal_programs: 0,
            noted: None,
            failures: 0,
            latch: Latch::default(),
        }
    }

    /// The division of the medium.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The medium is divided as `layout` says from now on. Pages stay where they are.
    pub fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Has the medium become larger or smaller. Who reads beside the store from then on needs what
    /// the medium shares as it is now, whatever came of the change; who has begun goes on with what
    /// was there before, which knows all pages that were written.
    pub fn resize_medium(
        &mut self,
        change: impl FnOnce(&mut dyn Nand) -> onode_media::Result<()>,
    ) -> onode_media::Result<()> {
        let outcome = change(&mut *self.nand);
        self.shared = self.nand.shared();
        outcome
    }

    /// Whether programs outlive any failure in the order they were made, also one of the host.
    pub fn keeps_order(&self) -> bool {
        self.nand.keeps_order()
    }

    /// Pages, and what is known of them.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The medium, for what is neither page nor segment: superblocks, bad blocks, counters.
    pub fn nand(&mut self) -> &mut dyn Nand {
        &mut *self.nand
    }

    /// The medium, as it is.
    pub fn into_nand(self) -> Box<dyn Nand> {
        self.nand
    }

    /// Counters of the medium.
    pub fn counters(&self) -> Option<onode_media::Counters> {
        self.nand.counters()
    }

    /// Virtual time that the medium has spent.
    pub fn virtual_nanoseconds(&self) -> u64 {
        self.nand.virtual_nanoseconds()
    }

    /// The volume's part of page checksums.
    pub const fn seed(&self) -> u32 {
        self.seed
    }

    /// Whether anything may be written, and why not.
    pub const fn latch(&self) -> &Latch {
        &self.latch
    }

    /// The same, to refuse every further write.
    pub const fn latch_mut(&mut self) -> &mut Latch {
        &mut self.latch
    }

    /// Runs `write` on the medium; a failure latches the device read-only (N6).
    pub fn write<T>(&mut self, what: &str, write: impl FnOnce(&mut dyn Nand) -> onode_media::Result<T>) -> Result<T> {
        self.latch.check()?;
        write(&mut *self.nand).map_err(|error| self.latch.fail(from_media(what, &error)))
    }

    /// Runs a program; false if a chip reports that it failed, which concerns one block. Any other
    /// failure latches the device read-only, and so do many in a row.
    pub fn try_program(&mut self, program: impl FnOnce(&mut dyn Nand) -> onode_media::Result<()>) -> Result<bool> {
        self.latch.check()?;
        self.unflushed = true;
        self.programs += 1;
        let error = match program(&mut *self.nand) {
            Ok(()) => {
                self.failures = 0;
                return Ok(true);
            }
            Err(error) => error,
        };
        if is_planted(Bug::FailedProgramIgnored) {
            return Ok(true);
        }
        let of_block =
            matches!(error.kind, onode_media::MediaErrorKind::ProgramFailed | onode_media::MediaErrorKind::BadBlock);
        self.failures += 1;
        if of_block && self.failures <= FAILURES_MAX {
            return Ok(false);
        }
        Err(self.latch.fail(from_media("program", &error)))
    }

    /// No page of `segment` will be programmed any more: its last row gets its parity, and the
    /// medium may let go what it holds for it. A page of parity that fails leaves that row without.
    pub fn finish(&mut self, segment: u32) -> Result<()> {
        self.close_row(segment)?;
        for block in self.layout.blocks(segment) {
            self.write("finish", |nand| nand.finish(block))?;
        }
        Ok(())
    }

    /// Erases a segment. `Ok(false)` means that a block refused: the segment must be retired.
    pub fn erase_segment(&mut self, segment: u32) -> Result<bool> {
        self.latch.check()?;
        self.forget_row(segment);
        self.pages.forget_to_move(segment);
        for block in self.layout.blocks(segment) {
            let first = self.layout.geometry.first_page(block);
            if is_planted(Bug::ErasedTrusted) && self.examine(first, None, IoTag::Data)?.is_erased() {
                continue;
            }
            match self.nand.erase(block, IoTag::Data) {
                Ok(()) => {}
                Err(error)
                    if matches!(
                        error.kind,
                        onode_media::MediaErrorKind::EraseFailed | onode_media::MediaErrorKind::BadBlock
                    ) =>
                {
                    self.write("mark bad block", |nand| nand.mark_bad(block))?;
                    return Ok(false);
                }
                Err(error) => {
                    return Err(self.latch.fail(from_media("erase", &error)));
                }
            }
        }
        Ok(true)
    }

    /// Up to which commit all was durable once, as far as the medium knows.
    pub fn watermark(&mut self) -> Result<Watermark> {
        self.nand.watermark().map_err(|error| from_media("read what was durable", &error))
    }
}

/// The page kind and the accounting tag of pages of `stream`, with content from users or only from
/// the cleaner.
pub const fn kind_and_tag(stream: crate::policy::Stream, from_users: bool) -> (PageKind, IoTag) {
    use crate::policy::Stream;
    match stream {
        Stream::Journal => (PageKind::Journal, IoTag::Journal),
        Stream::Index => (PageKind::Index, IoTag::Index),
        Stream::Atime => (PageKind::Atime, IoTag::Atime),
        _ if from_users => (PageKind::Data, IoTag::Data),
        _ => (PageKind::Cold, IoTag::Cleaning),
    }
}

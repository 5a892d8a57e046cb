//! The patrol: a page now and then is read for no other reason than that nobody else may.
//!
//! Bits flip in what is never read, too, and in the pages beside one that is read often. A medium
//! that tells of bitflips is read through, a little each time that background work is done, so that
//! what fades is refreshed in time (`refresh`); with parity, what is damaged is found again and
//! moved. Reads of the cache do not count, so nodes that stay in memory for years are read as well.

use crate::cleaner::Cleaner;
use crate::medium::errors::from_media;
use crate::medium::layout::SegmentPage;
use crate::medium::page::{Examined, PageFault};
use crate::volume::Volume;
use alloc::vec;
use onode_media::{BlockAddress, IoTag, MediaErrorKind};
use onode_object::Result;

/// A pass over the medium takes so many steps of background work, whatever its size: a day and a
/// half on a mount. Reads disturb what lies beside, so a small medium is not read more often.
const PASS: u64 = 1 << 17;

/// How far it came.
#[derive(Debug, Default)]
pub struct Patrol {
    next: SegmentPage,
    /// Of a page that is due, in parts of `PASS`.
    due: u64,
    /// Passes since the mount.
    passes: u64,
}

impl Patrol {
    /// Passes over the whole medium since the mount.
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// There are so many segments from now on.
    pub(super) fn keep_within(&mut self, segments: u32) {
        if self.next.segment >= segments {
            self.next = SegmentPage::default();
        }
    }

    /// The next page, if one is due, and whether a pass begins with it.
    fn take(&mut self, segments: u32, pages: u32) -> Option<(SegmentPage, bool)> {
        self.due = self.due.checked_sub(PASS)?;
        let at = self.next;
        self.next.page += 1;
        if self.next.page >= pages {
            self.next = SegmentPage { segment: (at.segment + 1) % segments.max(1), ..SegmentPage::default() };
            self.passes += u64::from(self.next.segment == 0);
        }
        Some((at, at == SegmentPage::default()))
    }
}

impl Cleaner {
    /// Where the patrol is.
    pub const fn patrol(&self) -> &Patrol {
        &self.patrol
    }

    /// Reads what is due, if the medium tells of bitflips.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn patrol_some(&mut self, volume: &mut Volume<'_>) -> Result<()> {
        if !self.refresh.is_told() {
            return Ok(());
        }
        let layout = *volume.log.layout();
        // Pages of parity come behind those of content.
        let pages = if layout.has_parity() { layout.all_pages() } else { layout.segment_pages };
        let segments = layout.segments;
        self.patrol.due += u64::from(segments) * u64::from(pages);
        while let Some((at, begins)) = self.patrol.take(segments, pages) {
            if begins {
                read_superblocks(volume)?;
            }
            let one = *volume.log.table().get(at.segment);
            let at = layout.page(one.stream, at.segment, at.page);
            if !one.is_needed(volume.replay_sequence()) {
                continue;
            }
            if at.page < layout.pages_with(at.parity) {
                // Not all that a segment has was ever programmed, or is needed: what is unsound may
                // be that. A read that needs the page tells.
                let _ = volume.log.medium().examine_page(at, Some(one.sequence), IoTag::Check)?;
                continue;
            }
            let found = volume.log.medium().examine(layout.address(at), Some(one.sequence), IoTag::Check)?;
            if matches!(found, Examined::Unsound(fault) if fault != PageFault::Erased) {
                volume.log.store().pages().note_row_to_move(layout.row_of(at).0);
            }
        }
        Ok(())
    }
}

/// Reads the first page of each block for superblocks.
fn read_superblocks(volume: &mut Volume<'_>) -> Result<()> {
    let layout = *volume.log.layout();
    let mut page = vec![0; layout.geometry.page_bytes as usize];
    for block in layout.superblocks.all() {
        let first = layout.geometry.first_page(BlockAddress(block));
        match volume.log.medium().nand().read(first, &mut page, &mut [], IoTag::Check) {
            Err(error) if error.kind == MediaErrorKind::Uncorrectable => {}
            read => read.map_err(|error| from_media("read", &error))?,
        }
    }
    Ok(())
}

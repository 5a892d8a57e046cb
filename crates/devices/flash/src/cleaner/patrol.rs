//! The patrol: a page now and then is read for no other reason than that nobody else may.
//!
//! Bits flip in what is never read, too, and in the pages beside one that is read often. A medium
//! that tells of bitflips is read through, a page each time that background work is done, so that
//! what fades is refreshed in time (`refresh`); with parity, what is damaged is found again and
//! moved. Reads of the cache do not count, so nodes that stay in memory for years are read as well.

use crate::cleaner::Cleaner;
use crate::medium::errors::from_media;
use crate::medium::layout::SegmentPage;
use crate::volume::Volume;
use alloc::vec;
use onode_media::{BlockAddress, IoTag, MediaErrorKind};
use onode_object::Result;

/// Of a medium one page in so many is read at a time: a pass takes twelve days on a mount.
const PASS: u64 = 1 << 20;

/// Segments that are passed over at a time, as they hold nothing.
const PASSED_OVER: u32 = 1024;

/// How far it came.
#[derive(Debug, Default)]
pub struct Patrol {
    next: SegmentPage,
    /// Passes since the mount.
    passes: u64,
}

impl Patrol {
    /// Passes over the whole medium since the mount.
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// The next page of a segment that holds something, if one is near.
    fn take(&mut self, volume: &mut Volume<'_>) -> Result<Option<SegmentPage>> {
        let (segments, pages) = (volume.log.layout().segments, volume.log.layout().segment_pages);
        let journal_sequence = volume.replay_sequence();
        for _ in 0..PASSED_OVER.min(segments) {
            let at = self.next;
            if at.page < pages && volume.log.table().get(at.segment).is_needed(journal_sequence) {
                self.next.page += 1;
                return Ok(Some(at));
            }
            self.next = SegmentPage { segment: at.segment + 1, page: 0 };
            if self.next.segment >= segments {
                self.next = SegmentPage::default();
                self.passes += 1;
                read_superblocks(volume)?;
            }
        }
        Ok(None)
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
        for _ in 0..volume.log.layout().geometry.pages().div_ceil(PASS) {
            let Some(at) = self.patrol.take(volume)? else { break };
            let sequence = volume.log.table().get(at.segment).sequence;
            // Not all that a segment has was ever programmed, or is needed: what is unsound may be
            // that. A read that needs the page tells.
            let _ = volume.log.medium().examine_page(at, Some(sequence), IoTag::Check)?;
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

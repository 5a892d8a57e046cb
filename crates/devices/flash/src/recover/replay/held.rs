//! The page of the journal that a write buffer in the memory beside the flash has.
//!
//! It keeps true: that page is replayed only at the end of the journal on flash, whose last page it
//! is, and what it says was synced is not given up as a commit that never happened.

use super::{Cursor, Recovery, Traces};
use crate::index::bpram::buffer::{HeldPage, PagePlace};
use crate::log::record::{Assembler, Record};
use crate::medium::format::PageKind;
use crate::medium::page::PageInfo;
use crate::medium::pages::VerifiedPage;
use crate::volume::Volume;
use alloc::format;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Recovery {
    /// Replays the page that the write buffer has, if it is the one at which the journal on flash
    /// ends: it was never programmed, or the cut hit it. All before it was made durable first.
    pub(super) fn replay_held(
        &mut self,
        volume: &mut Volume<'_>,
        held: HeldPage,
        assembler: &mut Assembler,
        cursor: &mut Cursor,
        traces: &mut Traces,
    ) -> Result<()> {
        let HeldPage { place, content, frames, .. } = held;
        let (at, sequence) = (cursor.at, cursor.sequence);
        if place != PagePlace::of(at, sequence) || is_planted(Bug::BesideHeldForgotten) {
            // Without an index in the memory this may be one that others wrote to the flash since.
            if (place.sequence, place.page) > (sequence, at.page) && volume.index.entries().memory().is_some() {
                let detail = format!("the memory has page {} of segment {} of it", place.page, place.segment);
                self.damage = Some(format!("the journal is damaged: {detail}, which ends before"));
            }
            return Ok(());
        }
        self.held_fits = true;
        self.enter_journal_segment(volume, cursor);
        traces.last.clear();
        traces.sure = true;
        match self.replay_page(volume, &frames, assembler, cursor, traces) {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                self.damage = Some(format!("the journal is damaged: {error}"));
            }
            replayed => replayed?,
        }
        let layout = *volume.log.layout();
        let info = PageInfo {
            kind: PageKind::Journal,
            record_bytes: 0,
            echo_bytes: 0,
            sequence,
            spare_bytes: 0,
            flushed: false,
        };
        cursor.last = Some((at, VerifiedPage { payload: content.as_slice().into(), info }));
        if content.is_empty() {
            return Ok(());
        }
        volume.log.waiting_pages_mut().add(&layout, layout.location(at, 0), content)
    }

    /// Commits up to this one were synced, as the write buffer knows: all of them if it has a page
    /// behind the one that was read last, those that it has of this page as it was at the last
    /// sync, else none. `assembler` is that of before this page.
    pub(super) fn synced_by_buffer(&self, cursor: &Cursor, assembler: &Assembler) -> u64 {
        let Some(held) = &self.held else { return 0 };
        let (held_at, read_up_to) = ((held.place.sequence, held.place.page), (cursor.sequence, cursor.at.page));
        if held_at >= read_up_to {
            return u64::MAX;
        }
        let mut last = 0;
        if (held_at.0, held_at.1 + 1) == read_up_to {
            let read = assembler.clone().page(&held.frames, &mut |record| {
                if let Record::Commit { transaction, .. } = record {
                    last = transaction;
                }
                Ok(())
            });
            if read.is_err() {
                return 0;
            }
        }
        last
    }
}

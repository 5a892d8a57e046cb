//! Reading pages under the device's lock, past the cache or through it, and from the copies that
//! stand in for damaged ones.
//!
//! It keeps true: a page counts as read if it was verified, or a copy of it was. What was read from
//! a copy stays in memory until a checkpoint has moved it, because the copy may go first.

use super::Store;
use crate::medium::format::PageKind;
use crate::medium::layout::{Row, SegmentPage};
use crate::medium::page::{Examined, PageInfo};
use crate::medium::pages::{Beside, Cause, Failed, PageReader, RowState, VerifiedPage, Want};
use crate::medium::saved::SavedPages;
use alloc::sync::Arc;
use onode_media::{IoTag, PageAddress};
use onode_object::Result;

impl Store {
    /// Reads under the device's lock.
    pub const fn reader(&mut self, tag: IoTag) -> Reader<'_> {
        Reader { store: self, tag }
    }

    /// Reads `wants` without the device's lock, if the medium can do that and no copy may stand in
    /// for a page.
    pub fn beside(&self, wants: &[Want], tag: IoTag) -> Option<Beside> {
        let has_copy =
            |want: &Want| self.saved.has(self.layout.address(want.at)) || self.restored.contains_key(&want.at);
        let has_copies = !self.saved.is_empty() && wants.iter().any(has_copy);
        let medium = self.shared.clone().filter(|_| !has_copies)?;
        Some(Beside::new(Arc::clone(&self.pages), medium, tag))
    }

    /// Reads and verifies a page, past the cache.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn examine(
        &mut self,
        address: PageAddress,
        sequence: Option<u32>,
        tag: IoTag,
    ) -> Result<Examined<VerifiedPage>> {
        let Self { pages, nand, .. } = self;
        let found = pages.examine(address, sequence, &mut |first, data, spare| nand.read(first, data, spare, tag));
        found.map_err(|error| pages.note_refused(&error))
    }

    /// Reads and verifies page `at` of a segment, past the cache, or finds it again from the parity
    /// of its row. It must have `sequence` if that is known.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn examine_page(
        &mut self,
        at: SegmentPage,
        sequence: Option<u32>,
        tag: IoTag,
    ) -> Result<Examined<VerifiedPage>> {
        let Self { pages, nand, .. } = self;
        let found =
            pages.examine_or_rebuild(at, sequence, &mut |first, data, spare| nand.read(first, data, spare, tag));
        found.map_err(|error| pages.note_refused(&error))
    }

    /// How the pages of `row` agree, in a segment opened with `sequence`.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn examine_row(&mut self, row: Row, sequence: u32, tag: IoTag) -> Result<RowState> {
        let Self { pages, nand, .. } = self;
        let state = pages.examine_row(row, sequence, &mut |runs| nand.read_runs(runs, tag));
        state.map_err(|error| pages.note_refused(&error))
    }

    /// The verified page `at` of a segment opened with `sequence`.
    pub fn page(&mut self, at: SegmentPage, sequence: u32, tag: IoTag) -> Result<VerifiedPage> {
        let address = self.layout.address(at);
        if let Some(page) = self.pages.kept(address, sequence) {
            return Ok(page);
        }
        match self.examine_page(at, Some(sequence), tag)? {
            Examined::Sound(page) => {
                self.pages.keep(address, page.clone());
                Ok(page)
            }
            Examined::Unsound(fault) => {
                self.restore(at, Some(sequence), tag)?.ok_or_else(|| self.pages.note_damaged(at, &fault))
            }
        }
    }

    /// Whether the medium may work on several reads at a time, so that it is worth asking for them
    /// together.
    pub const fn reads_together(&self) -> bool {
        self.layout.geometry.chips > 1 || self.shared.is_some()
    }

    /// Fills `out` with what `wants` ask for before anybody does; false if a page cannot be had,
    /// which is told when it is asked for.
    pub fn read_ahead(&mut self, wants: &[Want], out: &mut [u8], tag: IoTag) -> bool {
        let Self { pages, nand, .. } = self;
        pages.read(wants, out, &mut |runs| nand.read_runs(runs, tag)).is_ok()
    }

    /// The pages that `saved` has copies of are read from these if they are damaged.
    pub fn set_saved(&mut self, saved: SavedPages) {
        self.saved = saved;
    }

    /// The page `at` of a segment opened with `sequence`, if that is known, from its copy. Nothing
    /// if there is none.
    pub fn restore(&mut self, at: SegmentPage, sequence: Option<u32>, tag: IoTag) -> Result<Option<VerifiedPage>> {
        let is_of = |page: &VerifiedPage| sequence.is_none_or(|sequence| page.info.sequence == sequence);
        if !self.restored.contains_key(&at)
            && let Some((payload, sequence)) = self.saved.read(&mut *self.nand, self.layout.address(at), tag)?
        {
            let info = PageInfo {
                kind: PageKind::Index,
                record_bytes: 0,
                echo_bytes: 0,
                sequence,
                spare_bytes: 0,
                flushed: true,
            };
            self.restored.insert(at, VerifiedPage { payload: payload.into(), info });
        }
        Ok(self.restored.get(&at).filter(|page| is_of(page)).cloned())
    }

    /// The pages that were read from their copies.
    pub fn restored(&self) -> impl Iterator<Item = SegmentPage> {
        self.restored.keys().copied()
    }

    /// Nothing refers to the pages any more that were read from their copies.
    pub fn forget_restored(&mut self) {
        self.restored.clear();
    }
}

/// Reads pages under the device's lock.
pub struct Reader<'a> {
    store: &'a mut Store,
    tag: IoTag,
}

impl PageReader for Reader<'_> {
    fn read(&mut self, wants: &[Want], out: &mut [u8]) -> core::result::Result<(), Failed> {
        let Self { store, tag } = self;
        let pages = Arc::clone(&store.pages);
        let nand = &mut store.nand;
        let read = pages.read(wants, out, &mut |runs| nand.read_runs(runs, *tag));
        match read {
            Err((_, Cause::Damaged(..))) if !store.saved.is_empty() => {
                // Each by itself, from its copy if there is one.
                for (index, want) in wants.iter().enumerate() {
                    let page = store.page(want.at, want.sequence, *tag);
                    let page = page.map_err(|error| Failed { wants: index..index + 1, error })?;
                    out[want.to.clone()].copy_from_slice(&page.payload[want.from..][..want.to.len()]);
                }
                Ok(())
            }
            read => read.map_err(|(wants, cause)| Failed { wants, error: pages.note(&cause) }),
        }
    }
}

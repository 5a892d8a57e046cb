//! Programming pages of segments, each with its trailer.
//!
//! It keeps true: where a volume keeps parity, every page that was programmed counts for the parity
//! of its row, which is programmed right behind the row's last page.

use super::{Programmed, Store};
use crate::medium::format::PageTrailer;
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::{self, PageInfo};
use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_codec::parity::Signature;
use onode_media::{IoTag, PageAddress};
use onode_object::Result;
use zerocopy::IntoBytes;

impl Store {
    /// Programs one journal page, whose payload goes on in the spare area.
    pub fn program_journal(
        &mut self,
        at: SegmentPage,
        info: PageInfo,
        payload: &[u8],
        tag: IoTag,
    ) -> Result<Programmed> {
        self.program_one(at, info, payload, tag)
    }

    /// Programs whole pages from `at` on; `payload` holds them one after another, the last may be
    /// short.
    pub fn program(&mut self, at: SegmentPage, info: PageInfo, payload: &[u8], tag: IoTag) -> Result<Programmed> {
        let size = self.layout.payload_bytes as usize;
        let mut at = at;
        let mut rest = payload;
        while !rest.is_empty() {
            let whole = (rest.len() / size) as u32;
            if whole == 0 || self.layout.has_parity() {
                let (page, after) = rest.split_at(rest.len().min(size));
                if let Programmed::Failed(failed) = self.program_one(at, info, page, tag)? {
                    return Ok(Programmed::Failed(failed));
                }
                rest = after;
                at.page += 1;
            } else {
                let count = self.layout.run(at, whole);
                let (pages, after) = rest.split_at(count as usize * size);
                if !self.program_run(self.layout.address(at), info, pages, tag)? {
                    return Ok(Programmed::Failed(at));
                }
                rest = after;
                at.page += count;
            }
        }
        Ok(Programmed::Whole)
    }

    fn program_one(&mut self, at: SegmentPage, info: PageInfo, payload: &[u8], tag: IoTag) -> Result<Programmed> {
        let address = self.layout.address(at);
        let size = self.layout.payload_bytes as usize;
        let (payload, more) = payload.split_at(payload.len().min(size));
        // What fills a page is programmed from where it lies.
        let page = if payload.len() == size { Cow::Borrowed(payload) } else { Cow::Owned(filled(payload, size)) };
        let trailer = page::seal(self.seed, address, info, &page, more);
        if !self.layout.has_parity() {
            let is_programmed = self.program_sealed(address, &page, [trailer.as_bytes(), more, &[]], tag)?;
            return Ok(if is_programmed { Programmed::Whole } else { Programmed::Failed(at) });
        }
        let more = filled(more, self.layout.spare_record_bytes as usize);
        let covered = if is_planted(Bug::ParityWithoutTrailers) { &[0; 16] } else { trailer.as_bytes() };
        let image = [&*page, covered, &more];
        let area = Signature::of_parts(&image).to_bytes();
        if !self.program_sealed(address, &page, [trailer.as_bytes(), &more, &area], tag)? {
            return Ok(Programmed::Failed(at));
        }
        let failed = self.cover(at, info.sequence, &image)?;
        Ok(failed.map_or(Programmed::Whole, Programmed::Failed))
    }

    /// Programs one page and, where the spare area or its own end has the room, `behind` it: the
    /// trailer and what follows that.
    pub(super) fn program_sealed(
        &mut self,
        address: PageAddress,
        page: &[u8],
        behind: [&[u8]; 3],
        tag: IoTag,
    ) -> Result<bool> {
        let mut behind = behind.concat();
        let shape = self.layout.geometry;
        if Layout::trailer_in_spare(&shape) {
            behind.resize(shape.spare_bytes as usize, 0xff);
            return self.try_program(|nand| nand.program(address, page, &behind, tag));
        }
        let mut whole = Vec::with_capacity(shape.page_bytes as usize);
        whole.extend_from_slice(page);
        whole.extend_from_slice(&behind);
        whole.resize(shape.page_bytes as usize, 0);
        self.try_program(|nand| nand.program(address, &whole, &[], tag))
    }

    fn program_run(&mut self, first: PageAddress, info: PageInfo, payload: &[u8], tag: IoTag) -> Result<bool> {
        let size = self.layout.payload_bytes as usize;
        if !Layout::trailer_in_spare(&self.layout.geometry) {
            let page_bytes = self.layout.geometry.page_bytes as usize;
            let mut pages = Vec::with_capacity(payload.len() / size * page_bytes);
            for (i, page) in payload.chunks(size).enumerate() {
                pages.extend_from_slice(page);
                let address = PageAddress(first.0 + i as u64);
                pages.extend_from_slice(page::seal(self.seed, address, info, page, &[]).as_bytes());
            }
            return self.try_program(|nand| nand.program_run(first, &pages, &[], tag));
        }
        let spare_bytes = self.layout.geometry.spare_bytes as usize;
        let mut spares = vec![0xff; payload.len() / size * spare_bytes];
        for (i, (page, spare)) in payload.chunks(size).zip(spares.chunks_mut(spare_bytes)).enumerate() {
            let trailer = page::seal(self.seed, PageAddress(first.0 + i as u64), info, page, &[]);
            spare[..size_of::<PageTrailer>()].copy_from_slice(trailer.as_bytes());
        }
        self.try_program(|nand| nand.program_run(first, payload, &spares, tag))
    }
}

/// `bytes` and zeros up to `length`.
fn filled(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut filled = Vec::with_capacity(length);
    filled.extend_from_slice(bytes);
    filled.resize(length, 0);
    filled
}

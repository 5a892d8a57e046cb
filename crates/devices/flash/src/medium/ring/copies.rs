//! Programming the copies of important pages behind a superblock ([`crate::medium::saved`]).

use super::{Ring, seal_page};
use crate::medium::format::{PageKind, SavedPage};
use crate::medium::layout::{End, SegmentPage};
use crate::medium::page::PageInfo;
use crate::medium::store::Store;
use core::ops::Range;
use onode_media::{BlockAddress, IoTag, PageAddress};
use onode_object::Result;

/// The end of the medium at which the copies are.
const fn end_with_copies(store: &Store) -> End {
    if store.layout().superblocks.at_both_ends() { End::Far } else { End::Start }
}

impl Ring {
    /// The pages behind the place where the next superblock goes.
    pub fn first_copy(&self, store: &Store) -> Option<Range<u64>> {
        let layout = store.layout();
        let (block, page) = self.turn(end_with_copies(store)).goes_on()?;
        let first = layout.geometry.first_page(BlockAddress(block)).0;
        let behind = first + u64::from(page) + 1..first + u64::from(layout.geometry.pages_per_block);
        (!behind.is_empty()).then_some(behind)
    }

    /// Programs the copies that the newest superblock names; `pages` are what they are of.
    pub fn save_pages(&mut self, store: &mut Store, pages: &[SegmentPage], copies: &[SavedPage]) -> Result<()> {
        let layout = *store.layout();
        if copies.is_empty() {
            return Ok(());
        }
        self.end_block(end_with_copies(store));
        for (at, saved) in pages.iter().zip(copies) {
            // Without a copy the volume is as sound as with it.
            let Ok(page) = store.page(*at, saved.sequence.get(), IoTag::Anchor) else { break };
            let copy = PageAddress(saved.copy.get());
            let info = PageInfo {
                kind: PageKind::Saved,
                record_bytes: 0,
                echo_bytes: 0,
                sequence: self.checkpoint_generation,
                spare_bytes: 0,
                flushed: false,
            };
            let payload = &page.payload[..layout.payload_bytes as usize];
            let (data, spare) = seal_page(&layout, store.seed(), copy, info, payload);
            if !store.try_program(|nand| nand.program(copy, &data, &spare, IoTag::Anchor))? {
                break;
            }
        }
        store.flush()
    }
}

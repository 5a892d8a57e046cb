//! Copies of the pages without which nothing of a closed volume could be found: those with the root
//! of the tree and with the segment table.
//!
//! Everything else that is damaged costs what lay there; one of these pages costs the volume. A
//! clean close therefore programs them once more, behind the superblock at the far end of the
//! medium, in an erase block that no later session goes on in. The superblock says of which pages.
//!
//! It keeps true: a copy is believed only at its address, under the generation of its checkpoint
//! and for a page with the sequence number that the superblock names. A copy is never needed: where
//! one is missing the volume is as it would be without it.
//!
//! It does not copy other nodes of the tree, and checkpoints of a volume in use have no copies.

use super::seal_page;
use crate::core::Core;
use crate::medium::errors::from_media;
use crate::medium::format::{NOWHERE, PageKind, References, SavedPage, Superblock};
use crate::medium::layout::{End, Layout, SegmentPage};
use crate::medium::page::{self, PageInfo};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use onode_media::{BlockAddress, IoTag, MediaErrorKind, Nand, PageAddress};
use onode_object::Result;

/// More pages are not copied: a close is not to take long.
const PAGES_MAX: usize = 32;

/// The copies that a superblock names.
#[derive(Clone, Debug, Default)]
pub struct SavedPages {
    copies: BTreeMap<u64, SavedPage>,
    generation: u32,
    seed: u32,
}

impl SavedPages {
    /// Those of this superblock.
    pub fn of(superblock: &Superblock, references: &References) -> Self {
        let copies = references.saved.iter().map(|saved| (saved.page.get(), *saved)).collect();
        let seed = page::volume_seed(&superblock.uuid);
        Self { copies, generation: superblock.checkpoint_generation.get(), seed }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Whether there is a copy of the page at `address`.
    pub fn has(&self, address: PageAddress) -> bool {
        self.copies.contains_key(&address.0)
    }

    /// The payload of `page` and its sequence number, from its copy if there is one that is sound.
    ///
    /// # Errors
    /// If the host of the medium fails.
    pub fn read(&self, nand: &mut dyn Nand, page: PageAddress, tag: IoTag) -> Result<Option<(Vec<u8>, u32)>> {
        let Some(saved) = self.copies.get(&page.0) else { return Ok(None) };
        // What a superblock says may be anything.
        if saved.copy.get() >= nand.geometry().pages() {
            return Ok(None);
        }
        let found = read_copy(nand, self.seed, PageAddress(saved.copy.get()), Some(self.generation), tag)?;
        Ok(found.map(|payload| (payload, saved.sequence.get())))
    }
}

/// The payload of the copy at `copy`, if a sound one is there.
fn read_copy(
    nand: &mut dyn Nand,
    seed: u32,
    copy: PageAddress,
    generation: Option<u32>,
    tag: IoTag,
) -> Result<Option<Vec<u8>>> {
    let shape = nand.geometry();
    let in_spare = Layout::trailer_in_spare(&shape);
    let mut data = vec![0; shape.page_bytes as usize];
    let mut spare = vec![0; if in_spare { shape.spare_bytes as usize } else { 0 }];
    match nand.read(copy, &mut data, &mut spare, tag) {
        Ok(()) => {}
        Err(error) if error.kind == MediaErrorKind::Uncorrectable => return Ok(None),
        Err(error) => return Err(from_media("read a copy of a page", &error)),
    }
    let trailer = data.split_off(Layout::payload_bytes(&shape) as usize);
    let trailer = if in_spare { spare } else { trailer };
    let info = page::verify(seed, copy, generation, &trailer, &data);
    Ok(info.is_ok_and(|info| info.kind == PageKind::Saved).then_some(data))
}

/// Whether a copy of a page of the volume `uuid` stands at `page` of `block`.
pub fn is_copy(nand: &mut dyn Nand, uuid: &[u8; 16], block: u32, page: u32) -> bool {
    let first = nand.geometry().first_page(BlockAddress(block)).0;
    let copy = PageAddress(first + u64::from(page));
    read_copy(nand, page::volume_seed(uuid), copy, None, IoTag::Check).is_ok_and(|found| found.is_some())
}

impl Core {
    /// Repeats the superblock of a closed volume with copies of its most important pages behind it.
    /// It also makes the checkpoint safe from a cut that hit the first superblock unnoticed.
    pub(crate) fn write_last_superblock(&mut self) -> Result<()> {
        let wanted = self.pages_to_save();
        let first_copy = self.first_copy();
        let sequence = |at: &SegmentPage| self.log.table.get(at.segment).sequence.into();
        let saved = wanted.iter().zip(first_copy.into_iter().flatten()).map(|(at, copy)| SavedPage {
            page: self.log.store.layout.address(*at).0.into(),
            copy: copy.into(),
            sequence: sequence(at),
        });
        self.checkpoint_state.references.saved = saved.take(self.saved_pages_max()).collect();
        self.write_superblock(false)?;
        self.save_pages(&wanted)
    }

    /// The pages on which the root of the tree and the pieces of the segment table lie, each once.
    fn pages_to_save(&self) -> Vec<SegmentPage> {
        let checkpoint = &self.checkpoint_state;
        let layout = &self.log.store.layout;
        let mut pages: Vec<SegmentPage> = Vec::new();
        for reference in core::iter::once(&checkpoint.root.0).chain(&checkpoint.references.pieces) {
            if reference.location.get() == NOWHERE {
                continue;
            }
            let (first, offset) = layout.page_of(reference.location.get());
            let count = (offset + reference.length.get()).div_ceil(layout.payload_bytes);
            for page in first.page..first.page + count {
                let at = SegmentPage { page, ..first };
                if !pages.contains(&at) {
                    pages.push(at);
                }
            }
        }
        pages
    }

    /// How many copies the superblock has room to name.
    fn saved_pages_max(&self) -> usize {
        let taken = size_of::<Superblock>()
            + References { saved: Vec::new(), ..self.checkpoint_state.references.clone() }.encode().len()
            + References::SAVED_HEADER_BYTES;
        let room = (self.log.store.layout.payload_bytes as usize).saturating_sub(taken);
        (room / size_of::<SavedPage>()).min(PAGES_MAX)
    }

    /// The end of the medium at which the copies are.
    const fn end_with_copies(&self) -> End {
        if self.log.store.layout.superblocks.at_both_ends() { End::Far } else { End::Start }
    }

    /// The pages behind the place where the next superblock goes.
    fn first_copy(&self) -> Option<core::ops::Range<u64>> {
        let layout = &self.log.store.layout;
        let (block, page) = self.ring.turn(self.end_with_copies()).goes_on()?;
        let first = layout.geometry.first_page(BlockAddress(block)).0;
        let behind = first + u64::from(page) + 1..first + u64::from(layout.geometry.pages_per_block);
        (!behind.is_empty()).then_some(behind)
    }

    /// Moves what lies on pages that were read from their copies: the copies go with their erase
    /// block.
    pub(crate) fn move_restored(&mut self) -> Result<()> {
        let restored: Vec<SegmentPage> = self.log.store.restored().collect();
        for at in restored {
            let layout = self.log.store.layout;
            let of_page = at.page * layout.payload_bytes..(at.page + 1) * layout.payload_bytes;
            for item in self.items_on(at.segment, IoTag::Index)? {
                if item.start < of_page.end && of_page.start < item.start + item.length {
                    let location = layout.location(SegmentPage { page: 0, ..at }, item.start);
                    self.move_item(&item, location, false)?;
                }
            }
        }
        Ok(())
    }

    /// Programs the copies that the superblock names; `pages` are what they are of.
    fn save_pages(&mut self, pages: &[SegmentPage]) -> Result<()> {
        let layout = self.log.store.layout;
        let copies = self.checkpoint_state.references.saved.clone();
        if copies.is_empty() {
            return Ok(());
        }
        self.ring.end_block(self.end_with_copies());
        for (at, saved) in pages.iter().zip(copies) {
            // Without a copy the volume is as sound as with it.
            let Ok(page) = self.log.store.page(*at, saved.sequence.get(), IoTag::Anchor) else { break };
            let copy = PageAddress(saved.copy.get());
            let info = PageInfo {
                kind: PageKind::Saved,
                record_bytes: 0,
                echo_bytes: 0,
                sequence: self.ring.checkpoint_generation,
                spare_bytes: 0,
                flushed: false,
            };
            let payload = &page.payload[..layout.payload_bytes as usize];
            let (data, spare) = seal_page(&layout, self.log.store.seed(), copy, info, payload);
            if !self.log.store.try_program(|nand| nand.program(copy, &data, &spare, IoTag::Anchor))? {
                break;
            }
        }
        self.log.store.flush()
    }
}

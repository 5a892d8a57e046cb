//! Copies of the pages without which nothing of a closed volume could be found: those with the root
//! of the tree and with the segment table, and as many with the nodes next to the root as there is
//! room for.
//!
//! One page with the root or the segment table costs the volume, an inner node all that is below
//! it, and the first leaves have what a host made first, which it may need to find all the rest. A
//! clean close therefore programs them once more, behind the superblock at the far end of the
//! medium, in an erase block that no later session goes on in. The superblock says of which pages.
//!
//! It keeps true: a copy is believed only at its address, under the generation of its checkpoint
//! and for a page with the sequence number that the superblock names. A copy is never needed: where
//! one is missing the volume is as it would be without it.
//!
//! It does not choose the pages, and checkpoints of a volume in use have no copies.

use crate::medium::errors::from_media;
use crate::medium::format::{PageKind, References, SavedPage, Superblock};
use crate::medium::layout::Layout;
use crate::medium::page;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use onode_media::{BlockAddress, IoTag, MediaErrorKind, Nand, PageAddress};
use onode_object::Result;

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

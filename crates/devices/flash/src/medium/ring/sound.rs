//! Whether a superblock is one that this code can follow.

use super::Found;
use crate::medium::errors::damaged;
use crate::medium::format::{FEATURES_KNOWN, FORMAT_MAJOR, Superblock};
use crate::medium::layout::Layout;
use crate::space::segments::SegmentTable;
use alloc::format;
use onode_base::ErrorKind;
use onode_media::{Geometry, Nand};
use onode_object::{Error, ObjectId, Result};

/// Checks that this code can use the volume and that the medium has its shape.
///
/// # Errors
/// `Invalid` for another format or shape, `Corrupt` for fields that make no sense.
pub fn check_superblock(found: &Found, nand: &dyn Nand) -> Result<Layout> {
    let superblock = &found.superblock;
    if superblock.major.get() != FORMAT_MAJOR || superblock.incompatible.get() & !FEATURES_KNOWN != 0 {
        let detail = format!(
            "the volume has flash format {}.{} with features {:#x}; this program knows format {FORMAT_MAJOR}",
            superblock.major.get(),
            superblock.minor.get(),
            superblock.incompatible.get()
        );
        return Err(Error::new(ErrorKind::NotSupported, detail));
    }
    let shape = nand.geometry();
    let stored = (superblock.page_bytes.get(), superblock.pages_per_block.get(), superblock.blocks.get());
    // A medium that became larger has room for the volume to grow.
    if !is_shape_of(superblock, &shape) {
        let detail = format!("the volume was made for pages, block and size {stored:?}, the medium is {shape:?}");
        return Err(Error::new(ErrorKind::Invalid, detail));
    }
    let layout = Layout::of_volume(shape, superblock)?;
    let journal_sound =
        superblock.journal_segment.get() < layout.segments && superblock.journal_page.get() <= layout.segment_pages;
    if found.references.pieces.len() != SegmentTable::piece_count(&layout)
        || superblock.root_level > crate::index::tree::Tree::MAX_LEVEL
        || !journal_sound
        || !numbers_are_possible(superblock, &layout)
        || superblock.journal_next_segment.get() >= layout.segments
    {
        return Err(damaged(format!("superblock {} makes no sense", superblock.generation.get())));
    }
    Ok(layout)
}

/// Whether a volume with this superblock fits a medium of this shape.
pub fn is_shape_of(superblock: &Superblock, shape: &Geometry) -> bool {
    superblock.page_bytes.get() == shape.page_bytes
        && superblock.pages_per_block.get() == shape.pages_per_block
        && superblock.blocks.get() <= shape.blocks
        && u32::from(superblock.chips.get()) == shape.chips
}

/// Whether the counters of a superblock are ones that a volume can reach, with room to count on.
pub fn numbers_are_possible(superblock: &Superblock, layout: &Layout) -> bool {
    let bytes = u64::from(layout.segments) * layout.segment_bytes();
    // An object takes more than one byte of a node, an extent has at least one byte.
    superblock.objects.get() <= bytes
        && superblock.extents.get() <= bytes
        && superblock.next_object.get() < ObjectId::FIRST_OF_DEVICE.0
        && superblock.transaction.get() < 1 << 62
        && superblock.next_sequence.get() < LAST_SEQUENCE
        && superblock.generation.get() < LAST_SEQUENCE
        && superblock.checkpoint_generation.get() <= superblock.generation.get()
}

/// Sequence numbers and generations end here: a session may still count on for a while.
const LAST_SEQUENCE: u32 = 0xf000_0000;

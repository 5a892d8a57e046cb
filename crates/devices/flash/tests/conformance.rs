//! The conformance suite on flash volumes of several shapes.

use crate::common::{Flash, LARGE, SMALL, STRIPED, TINY};
use onode_flash::{FormatOptions, MountOptions};
use onode_media::Geometry;

/// Four chips with room for parity in their spare area.
const WIDE: Geometry = Geometry { spare_bytes: 64, ..STRIPED };

onode_object::conformance!(small_pages_without_spare, |bytes| Flash::holding(TINY, bytes));
onode_object::conformance!(pages_of_2_kib, |bytes| Flash::holding(SMALL, bytes));
onode_object::conformance!(pages_of_4_kib, |bytes| Flash::holding(LARGE, bytes));
onode_object::conformance!(four_chips, |bytes| Flash::holding(STRIPED, bytes));
onode_object::conformance!(parity_without_spare, |bytes| Flash::with_parity(TINY, bytes, 4, 1));
onode_object::conformance!(two_pages_of_parity_on_four_chips, |bytes| Flash::with_parity(WIDE, bytes, 8, 2));
onode_object::conformance!(parity_that_objects_choose, |bytes| {
    let (parity_pages, chosen_parity) = (3, Some(0));
    let format = FormatOptions { blocks_per_segment: Some(8), parity_pages, chosen_parity, ..FormatOptions::default() };
    Flash::made(WIDE, bytes, &format, MountOptions::default())
});
onode_object::conformance!(without_extents_and_small_object_buffer, |bytes| {
    let mut flash = Flash::holding(SMALL, bytes + bytes / 2);
    flash.options.extents = false;
    flash.options.small_object_buffer = false;
    flash.mount();
    flash
});

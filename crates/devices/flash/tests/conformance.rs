//! The conformance suite on flash volumes of several shapes.

mod common;

use common::{Flash, LARGE, SMALL, STRIPED, TINY};

onode_object::conformance!(small_pages_without_spare, |bytes| Flash::holding(TINY, bytes));
onode_object::conformance!(pages_of_2_kib, |bytes| Flash::holding(SMALL, bytes));
onode_object::conformance!(pages_of_4_kib, |bytes| Flash::holding(LARGE, bytes));
onode_object::conformance!(four_chips, |bytes| Flash::holding(STRIPED, bytes));
onode_object::conformance!(without_extents_and_small_object_buffer, |bytes| {
    let mut flash = Flash::holding(SMALL, bytes + bytes / 2);
    flash.options.extents = false;
    flash.options.small_object_buffer = false;
    flash.mount();
    flash
});

//! How much of a section of a fast disk can be used.

use onode_lab::tier::space_use::{BLOCK_BYTES, fill};
use onode_tier::fast::extent::Scheme;

#[test]
fn exact_runs_use_nearly_all_of_a_section_and_segments_little() {
    let used =
        |scheme, extent_kib: u64, deletes| fill(scheme, extent_kib << 10, BLOCK_BYTES, deletes, 1).per_thousand();
    for extent in [16, 64, 256, 512] {
        assert!(used(Scheme::Exact, extent, false) >= 950 && used(Scheme::Exact, extent, true) >= 950);
    }
    for (extent, percent) in [(16, 66), (64, 51), (256, 22), (512, 13)] {
        let found = used(Scheme::Paper, extent, false);
        assert!(found.abs_diff(percent * 10) <= 10, "extents of {extent} KiB: {found} of 1,000");
    }
    for (extent, percent) in [(16, 69), (64, 55), (256, 23), (512, 14)] {
        let found = used(Scheme::Paper, extent, true);
        assert!(found.abs_diff(percent * 10) <= 15, "extents of {extent} KiB: {found} of 1,000");
    }
}

//! How much of a section files can use: the allocators filled with the files of PostMark, no disk.

use super::Measuring;
use onode::Result;
use onode_tier::fast::extent::Scheme;
use onode_tier::fast::extent::measure::{BLOCK_BYTES, fill};

/// The extents that are judged, of those of paper 4.
const EXTENTS: [(u64, bool); 4] = [(16 << 10, true), (64 << 10, false), (256 << 10, false), (512 << 10, true)];

pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    for (extent, is_judged) in EXTENTS {
        for scheme in [Scheme::Exact, Scheme::Paper] {
            for deletes in [false, true] {
                let used = fill(scheme, extent, BLOCK_BYTES, deletes, 1).per_thousand() as f64 / 10.0;
                let what = if deletes { "PostMark files, half of them deleted" } else { "PostMark files" };
                let row = format!("space use, {what}, extents of {} KB: {}", extent >> 10, scheme.name());
                if is_judged && scheme == Scheme::default() && !deletes {
                    measuring.at_least(row, used, "%", 95.0);
                } else {
                    measuring.shown(row, used, "%");
                }
            }
        }
    }
    Ok(())
}

//! How much of a section files can use: the allocators filled with the files of PostMark, no disk.

use super::Measuring;
use crate::tier::space_use::{BLOCK_BYTES, fill};
use onode::Result;
use onode_tier::fast::extent::Scheme;
use onode_tier::fast::extent::paper::{Paper, SMALL_EXTENT_BLOCKS};

/// The extents that are judged, of those of paper 4.
const EXTENTS: [(u64, bool); 4] = [(16 << 10, true), (64 << 10, false), (256 << 10, false), (512 << 10, true)];

/// The section of the paper's Table 3.
const TABLE_BYTES: u64 = 16 << 30;

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
    for (extent, _) in EXTENTS {
        let blocks = extent / BLOCK_BYTES;
        let bits = u64::from(Paper::new(blocks, blocks as u32, SMALL_EXTENT_BLOCKS).bits_per_extent());
        let row = format!("Table 3: bitmaps of a section of 16 GB, extents of {} KB", extent >> 10);
        measuring.shown(row, (bits * (TABLE_BYTES / extent) / 8) as f64 / 1024.0, "KB");
    }
    Ok(())
}

//! How much of a section can be used: it is filled with files of the sizes that PostMark makes.

use onode_base::Prng;
use onode_tier::fast::extent::exact::Exact;
use onode_tier::fast::extent::paper::{Paper, SMALL_EXTENT_BLOCKS};
use onode_tier::fast::extent::{Allocate, Run, Scheme};

/// Bytes of the section that is filled.
pub const SECTION_BYTES: u64 = 16 << 20;

/// The block of the paper's file system; smaller than the block of the device, which makes the
/// segments of a small extent tell.
pub const BLOCK_BYTES: u64 = 1024;

/// A section that took no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// Blocks of the section.
    pub blocks: u64,
    /// Blocks of them that hold files.
    pub used: u64,
    /// Files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

impl SpaceUse {
    /// Used blocks of 1,000.
    #[must_use]
    pub fn per_thousand(&self) -> u64 {
        (self.used * 1000).checked_div(self.blocks).unwrap_or(0)
    }
}

/// Fills a section with files of 500 to 10,240 bytes until one finds no room; if `deletes`, every
/// second step before that deletes one at random.
#[must_use]
pub fn fill(scheme: Scheme, extent_bytes: u64, block_bytes: u64, deletes: bool, seed: u64) -> SpaceUse {
    let blocks = SECTION_BYTES / block_bytes;
    let extent_blocks = (extent_bytes / block_bytes) as u32;
    let mut section: Box<dyn Allocate> = match scheme {
        Scheme::Exact => Box::new(Exact::new(blocks, extent_blocks, 0)),
        Scheme::Paper => Box::new(Paper::new(blocks, extent_blocks, SMALL_EXTENT_BLOCKS)),
    };
    let mut prng = Prng::new(seed);
    let mut files: Vec<(Vec<Run>, u64)> = Vec::new();
    loop {
        // Two files come for each that goes.
        if deletes && files.len() > 1 && prng.chance(1, 3) {
            let (runs, _) = files.swap_remove(prng.below(files.len() as u64) as usize);
            runs.into_iter().for_each(|run| section.free(run));
        }
        let bytes = 500 + prng.below(9741);
        let Some(runs) = section.allocate(bytes.div_ceil(block_bytes) as u32) else { break };
        files.push((runs, bytes));
    }
    let bytes = files.iter().map(|(_, bytes)| bytes).sum();
    SpaceUse { blocks: section.blocks(), used: section.used(), files: files.len() as u64, bytes }
}

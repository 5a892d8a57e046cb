//! Images made by somebody who means harm: structures with sound checksums and absurd content.
//! Nothing may panic, go on for ever or ask for absurd amounts of memory.

use crate::common::Shared;
use crate::common::hostile::{survive, volume, volume_of};
use onode_base::Prng;
use onode_flash::FormatOptions;
use onode_media::Geometry;
use std::ops::Range;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 96, chips: 1 };
const BARE: Geometry = Geometry { spare_bytes: 0, ..SHAPE };

fn many(nand: &Shared, seeds: Range<u64>) {
    let sound = nand.with(|nand| nand.clone());
    for seed in seeds {
        let mut prng = Prng::new(seed);
        let mut input = vec![0; 1 + prng.below(48) as usize];
        prng.fill(&mut input);
        survive(&sound, &input);
    }
}

#[test]
fn hostile_images_with_trailers_in_the_spare_area() {
    many(&volume(SHAPE), 50_000..54_500);
}

#[test]
fn hostile_images_with_trailers_in_the_page() {
    many(&volume(BARE), 0..1000);
}

/// Pages of parity with sound checksums and absurd numbers of columns, or of other rows, and rows
/// of which they are all that is left.
#[test]
fn hostile_images_with_parity() {
    let shape = Geometry { spare_bytes: 64, pages_per_block: 4, blocks: 320, ..SHAPE };
    let format = FormatOptions { blocks_per_segment: Some(5), parity_pages: 2, ..FormatOptions::default() };
    many(&volume_of(shape, &format), 0..1500);
}

//! All pages of a medium as a flash programmer writes them, on a chip again.

use crate::common::Folder;
use onode::medium::{SpareArea, dump_pages};
use onode::{Class, Result, Spec, Volume};
use onode_media::image::{CreateOptions, ImageNand};
use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress};
use std::path::Path;

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 40, pages_per_block: 16, blocks: 256, chips: 1 };
/// A spare area as a chip with 2 KiB pages has it.
const AREA: SpareArea = SpareArea { bytes: 64, at: 2 };

fn content(number: usize) -> Vec<u8> {
    onode_base::Prng::new(number as u64).next_u64().to_le_bytes().repeat(700 * (number + 1))
}

/// Takes all pages.
fn keep(pages: &mut Vec<u8>) -> impl FnMut(&[u8]) -> Result<bool> {
    |bytes| {
        pages.extend_from_slice(bytes);
        Ok(true)
    }
}

/// What a programmer makes of it on a chip where `bad` is a bad block.
fn program(path: &Path, pages: &[u8], bad: u32) {
    let mut chip = ImageNand::create(path, SHAPE, CreateOptions::default()).expect("a chip");
    chip.mark_bad(BlockAddress(bad)).expect("a bad block");
    let page_bytes = SHAPE.page_bytes as usize;
    for (number, page) in pages.chunks_exact(page_bytes + AREA.bytes as usize).enumerate() {
        let (data, spare) = page.split_at(page_bytes);
        let (before, spare) = spare.split_at(AREA.at as usize);
        let (spare, behind) = spare.split_at(SHAPE.spare_bytes as usize);
        assert!(before.iter().chain(behind).all(|byte| *byte == 0xff), "page {number}");
        if data.iter().chain(spare).any(|byte| *byte != 0xff) {
            chip.program(PageAddress(number as u64), data, spare, IoTag::Data).expect("programmed in order");
        }
    }
    chip.flush().expect("an image");
}

/// A block that nothing is programmed in.
fn erased(pages: &[u8]) -> u32 {
    let block = SHAPE.pages_per_block as usize * (SHAPE.page_bytes + AREA.bytes) as usize;
    let mut blocks = pages.chunks_exact(block);
    blocks.position(|block| block.iter().all(|byte| *byte == 0xff)).expect("one") as u32
}

#[test]
fn pages_that_were_programmed_to_a_chip_are_the_volume() {
    let folder = Folder::new("pages");
    let image = folder.path().join("made.img");
    let spec = format!("flash:{},size=8M,page=2K,spare=40,pages-per-block=16", image.display());
    let volume = Volume::open_or_create(&spec).expect("a volume");
    for number in 0..40 {
        volume.write(format!("/{number}"), content(number)).expect("room");
    }
    volume.close().expect("closed");
    drop(volume);
    let spec = Spec::parse(&spec).expect("a spec");
    let (mut pages, mut last) = (Vec::new(), 0);
    let written = dump_pages(&spec, Some(AREA), &mut keep(&mut pages), &mut |done, all| {
        assert!(done == last && all == 256);
        last += 1;
    });
    let written = written.expect("pages");
    assert_eq!(pages.len() as u64, written.bytes);
    assert_eq!(pages.len(), 256 * 16 * (2048 + 64));
    assert!((20..200).contains(&written.programmed_blocks), "{written:?}");

    let chip = folder.path().join("chip.img");
    program(&chip, &pages, erased(&pages));
    let volume = Volume::open_or_create(&format!("flash:{}", chip.display())).expect("the volume");
    let read = |volume: &Volume| (0..40).for_each(|n| assert_eq!(volume.read(format!("/{n}")).unwrap(), content(n)));
    read(&volume);
    // It is written to until it is full, and passes the bad block over.
    for number in 40.. {
        match volume.write(format!("/{number}"), content(30)) {
            Ok(()) => {}
            Err(error) if error.class == Class::VolumeFull && number > 44 => {
                // What of it found room waits to be written, and does not find more.
                volume.remove_all(format!("/{number}")).expect("removed");
                break;
            }
            Err(error) => panic!("{number}: {error}"),
        }
    }
    volume.close().expect("closed");
    drop(volume);
    read(&Volume::open_or_create(&format!("flash:{}", chip.display())).expect("the volume"));
}

#[test]
fn a_spare_area_that_is_too_small_is_refused() {
    let folder = Folder::new("pages-refused");
    let spec = format!("flash:{},size=2M,page=2K,spare=40", folder.path().join("disk.img").display());
    Volume::open_or_create(&spec).expect("a volume").close().expect("closed");
    let spec = Spec::parse(&spec).expect("a spec");
    for (bytes, at) in [(41, 2), (39, 0), (64, 25), (64, u32::MAX)] {
        let refused = dump_pages(&spec, Some(SpareArea { bytes, at }), &mut keep(&mut Vec::new()), &mut |_, _| {});
        assert_eq!(refused.unwrap_err().class, Class::BadSize, "{bytes} {at}");
    }
    let mut pages = Vec::new();
    let written = dump_pages(&spec, None, &mut keep(&mut pages), &mut |_, _| {}).expect("pages");
    assert_eq!(written.spare_bytes, 40);
    let memory = Spec::parse("ram:size=1M").expect("a spec");
    assert_eq!(dump_pages(&memory, None, &mut keep(&mut pages), &mut |_, _| {}).unwrap_err().class, Class::Usage);
}

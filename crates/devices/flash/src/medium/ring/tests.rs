//! The newest superblock is found, with few reads, wherever it is and whatever is expected.

use super::*;
use crate::core::Core;
use crate::options::{FormatOptions, MountOptions};
use alloc::boxed::Box;
use onode_media::{Geometry, Nand, SimNand, SimOptions};

fn core_of(blocks: u32) -> Core {
    let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks, chips: 1 };
    let nand = SimNand::new(shape, SimOptions::default()).unwrap();
    Core::format(Box::new(nand), None, &FormatOptions::default(), &MountOptions::default()).unwrap()
}

fn write_superblock(core: &mut Core) -> onode_object::Result<()> {
    let volume = core.volume();
    volume.checkpoints.write_superblock(volume.index, volume.log, false)
}

fn reads(core: &Core) -> u64 {
    core.log().store().counters().unwrap().total().reads
}

#[test]
fn the_newest_is_found_with_any_guess() {
    let mut core = core_of(128);
    for written in 0..80 {
        write_superblock(&mut core).unwrap();
        let newest = core.checkpoints().ring().generation();
        let near = (newest.saturating_sub(20)..newest + 20).map(Some);
        for expected in near.chain([None, Some(0), Some(u32::MAX)]) {
            let before = reads(&core);
            let found = find(core.volume().log.medium().nand(), expected).unwrap().unwrap();
            assert_eq!(found.superblock.generation.get(), newest, "{expected:?}");
            assert_eq!(
                found.turns.map(|turn| turn.block),
                core.checkpoints().ring().turns.map(|turn| turn.block),
                "{expected:?}"
            );
            let reads = reads(&core) - before;
            // Four first pages, the one behind what is expected and that one, or the one before; or
            // a bisection of sixteen. At the other end the one behind what was found, and that one.
            let ahead = expected.map(|expected| expected.wrapping_sub(newest));
            let most = ahead.filter(|ahead| *ahead < 2).map_or(14, |ahead| 8 + u64::from(ahead));
            assert!(
                reads <= most,
                "{reads} reads, {written} written, {newest} is the newest, {expected:?} was expected"
            );
        }
        let all = find_all(core.volume().log.medium().nand()).unwrap();
        assert_eq!(all.last().unwrap().superblock.generation.get(), newest);
    }
}

/// A medium with a page that can be read once.
struct ReadableOnce<'a> {
    nand: &'a mut dyn Nand,
    page: PageAddress,
    was_read: bool,
}

impl Nand for ReadableOnce<'_> {
    fn geometry(&self) -> Geometry {
        self.nand.geometry()
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> onode_media::Result<()> {
        self.nand.read(page, data, spare, tag)?;
        if page == self.page && core::mem::replace(&mut self.was_read, true) {
            data.fill(0x55);
        }
        Ok(())
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> onode_media::Result<()> {
        self.nand.program(page, data, spare, tag)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> onode_media::Result<()> {
        self.nand.erase(block, tag)
    }

    fn is_bad(&mut self, block: BlockAddress) -> onode_media::Result<bool> {
        self.nand.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> onode_media::Result<()> {
        self.nand.mark_bad(block)
    }

    fn flush(&mut self) -> onode_media::Result<()> {
        self.nand.flush()
    }
}

/// Where there are two blocks the next superblock takes the place of all those before one that
/// begins a block: had only that one been found, and could it not be read any more, a cut in
/// between left a volume without any.
#[test]
fn one_that_begins_a_block_has_to_be_read_twice() {
    let mut core = core_of(48);
    while core.checkpoints().ring().turn(End::Start).next_page != Some(1) || core.checkpoints().ring().generation() < 20
    {
        write_superblock(&mut core).unwrap();
    }
    let newest = core.checkpoints().ring().generation();
    let page = core.log().layout().geometry.first_page(BlockAddress(core.checkpoints().ring().turn(End::Start).block));
    for expected in [None, Some(newest), Some(newest + 1), Some(newest - 1)] {
        let nand = core.volume().log.medium().nand();
        let found = find(&mut ReadableOnce { nand, page, was_read: false }, expected).unwrap().unwrap();
        assert_eq!(found.superblock.generation.get(), newest - 1, "{expected:?}");
    }
}

/// Damages the blocks of superblocks at one end: all zeros, or erased.
fn wipe(core: &mut Core, end: End, zeros: bool) {
    let layout = *core.log().layout();
    let nand = core.volume().log.medium().nand();
    for block in layout.superblocks.at(end).map(BlockAddress) {
        nand.erase(block, IoTag::Anchor).unwrap();
        for page in (0..layout.geometry.pages_per_block).filter(|_| zeros) {
            let address = PageAddress(layout.geometry.first_page(block).0 + u64::from(page));
            let shape = layout.geometry;
            let (data, spare) = (vec![0; shape.page_bytes as usize], vec![0; shape.spare_bytes as usize]);
            nand.program(address, &data, &spare, IoTag::Anchor).unwrap();
        }
    }
}

/// Zeros over the start of a medium were the end of the volume.
#[test]
fn either_end_may_be_lost() {
    for blocks in [64, 128, 1024] {
        for (end, zeros) in [(End::Start, true), (End::Start, false), (End::Far, true), (End::Far, false)] {
            let mut core = core_of(blocks);
            for _ in 0..20 {
                write_superblock(&mut core).unwrap();
            }
            let newest = core.checkpoints().ring().generation();
            wipe(&mut core, end, zeros);
            let nand = core.volume().log.medium().nand();
            let found = find(nand, None).unwrap().unwrap();
            assert_eq!(found.superblock.generation.get(), newest, "{blocks} {end:?} {zeros}");
            assert_eq!(find_all(nand).unwrap().last().unwrap().superblock.generation.get(), newest);
            assert_eq!(found.turns[end as usize], Turn::NONE);
            // A session writes it at both ends again, and does so before the other end can be lost.
            core.volume().checkpoints.go_on_from(&found);
            write_superblock(&mut core).unwrap();
            assert!(End::ALL.into_iter().all(|end| core.checkpoints().ring().is_at(end)));
            wipe(&mut core, end.other(), zeros);
            let found = find(core.volume().log.medium().nand(), None).unwrap().unwrap();
            assert_eq!(found.superblock.generation.get(), newest + 1, "{blocks} {end:?} {zeros}");
        }
    }
}

/// A superblock of long ago that cannot be read, at the start of its block: what follows it there
/// was taken for the newest one, and the session that began with it erased those that were.
#[test]
fn damage_to_an_old_one_brings_no_old_one_back() {
    for blocks in [48, 64, 1024] {
        let mut core = core_of(blocks);
        let layout = *core.log().layout();
        while core.checkpoints().ring().generation() < 200 {
            write_superblock(&mut core).unwrap();
        }
        let newest = core.checkpoints().ring().generation();
        for end in End::ALL {
            let others = layout.superblocks.at(end).filter(|block| *block != core.checkpoints().ring().turn(end).block);
            for address in others.map(|block| layout.geometry.first_page(BlockAddress(block))).collect::<Vec<_>>() {
                let nand = core.volume().log.medium().nand();
                let found = find(&mut ReadableOnce { nand, page: address, was_read: true }, None).unwrap().unwrap();
                assert_eq!(found.superblock.generation.get(), newest, "{blocks} {end:?} {address:?}");
            }
        }
    }
}

/// With one sound block at each end, or all of them at one end, superblocks are written, and at no
/// time there is none.
#[test]
fn two_sound_blocks_are_enough() {
    let core = core_of(128);
    let superblocks = core.log().layout().superblocks;
    let all: Vec<u32> = superblocks.all().collect();
    for pair in [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]] {
        let mut core = core_of(128);
        for &block in all.iter().filter(|block| !pair.iter().any(|&sound| all[sound] == **block)) {
            core.volume().log.medium().nand().mark_bad(BlockAddress(block)).unwrap();
        }
        for session in 0..40 {
            write_superblock(&mut core).unwrap();
            let newest = core.checkpoints().ring().generation();
            let found = find(core.volume().log.medium().nand(), None).unwrap().unwrap();
            assert_eq!(found.superblock.generation.get(), newest, "{pair:?}, session {session}");
            if session % 3 == 0 {
                core.volume().checkpoints.go_on_from(&found);
            }
        }
    }
}

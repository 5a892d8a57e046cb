//! Reads that were planned before everything around them changed, and how many requests they are.

use super::*;
use crate::core::Core;
use crate::options::{FormatOptions, MountOptions};
use alloc::boxed::Box;
use alloc::vec;
use onode_media::{Geometry, IoTag, SimNand, SimOptions};
use onode_object::{Durability, Hints, Transaction};

const OBJECT: ObjectId = ObjectId(64);
const OTHER: ObjectId = ObjectId(65);
const BYTES: usize = 12_000;

const IN_SPARE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks: 80, chips: 1 };
const IN_PAGE: Geometry = Geometry { spare_bytes: 0, ..IN_SPARE };

fn write(core: &mut Core, object: ObjectId, offset: u64, bytes: Vec<u8>) {
    let mut transaction = Transaction::new();
    transaction.write(object, offset, bytes);
    core.commit(transaction, Durability::Durable).unwrap();
}

/// A volume with two objects; the first was written in parts, one behind the other.
fn volume(shape: Geometry) -> Core {
    let nand = Box::new(SimNand::new(shape, SimOptions::default()).unwrap());
    let format = FormatOptions { blocks_per_segment: Some(2), ..FormatOptions::default() };
    let mut core = Core::format(nand, None, &format, &MountOptions::default()).unwrap();
    core.volume().index.counts_mut().next_object = OTHER.0 + 1;
    let mut transaction = Transaction::new();
    transaction.create(OBJECT, Hints::default()).create(OTHER, Hints::default());
    core.commit(transaction, Durability::Durable).unwrap();
    for part in 0..3 {
        write(&mut core, OBJECT, part * BYTES as u64, vec![b'a'; BYTES]);
    }
    core.checkpoint(false).unwrap();
    core
}

fn plan(core: &mut Core, buffer: &mut [u8]) -> ReadPlan {
    let plan = core.with_index(|index, log| index.plan_read(log, OBJECT, 0, buffer)).unwrap();
    assert!(!plan.wants().is_empty());
    plan
}

/// Writes until every segment that may be was used again, several times.
fn reuse_everything(core: &mut Core) {
    write(core, OBJECT, 0, vec![b'b'; 3 * BYTES]);
    let end = core.log().table().next_sequence() + 6 * core.log().layout().segments;
    while core.log().table().next_sequence() < end {
        write(core, OTHER, 0, vec![b'c'; 40_000]);
        let (cleaner, mut volume) = core.parts();
        cleaner.clean_one(&mut volume, true, u64::MAX).unwrap();
    }
    core.checkpoint(false).unwrap();
}

#[test]
fn what_is_pinned_is_read_as_it_was_whatever_happens_meanwhile() {
    for shape in [IN_SPARE, IN_PAGE] {
        let mut core = volume(shape);
        let mut buffer = vec![0; 3 * BYTES];
        let plan = plan(&mut core, &mut buffer);
        let pinned = core.log().table().pin(plan.segments());
        reuse_everything(&mut core);
        let mut reader = core.volume().log.reader(IoTag::Data);
        assert_eq!(plan.carry_out(&mut reader, &mut buffer).unwrap(), 3 * BYTES);
        assert!(buffer.iter().all(|byte| *byte == b'a'));
        assert_eq!(core.log().store().pages().damaged_reads(), 0);
        // Once it is over they are used like any other.
        let segments = plan.segments();
        drop(pinned);
        let before: Vec<u32> = segments.iter().map(|segment| core.log().table().get(*segment).sequence).collect();
        reuse_everything(&mut core);
        assert!(segments.iter().zip(before).all(|(segment, was)| core.log().table().get(*segment).sequence > was));
    }
}

/// The bug that pins are against: what is told then is damage, which there is none of.
#[test]
fn without_pins_the_same_read_finds_pages_of_another_life() {
    let mut core = volume(IN_SPARE);
    let mut buffer = vec![0; 3 * BYTES];
    let plan = plan(&mut core, &mut buffer);
    reuse_everything(&mut core);
    let error = plan.carry_out(&mut core.volume().log.reader(IoTag::Data), &mut buffer).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt);
}

#[test]
fn nothing_runs_out_of_space_because_all_free_segments_are_read() {
    let mut core = volume(IN_SPARE);
    let all = (0..core.log().layout().segments).collect();
    let pinned = core.log().table().pin(all);
    std::thread::scope(|scope| {
        let (begun, has_begun) = std::sync::mpsc::channel();
        scope.spawn(move || {
            let _busy = pinned.begin();
            begun.send(()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(30));
        });
        has_begun.recv().unwrap();
        reuse_everything(&mut core);
    });
}

#[test]
fn adjacent_pages_of_all_extents_are_one_request_for_each_block() {
    for shape in [IN_SPARE, IN_PAGE] {
        let mut core = volume(shape);
        let layout = *core.log().layout();
        // Parts of an object that end within its extents; each is whole pages of the data stream.
        let part = 6 * layout.payload_bytes as usize;
        for number in 0..3 {
            write(&mut core, OTHER, (number * part) as u64, vec![b'd'; part]);
        }
        core.checkpoint(false).unwrap();
        let mut buffer = vec![0; 3 * part - 200];
        let plan = core.with_index(|index, log| index.plan_read(log, OTHER, 100, &mut buffer)).unwrap();
        let nand = core.volume().log.medium().nand();
        let (mut calls, mut runs, mut pages) = (0, 0, 0);
        let seed = crate::medium::page::volume_seed(&FormatOptions::default().uuid);
        let reader = crate::medium::pages::Pages::new(layout, seed, 1 << 20);
        let read = reader.read(plan.wants(), &mut buffer, &mut |asked| {
            calls += 1;
            runs += asked.len();
            pages += asked.iter().map(|run| run.data.len() / layout.geometry.page_bytes as usize).sum::<usize>();
            nand.read_runs(asked, IoTag::Data);
        });
        assert!(read.is_ok() && buffer.iter().all(|byte| *byte == b'd'));
        assert_eq!((calls, pages), (1, 18), "each page once, and all together");
        let address = |want: &Want| layout.geometry.block_of(layout.address(want.at));
        let blocks: BTreeSet<_> = plan.wants().iter().map(address).collect();
        // Whole pages go where they are wanted if their trailers lie elsewhere; the parts at both
        // ends do not.
        let parts: usize = if shape == IN_SPARE { 2 } else { 0 };
        assert!(runs <= blocks.len() + parts, "{runs} runs of pages in {} blocks", blocks.len());
    }
}

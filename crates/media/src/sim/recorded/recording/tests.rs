//! Tests of recordings, by media that were really kept before each operation.

use super::*;
use crate::fault::{Fault, OperationKind};
use crate::nand::{BlockAddress, PageAddress};
use crate::sim::cut::Damage;
use crate::sim::nand::SimOptions;
use crate::sim::recorded::RecordedNand;
use crate::tag::IoTag;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;

const GEOMETRY: Geometry = Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 8, blocks: 16, chips: 1 };

fn blank() -> SimNand {
    SimNand::new(GEOMETRY, SimOptions::default()).expect("a possible geometry")
}

/// Everything in it, what reads have left of unstable pages included; not how often it was read.
fn shown(mut nand: SimNand) -> Vec<Result<Vec<u8>, String>> {
    let mut all = Vec::new();
    for _ in 0..2 {
        for page in 0..GEOMETRY.pages() {
            let mut data = vec![0; 512];
            let result = nand.read(PageAddress(page), &mut data, &mut [], IoTag::Check);
            all.push(result.map(|()| data).map_err(|error| error.to_string()));
        }
    }
    all
}

/// Fills the medium and erases it, `rounds` times; returns the medium before each operation.
fn go_round(medium: &RecordedNand, rounds: u64) -> Vec<SimNand> {
    let (mut nand, mut before) = (medium.clone(), Vec::new());
    for round in 0..rounds {
        for block in 0..GEOMETRY.blocks {
            before.push(medium.image());
            nand.erase(BlockAddress(block), IoTag::Data).expect("erase");
            for index in 0..8 {
                let page = u64::from(block) * 8 + index;
                before.push(medium.image());
                nand.program(PageAddress(page), &[(page + round) as u8; 512], &[], IoTag::Data).expect("program");
            }
        }
    }
    before
}

#[test]
fn the_medium_before_any_operation_is_had_again() {
    let medium = RecordedNand::new(blank(), true);
    let before = go_round(&medium, 2);
    let recording = medium.take_recording();
    assert_eq!(recording.operations(), before.len());
    assert_eq!(recording.kept().count(), before.len());
    for (position, nand) in before.into_iter().enumerate() {
        let again = recording.before(position).expect("it is kept");
        assert_eq!(shown(again), shown(nand), "before operation {position}");
    }
    assert!(recording.before(recording.operations()).is_none());
}

#[test]
fn what_reads_and_failures_leave_is_had_again() {
    let mut nand = blank();
    let page = |page, byte| MediaOperation::Program {
        page: PageAddress(page),
        data: Arc::from([byte; 512]),
        spare: Arc::from([]),
        tag: IoTag::Data,
    };
    let damages = Damage::variants_for(&page(0, 0));
    for (number, damage) in damages.iter().filter(|damage| matches!(damage, Damage::Unstable { .. })).enumerate() {
        nand.apply_cut(&page(number as u64 * 8, 7), *damage, 1).expect("a program");
    }
    nand.faults_mut().add(Fault::once(OperationKind::Program, 2));
    let medium = RecordedNand::new(nand, true);
    let (mut nand, mut before) = (medium.clone(), Vec::new());
    for index in 0..8 {
        let image = medium.image();
        match nand.program(PageAddress(64 + index), &[1; 512], &[], IoTag::Data) {
            Ok(()) => before.push(image),
            Err(_) => assert_eq!(index, 2),
        }
        // Each of these reads leaves unstable pages in another state.
        let shared = nand.shared().expect("a medium for all");
        for unstable in [0, 8] {
            let _ = shared.read_run(PageAddress(unstable), &mut [0; 512], &mut [], IoTag::Data);
        }
    }
    let recording = medium.take_recording();
    assert_eq!(recording.operations(), before.len());
    for (position, nand) in before.into_iter().enumerate() {
        let again = recording.before(position).expect("it is kept");
        assert_eq!(shown(again), shown(nand), "before operation {position}");
    }
}

#[test]
fn a_long_run_is_kept_in_parts_from_its_beginning_to_its_end() {
    let most = 2_000_000;
    let mut recording = NandRecording::with_most_bytes(most);
    let (mut nand, mut operations) = (blank(), 0);
    for round in 0..60 {
        for block in 0..GEOMETRY.blocks {
            let erase = MediaOperation::Erase { block: BlockAddress(block), tag: IoTag::Data };
            let programs = (0..8).map(|index| MediaOperation::Program {
                page: PageAddress(u64::from(block) * 8 + index),
                data: Arc::from([round; 512]),
                spare: Arc::from([]),
                tag: IoTag::Data,
            });
            for operation in core::iter::once(erase).chain(programs) {
                let before = recording.wants_medium().then(|| nand.clone());
                nand.apply(&operation).expect("it can be done");
                recording.add(operation, before);
                operations += 1;
                assert!(recording.bytes <= most);
            }
        }
    }
    assert_eq!(recording.operations(), operations);
    let kept: Vec<usize> = recording.kept().collect();
    assert!(kept.len() > 100 && kept.len() < operations / 2, "{} of {operations}", kept.len());
    assert_eq!(kept[0], 0);
    for part in 0..8 {
        let part = part * operations / 8..(part + 1) * operations / 8;
        assert!(kept.iter().any(|position| part.contains(position)), "{part:?}");
    }
    for position in 0..operations {
        let is_kept = kept.binary_search(&position).is_ok();
        assert_eq!(recording.before(position).is_some(), is_kept);
        assert_eq!(recording.operation(position).is_some(), is_kept);
    }
}

//! Content that moved to versions of its object: the summary of its segment still names the object
//! that it was written to, and whoever cleans or checks a segment finds it all the same.

use crate::common::pair::Pair;
use crate::common::{Flash, SMALL, Shared, TINY};
use onode_base::Prng;
use onode_flash::check::{CheckOptions, check};
use onode_flash::{MemoryOptions, MountOptions, RepairOptions, repair};
use onode_media::Geometry;
use onode_object::conformance::{Harness, dump};
use onode_object::powers::{SegmentInfo, SegmentState};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, RamDevice, Transaction};

const OBJECTS: u64 = 12;
const OBJECT_BYTES: u64 = 120_000;

/// A device and what it must show.
struct Twins<H> {
    under_test: H,
    model: RamDevice,
    prng: Prng,
}

impl<H: Harness> Twins<H> {
    fn new(under_test: H) -> Self {
        Self { under_test, model: RamDevice::new(1 << 40), prng: Prng::new(5) }
    }

    fn id(&self) -> ObjectId {
        let object = self.under_test.device().reserve_ids(1).unwrap();
        self.model.reserve_ids(object.0 + 1 - self.model.reserve_ids(0).unwrap().0).unwrap();
        object
    }

    fn commit(&self, transaction: Transaction) {
        self.model.commit(transaction.clone(), Durability::Buffered).unwrap();
        self.under_test.device().commit(transaction, Durability::Buffered).unwrap();
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.prng.fill(&mut bytes);
        bytes
    }

    fn compare(&self) {
        let (found, expected) = (dump(self.under_test.device()).unwrap(), dump(&self.model).unwrap());
        assert_eq!(found.difference(&expected), None);
    }

    /// Objects whose content lies among that of others, which is about to go; versions of them get
    /// parts of it, and parts of these go to other versions or back.
    fn fill(&mut self) -> Vec<ObjectId> {
        let (objects, fillers): (Vec<_>, Vec<_>) = (0..OBJECTS).map(|_| (self.id(), self.id())).unzip();
        for object in objects.iter().chain(&fillers) {
            let mut transaction = Transaction::new();
            transaction.create(*object, Hints::default());
            self.commit(transaction);
        }
        for offset in (0..OBJECT_BYTES).step_by(10_000) {
            for object in objects.iter().chain(&fillers) {
                let mut transaction = Transaction::new();
                transaction.write(*object, offset, self.bytes(10_000));
                self.commit(transaction);
            }
        }
        for (number, object) in objects.iter().enumerate() {
            let [one, two] = [1, 2].map(|generation| object.version(generation).unwrap());
            let mut transaction = Transaction::new();
            transaction.create(one, Hints::default()).create(two, Hints::default());
            match number % 4 {
                0 => transaction.move_content(*object, 0..u64::MAX, one).remove(*object),
                1 => transaction.move_content(*object, 5_001..77_777, one).move_content(one, 9_999..40_000, two),
                2 => transaction.move_content(*object, 0..60_000, two).move_content(two, 10_000..20_000, *object),
                _ => {
                    transaction.move_content(*object, 30_000..90_000, one);
                    transaction.write(*object, 30_000, self.bytes(20_000)).remove(two)
                }
            };
            self.commit(transaction);
        }
        fillers
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.under_test.device().inspect().unwrap().segments()
    }

    /// Overwrites `fillers` until every segment that was full has been erased, or has hardly
    /// anything that is not needed.
    fn clean_all(&mut self, fillers: &[ObjectId]) {
        let before = self.segments();
        for round in 0..6_000 {
            let filler = fillers[self.prng.below(fillers.len() as u64) as usize];
            let offset = self.prng.below(OBJECT_BYTES / 10_000) * 10_000;
            let mut transaction = Transaction::new();
            transaction.write(filler, offset, self.bytes(10_000));
            self.commit(transaction);
            self.under_test.device().maintain(4).unwrap();
            if round % 64 == 0 {
                let now = self.segments();
                let stays = |(old, new): (&SegmentInfo, &SegmentInfo)| {
                    let is_same = old.state == SegmentState::Full && old.erases == new.erases;
                    is_same && new.live_bytes < new.capacity_bytes / 4 * 3
                };
                if !before.iter().zip(&now).any(stays) {
                    return;
                }
            }
        }
        panic!("segments stay as they are: {before:?} {:?}", self.segments());
    }
}

fn check_all(nand: &Shared) {
    let report = check(&mut nand.with(|nand| nand.clone()), &CheckOptions::default(), &mut |_, _| {});
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

/// Moves, cleans everything, and looks.
fn moved_content_is_cleaned<H: Harness>(mut twins: Twins<H>, nand: &Shared) {
    let fillers = twins.fill();
    check_all(nand);
    twins.under_test.device().sync(onode_object::SyncScope::All).unwrap();
    check_all(nand);
    twins.compare();
    twins.under_test.reopen();
    check_all(nand);
    twins.clean_all(&fillers);
    twins.compare();
    twins.under_test.reopen();
    twins.compare();
    twins.under_test.device().close().unwrap();
    check_all(nand);
    let repaired =
        repair(nand.with(|nand| nand.clone()), &RepairOptions { drop_damaged: true, ..RepairOptions::default() })
            .unwrap();
    assert_eq!(repaired.actions, []);
}

/// Bytes of a volume that the objects fill well.
const VOLUME_BYTES: u64 = 2 * OBJECTS * OBJECT_BYTES * 5 / 4;

#[test]
fn moved_content_is_cleaned_with_runs() {
    for shape in [Geometry { pages_per_block: 16, ..SMALL }, TINY] {
        let flash = Flash::holding(shape, VOLUME_BYTES);
        let nand = flash.nand.clone();
        moved_content_is_cleaned(Twins::new(flash), &nand);
    }
}

#[test]
fn moved_content_is_cleaned_without_runs() {
    let options = MountOptions { extents: false, ..MountOptions::default() };
    let flash = Flash::with(Geometry { pages_per_block: 16, ..SMALL }, VOLUME_BYTES, options);
    let nand = flash.nand.clone();
    moved_content_is_cleaned(Twins::new(flash), &nand);
}

#[test]
fn moved_content_is_cleaned_with_parity() {
    let flash = Flash::with_parity(Geometry { pages_per_block: 16, ..SMALL }, VOLUME_BYTES, 4, 1);
    let nand = flash.nand.clone();
    moved_content_is_cleaned(Twins::new(flash), &nand);
}

#[test]
fn moved_content_is_cleaned_with_a_memory_beside() {
    let pair = Pair::holding(Geometry { pages_per_block: 16, ..SMALL }, VOLUME_BYTES, MemoryOptions::default());
    let nand = pair.nand.clone();
    moved_content_is_cleaned(Twins::new(pair), &nand);
}

#[test]
fn moves_are_replayed() {
    let mut twins = Twins::new(Flash::holding(SMALL, VOLUME_BYTES));
    let fillers = twins.fill();
    for _ in 0..3 {
        // Durably, and without a checkpoint.
        twins.under_test.device().sync(onode_object::SyncScope::All).unwrap();
        twins.under_test.crash();
        twins.compare();
        check_all(&twins.under_test.nand.clone());
    }
    twins.clean_all(&fillers);
    twins.compare();
}

#[test]
fn a_move_of_very_many_pieces_is_refused_and_goes_in_parts() {
    let options = MountOptions { dirty_node_bytes: Some(16 << 10), ..MountOptions::default() };
    let twins = Twins::new(Flash::with(SMALL, 8 << 20, options));
    let object = twins.id();
    let version = object.version(0).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).create(version, Hints::default());
    twins.commit(transaction);
    for piece in (0..600u64).rev() {
        let mut transaction = Transaction::new();
        transaction.write(object, piece * 5_000, vec![piece as u8; 100]);
        twins.commit(transaction);
    }
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![9; 9]).move_content(object, 0..u64::MAX, version);
    let error = twins.under_test.device().commit(transaction, Durability::Buffered).unwrap_err();
    assert_eq!(error.kind, onode_object::ErrorKind::NoSpace);
    twins.compare();
    for part in 0..4 {
        let mut transaction = Transaction::new();
        transaction.move_content(object, part * 750_000..(part + 1) * 750_000, version);
        twins.commit(transaction);
    }
    twins.compare();
    twins.under_test.device().close().unwrap();
    check_all(&twins.under_test.nand.clone());
}

//! Every placement with every victim policy: cleaning, cuts in between, and other policies at the
//! next mount. The conformance suite runs over all of them in `combinations.rs`.

use crate::common::Shared;
use onode_base::Prng;
use onode_flash::check::{CheckOptions, check};
use onode_flash::policy::{Placement, VictimPolicy};
use onode_flash::{FlashDevice, FormatOptions, MountOptions, Policies};
use onode_media::Geometry;
use onode_object::{Durability, Hints, Lifetime, ObjectDevice, ObjectId, SyncScope, Temperature, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 16, blocks: 132, chips: 1 };
const OBJECTS: u64 = 12;
const BYTES: u64 = 24 << 10;
const PIECE: u64 = 1024;

fn options(placement: Placement, victim: VictimPolicy) -> MountOptions {
    MountOptions {
        policies: Policies { placement: Some(placement), victim: Some(victim), ..Policies::default() },
        write_buffer_bytes: 2048,
        ..MountOptions::default()
    }
}

/// Objects and what a model says they hold.
struct Model {
    contents: Vec<Vec<u8>>,
    prng: Prng,
}

impl Model {
    fn new(device: &FlashDevice) -> Self {
        let mut model = Self { contents: Vec::new(), prng: Prng::new(5) };
        for number in 0..OBJECTS {
            let object = device.reserve_ids(1).unwrap();
            assert_eq!(object, ObjectId(ObjectId::FIRST_FREE.0 + number));
            let lifetime = [Lifetime::Unknown, Lifetime::Short, Lifetime::Long][number as usize % 3];
            let temperature = [Temperature::Unknown, Temperature::Hot][number as usize % 2];
            let hints = Hints { lifetime, temperature, ..Hints::default() };
            let content: Vec<u8> = (0..BYTES).map(|at| (at * 7 + number) as u8).collect();
            let mut transaction = Transaction::new();
            transaction.create(object, hints).write(object, 0, content.clone());
            device.commit(transaction, Durability::Buffered).unwrap();
            model.contents.push(content);
        }
        device.sync(SyncScope::All).unwrap();
        model
    }

    /// Rewrites pieces, most of them in few objects.
    fn rewrite(&mut self, device: &FlashDevice, count: u64) {
        for turn in 0..count {
            let range = if self.prng.chance(4, 5) { 3 } else { OBJECTS };
            let number = self.prng.below(range);
            let offset = self.prng.below(BYTES / PIECE) * PIECE;
            let piece: Vec<u8> = (0..PIECE).map(|at| (at + turn + number) as u8).collect();
            self.contents[number as usize][offset as usize..][..PIECE as usize].copy_from_slice(&piece);
            let mut transaction = Transaction::new();
            transaction.write(ObjectId(ObjectId::FIRST_FREE.0 + number), offset, piece);
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        device.sync(SyncScope::All).unwrap();
    }

    fn expect(&self, device: &FlashDevice, what: &str) {
        for (number, content) in (0..).zip(&self.contents) {
            let mut found = vec![0; BYTES as usize];
            device.read(ObjectId(ObjectId::FIRST_FREE.0 + number), 0, &mut found).unwrap();
            assert!(found == *content, "{what}: object {number}");
        }
    }
}

fn expect_sound(nand: &Shared, what: &str) {
    let report = check(&mut nand.clone(), &CheckOptions::default(), &mut |_, _| {});
    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
}

#[test]
fn every_pair_keeps_every_byte_through_cleaning_and_cuts() {
    for placement in Placement::ALL {
        for victim in VictimPolicy::ALL {
            let what = format!("{} with {}", placement.name(), victim.name());
            let nand = Shared::new(SHAPE);
            let device =
                FlashDevice::format(nand.clone(), &FormatOptions::default(), &options(placement, victim)).unwrap();
            let mut model = Model::new(&device);
            model.rewrite(&device, 1500);
            model.expect(&device, &what);
            // No close: the mount replays.
            drop(device);
            let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
            model.expect(&device, &what);
            model.rewrite(&device, 300);
            device.close().unwrap();
            expect_sound(&nand, &what);
        }
    }
}

#[test]
fn policies_change_from_mount_to_mount() {
    let nand = Shared::new(SHAPE);
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let mut model = Model::new(&device);
    drop(device);
    for turn in 0..2 {
        for placement in Placement::ALL {
            let what = format!("{} in turn {turn}", placement.name());
            let device = FlashDevice::mount(nand.clone(), &options(placement, VictimPolicy::Greedy)).unwrap();
            model.rewrite(&device, 400);
            model.expect(&device, &what);
            if turn == 0 {
                device.close().unwrap();
                expect_sound(&nand, &what);
            }
        }
    }
}

#[test]
fn combined_puts_content_and_index_among_the_records_and_the_others_do_not() {
    for placement in [Placement::Combined, Placement::Split] {
        let nand = Shared::new(SHAPE);
        let mount = options(placement, VictimPolicy::Greedy);
        let device = FlashDevice::format(nand, &FormatOptions::default(), &mount).unwrap();
        let mut model = Model::new(&device);
        model.rewrite(&device, 600);
        let segments = device.inspect().unwrap().segments();
        let live = |stream: &str| -> u64 {
            segments.iter().filter(|one| one.stream == stream).map(|one| one.live_bytes).sum()
        };
        let others = live("data") + live("cold") + live("index");
        let all = OBJECTS * BYTES;
        match placement {
            Placement::Combined => assert!(live("journal") > all && others == 0, "{segments:?}"),
            _ => assert!(live("journal") < all / 4 && live("data") > all / 2 && live("index") > 0, "{segments:?}"),
        }
    }
}

//! The look inside a device agrees with what its medium counted and with what was done to it.

use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Geometry, SimNand, SimOptions};
use onode_object::powers::{Inspection, SegmentState};
use onode_object::{Durability, Hints, ObjectDevice, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks: 260, chips: 1 };
const PIECE: usize = 16 << 10;

fn look(device: &FlashDevice) -> Inspection {
    device.inspect().expect("it can be looked into").inspection()
}

/// A device with a file that was overwritten in random order until the cleaner had to work.
fn used() -> FlashDevice {
    let nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    let device = FlashDevice::format(nand, &FormatOptions::default(), &MountOptions::default()).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    let pieces = device.space().available / PIECE as u64 * 8 / 10;
    let mut prng = Prng::new(1);
    for turn in 0..5 * pieces {
        let mut transaction = Transaction::new();
        transaction.write(object, prng.below(pieces) * PIECE as u64, vec![turn as u8; PIECE]);
        device.commit(transaction, Durability::Durable).unwrap();
    }
    device
}

#[test]
fn a_new_device_is_empty_and_says_so() {
    let nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    let device = FlashDevice::format(nand, &FormatOptions::default(), &MountOptions::default()).unwrap();
    let seen = look(&device);
    assert_eq!((seen.bytes_written, seen.bytes_moved, seen.segments_cleaned), (0, 0, 0));
    assert_eq!(seen.write_amplification(), None);
    let free = seen.segments.iter().filter(|one| one.state == SegmentState::Free).count();
    assert!(free + 4 >= seen.segments.len() && free < seen.segments.len(), "{free} of {}", seen.segments.len());
}

#[test]
fn tags_segments_and_figures_agree() {
    let device = used();
    let seen = look(&device);
    let counters = device.inspect().unwrap().counters();
    let counter = |name: &str| counters.iter().find(|(one, _)| one == name).expect(name).1;
    let sum = |field: fn(&onode_object::powers::TagCounts) -> u64| seen.tags.iter().map(field).sum::<u64>();
    assert_eq!(sum(|one| one.reads), counter("nand.reads"));
    assert_eq!(sum(|one| one.programs), counter("nand.programs"));
    assert_eq!(sum(|one| one.erases), counter("nand.erases"));
    assert_eq!(sum(|one| one.bytes_programmed), counter("nand.programs") * u64::from(SHAPE.page_bytes));
    assert_eq!(sum(|one| one.bytes_read), counter("nand.reads") * u64::from(SHAPE.page_bytes));

    assert!(seen.segments_cleaned > 0 && seen.bytes_moved > 0);
    assert_eq!((seen.segments_cleaned, seen.bytes_moved), (counter("segments_cleaned"), counter("bytes_moved")));
    assert!(seen.write_amplification().expect("bytes were written") > 1.0);
    let ram: u64 = counters.iter().filter(|(name, _)| name.starts_with("ram.")).map(|(_, value)| value).sum();
    assert_eq!(seen.ram_bytes(), ram);

    let live: u64 = seen.segments.iter().map(|one| one.live_bytes).sum();
    let all: u64 = seen.segments.iter().map(|one| one.capacity_bytes).sum();
    assert!(live > all / 2 && live <= all, "{live} of {all}");
    for (number, one) in seen.segments.iter().enumerate() {
        assert_eq!(one.segment as usize, number);
        assert!(one.live_bytes <= one.capacity_bytes);
        if one.state == SegmentState::Free {
            assert_eq!((one.live_bytes, one.stream.as_str(), one.age), (0, "", 0));
        }
    }
    assert!(seen.segments.iter().any(|one| one.state == SegmentState::Open && one.stream == "journal"));
    let full = || seen.segments.iter().filter(|one| one.state == SegmentState::Full && one.live_bytes > 0);
    let ages: std::collections::BTreeSet<u32> = full().map(|one| one.age).collect();
    assert_eq!(ages.len(), full().count(), "each was opened at a moment of its own");
    let counted: u32 = seen.wear(8).iter().map(|step| step.segments).sum();
    assert_eq!(counted as usize, seen.segments.len());
}

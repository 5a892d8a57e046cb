//! How long a commit waits for the cleaner, in virtual time.

use onode_base::Prng;
use onode_flash::policy::WearPolicy;
use onode_flash::{FlashDevice, FormatOptions, MountOptions, Policies};
use onode_media::sim::LatencyTable;
use onode_media::{Geometry, SimNand, SimOptions};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 256, chips: 1 };

struct Figures {
    p50: u64,
    p99: u64,
    max: u64,
    moved: u64,
    written: u64,
}

/// Fills `percent` of a volume and overwrites it at random `rounds` times over, `bytes` at a time.
fn overwrite(percent: u64, bytes: u64, rounds: u64, durability: Durability) -> (FlashDevice, Figures) {
    let nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    let options = MountOptions { node_cache_bytes: 1 << 20, ..MountOptions::default() };
    let device = FlashDevice::format(nand, &FormatOptions::default(), &options).unwrap();
    let objects = device.space().available * percent / 100 / (64 << 10);
    for object in 0..objects {
        assert_eq!(device.reserve_ids(1).unwrap(), ObjectId(64 + object));
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(64 + object), Hints::default());
        transaction.write(ObjectId(64 + object), 0, vec![object as u8; 64 << 10]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    let mut prng = Prng::new(1);
    for _ in 0..objects * (64 << 10) * rounds / bytes {
        let object = ObjectId(64 + prng.below(objects));
        let offset = prng.below((64 << 10) / bytes) * bytes;
        let mut transaction = Transaction::new();
        transaction.write(object, offset, vec![1; bytes as usize]);
        device.commit(transaction, durability).unwrap();
    }
    let counters = device.inspect().unwrap().counters();
    let of = |name: &str| counters.iter().find(|(key, _)| key == name).unwrap().1;
    let figures = Figures {
        p50: of("stall_us.p50"),
        p99: of("stall_us.p99"),
        max: of("stall_us.max"),
        moved: of("bytes_moved"),
        written: of("bytes_written"),
    };
    (device, figures)
}

/// The virtual time of the longest commit that overwrites 4 KB durably, at random on a medium of
/// 128 MiB that is filled to 90 %, with as much memory as that medium is meant to take.
fn longest_commit(wear: WearPolicy) -> (FlashDevice, u64) {
    let nand = SimNand::new(Geometry { blocks: 1024, ..SHAPE }, SimOptions::default()).unwrap();
    let options = MountOptions {
        node_cache_bytes: 50 << 10,
        page_cache_bytes: 10 << 10,
        dirty_node_bytes: Some(256 << 10),
        write_buffer_bytes: 0,
        policies: Policies { wear: Some(wear), ..Policies::default() },
        ..MountOptions::default()
    };
    let device = FlashDevice::format(nand, &FormatOptions::default(), &options).unwrap();
    let objects = device.space().total / 10 * 9 / (1 << 20);
    for object in 0..objects {
        assert_eq!(device.reserve_ids(1).unwrap(), ObjectId(64 + object));
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(64 + object), Hints::default());
        transaction.write(ObjectId(64 + object), 0, vec![object as u8; 1 << 20]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    let nanoseconds = || device.inspect().unwrap().inspection().virtual_nanoseconds;
    let (mut prng, mut longest, mut before) = (Prng::new(42), 0, nanoseconds());
    for turn in 0..30_000 {
        let mut transaction = Transaction::new();
        transaction.write(ObjectId(64 + prng.below(objects)), prng.below(256) * 4096, vec![turn as u8; 4096]);
        device.commit(transaction, Durability::Durable).unwrap();
        let now = nanoseconds();
        longest = longest.max(now - before);
        before = now;
    }
    (device, longest / 1000)
}

/// Microseconds for reading and programming the pages of one segment, and for erasing what it goes
/// to.
fn segment_copy(device: &FlashDevice) -> u64 {
    let LatencyTable { read_nanoseconds, program_nanoseconds, erase_nanoseconds } = LatencyTable::default();
    let pages = device.inspect().unwrap().segments()[0].capacity_bytes / u64::from(SHAPE.page_bytes);
    let blocks = pages / u64::from(SHAPE.pages_per_block);
    (pages * (read_nanoseconds + program_nanoseconds) + blocks * erase_nanoseconds) / 1000
}

#[test]
fn no_commit_waits_longer_than_copying_a_segment_takes() {
    for (percent, bytes, durability) in
        [(90, 4096, Durability::Durable), (90, 16384, Durability::Buffered), (70, 4096, Durability::Durable)]
    {
        let (device, found) = overwrite(percent, bytes, 3, durability);
        let limit = segment_copy(&device);
        let Figures { p50, p99, max, moved, written } = found;
        println!(
            "{percent} %, {bytes} bytes: p50 {p50} p99 {p99} max {max} us, limit {limit}; moved {moved} of {written}"
        );
        assert!(max <= limit, "{percent} %, {bytes} bytes: {max} us, a segment takes {limit}");
        assert!(p50 <= limit / 4 && p99 <= limit * 3 / 4, "{percent} %, {bytes} bytes: {p50}, {p99} us");
    }
}

#[test]
fn no_synced_commit_takes_longer_than_copying_a_segment() {
    // Checkpoints that are due are in it, which are not in the counters of waiting.
    for wear in [WearPolicy::Dynamic, WearPolicy::Static] {
        let (device, longest) = longest_commit(wear);
        let limit = segment_copy(&device);
        println!("{}: {longest} us, limit {limit}", wear.name());
        assert!(longest <= limit, "{}: {longest} us, a segment takes {limit}", wear.name());
    }
}

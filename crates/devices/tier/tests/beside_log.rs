//! Checkpoints go on beside the log: who commits does not wait for a hard disk that is not needed
//! for that.

use crate::common::new_fast;
use onode_media::BlockDev;
use onode_media::sim::disk::hdd::{Hdd, HddOptions};
use onode_media::sim::disk::model::Instant;
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_object::{Acknowledge, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};

const BYTES: usize = 9_000;
const MILLISECOND: u64 = 1_000_000;

/// A hard disk and a fast one that takes no time, of one host.
struct Host {
    clock: HostClock,
    fast: SimDisk,
    big: SimDisk,
    device: TierDevice,
}

fn options() -> MountOptions {
    MountOptions { acknowledge: Acknowledge::Either, pending_bytes: 1 << 20, ..MountOptions::default() }
}

fn host() -> Host {
    let clock = HostClock::default();
    let hdd = Box::new(Hdd::new(HddOptions::seagate_750()));
    let big = SimDisk::with_model("big", 64 << 20, hdd, &clock);
    let fast = SimDisk::with_model("fast", 16 << 20, Box::new(Instant), &clock);
    let mut new = new_fast(&fast);
    // Half of it is several times what memory holds.
    new.options.ring_bytes = 2 << 20;
    let format = FormatOptions { log_bytes: Some(8 << 20), ..FormatOptions::default() };
    let device = TierDevice::format(Box::new(big.clone()), Some(new), &format, &options()).unwrap();
    assert_eq!(device.reserve_ids(4_000).unwrap(), object(0));
    Host { clock, fast, big, device }
}

fn object(number: u64) -> ObjectId {
    ObjectId(ObjectId::FIRST_FREE.0 + number)
}

fn write(device: &TierDevice, number: u64) -> onode_object::Result<()> {
    let mut transaction = Transaction::new();
    transaction.create(object(number), Hints::default());
    transaction.write(object(number), 0, vec![number as u8; BYTES]);
    device.commit(transaction, Durability::Durable)
}

fn expect(device: &TierDevice, count: u64) {
    for number in 0..count {
        let mut found = vec![0; BYTES];
        device.read(object(number), 0, &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == number as u8), "of object {number}");
    }
}

fn checkpoints(device: &TierDevice) -> u64 {
    let counters = device.inspect().unwrap().counters();
    counters.into_iter().find(|(name, _)| name == "checkpoints").unwrap().1
}

fn after_cut(disk: &SimDisk) -> Box<SimDisk> {
    Box::new(SimDisk::from_content(disk.name(), disk.bytes(), disk.content().after_cut(|_, _| false)))
}

#[test]
fn commits_that_need_the_fast_disk_do_not_wait_for_the_other() {
    let host = host();
    let before = checkpoints(&host.device);
    let mut waited = 0;
    for number in 0..500 {
        // The hard disk could write ten times as much meanwhile.
        host.clock.wait(host.clock.now() + MILLISECOND);
        let begin = host.clock.now();
        write(&host.device, number).unwrap();
        waited += host.clock.now() - begin;
        if number % 50 == 0 {
            expect(&host.device, number + 1);
            host.device.verify().unwrap();
            let (fast, big) = (after_cut(&host.fast), after_cut(&host.big));
            expect(&TierDevice::mount(big, Some(fast), &options()).unwrap(), number + 1);
        }
    }
    let done = checkpoints(&host.device) - before;
    assert!(done >= 3, "{done} checkpoints");
    // Nothing was read from the hard disk and no flush waited for: what is left is content that
    // comes faster than it goes.
    assert!(waited < 5 * MILLISECOND, "{waited} nanoseconds");
    // Maintenance brings everything to the big disk.
    while host.device.maintain(4).unwrap().more {}
    // That it has, the big disk alone cannot know before the volume is closed.
    let alone = MountOptions { accept_loss: true, ..options() };
    expect(&TierDevice::mount(after_cut(&host.big), None, &alone).unwrap(), 500);
}

#[test]
fn a_big_disk_that_fails_on_the_way_leaves_everything_readable() {
    for at in 0..12 {
        let host = host();
        host.big.fail_write_after(at);
        let mut count = 0;
        let error = loop {
            host.clock.wait(host.clock.now() + MILLISECOND);
            match write(&host.device, count) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
            assert!(count < 2_000, "no write failed");
        };
        assert_eq!(error.kind, ErrorKind::Media, "{error}");
        assert_eq!(write(&host.device, count).unwrap_err().kind, ErrorKind::ReadOnly);
        expect(&host.device, count);
        let (fast, big) = (after_cut(&host.fast), after_cut(&host.big));
        expect(&TierDevice::mount(big, Some(fast), &options()).unwrap(), count);
    }
}

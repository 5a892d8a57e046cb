//! The big disk fails, and many threads commit at once.

use crate::common::Pair;
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_tier::{MountOptions, TierDevice};

fn write(device: &TierDevice, object: ObjectId, byte: u8) -> onode_object::Result<()> {
    let mut transaction = Transaction::new();
    if device.stat(object).is_err() {
        transaction.create(object, Hints::default());
    }
    transaction.write(object, 0, vec![byte; 9_000]);
    device.commit(transaction, Durability::Durable)
}

fn read(device: &TierDevice, object: ObjectId) -> u8 {
    let mut found = [0; 1];
    device.read(object, 8_999, &mut found).unwrap();
    found[0]
}

/// After a write or flush of the big disk failed, nothing changes any more, the reason is told, and
/// what is there can be read. The next mount shows what had been acknowledged.
#[test]
fn a_big_disk_that_fails_makes_the_device_read_only() {
    for fails_flush in [false, true] {
        let pair = Pair::with(8 << 20, 4 << 20, MountOptions::default());
        let device = pair.device.as_ref().unwrap();
        write(device, ObjectId(7), 1).unwrap();
        if fails_flush {
            pair.big.fail_flush_after(0);
        } else {
            pair.big.fail_write_after(0);
        }
        assert_eq!(write(device, ObjectId(8), 2).unwrap_err().kind, ErrorKind::Media);
        assert_eq!(write(device, ObjectId(7), 3).unwrap_err().kind, ErrorKind::ReadOnly);
        assert_eq!(device.sync(SyncScope::All).unwrap_err().kind, ErrorKind::ReadOnly);
        assert!(device.info().read_only.unwrap().contains("made to fail"), "the reason is not told");
        assert_eq!(read(device, ObjectId(7)), 1);
        assert_eq!(device.close().unwrap_err().kind, ErrorKind::Media);
        let big = SimDisk::from_content("big", pair.big.bytes(), pair.big.content().after_cut(|_, _| false));
        let again = TierDevice::mount(Box::new(big), None, &MountOptions::default()).unwrap();
        assert_eq!(read(&again, ObjectId(7)), 1);
        again.verify().unwrap();
    }
}

/// Everybody's commits are there when they return, and nobody flushes more than once for each.
#[test]
fn threads_share_the_log() {
    const EACH: u64 = 40;
    let pair = Pair::with(16 << 20, 4 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    pair.fast.reset_counters();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                for number in 0..EACH {
                    let object = device.reserve_ids(1).unwrap();
                    write(device, object, (thread * EACH + number) as u8).unwrap();
                    assert_eq!(read(device, object), (thread * EACH + number) as u8);
                }
            });
        }
    });
    assert!(pair.fast.counters().unwrap().flushes <= 4 * EACH + 20);
    let lost = |disk: &SimDisk| SimDisk::from_content("cut", disk.bytes(), disk.content().after_cut(|_, _| false));
    let again = TierDevice::mount(Box::new(lost(&pair.big)), None, &MountOptions::default()).unwrap();
    assert_eq!(again.space().objects, 4 * EACH);
    let mut found: Vec<u8> = again.list(ObjectId(0), 1000).unwrap().into_iter().map(|it| read(&again, it)).collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..160), "a commit was lost");
    again.verify().unwrap();
}

//! Volumes of objects of 64 KiB, for tests that change their size.

use super::new_fast;
use onode_base::Prng;
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};

/// The content of an object.
pub fn bytes_of(object: ObjectId) -> Vec<u8> {
    let mut prng = Prng::new(object.0);
    (0..8192).flat_map(|_| prng.next_u64().to_le_bytes()).collect()
}

/// A volume of so many bytes of a big disk.
pub fn make(disk: &SimDisk, fast: Option<&SimDisk>, bytes: u64) -> TierDevice {
    let options = FormatOptions { bytes: Some(bytes), log_bytes: Some(256 << 10), ..FormatOptions::default() };
    let fast = fast.map(new_fast);
    TierDevice::format(Box::new(disk.clone()), fast, &options, &MountOptions::default()).unwrap()
}

/// The volume on these disks.
pub fn mount(disk: &SimDisk, fast: Option<&SimDisk>) -> TierDevice {
    let fast = fast.map(|fast| -> Box<dyn BlockDev> { Box::new(fast.clone()) });
    TierDevice::mount(Box::new(disk.clone()), fast, &MountOptions::default()).unwrap()
}

/// Writes objects of 64 KiB until there is no room; returns those that were written.
pub fn fill(device: &TierDevice, most: u64) -> Vec<ObjectId> {
    let mut made = Vec::new();
    while (made.len() as u64) < most {
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, bytes_of(object));
        match device.commit(transaction, Durability::Buffered) {
            Ok(()) => made.push(object),
            Err(error) if error.kind == ErrorKind::NoSpace => break,
            Err(error) => panic!("{error}"),
        }
    }
    device.sync(SyncScope::All).unwrap();
    made
}

/// Removes an object.
pub fn remove(device: &TierDevice, object: ObjectId, durability: Durability) {
    let mut transaction = Transaction::new();
    transaction.remove(object);
    device.commit(transaction, durability).unwrap();
}

/// All of it is there, and the volume is sound.
pub fn verify(device: &TierDevice, made: &[ObjectId]) {
    for object in made {
        let mut read = vec![0; 64 << 10];
        assert_eq!(device.read(*object, 0, &mut read), Ok(read.len()));
        assert!(read == bytes_of(*object), "{object}");
    }
    device.verify().unwrap();
}

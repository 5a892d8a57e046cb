//! What the conformance suite cannot see: the crash model, sharing and exact space.

use super::*;
use crate::error::ErrorKind;
use crate::hints::Hints;
use crate::id::AttributeKind;
use alloc::vec;

const KEY: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);

fn read_all(device: &RamDevice, object: ObjectId) -> Vec<u8> {
    let size = device.stat(object).unwrap().size as usize;
    let mut bytes = vec![0xaa; size];
    assert_eq!(device.read(object, 0, &mut bytes).unwrap(), size);
    bytes
}

fn commit(device: &RamDevice, transaction: &mut Transaction, durability: Durability) {
    device.commit(core::mem::take(transaction), durability).unwrap();
}

#[test]
fn a_crash_loses_exactly_what_was_buffered() {
    let device = RamDevice::with_crash_model(1 << 20);
    let object = device.reserve_ids(1).unwrap();
    commit(
        &device,
        Transaction::new().create(object, Hints::default()).write(object, 0, vec![1; 5000]),
        Durability::Durable,
    );
    commit(&device, Transaction::new().write(object, 10, vec![2; 10]), Durability::Buffered);
    assert_eq!(read_all(&device, object)[10], 2);
    device.crash();
    assert_eq!(read_all(&device, object), vec![1; 5000]);
    commit(&device, Transaction::new().write(object, 0, vec![3; 10]), Durability::Buffered);
    device.sync(SyncScope::Object(object)).unwrap();
    commit(&device, Transaction::new().remove(object), Durability::Buffered);
    device.crash();
    assert_eq!(&read_all(&device, object)[..11], &[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1]);
    Erase::erase(&device, object).unwrap();
    device.crash();
    assert_eq!(device.stat(object).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn punches_free_chunks_and_zero_the_rest() {
    let device = RamDevice::new(1 << 20);
    let object = ObjectId(5);
    commit(
        &device,
        Transaction::new().create(object, Hints::default()).write(object, 0, vec![1; 20_000]),
        Durability::Buffered,
    );
    commit(&device, Transaction::new().punch(object, 4000, 8192), Durability::Buffered);
    let mut expected = vec![1; 20_000];
    expected[4000..12_192].fill(0);
    assert_eq!(read_all(&device, object), expected);
    assert_eq!(device.extents(object, 0, 9).unwrap(), vec![(0, 4096), (8192, 11_808)]);
    commit(&device, Transaction::new().punch(object, 16_384, u64::MAX), Durability::Buffered);
    assert_eq!(device.extents(object, 100, 9).unwrap(), vec![(100, 3996), (8192, 8192)]);
    assert_eq!(device.stat(object).unwrap().size, 20_000);
    commit(&device, Transaction::new().truncate(object, 1).truncate(object, 9000), Durability::Buffered);
    assert_eq!(device.extents(object, 0, 9).unwrap(), vec![(0, 4096)]);
    assert_eq!(read_all(&device, object)[..3], [1, 0, 0]);
}

#[test]
fn space_is_exact_and_never_leaks() {
    let device = RamDevice::new(100_000);
    let object = ObjectId(5);
    let before = device.space();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![1; 90_000]).set_attribute(
        object,
        KEY,
        vec![7; 100],
    );
    commit(&device, &mut transaction, Durability::Buffered);
    let full = device.commit(
        {
            let mut t = Transaction::new();
            t.write(object, 90_000, vec![1; 9000]);
            t
        },
        Durability::Buffered,
    );
    assert_eq!(full.unwrap_err().kind, ErrorKind::NoSpace);
    commit(
        &device,
        Transaction::new().set_attribute(object, KEY, vec![7; 10]).truncate(object, 0),
        Durability::Buffered,
    );
    assert_eq!(device.space().available, 100_000 - 128 - 42);
    let mut replace = Transaction::new();
    replace.remove(object).create(object, Hints::default()).write(object, 0, vec![2; 97_000]);
    commit(&device, &mut replace, Durability::Buffered);
    commit(&device, Transaction::new().remove(object), Durability::Buffered);
    assert_eq!(device.space(), before);
}

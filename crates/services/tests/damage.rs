//! Damage of what is stored, and of the attributes that tell of it.

use crate::common;
use onode_object::{
    AttributeKey, AttributeKind, Compression, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice,
    Transaction,
};
use onode_services::Compressed;
use std::sync::Arc;

#[test]
fn every_changed_byte_of_a_frame_is_seen() {
    common::damage::run().unwrap();
}

#[test]
fn a_damaged_map_loses_the_object_and_no_other() {
    let inner = Arc::new(RamDevice::new(1 << 30));
    let device = Compressed::new(Arc::clone(&inner), Compression::Fast);
    let (one, other) = (ObjectId(5), ObjectId(6));
    let mut transaction = Transaction::new();
    for object in [one, other] {
        transaction.create(object, Hints::default()).write(object, 0, vec![3; 200_000]);
    }
    device.commit(transaction, Durability::Buffered).unwrap();
    let key = AttributeKey::new(AttributeKind::SERVICE, 0);
    let value = inner.attribute(one, key).unwrap().expect("it is compressed");
    let mut transaction = Transaction::new();
    transaction.set_attribute(one, key, value[..value.len() - 1].to_vec());
    inner.commit(transaction, Durability::Buffered).unwrap();
    let device = Compressed::new(inner, Compression::Fast);
    let mut buffer = [0; 10];
    let error = device.read(one, 5, &mut buffer).unwrap_err();
    assert_eq!((error.kind, error.range), (ErrorKind::Corrupt, Some(0..200_000)));
    assert_eq!(device.read(other, 5, &mut buffer), Ok(10));
    // It can be removed.
    let mut transaction = Transaction::new();
    transaction.remove(one);
    device.commit(transaction, Durability::Buffered).unwrap();
    assert_eq!(device.list(ObjectId(0), 9).unwrap(), [other]);
}

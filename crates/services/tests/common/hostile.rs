//! Any bytes as what a wrapped device stores: attributes of the service and content. Whatever they
//! are, every call answers, and an object that says nonsense can be removed.

use onode_object::{
    AttributeKey, AttributeKind, Compression, Durability, Error, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice,
    Transaction,
};
use onode_services::Compressed;
use std::sync::Arc;

const OBJECT: ObjectId = ObjectId(5);
const CHUNK: u64 = 64 << 10;

/// Takes a number of bytes that the input says off its front.
fn take<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let Some((&[low, high], rest)) = input.split_first_chunk::<2>() else { return std::mem::take(input) };
    let (taken, rest) = rest.split_at(usize::from(u16::from_le_bytes([low, high])).min(rest.len()));
    *input = rest;
    taken
}

/// Stores an object as the input says: the first groups of its map, lists of holes, the attribute
/// of a small one, and content of up to three chunks.
fn stored(mut input: &[u8]) -> Arc<RamDevice> {
    let device = Arc::new(RamDevice::new(64 << 20));
    let mut transaction = Transaction::new();
    transaction.create(OBJECT, Hints::default());
    for index in [0, 1, 1 << 62, (1 << 62) + 511, (1 << 62) + 512, 1 << 63] {
        let value = take(&mut input);
        if !value.is_empty() {
            let value = value[..value.len().min(Transaction::MAX_ATTRIBUTE_BYTES)].to_vec();
            transaction.set_attribute(OBJECT, AttributeKey::new(AttributeKind::SERVICE, index), value);
        }
    }
    for chunk in 0..3 {
        let frame = take(&mut input);
        transaction.write(OBJECT, chunk * CHUNK, frame.to_vec());
    }
    device.commit(transaction, Durability::Buffered).expect("a device in memory takes it");
    device
}

/// What may be said of nonsense.
fn is_told(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Corrupt | ErrorKind::NotSupported | ErrorKind::Invalid)
}

/// Looks at the object in every way, changes it and removes it.
pub fn survive(input: &[u8]) {
    let inner = stored(input);
    let device = Compressed::new(Arc::clone(&inner), Compression::Small).in_units(256);
    let mut buffer = vec![0; 3 * CHUNK as usize];
    let told = |error: Error| assert!(is_told(&error), "{error}");
    for offset in [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 7, 1 << 40] {
        device.read(OBJECT, offset, &mut buffer).map(drop).unwrap_or_else(told);
        device.extents(OBJECT, offset, 40).map(drop).unwrap_or_else(told);
    }
    device.stat(OBJECT).map(drop).unwrap_or_else(told);
    let changes: [fn(&mut Transaction); 6] = [
        |one| _ = one.write(OBJECT, 100, vec![7; 5000]),
        |one| _ = one.punch(OBJECT, 3000, CHUNK),
        |one| _ = one.truncate(OBJECT, 2 * CHUNK - 5),
        |one| _ = one.write(OBJECT, 0, vec![8; CHUNK as usize]),
        |one| _ = one.truncate(OBJECT, 10),
        |one| _ = one.write(OBJECT, 0, vec![9; 10]),
    ];
    for change in changes {
        let mut transaction = Transaction::new();
        change(&mut transaction);
        device.commit(transaction, Durability::Buffered).unwrap_or_else(told);
        device.read(OBJECT, 0, &mut buffer).map(drop).unwrap_or_else(told);
    }
    let mut transaction = Transaction::new();
    transaction.remove(OBJECT);
    device.commit(transaction, Durability::Buffered).expect("it can be removed");
    assert_eq!(inner.list(ObjectId(0), 9), Ok(Vec::new()));
}

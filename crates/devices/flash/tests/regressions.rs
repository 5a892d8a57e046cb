//! Mistakes that were found once, each by the name of what went wrong.

mod common;

use common::{Flash, TINY};
use onode_object::{Durability, Hints, ObjectDevice, Transaction};

/// The cleaner looked again and again for an extent that goes on behind the bytes it was moving.
#[test]
fn cleaning_ends_when_an_extent_reaches_past_the_bytes_moved() {
    let flash = Flash::holding(TINY, 100_000);
    let device = flash.device.as_ref().unwrap();
    let (first, second) = (device.reserve_ids(1).unwrap(), device.reserve_ids(1).unwrap());
    let mut transaction = Transaction::new();
    transaction.create(first, Hints::default()).create(second, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    // Pages of both objects side by side, so that a segment stays in use when one is overwritten.
    for page in 0..60 {
        let mut transaction = Transaction::new();
        transaction.write(first, page * 496, vec![1; 496]).write(second, page * 496, vec![2; 496]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    // Each of these extents covers the places that several items of the old segments were written for.
    let mut transaction = Transaction::new();
    transaction.write(first, 0, vec![3; 496 * 60]);
    device.commit(transaction, Durability::Durable).unwrap();
    while device.maintain(50).unwrap().done > 0 {}
    let mut bytes = vec![0; 496 * 60];
    for (object, byte) in [(first, 3), (second, 2)] {
        assert_eq!(device.read(object, 0, &mut bytes).unwrap(), bytes.len());
        assert!(bytes.iter().all(|&found| found == byte));
    }
}

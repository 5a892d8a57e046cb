//! What only a device can show that is full, damaged or shared at will: what is refused, what is
//! not, how large transactions become, and that no two threads wait for each other.

use crate::common::spy::Spy;
use onode_base::Prng;
use onode_object::{
    AttributeKey, AttributeKind, Compression, Durability, Hints, ObjectDevice, ObjectId, ObjectKind, Transaction,
};
use onode_services::Compressed;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const OBJECT: ObjectId = ObjectId(9);

fn commit(device: &Compressed<Spy>, fill: impl FnOnce(&mut Transaction)) -> onode_object::Result<()> {
    let mut transaction = Transaction::new();
    fill(&mut transaction);
    device.commit(transaction, Durability::Durable)
}

/// A device with one object that compresses well.
fn made(spy: Spy, bytes: usize) -> Compressed<Spy> {
    let device = Compressed::new(Arc::new(spy), Compression::Fast);
    commit(&device, |transaction| {
        let hints = Hints { kind: ObjectKind::Data, ..Hints::default() };
        transaction.create(OBJECT, hints).write(OBJECT, 0, vec![7; bytes]);
    })
    .unwrap();
    device
}

fn content(device: &Compressed<Spy>) -> Vec<u8> {
    let mut bytes = vec![0xa5; device.stat(OBJECT).unwrap().size as usize];
    assert_eq!(device.read(OBJECT, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

#[test]
fn a_full_device_refuses_no_hole_however_many_there_are() {
    let device = made(Spy::new(false), 65_536);
    let mut expected = vec![7; 65_536];
    device.inner().is_full.store(true, Relaxed);
    for number in 0..600_u64 {
        let start = number * 107 % 65_000;
        commit(&device, |transaction| _ = transaction.punch(OBJECT, start, 50))
            .unwrap_or_else(|error| panic!("hole {number}: {error}"));
        expected[start as usize..start as usize + 50].fill(0);
    }
    assert!(content(&device) == expected);
    let held: u64 = device.extents(OBJECT, 0, 10_000).unwrap().iter().map(|(_, length)| length).sum();
    assert_eq!(held, expected.iter().filter(|byte| **byte == 7).count() as u64);
    commit(&device, |transaction| _ = transaction.truncate(OBJECT, 0)).unwrap();
    let service = AttributeKey::new(AttributeKind::SERVICE, 0);
    let left = device.inner().ram.attributes(OBJECT, service, 9).unwrap();
    assert!(left.is_empty(), "lists of holes that are gone: {left:?}");
}

#[test]
fn a_full_device_lets_the_bytes_of_a_small_object_be_replaced() {
    let device = made(Spy::new(false), 65_536);
    device.inner().is_full.store(true, Relaxed);
    commit(&device, |transaction| _ = transaction.truncate(OBJECT, 100)).unwrap();
    for byte in [9, 10] {
        commit(&device, |transaction| _ = transaction.write(OBJECT, 0, vec![byte; 100])).unwrap();
        assert_eq!(content(&device), [byte; 100]);
        assert_eq!(device.extents(OBJECT, 0, 9).unwrap(), [(0, 100)]);
    }
    let plain = device.inner().ram.stat(OBJECT).unwrap();
    assert!(device.inner().ram.extents(OBJECT, 0, 9).unwrap().is_empty(), "the frame is kept: {plain:?}");
    commit(&device, |transaction| _ = transaction.punch(OBJECT, 10, 20)).unwrap();
    commit(&device, |transaction| _ = transaction.truncate(OBJECT, 60)).unwrap();
    commit(&device, |transaction| _ = transaction.truncate(OBJECT, 70_000)).unwrap();
    let mut expected = vec![10; 60];
    expected[10..30].fill(0);
    expected.resize(70_000, 0);
    assert!(content(&device) == expected);
    assert_eq!(device.extents(OBJECT, 0, 9).unwrap(), [(0, 10), (30, 30)]);
    // With room it becomes what it would have been.
    device.inner().is_full.store(false, Relaxed);
    commit(&device, |transaction| _ = transaction.write(OBJECT, 40, vec![3; 5])).unwrap();
    expected[40..45].fill(3);
    assert!(content(&device) == expected);
    commit(&device, |transaction| _ = transaction.write(OBJECT, 0, vec![1; 65_536])).unwrap();
    expected[..65_536].fill(1);
    assert!(content(&device) == expected);
}

/// N6: damage that was there before refuses nothing new.
#[test]
fn a_chunk_with_damage_can_be_filled() {
    let device = made(Spy::new(false), 0);
    for number in 0..15 {
        commit(&device, |transaction| _ = transaction.write(OBJECT, number * 4096, vec![7; 4096])).unwrap();
    }
    device.inner().is_damaged.store(true, Relaxed);
    commit(&device, |transaction| _ = transaction.write(OBJECT, 15 * 4096, vec![7; 4096])).unwrap();
}

/// Each write is a block of a chunk of its own, and no chunk shrinks any more.
#[test]
fn transactions_do_not_become_much_larger() {
    let device = made(Spy::new(false), 0);
    let mut noise = vec![0; 64 << 20];
    Prng::new(5).fill(&mut noise);
    noise.chunks_mut(65_536).for_each(|chunk| chunk[4096..4096 + 6000].fill(0));
    commit(&device, |transaction| _ = transaction.write(OBJECT, 0, noise)).unwrap();
    let (most, wanted) = (&device.inner().most, device.inner().info().transaction_bytes);
    most.store(0, Relaxed);
    let writes = device.info().transaction_bytes as u64 / 4096;
    commit(&device, |transaction| {
        for number in 0..writes {
            let mut noise = vec![0; 4096];
            Prng::new(number).fill(&mut noise);
            transaction.write(OBJECT, number * 65_536 + 4096, noise);
        }
    })
    .unwrap();
    let most = most.load(Relaxed) as usize;
    assert!(most <= 4 * wanted, "{writes} writes became {most} bytes, where {wanted} are wanted");
}

#[test]
fn no_thread_waits_for_the_turn_with_a_lock() {
    let device = Arc::new(made(Spy::new(true), 1 << 20));
    let (done, all_done) = std::sync::mpsc::channel();
    for who in 0..3 {
        let (device, done) = (Arc::clone(&device), done.clone());
        std::thread::spawn(move || {
            for number in 0..2000_u64 {
                let at = number % 16 * 65_536;
                if who == 0 {
                    let share = device.share().unwrap();
                    share.begin();
                    commit(&device, |transaction| _ = transaction.write(OBJECT, at, vec![number as u8; 65_536]))
                        .unwrap();
                    share.end();
                } else {
                    device.read(OBJECT, at, &mut [0; 1000]).unwrap();
                }
            }
            done.send(who)
        });
    }
    for _ in 0..3 {
        all_done.recv_timeout(Duration::from_secs(60)).expect("nobody went on for a minute");
    }
}

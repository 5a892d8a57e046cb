//! Streams: what a snapshot shows, or what changed between two, gives another device that state,
//! whatever services stand on either.

use crate::common::pool::Mounted;
use crate::common::streams::{AnyDevice, Stack, assert_same, follow, holes};
use crate::flash;
use onode_base::{Prng, Timestamp};
use onode_object::conformance::{Generator, dump};
use onode_object::{Durability, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, RamDevice, SyncScope, Transaction};
use onode_services::{Applied, NewSnapshot, Received, Receiving, SnapshotId, Versioned};
use std::io;
use std::sync::Arc;

#[test]
fn a_replica_follows_a_volume() {
    for seed in 1..=12 {
        follow(seed, [false, false]);
    }
}

#[test]
fn a_replica_follows_a_volume_with_other_services() {
    for seed in 1..=4 {
        follow(seed, [true, false]);
        follow(seed, [false, true]);
        follow(seed, [true, true]);
    }
}

#[test]
fn holes_that_only_a_service_knows_are_sent_and_gone_back_to() {
    holes().expect("the same");
}

/// Power goes while a replica on flash receives, or goes back.
fn cut_off(seed: u64) {
    let mut generator = Generator::new(seed);
    let source = Stack::plain();
    let mounted = Mounted::new(flash::Flash::holding(flash::SMALL, 24 << 20));
    let bare: AnyDevice = Arc::<Mounted>::clone(&mounted);
    let mut replica = Stack::over(Arc::clone(&bare));
    let mut base: Option<String> = None;
    for round in 0..10_u64 {
        let what = format!("seed {seed}, round {round}");
        let (name, to) = (format!("round {round}"), SnapshotId([1 + round as u8; 16]));
        let commits = generator.prng.below(40);
        source.change(&mut generator, commits);
        source.take(&name, to);
        let expected = dump(source.shown(&name).as_ref()).unwrap();
        let stream = source.send(&name, base.as_deref());
        let from = base.as_ref().map(|base| replica.snapshot(base).id.unwrap());
        for _ in 0..generator.prng.below(4) {
            let part = Received::Part { to, base: from };
            part.note(bare.as_ref()).unwrap();
            let most = generator.prng.below(6) as usize;
            replica.receive(&stream, most);
            mounted.with(|harness| harness.crash());
            replica = Stack::over(Arc::clone(&bare));
            assert_eq!(Received::load(bare.as_ref()), Ok(Some(part)), "{what}");
            let Some(base) = base.as_ref().filter(|_| generator.prng.chance(1, 2)) else { continue };
            let before = dump(replica.shown(base).as_ref()).unwrap();
            if generator.prng.chance(1, 2) {
                replica.go_back(base);
                mounted.with(|harness| harness.crash());
                replica = Stack::over(Arc::clone(&bare));
            }
            replica.go_back(base);
            assert_same(replica.device.as_ref(), &before, &what);
        }
        assert!(replica.receive(&stream, usize::MAX));
        assert_same(replica.device.as_ref(), &expected, &what);
        let is_noted = Received::load(bare.as_ref()).unwrap().is_some();
        let new = NewSnapshot { name: name.clone(), created: Timestamp::default(), id: Some(to) };
        let together = if is_noted { Received::forgotten() } else { Vec::new() };
        replica.versioned.take_with(&new, together).unwrap();
        mounted.with(|harness| harness.crash());
        replica = Stack::over(Arc::clone(&bare));
        assert_same(replica.device.as_ref(), &expected, &what);
        assert_same(replica.shown(&name).as_ref(), &expected, &what);
        base = Some(name);
    }
}

#[test]
fn a_cut_leaves_a_part_that_is_received_again_or_taken_back() {
    for seed in 1..=6 {
        cut_off(seed);
    }
}

/// A device with `objects` objects of 64 KiB, and a snapshot `before`.
fn filled(objects: u64) -> (Stack, ObjectId) {
    let stack = Stack::plain();
    let first = stack.device.reserve_ids(objects).unwrap();
    let mut prng = Prng::new(3);
    for number in 0..objects {
        let object = ObjectId(first.0 + number);
        let data = (0..64 << 10).map(|_| prng.below(256) as u8).collect();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, data);
        stack.device.commit(transaction, Durability::Buffered).unwrap();
    }
    stack.device.sync(SyncScope::All).unwrap();
    stack.take("before", SnapshotId([1; 16]));
    (stack, first)
}

#[test]
fn one_hundredth_changed_takes_little_more_than_that_to_send() {
    let (stack, first) = filled(256);
    // Blocks here and there, and bytes of others.
    let mut prng = Prng::new(9);
    for _ in 0..40 {
        let (object, block) = (ObjectId(first.0 + prng.below(256)), prng.below(16));
        let mut transaction = Transaction::new();
        transaction.write(object, block * 4096, vec![prng.below(256) as u8; 4096]);
        stack.device.commit(transaction, Durability::Buffered).unwrap();
    }
    stack.take("after", SnapshotId([2; 16]));
    let (whole, changed) = (stack.send("after", None).len(), stack.send("after", Some("before")).len());
    println!("{whole} bytes for all, {changed} for 40 of 4,096 blocks");
    assert!(changed * 1000 <= whole * 15, "{changed} of {whole} bytes");
}

#[test]
fn a_stream_that_is_damaged_or_cut_short_is_refused() {
    let (stack, _) = filled(3);
    let stream = stack.send("before", None);
    let read = |bytes: &[u8]| -> io::Result<()> {
        let mut receiving = Receiving::begin(bytes)?;
        while !receiving.next_batch()?.is_empty() {}
        Ok(())
    };
    assert!(read(&stream).is_ok());
    let mut prng = Prng::new(5);
    for _ in 0..200 {
        let at = prng.below(stream.len() as u64) as usize;
        let cut = read(&stream[..at]).unwrap_err();
        assert!([io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData].contains(&cut.kind()), "{at}: {cut}");
        let mut damaged = stream.clone();
        damaged[at] ^= 1 << prng.below(8);
        let told = read(&damaged).unwrap_err();
        assert!([io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData].contains(&told.kind()), "{at}: {told}");
    }
}

#[test]
fn a_stream_cannot_change_what_belongs_to_the_device() {
    let stack = Stack::plain();
    let keep = |mutation| Ok(Some(mutation));
    let own = [ObjectId(0), ObjectId::RECEIVED, ObjectId::SNAPSHOTS, ObjectId::FIRST_VERSION, ObjectId(u64::MAX)];
    for object in own {
        let mut applied = Applied::new(Arc::clone(&stack.device), ObjectId(70), &keep).unwrap();
        let refused = applied.apply(vec![Mutation::Create { object, hints: Hints::default() }]);
        assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Invalid), "{object}");
    }
    let mut applied = Applied::new(Arc::clone(&stack.device), ObjectId(70), &keep).unwrap();
    let missing = applied.apply(vec![Mutation::Truncate { object: ObjectId(65), size: 3 }]);
    assert_eq!(missing.map_err(|error| error.kind), Err(ErrorKind::Stale));
    assert_eq!(stack.device.list(ObjectId(1), 10), Ok(vec![]));
}

#[test]
fn a_part_of_a_stream_is_hidden_and_forgotten_with_its_snapshot() {
    let ram: AnyDevice = Arc::new(RamDevice::new(1 << 20));
    let versioned = Versioned::open(Arc::clone(&ram)).unwrap().unwrap();
    let to = SnapshotId([4; 16]);
    Received::Part { to, base: None }.note(ram.as_ref()).unwrap();
    assert_eq!(versioned.list(ObjectId(0), 10), Ok(vec![]));
    assert_eq!(versioned.stat(ObjectId::RECEIVED).map(drop).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    let new = NewSnapshot { name: "one".into(), created: Timestamp::default(), id: Some(to) };
    assert_eq!(versioned.take_with(&new, Received::forgotten()).map(|one| one.id), Ok(Some(to)));
    assert_eq!(Received::load(ram.as_ref()), Ok(None));
}

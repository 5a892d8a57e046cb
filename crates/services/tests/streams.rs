//! Streams: what a snapshot shows, or what changed between two, gives another device that state,
//! whatever services stand on either.

mod common;

use common::vault::Vault;
use onode_base::{Prng, Timestamp};
use onode_object::conformance::{Generator, Tree, dump};
use onode_object::{
    Compression, Durability, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, RamDevice, SyncScope, Transaction,
};
use onode_services::{
    Applied, Compressed, Differences, NewSnapshot, Received, Receiving, Sending, Snapshot, SnapshotId, SnapshotView,
    StreamBase, StreamHeader, Versioned,
};
use std::io;
use std::sync::Arc;

type AnyDevice = Arc<dyn ObjectDevice>;
type AnyVersioned = Versioned<dyn ObjectDevice>;

/// A device with snapshots and what stands on it.
struct Stack {
    versioned: Arc<AnyVersioned>,
    device: AnyDevice,
    of_snapshot: Box<dyn Fn(SnapshotView<dyn ObjectDevice>) -> AnyDevice>,
}

impl Stack {
    fn plain() -> Self {
        let ram: AnyDevice = Arc::new(RamDevice::new(64 << 20));
        let versioned = Arc::new(Versioned::open(ram).unwrap().unwrap());
        let device: AnyDevice = Arc::<AnyVersioned>::clone(&versioned);
        Self { versioned, device, of_snapshot: Box::new(|view| Arc::new(view)) }
    }

    fn sealed() -> Self {
        let ram: AnyDevice = Arc::new(RamDevice::new(64 << 20));
        let versioned = Arc::new(Versioned::open(ram).unwrap().unwrap());
        let sealed = Arc::new(Vault::new().open(&versioned));
        let device: AnyDevice = Arc::new(Compressed::new(Arc::clone(&sealed), Compression::Fast));
        let of_snapshot = move |view| -> AnyDevice {
            Arc::new(Compressed::new(Arc::new(sealed.of_snapshot(Arc::new(view))), Compression::Never))
        };
        Self { versioned, device, of_snapshot: Box::new(of_snapshot) }
    }

    fn of(is_sealed: bool) -> Self {
        if is_sealed { Self::sealed() } else { Self::plain() }
    }

    fn snapshot(&self, name: &str) -> Snapshot {
        self.versioned.snapshots().into_iter().find(|one| one.name == name).expect("it is there")
    }

    fn shown(&self, name: &str) -> AnyDevice {
        (self.of_snapshot)(self.versioned.view(name).unwrap())
    }

    fn take(&self, name: &str, id: SnapshotId) {
        let new = NewSnapshot { name: name.to_owned(), created: Timestamp::default(), id: Some(id) };
        self.versioned.take_with(&new, Vec::new()).unwrap();
    }

    fn send(&self, name: &str, from: Option<&str>) -> Vec<u8> {
        let snapshot = self.snapshot(name);
        let (id, created, next_id) = (snapshot.id.unwrap(), snapshot.created, snapshot.first_later_id());
        let mut header = StreamHeader { id, name: name.to_owned(), created, next_id, base: None };
        let differences = match from {
            None => Differences::whole(self.shown(name)),
            Some(from) => {
                let base = self.snapshot(from);
                header.base = Some(StreamBase { id: base.id.unwrap(), name: from.to_owned() });
                let (base, snapshot) = ((&base, self.shown(from)), (&snapshot, self.shown(name)));
                Differences::between(&self.versioned, base, snapshot).unwrap()
            }
        };
        let mut sending = Sending::new(header, differences);
        let (mut stream, mut buffer) = (Vec::new(), vec![0; 70_000]);
        loop {
            let count = sending.fill(&mut buffer).unwrap();
            stream.extend_from_slice(&buffer[..count]);
            if count < buffer.len() {
                return stream;
            }
        }
    }

    /// Receives at most so many batches; whether that was all.
    fn receive(&self, stream: &[u8], most: usize) -> bool {
        let mut receiving = Receiving::begin(stream).unwrap();
        let keep = |mutation| Ok(Some(mutation));
        let mut applied = Applied::new(Arc::clone(&self.device), receiving.header().next_id, &keep).unwrap();
        for _ in 0..most {
            let batch = receiving.next_batch().unwrap();
            if batch.is_empty() {
                applied.finish().unwrap();
                return true;
            }
            applied.apply(batch).unwrap();
        }
        false
    }

    fn go_back(&self, name: &str) -> usize {
        let (snapshot, shown) = (self.snapshot(name), self.shown(name));
        let back = Differences::back(&self.versioned, Arc::clone(&self.device), (&snapshot, shown));
        let (mut back, mut count) = (back.unwrap(), 0);
        let keep = |mutation| Ok(Some(mutation));
        let mut applied = Applied::new(Arc::clone(&self.device), ObjectId(0), &keep).unwrap();
        loop {
            let batch = back.next_batch().unwrap();
            if batch.is_empty() {
                applied.finish().unwrap();
                return count;
            }
            count += batch.iter().filter(|one| !matches!(one, Mutation::SetAccessTime { .. })).count();
            applied.apply(batch).unwrap();
        }
    }

    fn change(&self, generator: &mut Generator, commits: u64) {
        for _ in 0..commits {
            let transaction = generator.transaction(self.device.as_ref());
            self.device.commit(transaction, Durability::Buffered).unwrap();
        }
    }
}

fn assert_same(found: &dyn ObjectDevice, expected: &Tree, what: &str) {
    assert_eq!(dump(found).unwrap().difference(expected), None, "{what}");
}

/// A volume that changes, and a replica that follows it by streams, is interrupted, changed by
/// somebody else, and led back.
fn follow(seed: u64, sealed: [bool; 2]) {
    let mut generator = Generator::new(seed);
    let (source, replica) = (Stack::of(sealed[0]), Stack::of(sealed[1]));
    let mut base: Option<String> = None;
    for round in 0..14_u64 {
        let what = format!("seed {seed}, round {round}");
        let name = format!("round {round}");
        let commits = generator.prng.below(40);
        source.change(&mut generator, commits);
        source.take(&name, SnapshotId([round as u8; 16]));
        let expected = dump(source.shown(&name).as_ref()).unwrap();
        assert_same(source.device.as_ref(), &expected, &what);
        // Later changes are no part of it.
        let commits = generator.prng.below(20);
        source.change(&mut generator, commits);
        let names: Vec<_> = source.versioned.snapshots().into_iter().map(|one| one.name).collect();
        for other in names.into_iter().filter(|other| *other != name && Some(other) != base.as_ref()) {
            if generator.prng.chance(1, 2) {
                source.versioned.delete(&other).unwrap();
            }
        }
        for _ in 0..generator.prng.below(8) {
            source.device.maintain(3).unwrap();
        }
        if base.is_some() && generator.prng.chance(1, 3) {
            // Some rounds are not sent.
            continue;
        }
        let stream = source.send(&name, base.as_deref());
        if let Some(base) = &base {
            let before = dump(replica.shown(base).as_ref()).unwrap();
            if generator.prng.chance(1, 3) {
                let mut other = Generator::new(seed + 1000 * round);
                replica.change(&mut other, 15);
                replica.go_back(base);
                assert_same(replica.device.as_ref(), &before, &what);
                assert_eq!(replica.go_back(base), 0, "{what}: there is nothing left to do");
            }
            let most = generator.prng.below(4) as usize;
            if !replica.receive(&stream, most) && generator.prng.chance(1, 2) {
                replica.go_back(base);
                assert_same(replica.device.as_ref(), &before, &what);
            }
        } else if generator.prng.chance(1, 2) {
            replica.receive(&stream, 1);
        }
        assert!(replica.receive(&stream, usize::MAX));
        assert_same(replica.device.as_ref(), &expected, &what);
        replica.take(&name, SnapshotId([round as u8; 16]));
        base = Some(name);
    }
}

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

//! Devices with snapshots that send and receive them, and a replica that follows a device.

use super::vault::Vault;
use onode_base::Timestamp;
use onode_object::conformance::{Generator, Tree, dump};
use onode_object::{Compression, Durability, Hints, Mutation, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::{
    Applied, Compressed, Differences, NewSnapshot, Receiving, Sending, Snapshot, SnapshotId, SnapshotView, StreamBase,
    StreamHeader, Versioned,
};
use std::sync::Arc;

pub type AnyDevice = Arc<dyn ObjectDevice>;
type AnyVersioned = Versioned<dyn ObjectDevice>;

/// A device with snapshots and what stands on it.
pub struct Stack {
    pub versioned: Arc<AnyVersioned>,
    pub device: AnyDevice,
    of_snapshot: Box<dyn Fn(SnapshotView<dyn ObjectDevice>) -> AnyDevice>,
}

impl Stack {
    pub fn plain() -> Self {
        Self::over(Arc::new(RamDevice::new(64 << 20)))
    }

    pub fn over(bare: AnyDevice) -> Self {
        let versioned = Arc::new(Versioned::open(bare).unwrap().unwrap());
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

    /// With one service alone.
    fn with_one(is_sealed: bool) -> Self {
        let ram: AnyDevice = Arc::new(RamDevice::new(64 << 20));
        let versioned = Arc::new(Versioned::open(ram).unwrap().unwrap());
        if is_sealed {
            let sealed = Arc::new(Vault::new().open(&versioned));
            let device = Arc::clone(&sealed) as AnyDevice;
            return Self {
                versioned,
                device,
                of_snapshot: Box::new(move |view| Arc::new(sealed.of_snapshot(Arc::new(view)))),
            };
        }
        let device: AnyDevice = Arc::new(Compressed::new(Arc::clone(&versioned), Compression::Fast));
        let of_snapshot = |view| -> AnyDevice { Arc::new(Compressed::new(Arc::new(view), Compression::Never)) };
        Self { versioned, device, of_snapshot: Box::new(of_snapshot) }
    }

    fn of(is_sealed: bool) -> Self {
        if is_sealed { Self::sealed() } else { Self::plain() }
    }

    pub fn snapshot(&self, name: &str) -> Snapshot {
        self.versioned.snapshots().into_iter().find(|one| one.name == name).expect("it is there")
    }

    pub fn shown(&self, name: &str) -> AnyDevice {
        (self.of_snapshot)(self.versioned.view(name).unwrap())
    }

    pub fn take(&self, name: &str, id: SnapshotId) {
        let new = NewSnapshot { name: name.to_owned(), created: Timestamp::default(), id: Some(id) };
        self.versioned.take_with(&new, Vec::new()).unwrap();
    }

    pub fn send(&self, name: &str, from: Option<&str>) -> Vec<u8> {
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
    pub fn receive(&self, stream: &[u8], most: usize) -> bool {
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

    pub fn go_back(&self, name: &str) -> usize {
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

    pub fn change(&self, generator: &mut Generator, commits: u64) {
        for _ in 0..commits {
            let transaction = generator.transaction(self.device.as_ref());
            self.device.commit(transaction, Durability::Buffered).unwrap();
        }
    }
}

pub fn assert_same(found: &dyn ObjectDevice, expected: &Tree, what: &str) {
    assert_eq!(dump(found).unwrap().difference(expected), None, "{what}");
}

/// Content is cut within what a service below stores as one: a replica and the way back have it.
pub fn holes() -> Result<(), String> {
    let makers: [fn() -> Stack; 4] = [|| Stack::with_one(false), || Stack::with_one(true), Stack::sealed, Stack::plain];
    for (number, make) in makers.into_iter().enumerate() {
        for size in [900_usize, 5000, 100_000] {
            for cut in 0..6 {
                let (source, replica) = (make(), Stack::plain());
                let object = source.device.reserve_ids(1).map_err(|error| error.to_string())?;
                let text: Vec<u8> = b"much alike ".iter().copied().cycle().take(size).collect();
                let mut first = Transaction::new();
                first.create(object, Hints::default()).write(object, 0, text);
                source.device.commit(first, Durability::Buffered).map_err(|error| error.to_string())?;
                source.take("before", SnapshotId([1; 16]));
                let (mut second, size) = (Transaction::new(), size as u64);
                match cut {
                    0 => second.punch(object, size / 3, 1),
                    1 => second.punch(object, size / 3, size / 9),
                    2 => second.punch(object, 0, size / 2 + 7),
                    3 => second.truncate(object, size / 2 + 3).truncate(object, size),
                    4 => second.truncate(object, 2).truncate(object, size + 10),
                    _ => second.punch(object, size - 40, 40).truncate(object, size - 9).truncate(object, size),
                };
                source.device.commit(second, Durability::Buffered).map_err(|error| error.to_string())?;
                source.take("after", SnapshotId([2; 16]));
                let what = format!("stack {number}, {size} bytes, cut {cut}");
                let shown = |name| dump(source.shown(name).as_ref()).map_err(|error| error.to_string());
                let [before, after] = [shown("before")?, shown("after")?];
                replica.receive(&source.send("before", None), usize::MAX);
                replica.receive(&source.send("after", Some("before")), usize::MAX);
                let found = dump(replica.device.as_ref()).map_err(|error| error.to_string())?;
                if let Some(differs) = found.difference(&after) {
                    return Err(format!("{what}, sent: {differs}"));
                }
                source.go_back("before");
                let found = dump(source.device.as_ref()).map_err(|error| error.to_string())?;
                if let Some(differs) = found.difference(&before) {
                    return Err(format!("{what}, gone back: {differs}"));
                }
            }
        }
    }
    Ok(())
}

/// A volume that changes, and a replica that follows it by streams, is interrupted, changed by
/// somebody else, and led back.
pub fn follow(seed: u64, sealed: [bool; 2]) {
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

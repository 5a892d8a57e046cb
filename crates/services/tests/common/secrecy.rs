//! What an encrypted device gives to the one below it: no byte of the host, no nonce twice.

use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use onode_object::{
    AttributeKey, AttributeKind, DeviceInfo, Durability, ErrorKind, Hints, Maintenance, Mutation, ObjectDevice,
    ObjectId, ObjectStat, RamDevice, Result, Space, SyncScope, Transaction,
};
use onode_services::{Cost, Encrypted, KeyHeader, KeySlot, MasterKey, Secret, Session, SlotSettings};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The objects of a volume that say how it is encrypted.
pub const HOLDERS: [ObjectId; 2] = [ObjectId(2), ObjectId(1)];
const NONCE_BYTES: usize = 12;

pub fn master() -> MasterKey {
    MasterKey::new([0x77; 32])
}

pub fn secret(byte: u8) -> Secret {
    Secret::key_file(vec![byte; 40]).unwrap()
}

pub fn slot(id: u32, byte: u8) -> KeySlot {
    KeySlot::new(&master(), &secret(byte), SlotSettings { id, label: "", cost: Cost::LEAST, salt: [byte; 16] }).unwrap()
}

/// Makes an encrypted volume with its two objects.
pub fn made<D: ObjectDevice>(device: Arc<D>) -> Encrypted<D> {
    let header = KeyHeader::new(&HOLDERS, &master(), slot(0, 1));
    let made = Encrypted::create(device, header, &master(), Session::new([1; 32])).unwrap();
    let mut transaction = Transaction::new();
    HOLDERS.iter().for_each(|holder| _ = transaction.create(*holder, Hints::default()));
    made.commit(transaction, Durability::Durable).unwrap();
    made
}

/// Random bytes of a mount come from outside; here they are always the same, so that only epochs
/// keep nonces apart.
const OF_A_MOUNT: [u8; 32] = [9; 32];

/// Opens it again.
pub fn opened<D: ObjectDevice>(device: Arc<D>) -> Result<Encrypted<D>> {
    let header = KeyHeader::load(device.as_ref(), &HOLDERS)?.expect("it is encrypted");
    let (master, _) = header.unlock(&secret(1))?;
    Encrypted::open(device, header, &master, Session::new(OF_A_MOUNT))
}

/// A device in memory that keeps every byte it was ever given.
pub struct Witness {
    pub ram: RamDevice,
    pub seen: Mutex<Vec<Mutation>, rank::Free>,
    /// It says that it accepts no changes.
    pub is_read_only: AtomicBool,
}

impl Witness {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            ram: RamDevice::with_crash_model(1 << 30),
            seen: Mutex::new(Vec::new()),
            is_read_only: false.into(),
        })
    }

    /// Whether these bytes stand in anything that it was given.
    pub fn has_seen(&self, bytes: &[u8]) -> bool {
        self.seen.lock().iter().any(|one| match one {
            Mutation::Write { data, .. } => data.windows(bytes.len()).any(|window| window == bytes),
            Mutation::SetAttribute { value, .. } => value.windows(bytes.len()).any(|window| window == bytes),
            _ => false,
        })
    }

    /// The nonces that stand at the front of sealed attributes.
    fn nonces(&self) -> Vec<[u8; NONCE_BYTES]> {
        const FIRST: u64 = 3 << 62;
        const OF_VOLUME: u64 = FIRST + (1 << 60);
        const RESTS: std::ops::Range<u64> = FIRST + (1 << 58)..FIRST + (1 << 60);
        let nonce_of = |one: &Mutation| {
            let Mutation::SetAttribute { key, value, .. } = one else { return None };
            let is_service = key.kind == AttributeKind::SERVICE;
            match key.index {
                OF_VOLUME.. if is_service => None,
                index if is_service && RESTS.contains(&index) => None,
                // A version comes before the nonce of a head.
                FIRST if is_service => value[1..].first_chunk().copied(),
                _ => value.first_chunk().copied(),
            }
        };
        self.seen.lock().iter().filter_map(nonce_of).collect()
    }
}

impl ObjectDevice for Witness {
    fn info(&self) -> DeviceInfo {
        let read_only = self.is_read_only.load(Ordering::Relaxed).then(|| "it was asked for".to_owned());
        DeviceInfo { read_only, ..self.ram.info() }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.ram.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.seen.lock().extend(transaction.mutations.iter().cloned());
        self.ram.commit(transaction, durability)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.ram.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.ram.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.ram.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.ram.attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.ram.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.ram.list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.ram.extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        self.ram.space()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.ram.maintain(budget)
    }

    fn close(&self) -> Result<()> {
        self.ram.close()
    }
}

/// Changes a volume across crashes, of which each loses what was not durable; tells the first nonce
/// that was used twice, lost or not.
pub fn nonces(seed: u64) -> std::result::Result<usize, String> {
    let witness = Witness::new();
    let mut device = made(Arc::clone(&witness));
    let mut prng = Prng::new(seed);
    for round in 0..40 {
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        device.commit(transaction, Durability::Buffered).unwrap();
        for _ in 0..prng.below(6) {
            let mut transaction = Transaction::new();
            transaction.write(object, prng.below(40_000), vec![round; 1 + prng.below(9000) as usize]);
            transaction.set_attribute(object, AttributeKey::new(AttributeKind::INODE, 0), vec![round; 50]);
            let durability = if prng.chance(1, 3) { Durability::Durable } else { Durability::Buffered };
            device.commit(transaction, durability).unwrap();
        }
        if prng.chance(1, 2) {
            drop(device);
            witness.ram.crash();
            device = opened(Arc::clone(&witness)).map_err(|error| error.to_string())?;
        }
    }
    let nonces = witness.nonces();
    let mut known = BTreeSet::new();
    match nonces.iter().find(|nonce| !known.insert(**nonce)) {
        Some(nonce) => Err(format!("the nonce {nonce:02x?} was used twice")),
        None => Ok(nonces.len()),
    }
}

/// Changes stored bytes one by one, and swaps blocks; tells the first damage that goes unseen or is
/// told wrongly.
pub fn damage() -> std::result::Result<(), String> {
    const BLOCK: usize = 4096;
    let object = ObjectId(70);
    let ram = Arc::new(RamDevice::new(1 << 30));
    let device = made(Arc::clone(&ram));
    device.reserve_ids(64).unwrap();
    let content: Vec<u8> = (0..5 * BLOCK + 100).map(|at| (at / 300) as u8).collect();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, content.clone());
    device.commit(transaction, Durability::Durable).unwrap();
    let mut stored = vec![0; 6 * BLOCK];
    ram.read(object, 0, &mut stored).unwrap();
    let put = |at: usize, bytes: &[u8]| {
        let mut transaction = Transaction::new();
        transaction.write(object, at as u64, bytes.to_vec());
        ram.commit(transaction, Durability::Durable).unwrap();
    };
    let judge = |what: &str, lost: std::ops::Range<usize>| {
        let device = opened(Arc::clone(&ram)).map_err(|error| error.to_string())?;
        let mut found = vec![0; BLOCK];
        for block in 0..6 {
            let range = block * BLOCK..((block + 1) * BLOCK).min(content.len());
            let answer = device.read(object, range.start as u64, &mut found);
            let expected = (range.start as u64)..(range.end as u64);
            match answer {
                Ok(count) if !lost.contains(&block) && found[..count] == content[range.clone()] => {}
                Err(error) if lost.contains(&block) && error.range == Some(expected) => {}
                other => return Err(format!("{what}, block {block}: {other:?}")),
            }
        }
        Ok(())
    };
    judge("nothing", 0..0)?;
    for at in (0..BLOCK).step_by(97) {
        put(BLOCK + at, &[stored[BLOCK + at] ^ 0x10]);
        judge(&format!("byte {at} of block 1"), 1..2)?;
        put(BLOCK + at, &[stored[BLOCK + at]]);
    }
    put(2 * BLOCK, &stored[3 * BLOCK..4 * BLOCK]);
    put(3 * BLOCK, &stored[2 * BLOCK..3 * BLOCK]);
    judge("two blocks in each other's place", 2..4)?;
    // Of attributes, whose nonce and tag go with them, the place is all that is wrong.
    let key = |index| AttributeKey::new(AttributeKind::ENTRY, index);
    let mut transaction = Transaction::new();
    transaction.set_attribute(object, key(1), vec![1; 20]).set_attribute(object, key(2), vec![2; 20]);
    device.commit(transaction, Durability::Durable).unwrap();
    let mut transaction = Transaction::new();
    for (from, to) in [(1, 2), (2, 1)] {
        transaction.set_attribute(object, key(to), ram.attribute(object, key(from)).unwrap().unwrap());
    }
    ram.commit(transaction, Durability::Durable).unwrap();
    match device.attribute(object, key(1)) {
        Err(error) if error.kind == ErrorKind::Corrupt => Ok(()),
        other => Err(format!("two attributes in each other's place: {other:?}")),
    }
}

/// Attributes around the length from which one has a second part, each in the place of another.
pub fn long_attributes() -> std::result::Result<(), String> {
    let device = made(Arc::new(RamDevice::new(1 << 24)));
    let object = device.reserve_ids(1).unwrap();
    let key = AttributeKey::new(AttributeKind::XATTR, 5);
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    device.commit(transaction, Durability::Buffered).unwrap();
    for length in [600, 572, 571, 600, 573, 572, 10, 572, 599, 0] {
        let value = vec![length as u8; length];
        let mut transaction = Transaction::new();
        transaction.set_attribute(object, key, value.clone());
        device.commit(transaction, Durability::Buffered).unwrap();
        match device.attribute(object, key) {
            Ok(Some(found)) if found == value => {}
            other => return Err(format!("{length} bytes: {other:?}")),
        }
    }
    Ok(())
}

//! A device in memory that can be made full, damaged or shared, and notes how large transactions
//! are.

use onode_object::powers::Share;
use onode_object::validate::{Stored, never_needs_space};
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, ErrorKind, Maintenance, Mutation, ObjectDevice, ObjectId, ObjectStat,
    RamDevice, Result, Space, SyncScope, Transaction,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;

/// The device.
pub struct Spy {
    pub ram: RamDevice,
    /// Nothing is taken but what never needs space.
    pub is_full: AtomicBool,
    /// The first block of every object cannot be read.
    pub is_damaged: AtomicBool,
    /// Bytes of the largest transaction so far.
    pub most: AtomicU64,
    is_shared: bool,
    turn: Mutex<Option<ThreadId>>,
    free: Condvar,
}

struct Look<'a>(&'a RamDevice);

impl Stored for Look<'_> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        Ok(self.0.attribute(object, key)?.map(|value| value.len()))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let size = self.0.stat(object)?.size;
        let data: u64 = self.0.extents(object, 0, 1000)?.iter().map(|(_, length)| length).sum();
        Ok((data == size).then_some(size))
    }
}

impl Spy {
    pub fn new(is_shared: bool) -> Self {
        Self {
            ram: RamDevice::new(1 << 40),
            is_full: false.into(),
            is_damaged: false.into(),
            most: 0.into(),
            is_shared,
            turn: Mutex::new(None),
            free: Condvar::new(),
        }
    }

    /// Each call is a turn, as on a memory of several processes.
    fn in_turn<T>(&self, call: impl FnOnce() -> T) -> T {
        if !self.is_shared || self.has_turn() {
            return call();
        }
        self.begin();
        let result = call();
        self.end();
        result
    }
}

impl Share for Spy {
    fn has_others(&self) -> bool {
        false
    }

    fn begin(&self) -> u64 {
        let mut turn = self.turn.lock().unwrap();
        while turn.is_some() {
            turn = self.free.wait(turn).unwrap();
        }
        *turn = Some(std::thread::current().id());
        0
    }

    fn end(&self) {
        *self.turn.lock().unwrap() = None;
        self.free.notify_one();
    }

    fn has_turn(&self) -> bool {
        *self.turn.lock().unwrap() == Some(std::thread::current().id())
    }
}

impl ObjectDevice for Spy {
    fn info(&self) -> DeviceInfo {
        self.ram.info()
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.ram.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let bytes_of = |one: &Mutation| if let Mutation::Write { data, .. } = one { data.len() as u64 } else { 0 };
        self.most.fetch_max(transaction.mutations.iter().map(bytes_of).sum(), Ordering::Relaxed);
        if self.is_full.load(Ordering::Relaxed) && !never_needs_space(&transaction, &mut Look(&self.ram))? {
            return Err(Error::new(ErrorKind::NoSpace, "full"));
        }
        self.in_turn(|| self.ram.commit(transaction, durability))
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.ram.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.is_damaged.load(Ordering::Relaxed) && offset < 4096 {
            return Err(Error::corrupt(object, 0..4096, "bad page".to_owned()));
        }
        self.in_turn(|| self.ram.read(object, offset, buffer))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.in_turn(|| self.ram.attribute(object, key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.in_turn(|| self.ram.attributes(object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.in_turn(|| self.ram.stat(object))
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.ram.list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.in_turn(|| self.ram.extents(object, offset, limit))
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

    fn share(&self) -> Option<&dyn Share> {
        self.is_shared.then_some(self as &dyn Share)
    }
}

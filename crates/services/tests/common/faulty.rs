//! A device in memory that stops working, lies or is full from some call on, and counts what it is
//! given.

use onode_object::validate::{Stored, never_needs_space};
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, ErrorKind, Maintenance, Mutation, ObjectDevice, ObjectId, ObjectStat,
    RamDevice, Result, Space, SyncScope, Transaction,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every call fails.
    Dead,
    /// What reads say is damaged, until it is written again.
    Damaged,
    /// There is no room for anything more.
    Full,
}

/// The device.
pub struct Faulty {
    pub ram: Arc<RamDevice>,
    fault: Fault,
    /// Calls that change something, so far and until the fault begins.
    pub calls: AtomicU64,
    from: u64,
    /// It was repaired.
    pub is_well: AtomicBool,
    /// Bytes of content and attributes that were written.
    pub written: AtomicU64,
    /// The object that is damaged.
    damaged: AtomicU64,
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

impl Faulty {
    /// A device over what is in memory; the fault begins with that call of those that change
    /// something.
    pub fn new(ram: &Arc<RamDevice>, fault: Fault, from: u64) -> Arc<Self> {
        Arc::new(Self {
            ram: Arc::clone(ram),
            fault,
            from,
            calls: 0.into(),
            is_well: false.into(),
            written: 0.into(),
            damaged: 0.into(),
        })
    }

    /// One that never fails and counts.
    pub fn sound(ram: &Arc<RamDevice>) -> Arc<Self> {
        Self::new(ram, Fault::Dead, u64::MAX)
    }

    pub fn has_begun(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > self.from && !self.is_well.load(Ordering::Relaxed)
    }

    /// Counts a call that changes something.
    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        match self.has_begun() && self.fault == Fault::Dead {
            true => Err(Error::new(ErrorKind::Media, "it is dead")),
            false => Ok(()),
        }
    }

    /// The first object with data that is read after the fault began is damaged until it is
    /// written.
    fn check_content(&self, object: ObjectId, offset: u64, length: usize) -> Result<()> {
        self.check()?;
        let data = self.ram.extents(object, offset, 1)?;
        let has_data = data.first().is_some_and(|(start, _)| *start < offset + length as u64);
        if self.fault != Fault::Damaged || !self.has_begun() || !has_data {
            return Ok(());
        }
        let damaged = self.damaged.compare_exchange(0, object.0, Ordering::Relaxed, Ordering::Relaxed);
        if damaged.is_ok() || damaged == Err(object.0) {
            return Err(Error::corrupt(object, 0..4096, "a bad page"));
        }
        Ok(())
    }
}

impl ObjectDevice for Faulty {
    fn info(&self) -> DeviceInfo {
        let read_only = self.check().err().map(|error| error.to_string());
        DeviceInfo { read_only, ..self.ram.info() }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.check()?;
        self.ram.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.count();
        self.check()?;
        let is_full = self.has_begun() && self.fault == Fault::Full;
        if is_full && !never_needs_space(&transaction, &mut Look(&self.ram))? {
            return Err(Error::new(ErrorKind::NoSpace, "it is full"));
        }
        let damaged = ObjectId(self.damaged.load(Ordering::Relaxed));
        if transaction.mutations.iter().any(|one| matches!(one, Mutation::Write { object, .. } if *object == damaged)) {
            self.damaged.store(u64::MAX, Ordering::Relaxed);
        }
        let bytes = |one: &Mutation| match one {
            Mutation::Write { data, .. } => data.len(),
            Mutation::SetAttribute { value, .. } => value.len(),
            _ => 0,
        };
        self.written.fetch_add(transaction.mutations.iter().map(bytes).sum::<usize>() as u64, Ordering::Relaxed);
        self.ram.commit(transaction, durability)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.count();
        self.check()?;
        self.ram.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.check_content(object, offset, buffer.len())?;
        self.ram.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.check()?;
        self.ram.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.check()?;
        self.ram.attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.check()?;
        self.ram.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.check()?;
        self.ram.list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.check()?;
        self.ram.extents(object, offset, limit)
    }

    /// One that will be full says nothing of it, so that it is not the first to be asked.
    fn space(&self) -> Space {
        let space = self.ram.space();
        let more = if self.fault == Fault::Full { 1 } else { 0 };
        Space { available: space.available + more, ..space }
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.check()?;
        self.ram.maintain(budget)
    }

    fn close(&self) -> Result<()> {
        self.check()?;
        self.ram.close()
    }
}

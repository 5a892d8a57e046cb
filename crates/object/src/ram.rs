//! The device without a medium: objects in memory, the reference model of the interface.
//!
//! It is meant to be obviously right: what any other device answers is compared with this one. A
//! commit costs in proportion to its transaction, never to the device. Nothing outlives the value;
//! [`RamDevice::with_crash_model`] adds a simulated medium that keeps what was made durable.

mod content;
mod state;

use crate::device::{DeviceInfo, Maintenance, ObjectDevice, ObjectStat, Space};
use crate::durability::{Durability, SyncScope};
use crate::error::Result;
use crate::id::{AttributeKey, ObjectId};
use crate::powers::{Erase, Inspect, Inspection, SegmentInfo};
use crate::transaction::Transaction;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};
use state::State;

/// An object device in memory.
pub struct RamDevice {
    core: Mutex<Core, rank::RamState>,
    capacity_bytes: u64,
}

struct Core {
    state: State,
    /// What a crash would leave; `None` without the crash model. Objects are shared with `state`
    /// until one of the two changes.
    durable: Option<State>,
    counters: Counters,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    commits: u64,
    mutations: u64,
    syncs: u64,
    reads: u64,
    bytes_read: u64,
}

impl RamDevice {
    /// An empty device of `capacity_bytes`. Memory is used only for what is stored.
    #[must_use]
    pub const fn new(capacity_bytes: u64) -> Self {
        let core = Core { state: State::new(), durable: None, counters: Counters::NONE };
        Self { core: Mutex::new(core), capacity_bytes }
    }

    /// Like [`RamDevice::new`], and [`RamDevice::crash`] works. Every durable commit and every sync
    /// then costs in proportion to the number of objects.
    #[must_use]
    pub const fn with_crash_model(capacity_bytes: u64) -> Self {
        let core = Core { state: State::new(), durable: Some(State::new()), counters: Counters::NONE };
        Self { core: Mutex::new(core), capacity_bytes }
    }

    /// Loses everything after the last durable point, as a power cut would. Without the crash model
    /// nothing is ever durable, and everything is lost.
    pub fn crash(&self) {
        let mut core = self.core.lock();
        core.state = core.durable.clone().unwrap_or_else(State::new);
    }
}

impl Counters {
    const NONE: Self = Self { commits: 0, mutations: 0, syncs: 0, reads: 0, bytes_read: 0 };
}

impl Core {
    fn make_durable(&mut self) {
        if let Some(durable) = &mut self.durable {
            *durable = self.state.clone();
        }
    }
}

impl ObjectDevice for RamDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            kind: "ram",
            uuid: *b"onode ram device",
            summary: format!("memory, {} bytes", self.capacity_bytes),
            read_only: None,
            transaction_bytes: 8 << 20,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.core.lock().state.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let mut core = self.core.lock();
        core.counters.commits += 1;
        core.counters.mutations += transaction.mutations.len() as u64;
        core.state.commit(transaction, self.capacity_bytes)?;
        if durability == Durability::Durable {
            core.make_durable();
        }
        Ok(())
    }

    fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        self.core.lock().state.check(transaction, self.capacity_bytes)
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        let mut core = self.core.lock();
        core.counters.syncs += 1;
        core.make_durable();
        Ok(())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut core = self.core.lock();
        let count = core.state.object(object)?.content.read(offset, buffer);
        core.counters.reads += 1;
        core.counters.bytes_read += count as u64;
        Ok(count)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        Ok(self.core.lock().state.object(object)?.attributes.get(&key).cloned())
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let core = self.core.lock();
        let attributes = &core.state.object(object)?.attributes;
        Ok(attributes.range(from..).take(limit).map(|(key, value)| (*key, value.clone())).collect())
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let core = self.core.lock();
        let object = core.state.object(object)?;
        Ok(ObjectStat {
            size: object.content.size(),
            allocated: object.content.allocated_bytes(),
            hints: object.hints,
            accessed: object.accessed,
        })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        Ok(self.core.lock().state.list(from, limit))
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        Ok(self.core.lock().state.object(object)?.content.extents(offset, limit))
    }

    fn space(&self) -> Space {
        let core = self.core.lock();
        Space {
            total: self.capacity_bytes,
            available: self.capacity_bytes.saturating_sub(core.state.used_bytes()),
            objects: core.state.object_count(),
        }
    }

    fn move_unit(&self) -> Option<u64> {
        Some(state::MOVE_UNIT)
    }

    fn maintain(&self, _budget: u32) -> Result<Maintenance> {
        Ok(Maintenance::default())
    }

    fn close(&self) -> Result<()> {
        self.core.lock().make_durable();
        Ok(())
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }

    fn erase(&self) -> Option<&dyn Erase> {
        Some(self)
    }
}

impl Inspect for RamDevice {
    fn counters(&self) -> Vec<(String, u64)> {
        let Counters { commits, mutations, syncs, reads, bytes_read } = self.core.lock().counters;
        [("commits", commits), ("mutations", mutations), ("syncs", syncs), ("reads", reads), ("bytes read", bytes_read)]
            .map(|(name, value)| (String::from(name), value))
            .into()
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    fn inspection(&self) -> Inspection {
        Inspection::default()
    }
}

impl Erase for RamDevice {
    fn erase(&self, object: ObjectId) -> Result<()> {
        let mut transaction = Transaction::new();
        transaction.remove(object);
        // Durable, so that the crash model keeps no copy either.
        self.commit(transaction, Durability::Durable)
    }
}

#[cfg(test)]
mod tests;

//! One of several hosts of a device: each hears that the others have changed something.

use onode_object::powers::Share;
use onode_object::ram::RamDevice;
use onode_object::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub struct Host {
    inner: Arc<RamDevice>,
    /// Commits of all hosts, and of this one.
    commits: Arc<AtomicU64>,
    own: AtomicU64,
    has_turn: AtomicBool,
}

impl Host {
    /// Two hosts of a device.
    pub fn two(inner: &Arc<RamDevice>) -> [Arc<Self>; 2] {
        let commits = Arc::new(AtomicU64::default());
        let host = || Self {
            inner: Arc::clone(inner),
            commits: Arc::clone(&commits),
            own: AtomicU64::default(),
            has_turn: AtomicBool::default(),
        };
        [Arc::new(host()), Arc::new(host())]
    }
}

impl ObjectDevice for Host {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.inner.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.inner.commit(transaction, durability)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.own.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.inner.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.inner.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.inner.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.inner.attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.inner.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.inner.list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.inner.extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        self.inner.space()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.inner.maintain(budget)
    }

    fn close(&self) -> Result<()> {
        self.inner.sync(SyncScope::All)
    }

    fn share(&self) -> Option<&dyn Share> {
        Some(self)
    }
}

impl Share for Host {
    fn has_others(&self) -> bool {
        true
    }

    fn begin(&self) -> u64 {
        assert!(!self.has_turn.swap(true, Ordering::Relaxed), "a thread waits for itself");
        self.commits.load(Ordering::Relaxed) - self.own.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.has_turn.store(false, Ordering::Relaxed);
    }

    fn has_turn(&self) -> bool {
        self.has_turn.load(Ordering::Relaxed)
    }
}

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
    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.inner.commit(transaction, durability)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.own.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.inner.sync(SyncScope::All)
    }

    fn share(&self) -> Option<&dyn Share> {
        Some(self)
    }

    onode_object::forward_device! {
        self => self.inner;
        info, reserve_ids, sync, read, attribute, attributes, stat, list, extents, space, maintain
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

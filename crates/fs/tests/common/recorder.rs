//! A device around another that records every commit, so that every prefix of the history can be
//! looked at, and that fails on demand.

use onode_base::ErrorKind;
use onode_object::powers::{Moved, Place, SectionSize, Whereabouts};
use onode_object::ram::RamDevice;
use onode_object::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Recorder {
    pub inner: RamDevice,
    pub history: Mutex<Vec<Transaction>>,
    pub fail_commits: AtomicBool,
    pub fail_syncs: AtomicBool,
    /// It takes no change any more and says so.
    pub is_read_only: AtomicBool,
    /// There is no space to list an orphan.
    pub no_space_for_orphans: AtomicBool,
    /// There is none to remove an object, as when a snapshot keeps it.
    pub no_space_for_removals: AtomicBool,
    /// Reading anything of this object fails.
    pub corrupt: Mutex<Option<ObjectId>>,
    /// It says that it has the sections `small` and `large`.
    pub has_sections: AtomicBool,
    /// What was asked to be moved.
    pub moves: Mutex<Vec<(ObjectId, &'static str)>>,
    /// The sizes of its sections.
    pub division: Mutex<Vec<SectionSize>>,
}

impl Recorder {
    pub fn new(bytes: u64) -> Self {
        Self {
            inner: RamDevice::new(bytes),
            history: Mutex::default(),
            fail_commits: AtomicBool::default(),
            fail_syncs: AtomicBool::default(),
            is_read_only: AtomicBool::default(),
            no_space_for_orphans: AtomicBool::default(),
            no_space_for_removals: AtomicBool::default(),
            corrupt: Mutex::default(),
            has_sections: AtomicBool::default(),
            moves: Mutex::default(),
            division: Mutex::default(),
        }
    }

    pub fn commits(&self) -> usize {
        self.history.lock().unwrap().len()
    }

    /// A device on which the first `commits` of the history happened.
    pub fn prefix(&self, commits: usize, bytes: u64) -> RamDevice {
        let device = RamDevice::new(bytes);
        device.reserve_ids(1 << 20).unwrap();
        for transaction in &self.history.lock().unwrap()[..commits] {
            device.commit(transaction.clone(), Durability::Durable).unwrap();
        }
        device
    }

    fn check(&self, object: ObjectId) -> Result<()> {
        if *self.corrupt.lock().unwrap() == Some(object) {
            return Err(Error::corrupt(object, 0..1, "made to fail"));
        }
        Ok(())
    }
}

impl ObjectDevice for Recorder {
    fn info(&self) -> DeviceInfo {
        let read_only = self.is_read_only.load(Ordering::Relaxed).then(|| "made to be".into());
        DeviceInfo { read_only, ..self.inner.info() }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.inner.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        if self.fail_commits.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Media, "made to fail"));
        }
        if self.is_read_only.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::ReadOnly, "made to be"));
        }
        let lists_orphan = |mutation: &Mutation| matches!(mutation, Mutation::SetAttribute { key, .. } if key.kind == AttributeKind::ORPHAN);
        if self.no_space_for_orphans.load(Ordering::Relaxed) && transaction.mutations.iter().any(lists_orphan) {
            return Err(Error::new(ErrorKind::NoSpace, "made to fail"));
        }
        let removes = |mutation: &Mutation| matches!(mutation, Mutation::Remove { .. });
        if self.no_space_for_removals.load(Ordering::Relaxed) && transaction.mutations.iter().any(removes) {
            return Err(Error::new(ErrorKind::NoSpace, "made to fail"));
        }
        self.inner.commit(transaction.clone(), durability)?;
        self.history.lock().unwrap().push(transaction);
        Ok(())
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        if self.fail_syncs.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Media, "made to fail"));
        }
        self.inner.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.check(object)?;
        self.inner.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.check(object)?;
        self.inner.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.check(object)?;
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
        self.inner.close()
    }

    fn place(&self) -> Option<&dyn Place> {
        self.has_sections.load(Ordering::Relaxed).then_some(self)
    }
}

impl Place for Recorder {
    fn sections(&self) -> Vec<String> {
        vec!["small".into(), "large".into()]
    }

    fn division(&self) -> Vec<SectionSize> {
        self.division.lock().unwrap().clone()
    }

    fn divide(&self, sections: &[SectionSize]) -> Result<()> {
        *self.division.lock().unwrap() = sections.to_vec();
        Ok(())
    }

    fn promote(&self, object: ObjectId, waits: bool) -> Result<Moved> {
        let bytes = self.inner.stat(object)?.size;
        self.moves.lock().unwrap().push((object, if waits { "promote" } else { "promote-later" }));
        Ok(if waits { Moved { bytes, waiting: 0 } } else { Moved { bytes: 0, waiting: bytes } })
    }

    fn demote(&self, object: ObjectId) -> Result<Moved> {
        let bytes = self.inner.stat(object)?.size;
        self.moves.lock().unwrap().push((object, "demote"));
        Ok(Moved { bytes, waiting: 0 })
    }

    fn why(&self, object: ObjectId) -> Result<Whereabouts> {
        let big_bytes = self.inner.stat(object)?.size;
        Ok(Whereabouts {
            big_bytes,
            section: Some("small".into()),
            reasons: vec!["read once".into()],
            ..Whereabouts::default()
        })
    }
}

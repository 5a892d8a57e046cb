//! Which keys of directories are unlocked.

use crate::encrypted::cipher::Cipher;
use crate::encrypted::keys::{MasterKey, derive};
use onode_base::sync::{Mutex, RwLock, rank};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A key that is unlocked.
struct UnlockedKey {
    key: MasterKey,
    cipher: Arc<Cipher>,
}

/// The keys of directories that are unlocked, for a volume and its snapshots.
#[derive(Default)]
pub(in crate::encrypted) struct Unlocked {
    /// Held by who changes the slots of such keys.
    pub(super) changing: Mutex<(), rank::SealSlots>,
    all: RwLock<BTreeMap<u32, UnlockedKey>, rank::SealKeys>,
    /// Whether the volume has such keys.
    is_used: AtomicBool,
}

impl Unlocked {
    /// Whether there may be objects of directories with a key.
    pub(in crate::encrypted) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// From now on there may be some.
    pub(in crate::encrypted) fn begin_use(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    /// What wraps data keys, if that key is unlocked.
    pub(in crate::encrypted) fn cipher(&self, number: u32) -> Option<Arc<Cipher>> {
        self.all.read().get(&number).map(|one| Arc::clone(&one.cipher))
    }

    pub(super) fn key(&self, number: u32) -> Option<MasterKey> {
        self.all.read().get(&number).map(|one| one.key.clone())
    }

    pub(super) fn put(&self, number: u32, key: MasterKey) {
        let cipher = Arc::new(Cipher::new(&derive(key.bytes(), b"onode 1 data keys of a directory")));
        self.all.write().insert(number, UnlockedKey { key, cipher });
        self.begin_use();
    }

    /// Forgets one; says whether it was there.
    pub(super) fn take(&self, number: u32) -> bool {
        self.all.write().remove(&number).is_some()
    }
}

//! Locks and memory of the wrapper, by object: who changes an object, who reads it, and what is
//! known of which of its chunks are compressed.
//!
//! Who changes objects holds `changing` of their shards from the look at what there is to the end
//! of the commit, and `content` alone while compressed content changes. Who reads holds `content`
//! with other readers, so nobody sees the old map with the new content. Objects share a shard by
//! their id; an object that was never compressed is remembered as such.

use crate::map::Group;
use onode_base::sync::{Mutex, MutexGuard, RwLock, rank};
use onode_object::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SHARDS: usize = 64;
/// Groups that a shard remembers; when they are more it forgets them all.
const GROUPS_MAX: usize = 1024;

/// What is known of one group of an object: `None` if there is no such attribute.
pub(crate) type Known = Option<Arc<Group>>;

/// What some of the objects share.
#[derive(Default)]
pub(crate) struct Shard {
    changing: Mutex<(), rank::ServiceChanging>,
    /// Held to look at content, alone to change what is compressed.
    pub(crate) content: RwLock<(), rank::ServiceContent>,
    known: Mutex<BTreeMap<(ObjectId, u64), Known>, rank::ServiceKnown>,
}

impl Shard {
    pub(crate) fn known(&self, object: ObjectId, group: u64) -> Option<Known> {
        self.known.lock().get(&(object, group)).cloned()
    }

    pub(crate) fn learn(&self, object: ObjectId, group: u64, known: Known) {
        let mut all = self.known.lock();
        if all.len() >= GROUPS_MAX {
            all.clear();
        }
        all.insert((object, group), known);
    }

    /// Forgets an object.
    pub(crate) fn forget(&self, object: ObjectId) {
        let mut all = self.known.lock();
        while let Some((key, _)) = all.range((object, 0)..=(object, u64::MAX)).next() {
            let key = *key;
            all.remove(&key);
        }
    }
}

/// All shards.
pub(crate) struct Shards {
    all: Vec<Shard>,
}

impl Shards {
    pub(crate) fn new() -> Self {
        Self { all: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    fn index(object: ObjectId) -> usize {
        (object.0 % SHARDS as u64) as usize
    }

    /// The shard of an object.
    pub(crate) fn of(&self, object: ObjectId) -> &Shard {
        &self.all[Self::index(object)]
    }

    /// The shards of some objects and their numbers, each once, in the order in which they are
    /// locked.
    fn several(&self, objects: impl Iterator<Item = ObjectId>) -> impl Iterator<Item = (usize, &Shard)> {
        objects.map(Self::index).collect::<BTreeSet<_>>().into_iter().map(|index| (index, &self.all[index]))
    }

    /// Waits until nobody else changes these objects.
    pub(crate) fn change(&self, objects: impl Iterator<Item = ObjectId>) -> Vec<MutexGuard<'_, ()>> {
        self.several(objects).map(|(index, shard)| shard.changing.lock_at(index)).collect()
    }

    /// Does what changes the compressed content of these objects while nobody reads it.
    pub(crate) fn alone<T>(&self, objects: impl Iterator<Item = ObjectId>, change: impl FnOnce() -> T) -> T {
        let held: Vec<_> = self.several(objects).map(|(index, shard)| shard.content.write_at(index)).collect();
        let done = change();
        drop(held);
        done
    }
}

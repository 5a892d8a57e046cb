//! Locks and memory of a wrapper, by object: who changes an object, who reads it, and what is known
//! of how its content is stored.
//!
//! Who changes objects holds `changing` of their shards from the look at what there is to the end
//! of the commit, and `content` alone while stored content changes. Who reads holds `content` with
//! other readers, so nobody sees the old map with the new content. Objects share a shard by their
//! id; that an object has no such map is remembered, too.

use onode_base::sync::{Mutex, MutexGuard, RwLock, rank};
use onode_object::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SHARDS: usize = 64;
/// Parts of maps that a shard remembers; when they are more it forgets them all.
const PARTS_MAX: usize = 1024;

/// What is known of one part of the map of an object: `None` if there is no such attribute.
pub(crate) type Known<P> = Option<Arc<P>>;

/// Parts by object and number.
type Remembered<P> = BTreeMap<(ObjectId, u64), Known<P>>;

/// The ranks of the locks of a wrapper: one may wrap another.
pub(crate) trait Ranks {
    type Changing: rank::Rank;
    type Content: rank::Rank;
    type Known: rank::Rank;
}

/// What some of the objects share.
pub(crate) struct Shard<P, R: Ranks> {
    changing: Mutex<(), R::Changing>,
    /// Held to look at content, alone to change what is stored of it.
    pub(crate) content: RwLock<(), R::Content>,
    known: Mutex<Remembered<P>, R::Known>,
}

impl<P, R: Ranks> Shard<P, R> {
    const fn new() -> Self {
        Self { changing: Mutex::new(()), content: RwLock::new(()), known: Mutex::new(BTreeMap::new()) }
    }

    pub(crate) fn known(&self, object: ObjectId, part: u64) -> Option<Known<P>> {
        self.known.lock().get(&(object, part)).cloned()
    }

    pub(crate) fn learn(&self, object: ObjectId, part: u64, known: Known<P>) {
        let mut all = self.known.lock();
        if all.len() >= PARTS_MAX {
            all.clear();
        }
        all.insert((object, part), known);
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
pub(crate) struct Shards<P, R: Ranks> {
    all: Vec<Shard<P, R>>,
}

impl<P, R: Ranks> Shards<P, R> {
    pub(crate) fn new() -> Self {
        Self { all: (0..SHARDS).map(|_| Shard::new()).collect() }
    }

    fn index(object: ObjectId) -> usize {
        (object.0 % SHARDS as u64) as usize
    }

    /// The shard of an object.
    pub(crate) fn of(&self, object: ObjectId) -> &Shard<P, R> {
        &self.all[Self::index(object)]
    }

    /// Forgets all objects.
    pub(crate) fn forget_all(&self) {
        self.all.iter().for_each(|shard| shard.known.lock().clear());
    }

    /// The shards of some objects and their numbers, each once, in the order in which they are
    /// locked.
    fn several(&self, objects: impl Iterator<Item = ObjectId>) -> impl Iterator<Item = (usize, &Shard<P, R>)> {
        objects.map(Self::index).collect::<BTreeSet<_>>().into_iter().map(|index| (index, &self.all[index]))
    }

    /// Waits until nobody else changes these objects.
    pub(crate) fn change(&self, objects: impl Iterator<Item = ObjectId>) -> Vec<MutexGuard<'_, ()>> {
        self.several(objects).map(|(index, shard)| shard.changing.lock_at(index)).collect()
    }

    /// Does what changes the stored content of these objects while nobody reads it.
    pub(crate) fn alone<T>(&self, objects: impl Iterator<Item = ObjectId>, change: impl FnOnce() -> T) -> T {
        let held: Vec<_> = self.several(objects).map(|(index, shard)| shard.content.write_at(index)).collect();
        let done = change();
        drop(held);
        done
    }
}

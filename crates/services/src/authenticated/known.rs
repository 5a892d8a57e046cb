//! What is known of the sums of a volume: those of all buckets, and those of objects that were
//! looked at.

use crate::authenticated::record::bucket_of;
use crate::authenticated::sum::Sum;
use onode_object::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

/// Objects whose sums are remembered; when they are more all are forgotten, and looked at again.
const OBJECTS_MAX: usize = 1 << 16;

/// An object, as its head says.
#[derive(Clone, Copy)]
pub(super) struct Object {
    /// Of its attributes.
    pub(super) sum: Sum,
    /// What its head counts for.
    pub(super) item: Sum,
    /// Whether its attributes are those.
    pub(super) is_verified: bool,
}

/// Objects with neighbouring numbers.
#[derive(Default)]
pub(super) struct Bucket {
    /// Of the heads of its objects.
    pub(super) sum: Sum,
    /// What it counts for itself; zero for one that is not stored.
    pub(super) item: Sum,
    /// Its objects, once their heads were found to be those.
    pub(super) objects: Option<BTreeMap<ObjectId, Object>>,
}

/// What was seen of an object.
pub(super) enum Sight {
    /// Neither it nor its neighbours were looked at.
    Unknown,
    /// There is none, whatever the device says.
    Missing,
    There(Object),
}

/// All that is known.
#[derive(Default)]
pub(super) struct KnownSums {
    /// How many changes there were; none before there is a root.
    pub(super) changes: u64,
    /// Of all buckets.
    pub(super) sum: Sum,
    /// What the root would count for.
    pub(super) item: Sum,
    buckets: BTreeMap<u64, Bucket>,
    objects: usize,
    /// Objects that were found not to be what was stored last.
    others: BTreeSet<ObjectId>,
}

impl KnownSums {
    /// Something of an object is not what was stored last.
    pub(super) fn note(&mut self, object: ObjectId) {
        self.others.insert(object);
    }

    /// All of which that was noted.
    pub(super) const fn others(&self) -> &BTreeSet<ObjectId> {
        &self.others
    }

    pub(super) fn seen(&self, object: ObjectId) -> Sight {
        match self.buckets.get(&bucket_of(object)).and_then(|bucket| bucket.objects.as_ref()) {
            None if self.buckets.contains_key(&bucket_of(object)) => Sight::Unknown,
            None => Sight::Missing,
            Some(objects) => objects.get(&object).map_or(Sight::Missing, |found| Sight::There(*found)),
        }
    }

    /// A bucket has these sums now; none of its own if it is not stored any more.
    pub(super) fn set_bucket(&mut self, number: u64, sum: Sum, item: Sum) {
        if item == Sum::default() {
            self.buckets.remove(&number);
        } else {
            let bucket = self.buckets.entry(number).or_default();
            (bucket.sum, bucket.item) = (sum, item);
        }
    }

    pub(super) fn bucket(&self, number: u64) -> Option<&Bucket> {
        self.buckets.get(&number)
    }

    /// Buckets of which nothing is known but their sum.
    pub(super) fn unseen(&self, numbers: impl RangeBounds<u64>) -> Vec<u64> {
        let all = self.buckets.range(numbers);
        all.filter(|(_, bucket)| bucket.objects.is_none()).map(|(number, _)| *number).collect()
    }

    /// Forgets all objects if they are too many. Nobody may be about to change some.
    pub(super) fn trim(&mut self) {
        if self.objects > OBJECTS_MAX {
            self.buckets.values_mut().for_each(|bucket| bucket.objects = None);
            self.objects = 0;
        }
    }

    /// The objects of a bucket were found to be what it says.
    pub(super) fn learn(&mut self, number: u64, objects: BTreeMap<ObjectId, Object>) {
        if let Some(bucket) = self.buckets.get_mut(&number) {
            self.objects += objects.len();
            bucket.objects = Some(objects);
        }
    }

    /// The attributes of an object were found to be what its head says.
    pub(super) fn verified(&mut self, object: ObjectId) {
        let objects = self.buckets.get_mut(&bucket_of(object)).and_then(|bucket| bucket.objects.as_mut());
        if let Some(found) = objects.and_then(|objects| objects.get_mut(&object)) {
            found.is_verified = true;
        }
    }

    /// An object is stored so now; `None` if it is gone. Its bucket was looked at, or is new.
    pub(super) fn set(&mut self, object: ObjectId, now: Option<Object>) {
        let empty = || Bucket { objects: Some(BTreeMap::new()), ..Bucket::default() };
        let bucket = self.buckets.entry(bucket_of(object)).or_insert_with(empty);
        let Some(objects) = bucket.objects.as_mut() else { return };
        let before = match now {
            Some(now) => objects.insert(object, now),
            None => objects.remove(&object),
        };
        self.objects = self.objects + usize::from(now.is_some()) - usize::from(before.is_some());
    }
}

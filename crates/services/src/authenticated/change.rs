//! What a transaction changes of the sums: the transaction of the wrapped device has both.

use crate::authenticated::Authenticated;
use crate::authenticated::known::{Object, Sight};
use crate::authenticated::record::{HOLDER, Place, bucket_of};
use crate::authenticated::sum::Sum;
use onode_object::{AttributeKey, Hints, Mutation, ObjectDevice, ObjectId, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Whether sums tell of such a change.
pub(super) const fn is_counted(mutation: &Mutation) -> bool {
    match mutation {
        Mutation::Create { .. }
        | Mutation::Remove { .. }
        | Mutation::SetAttribute { .. }
        | Mutation::RemoveAttribute { .. } => true,
        Mutation::Write { .. }
        | Mutation::Truncate { .. }
        | Mutation::Punch { .. }
        | Mutation::Move { .. }
        | Mutation::SetHints { .. }
        | Mutation::SetAccessTime { .. } => false,
    }
}

/// Objects as they will be.
#[derive(Default)]
struct Sums {
    /// The sums of attributes; `None` for what is removed.
    objects: BTreeMap<ObjectId, Option<Sum>>,
    /// Those that had no attribute before, whatever the device says.
    made: BTreeSet<ObjectId>,
    /// What attributes count for that the transaction has set or removed.
    items: BTreeMap<(ObjectId, AttributeKey), Option<Sum>>,
}

/// What follows from a transaction.
pub(super) struct SumChange {
    /// What stores the sums.
    pub(super) mutations: Vec<Mutation>,
    objects: Vec<(ObjectId, Option<Object>)>,
    buckets: Vec<(u64, Sum, Sum)>,
    root: (Sum, Sum),
}

impl<D: ObjectDevice + ?Sized> Authenticated<D> {
    /// What is to be stored with these mutations. `None` if the device will refuse them: an object
    /// is not there, or is there already. Nobody else changes anything meanwhile.
    pub(super) fn change_by(&self, mutations: &[Mutation]) -> Result<Option<SumChange>> {
        self.known().trim();
        let mut sums = Sums::default();
        for mutation in mutations.iter().filter(|mutation| is_counted(mutation)) {
            let object = mutation.object();
            let Some(sum) = self.sum_now(&mut sums, object)? else {
                let Mutation::Create { .. } = mutation else { return Ok(None) };
                sums.objects.insert(object, Some(Sum::default()));
                sums.made.insert(object);
                continue;
            };
            let (key, value) = match mutation {
                Mutation::SetAttribute { key, value, .. } => (*key, Some(value)),
                Mutation::RemoveAttribute { key, .. } => (*key, None),
                Mutation::Remove { .. } => {
                    sums.objects.insert(object, None);
                    sums.items.retain(|(of, _), _| *of != object);
                    continue;
                }
                _ => return Ok(None),
            };
            let before = match sums.items.get(&(object, key)) {
                Some(before) => *before,
                None if sums.made.contains(&object) => None,
                None => self.inner().attribute(object, key)?.map(|value| self.keys().item(object, key, &value)),
            };
            let now = value.map(|value| self.keys().item(object, key, value));
            let mut sum = sum;
            before.iter().for_each(|before| sum.take(before));
            now.iter().for_each(|now| sum.add(now));
            sums.items.insert((object, key), now);
            sums.objects.insert(object, Some(sum));
        }
        Ok(Some(self.change_to(&sums)))
    }

    fn sum_now(&self, sums: &mut Sums, object: ObjectId) -> Result<Option<Sum>> {
        if let Some(sum) = sums.objects.get(&object) {
            return Ok(*sum);
        }
        self.look(object)?;
        Ok(match self.known().seen(object) {
            Sight::There(found) => Some(found.sum),
            Sight::Missing | Sight::Unknown => None,
        })
    }

    /// What stores these sums, and those above them.
    fn change_to(&self, sums: &Sums) -> SumChange {
        let known = self.known();
        let number = known.changes + 1;
        let is_first = known.changes == 0;
        let mut change = SumChange {
            mutations: Vec::new(),
            objects: Vec::new(),
            buckets: Vec::new(),
            root: (known.sum, known.item),
        };
        if is_first {
            change.mutations.push(Mutation::Create { object: HOLDER, hints: Hints::default() });
        }
        let mut buckets: BTreeMap<u64, (Sum, i64)> = BTreeMap::new();
        for (&object, sum) in &sums.objects {
            let bucket = bucket_of(object);
            let now = known.bucket(bucket).map_or_else(Sum::default, |bucket| bucket.sum);
            let (bucket_sum, more) = buckets.entry(bucket).or_insert((now, 0));
            if let Sight::There(before) = known.seen(object) {
                bucket_sum.take(&before.item);
                *more -= 1;
            }
            let object_now = sum.map(|sum| {
                let sealed = self.keys().seal(number, Place::Head(object), &sum);
                change.mutations.push(sealed.set);
                bucket_sum.add(&sealed.item);
                *more += 1;
                Object { sum, item: sealed.item, is_verified: true }
            });
            change.objects.push((object, object_now));
        }
        for (bucket, (sum, more)) in buckets {
            let before = known.bucket(bucket);
            let objects = before.and_then(|bucket| bucket.objects.as_ref()).map_or(0, BTreeMap::len) as i64 + more;
            let item_before = before.map_or_else(Sum::default, |bucket| bucket.item);
            change.root.0.take(&item_before);
            let place = Place::Bucket(bucket);
            let item = if objects == 0 {
                change.mutations.push(Mutation::RemoveAttribute { object: HOLDER, key: place.key() });
                Sum::default()
            } else {
                let sealed = self.keys().seal(number, place, &sum);
                change.mutations.push(sealed.set);
                sealed.item
            };
            change.root.0.add(&item);
            change.buckets.push((bucket, sum, item));
        }
        let root = self.keys().seal(number, Place::Root, &change.root.0);
        change.mutations.push(root.set);
        change.root.1 = root.item;
        change
    }

    /// The device has it.
    pub(super) fn changed(&self, change: SumChange) {
        let mut known = self.known();
        known.changes += 1;
        (known.sum, known.item) = change.root;
        change.objects.into_iter().for_each(|(object, now)| known.set(object, now));
        change.buckets.into_iter().for_each(|(number, sum, item)| known.set_bucket(number, sum, item));
    }
}

//! New sums over what there is, for an owner who accepts that some of it is not what was stored
//! last: damage that was repaired, for example.

use crate::authenticated::Authenticated;
use crate::authenticated::known::KnownSums;
use crate::authenticated::record::{HOLDER, Place, Sealed, SumKeys, bucket_of};
use crate::authenticated::sum::Sum;
use crate::authenticated::verify::{each_attribute, each_object, load, sum_of};
use crate::encrypted::MasterKey;
use onode_object::{Durability, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Mutations of a transaction.
const AT_ONCE: usize = 32;

impl<D: ObjectDevice + ?Sized> Authenticated<D> {
    /// The device with whatever there is taken for right, and the objects that were not what was
    /// stored last, if any were; new sums are stored over these, durably. A device that takes no
    /// changes is only read, and its health tells of them.
    ///
    /// # Errors
    /// `NotSupported` if others change the device, too; those of the device.
    pub fn open_accepting(inner: Arc<D>, master: &MasterKey) -> Result<(Self, Option<Vec<ObjectId>>)> {
        let keys = SumKeys::new(master);
        let loaded = load(inner.as_ref(), &keys);
        let is_loaded = match &loaded {
            Err(error) if error.kind != ErrorKind::Corrupt => return Err(error.clone()),
            loaded => loaded.is_ok(),
        };
        let mut device = Self::new(inner, keys, loaded.unwrap_or_default())?;
        let others = if is_loaded { device.others()? } else { vec![HOLDER] };
        if device.inner().info().read_only.is_some() {
            others.iter().for_each(|object| device.known().note(*object));
            device.is_trusting = true;
            return Ok((device, None));
        }
        if others.is_empty() {
            return Ok((device, None));
        }
        *device.known() = KnownSums::default();
        device.renew()?;
        Ok((device, Some(others)))
    }

    /// Objects that are not what was stored last; the one that tells of all if some are missing.
    fn others(&self) -> Result<Vec<ObjectId>> {
        let mut others = Vec::new();
        each_object(self.inner(), ObjectId(0), |object| {
            others.extend(self.verify(object).is_err().then_some(object));
            Ok(ControlFlow::Continue(()))
        })?;
        if others.is_empty() && self.verify_buckets(0, u64::MAX).is_err() {
            others.push(HOLDER);
        }
        Ok(others)
    }

    /// Stores sums of all that can be read; the root comes last, and without it nothing counts.
    fn renew(&self) -> Result<()> {
        // Numbers of changes go on where the volume was, if that can be seen at all.
        let mut change = 0;
        let mut old = Vec::new();
        let seen = each_attribute(self.inner(), HOLDER, |key, value| {
            let stored = Place::of_holder(key).and_then(|place| self.keys().open(place, &value));
            change = change.max(stored.map_or(0, |stored| stored.change));
            old.push(Mutation::RemoveAttribute { object: HOLDER, key });
            Ok(())
        });
        match seen {
            Err(error) if error.kind == ErrorKind::NotFound => {
                self.store(&mut vec![Mutation::Create { object: HOLDER, hints: Hints::default() }], 0)?;
            }
            seen => seen?,
        }
        change += 1;
        self.store(&mut old, 0)?;
        let mut sums: BTreeMap<u64, Sum> = BTreeMap::new();
        let mut heads = Vec::new();
        each_object(self.inner(), ObjectId(0), |object| {
            // What cannot be read stays so, and is not verified either.
            let sum = sum_of(self.inner(), self.keys(), object).unwrap_or_default();
            let Sealed { set, item } = self.keys().seal(change, Place::Head(object), &sum);
            sums.entry(bucket_of(object)).or_default().add(&item);
            heads.push(set);
            self.store(&mut heads, AT_ONCE)?;
            Ok(ControlFlow::Continue(()))
        })?;
        self.store(&mut heads, 0)?;
        let (mut buckets, mut known) = (Vec::new(), KnownSums::default());
        for (number, sum) in sums {
            let Sealed { set, item } = self.keys().seal(change, Place::Bucket(number), &sum);
            known.sum.add(&item);
            known.set_bucket(number, sum, item);
            buckets.push(set);
            self.store(&mut buckets, AT_ONCE)?;
        }
        self.store(&mut buckets, 0)?;
        let root = self.keys().seal(change, Place::Root, &known.sum);
        (known.changes, known.item) = (change, root.item);
        self.store(&mut vec![root.set], 0)?;
        *self.known() = known;
        Ok(())
    }

    /// Commits mutations if they are more than so many.
    fn store(&self, mutations: &mut Vec<Mutation>, more_than: usize) -> Result<()> {
        if mutations.len() <= more_than {
            return Ok(());
        }
        let mutations = std::mem::take(mutations);
        self.inner().commit(Transaction { mutations }, Durability::Durable)
    }
}

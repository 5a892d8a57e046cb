//! Whether what the wrapped device has is what was stored last.

use crate::authenticated::Authenticated;
use crate::authenticated::known::{KnownSums, Object, Sight};
use crate::authenticated::record::{HEAD, HOLDER, Place, Stored, SumKeys, bucket_of, first_of};
use crate::authenticated::sum::Sum;
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, ObjectDevice, ObjectId, Result};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Attributes and objects that are asked for at once.
const AT_ONCE: usize = 256;
const FIRST_KEY: AttributeKey = AttributeKey::new(AttributeKind(0), 0);

/// The sums of the buckets and of the root.
pub(super) fn load<D: ObjectDevice + ?Sized>(device: &D, keys: &SumKeys) -> Result<KnownSums> {
    let lost = || changed(HOLDER, "what tells of its objects");
    let mut known = KnownSums::default();
    let mut root: Option<Stored> = None;
    let mut sum = Sum::default();
    let loaded = each_attribute(device, HOLDER, |key, value| {
        let stored = Place::of_holder(key).and_then(|place| Some((place, keys.open(place, &value)?)));
        match stored {
            Some((Place::Root, stored)) => root = Some(stored),
            Some((Place::Bucket(number), stored)) => {
                sum.add(&stored.item);
                known.set_bucket(number, stored.sum, stored.item);
            }
            Some((Place::Head(_), _)) | None => return Err(lost()),
        }
        Ok(())
    });
    match loaded {
        Err(error) if error.kind == ErrorKind::NotFound => return Err(lost()),
        loaded => loaded?,
    }
    match root {
        Some(root) if root.sum == sum => {
            (known.changes, known.sum, known.item) = (root.change, root.sum, root.item);
            Ok(known)
        }
        _ => Err(lost()),
    }
}

/// The sum of all attributes of an object but its head.
pub(super) fn sum_of<D: ObjectDevice + ?Sized>(device: &D, keys: &SumKeys, object: ObjectId) -> Result<Sum> {
    let mut sum = Sum::default();
    each_attribute(device, object, |key, value| {
        if key != HEAD {
            sum.add(&keys.item(object, key, &value));
        }
        Ok(())
    })?;
    Ok(sum)
}

/// Looks at all attributes of an object.
pub(super) fn each_attribute<D: ObjectDevice + ?Sized>(
    device: &D,
    object: ObjectId,
    mut look: impl FnMut(AttributeKey, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut from = Some(FIRST_KEY);
    while let Some(start) = from {
        let some = device.attributes(object, start, AT_ONCE)?;
        from = some.last().and_then(|(key, _)| key.next());
        for (key, value) in some {
            look(key, value)?;
        }
    }
    Ok(())
}

/// Looks at all objects from one on, but for the one that has the sums, until it is told to stop.
pub(super) fn each_object<D: ObjectDevice + ?Sized>(
    device: &D,
    first: ObjectId,
    mut look: impl FnMut(ObjectId) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut from = Some(first);
    while let Some(start) = from {
        let some = device.list(start, AT_ONCE)?;
        from = some.last().and_then(|last| last.0.checked_add(1)).map(ObjectId);
        for object in some.into_iter().filter(|object| *object != HOLDER) {
            if look(object)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl<D: ObjectDevice + ?Sized> Authenticated<D> {
    /// Refuses an object that is not as it was stored last, with `Corrupt`; one that was not
    /// stored, or was removed, with `NotFound`.
    pub(super) fn verify(&self, object: ObjectId) -> Result<()> {
        if self.is_trusting() {
            return Ok(());
        }
        match self.known().seen(object) {
            Sight::There(Object { is_verified: true, .. }) => return Ok(()),
            Sight::Missing => return Err(missing(object)),
            Sight::There(_) | Sight::Unknown => {}
        }
        let _changing = self.changing();
        self.known().trim();
        self.look(object).inspect_err(|error| self.note(error, object))?;
        if let Sight::Missing = self.known().seen(object) { Err(missing(object)) } else { Ok(()) }
    }

    /// Refuses a list of what the device has if that is not what was stored last, with `Corrupt`.
    pub(super) fn verify_listed(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let list = || {
            let found = self.inner().list(from, limit)?;
            let is_hidden = found == [HOLDER];
            if is_hidden { self.inner().list(ObjectId(HOLDER.0 + 1), limit) } else { Ok(found) }
        };
        let mut found = list()?;
        if !self.is_trusting() {
            let last = found.last().map_or(u64::MAX, |last| last.0);
            self.verify_buckets(bucket_of(from), bucket_of(ObjectId(last)))?;
            if self.first_missing(&found).is_some() {
                // Somebody may have made it just now, or put it there.
                let _changing = self.changing();
                found = list()?;
                if let Some(object) = self.first_missing(&found) {
                    let error = changed(object, "that there is such an object");
                    self.note(&error, object);
                    return Err(error);
                }
            }
        }
        found.retain(|object| *object != HOLDER);
        Ok(found)
    }

    fn first_missing(&self, objects: &[ObjectId]) -> Option<ObjectId> {
        let known = self.known();
        let is_missing = |object: &ObjectId| *object != HOLDER && matches!(known.seen(*object), Sight::Missing);
        objects.iter().copied().find(is_missing)
    }

    /// Verifies which objects there are in a range of buckets.
    pub(super) fn verify_buckets(&self, first: u64, last: u64) -> Result<()> {
        if self.known().unseen(first..=last).is_empty() {
            return Ok(());
        }
        let _changing = self.changing();
        self.known().trim();
        let unseen = self.known().unseen(first..=last);
        unseen
            .into_iter()
            .try_for_each(|number| self.look_at_bucket(number).inspect_err(|error| self.note(error, first_of(number))))
    }

    fn note(&self, error: &Error, object: ObjectId) {
        if error.kind == ErrorKind::Corrupt {
            self.known().note(object);
        }
    }

    /// Looks at an object and its neighbours, unless that was done. Nobody else changes anything
    /// meanwhile.
    pub(super) fn look(&self, object: ObjectId) -> Result<()> {
        let mut seen = self.known().seen(object);
        if let Sight::Unknown = seen {
            self.look_at_bucket(bucket_of(object))?;
            seen = self.known().seen(object);
        }
        match seen {
            Sight::There(Object { sum, is_verified: false, .. }) => {
                if sum_of(self.inner(), self.keys(), object)? != sum && !is_planted(Bug::AuthenticatedOldTaken) {
                    return Err(changed(object, "an attribute"));
                }
                self.known().verified(object);
                Ok(())
            }
            Sight::There(_) | Sight::Missing | Sight::Unknown => Ok(()),
        }
    }

    fn look_at_bucket(&self, number: u64) -> Result<()> {
        let expected = self.known().bucket(number).map_or_else(Sum::default, |bucket| bucket.sum);
        let (mut objects, mut sum) = (BTreeMap::new(), Sum::default());
        each_object(self.inner(), first_of(number), |object| {
            if bucket_of(object) != number {
                return Ok(ControlFlow::Break(()));
            }
            let head = self.inner().attribute(object, HEAD)?;
            let head = head.and_then(|head| self.keys().open(Place::Head(object), &head));
            let head = head.ok_or_else(|| changed(object, "what tells of its attributes"))?;
            sum.add(&head.item);
            objects.insert(object, Object { sum: head.sum, item: head.item, is_verified: false });
            Ok(ControlFlow::Continue(()))
        })?;
        if sum != expected {
            let why = format!(
                "one of the objects {} to {}, or which of them there are",
                first_of(number).0,
                first_of(number).0 | 0xff
            );
            return Err(Error::new(ErrorKind::Corrupt, format!("{why}, {NOT_LAST}")));
        }
        self.known().learn(number, objects);
        Ok(())
    }
}

fn missing(object: ObjectId) -> Error {
    Error::of(ErrorKind::NotFound, object, "there is no such object")
}

const NOT_LAST: &str = "is not what the volume stored last";

/// Something of an object is older, or somebody else's.
pub(super) fn changed(object: ObjectId, what: &str) -> Error {
    Error::of(ErrorKind::Corrupt, object, format!("{what} {NOT_LAST}"))
}

//! Ranges of which a version tells by attributes: holes that were and are none any more, and, on a
//! device that may tell of data where nothing was written ([`ObjectDevice::extents_are_exact`]),
//! where it has content.
//!
//! An attribute for each range, kept by its end, so that a search from a byte on finds the one
//! around it first. A range that is added behind another one, which it touches, is joined with
//! that; there may be others that touch.

use crate::ranges::Ranges;
use onode_base::varint;
use onode_object::{AttributeKey, AttributeKind, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};
use std::ops::Range;

/// Ranges that are asked for at once.
const AT_ONCE: usize = 64;

/// Holes.
pub(super) const HOLES: Told = Told { indexes: 1..FIRST_CONTENT };
/// Content.
pub(super) const CONTENT: Told = Told { indexes: FIRST_CONTENT..u64::MAX };

const FIRST_CONTENT: u64 = 1 << 63;

/// One kind of ranges.
pub(super) struct Told {
    /// The attributes that tell of them; the first one would be of a range that ends at byte 0.
    indexes: Range<u64>,
}

impl Told {
    const fn key(&self, end: u64) -> AttributeKey {
        AttributeKey::new(AttributeKind::SNAPSHOT, self.indexes.start.saturating_add(end))
    }

    /// The range that an attribute tells of; `None` for one of another kind.
    fn range(&self, key: AttributeKey, mut value: &[u8]) -> Option<(u64, u64)> {
        let is_one = key.kind == AttributeKind::SNAPSHOT && self.indexes.contains(&key.index);
        let end = is_one.then(|| key.index - self.indexes.start)?;
        let length = varint::take(&mut value)?;
        Some((end.checked_sub(length)?, end))
    }

    fn set(&self, object: ObjectId, start: u64, end: u64) -> Mutation {
        let mut value = Vec::new();
        varint::put(&mut value, end - start);
        Mutation::SetAttribute { object, key: self.key(end), value }
    }

    /// Ranges that end behind `from`, in order.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn from<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        id: ObjectId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        let found = device.attributes(id, self.key(from.saturating_add(1)), limit)?;
        Ok(found.into_iter().map_while(|(key, value)| self.range(key, &value)).collect())
    }

    /// Those that a range has a part of.
    fn overlapping<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        id: ObjectId,
        range: Range<u64>,
    ) -> Result<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let found = self.from(device, id, at, AT_ONCE)?;
            at = found.last().map_or(range.end, |(_, until)| *until);
            all.extend(found.into_iter().filter(|(from, _)| *from < range.end));
        }
        Ok(all)
    }

    /// What of a range is told.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn within<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        id: ObjectId,
        range: Range<u64>,
    ) -> Result<Ranges> {
        let mut told = Ranges::default();
        for (from, until) in self.overlapping(device, id, range.clone())? {
            told.add(from.max(range.start), until.min(range.end));
        }
        Ok(told)
    }

    /// What tells of a range of which nothing was told.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn with<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        object: ObjectId,
        range: Range<u64>,
    ) -> Result<Vec<Mutation>> {
        let key = self.key(range.start);
        let before = device.attribute(object, key);
        // A version that is only being made has none.
        let before = before.or_else(|error| if error.kind == ErrorKind::NotFound { Ok(None) } else { Err(error) })?;
        let before = before.and_then(|value| self.range(key, &value));
        let mut mutations = Vec::new();
        if before.is_some() {
            mutations.push(Mutation::RemoveAttribute { object, key });
        }
        mutations.push(self.set(object, before.map_or(range.start, |(from, _)| from), range.end));
        Ok(mutations)
    }

    /// What takes out the range that ends there.
    pub(super) const fn without_one(&self, object: ObjectId, end: u64) -> Mutation {
        Mutation::RemoveAttribute { object, key: self.key(end) }
    }

    /// What takes a range out.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn without<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        object: ObjectId,
        range: Range<u64>,
    ) -> Result<Vec<Mutation>> {
        let mut mutations = Vec::new();
        for (from, until) in self.overlapping(device, object, range.clone())? {
            if until <= range.end {
                mutations.push(self.without_one(object, until));
            } else {
                mutations.push(self.set(object, range.end, until));
            }
            if from < range.start {
                mutations.push(self.set(object, from, range.start));
            }
        }
        Ok(mutations)
    }
}

//! Where a version has content, told by attributes: on a device that may tell of data where nothing
//! was written ([`ObjectDevice::extents_are_exact`]).
//!
//! An attribute for each range, by its end, as for holes. Neighbours are joined where a range is
//! added behind one; there may be others that touch.

use crate::ranges::Ranges;
use onode_base::varint;
use onode_object::{AttributeKey, AttributeKind, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

/// Attributes of this index and higher tell of content; those below of holes.
pub(super) const FIRST_INDEX: u64 = 1 << 63;
/// Ranges that are asked for at once.
const AT_ONCE: usize = 64;

const fn key(end: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::SNAPSHOT, FIRST_INDEX.saturating_add(end))
}

/// The range that an attribute tells of; `None` for one of another kind.
fn range(key: AttributeKey, mut value: &[u8]) -> Option<(u64, u64)> {
    let end = (key.kind == AttributeKind::SNAPSHOT).then(|| key.index.checked_sub(FIRST_INDEX)).flatten()?;
    let length = varint::take(&mut value)?;
    Some((end.checked_sub(length)?, end))
}

fn set(object: ObjectId, start: u64, end: u64) -> Mutation {
    let mut value = Vec::new();
    varint::put(&mut value, end - start);
    Mutation::SetAttribute { object, key: key(end), value }
}

/// Ranges that end behind `from`, in order.
fn from<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId, from: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
    let found = device.attributes(id, key(from.saturating_add(1)), limit)?;
    Ok(found.into_iter().map_while(|(key, value)| range(key, &value)).collect())
}

/// Those that a range has a part of.
fn overlapping<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId, start: u64, end: u64) -> Result<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    let mut at = start;
    loop {
        let found = from(device, id, at, AT_ONCE)?;
        let last = found.last().copied();
        all.extend(found.into_iter().filter(|(from, _)| *from < end));
        match last {
            Some((_, until)) if until < end => at = until,
            _ => return Ok(all),
        }
    }
}

/// Where there is content in a range.
///
/// # Errors
/// Those of the device.
pub(super) fn in_range<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId, start: u64, end: u64) -> Result<Ranges> {
    let mut data = Ranges::default();
    if start < end {
        let found = overlapping(device, id, start, end)?;
        found.into_iter().for_each(|(from, until)| data.add(from.max(start), until.min(end)));
    }
    Ok(data)
}

/// Where the first content begins.
///
/// # Errors
/// Those of the device.
pub(super) fn first<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId) -> Result<Option<u64>> {
    Ok(from(device, id, 0, 1)?.first().map(|(start, _)| *start))
}

/// What tells of a range in which there was none.
///
/// # Errors
/// Those of the device.
pub(super) fn with<D: ObjectDevice + ?Sized>(
    device: &D,
    object: ObjectId,
    start: u64,
    end: u64,
) -> Result<Vec<Mutation>> {
    let before = device.attribute(object, key(start));
    // A version that is only being made has none.
    let before = before.or_else(|error| if error.kind == ErrorKind::NotFound { Ok(None) } else { Err(error) })?;
    let before = before.and_then(|value| range(key(start), &value));
    let mut mutations = Vec::new();
    if before.is_some() {
        mutations.push(Mutation::RemoveAttribute { object, key: key(start) });
    }
    mutations.push(set(object, before.map_or(start, |(from, _)| from), end));
    Ok(mutations)
}

/// What takes a range out.
///
/// # Errors
/// Those of the device.
pub(super) fn without<D: ObjectDevice + ?Sized>(
    device: &D,
    object: ObjectId,
    start: u64,
    end: u64,
) -> Result<Vec<Mutation>> {
    let mut mutations = Vec::new();
    for (from, until) in overlapping(device, object, start, end)? {
        if until <= end {
            mutations.push(Mutation::RemoveAttribute { object, key: key(until) });
        } else {
            mutations.push(set(object, end, until));
        }
        if from < start {
            mutations.push(set(object, from, start));
        }
    }
    Ok(mutations)
}

//! Versions: what snapshots keep of one object.
//!
//! A version of generation `g` has what changed of its object after snapshot `g` was taken, as it
//! was then: its size, its hints, the attributes that were set or removed, the content that was
//! replaced. What it does not have is as it was then in the next version, or, behind the last one,
//! in the object itself. A version is an object with an id of its own ([`ObjectId::version`]):
//!
//! - its attributes are those of the object; that there was none of a key says an empty attribute
//!   whose kind is [`AttributeKind::FIRST_ABSENT`] higher;
//! - its content lies where it lay in the object; where there was a hole then and is none any more,
//!   an attribute says so, by the end of the hole;
//! - on a device that may tell of data where nothing was written, attributes tell of content, too;
//! - one attribute tells its size and whether it is whole: then nothing is looked for behind it.

mod told;

use crate::ranges::Ranges;
use crate::snapshots::version::told::{CONTENT, HOLES};
use onode_base::varint;
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

/// Extents that are asked for at once.
const AT_ONCE: usize = 64;
/// What a device may have data in whole ones of.
pub(super) const GRAIN_BYTES: u64 = 4096;
/// Of the first byte of what a version says of itself: attributes say where it has content.
const TOLD: u8 = 1 << 2;
/// Versions that are: most objects have one at most, and all that follow are those of others.
const VERSIONS: usize = 4;

/// The first number under which lists of clones name objects.
pub(super) const FIRST_CLONED: ObjectId = ObjectId::FIRST_UNVERSIONED;

/// The id of a version of an object for a snapshot; `None` if it can have none.
pub(super) fn version_id(object: ObjectId, generation: u32) -> Option<ObjectId> {
    if object < ObjectId::FIRST_UNVERSIONED { object.version(generation) } else { None }
}

/// What a version says of what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// What it does not have lies behind it.
    Part,
    /// The object was removed: this is all.
    Whole,
    /// There was no such object.
    Absent,
}

/// One version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) id: ObjectId,
    pub(super) standing: Completeness,
    pub(super) size: u64,
    /// Attributes say where it has content, and not the device, which may tell more.
    pub(super) is_told: bool,
}

impl Version {
    const HEADER: AttributeKey = AttributeKey::new(AttributeKind::SNAPSHOT, 0);

    /// The first version of an object of this generation or a later one, if there is any.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn first<D: ObjectDevice + ?Sized>(device: &D, object: ObjectId, from: u32) -> Result<Option<Self>> {
        Ok(Self::several(device, object, from, 1)?.pop())
    }

    /// All of them.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    pub(super) fn all<D: ObjectDevice + ?Sized>(device: &D, object: ObjectId, from: u32) -> Result<Vec<Self>> {
        Self::several(device, object, from, usize::MAX)
    }

    fn several<D: ObjectDevice + ?Sized>(device: &D, object: ObjectId, from: u32, limit: usize) -> Result<Vec<Self>> {
        let mut versions = Vec::new();
        let mut next = version_id(object, from);
        while let Some(first) = next.filter(|_| versions.len() < limit) {
            let found = device.list(first, limit.min(VERSIONS))?;
            next = None;
            for id in found {
                let Some((_, generation)) = id.version_of().filter(|(origin, _)| *origin == object) else {
                    return Ok(versions);
                };
                versions.push(Self::load(device, id)?);
                next = version_id(object, generation + 1);
            }
        }
        Ok(versions)
    }

    /// The version of this id.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`; those of the device.
    pub(super) fn load<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId) -> Result<Self> {
        let malformed = || Error::of(ErrorKind::Corrupt, id, "what a version says of itself is malformed");
        let value = device.attribute(id, Self::HEADER)?.ok_or_else(malformed)?;
        let (&standing, mut rest) = value.split_first().ok_or_else(malformed)?;
        let is_told = standing & TOLD != 0;
        let standing = match standing & !TOLD {
            0 => Completeness::Part,
            1 => Completeness::Whole,
            2 => Completeness::Absent,
            _ => return Err(malformed()),
        };
        let size = varint::take(&mut rest).filter(|_| rest.is_empty()).ok_or_else(malformed)?;
        Ok(Self { id, standing, size, is_told })
    }

    /// What a clone has of an object in this version, if it has anything. Its size is that of the
    /// version itself, which changes with it.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn of_clone<D: ObjectDevice + ?Sized>(device: &D, id: ObjectId) -> Result<Option<Self>> {
        let size = match device.stat(id) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            found => found?.size,
        };
        Ok(Some(Self { size, ..Self::load(device, id)? }))
    }

    /// What says what this says of itself.
    pub(super) fn header(&self) -> Mutation {
        let standing = match self.standing {
            Completeness::Part => 0,
            Completeness::Whole => 1,
            Completeness::Absent => 2,
        };
        let mut value = vec![standing | if self.is_told { TOLD } else { 0 }];
        varint::put(&mut value, self.size);
        Mutation::SetAttribute { object: self.id, key: Self::HEADER, value }
    }

    /// Whether it says of an attribute how it was: with a value, or that there was none.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn attribute<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        key: AttributeKey,
    ) -> Result<Option<Option<Vec<u8>>>> {
        if let Some(value) = device.attribute(self.id, key)? {
            return Ok(Some(Some(value)));
        }
        Ok(device.attribute(self.id, absent(key))?.map(|_| None))
    }

    /// What of a range it says of how it was: content, and holes.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn covers<D: ObjectDevice + ?Sized>(&self, device: &D, start: u64, end: u64) -> Result<Covered> {
        Ok(Covered { data: self.data_in(device, start, end)?, holes: self.holes_in(device, start, end)? })
    }

    /// Where it has content in a range.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn data_in<D: ObjectDevice + ?Sized>(&self, device: &D, start: u64, end: u64) -> Result<Ranges> {
        match self.is_told {
            true => CONTENT.within(device, self.id, start..end),
            false => data_of(device, self.id, start, end),
        }
    }

    /// Where its first content begins.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn first_data<D: ObjectDevice + ?Sized>(&self, device: &D) -> Result<Option<u64>> {
        match self.is_told {
            true => Ok(CONTENT.from(device, self.id, 0, 1)?.first().map(|(start, _)| *start)),
            false => Ok(device.extents(self.id, 0, 1)?.first().map(|(start, _)| *start)),
        }
    }

    /// What says that it has content in a range, of which it had none, if that has to be said.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn with_data<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        start: u64,
        end: u64,
    ) -> Result<Vec<Mutation>> {
        if self.is_told { CONTENT.with(device, self.id, start..end) } else { Ok(Vec::new()) }
    }

    /// What says that it has none there any more.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn without_data<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        start: u64,
        end: u64,
    ) -> Result<Vec<Mutation>> {
        if self.is_told { CONTENT.without(device, self.id, start..end) } else { Ok(Vec::new()) }
    }

    /// The holes of a range.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn holes_in<D: ObjectDevice + ?Sized>(&self, device: &D, start: u64, end: u64) -> Result<Ranges> {
        HOLES.within(device, self.id, start..end)
    }

    /// Holes of which it says that they were there and are no more, those that end behind `from`.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn holes<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>> {
        HOLES.from(device, self.id, from, limit)
    }

    /// What takes one of them out, which ends there.
    pub(super) const fn without_hole(&self, end: u64) -> Mutation {
        HOLES.without_one(self.id, end)
    }

    /// What says that there was a hole; one that it touches, before it, is joined.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn with_hole<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        start: u64,
        end: u64,
    ) -> Result<Vec<Mutation>> {
        HOLES.with(device, self.id, start..end)
    }
}

/// What a version says of a range.
pub(super) struct Covered {
    pub(super) data: Ranges,
    pub(super) holes: Ranges,
}

impl Covered {
    /// What of a range it says nothing of.
    pub(super) fn missing(&self, start: u64, end: u64) -> Ranges {
        let mut missing = Ranges::of(start, end);
        self.leave_out(&mut missing);
        missing
    }

    /// Takes what it says something of out of ranges.
    pub(super) fn leave_out(&self, ranges: &mut Ranges) {
        self.data.iter().chain(self.holes.iter()).for_each(|(from, until)| ranges.remove(from, until));
    }
}

/// Where an object has data in a range.
///
/// # Errors
/// Those of the device.
pub(crate) fn data_of<D: ObjectDevice + ?Sized>(device: &D, object: ObjectId, start: u64, end: u64) -> Result<Ranges> {
    let mut data = Ranges::default();
    let mut at = start;
    while at < end {
        let found = device.extents(object, at, AT_ONCE)?;
        let Some((last, length)) = found.last().copied() else { break };
        for (from, length) in found {
            data.add(from.clamp(start, end), (from + length).clamp(start, end));
        }
        at = (last + length).max(at + 1);
    }
    Ok(data)
}

/// The key by which a version says that there was no attribute of this one.
pub(super) const fn absent(key: AttributeKey) -> AttributeKey {
    AttributeKey { kind: AttributeKind(key.kind.0 | AttributeKind::FIRST_ABSENT.0), ..key }
}

/// The key of which that one says that there was none; a key of the object as it is.
pub(super) const fn present(key: AttributeKey) -> AttributeKey {
    AttributeKey { kind: AttributeKind(key.kind.0 & !AttributeKind::FIRST_ABSENT.0), ..key }
}

/// Whether an attribute of a version is one of its object.
pub(super) fn is_kept(key: AttributeKey) -> bool {
    key.kind < AttributeKind::FIRST_ABSENT && key.kind != AttributeKind::SNAPSHOT
}

/// The versions of a generation: an object with an attribute for each of their objects, whose value
/// is the generation that stands in the version's id. That is an earlier one than the list's if the
/// snapshot that it was made for is gone.
pub(super) struct List(pub(super) ObjectId);

impl List {
    /// That of a generation. No object has the number 0, so its versions are free for that.
    pub(super) const fn of(generation: u32) -> Option<Self> {
        match ObjectId(0).version(generation) {
            Some(object) => Some(Self(object)),
            None => None,
        }
    }

    const fn key(object: ObjectId) -> AttributeKey {
        AttributeKey::new(AttributeKind::SNAPSHOT, object.0)
    }

    /// What enters a version.
    pub(super) fn with(&self, version: ObjectId) -> Option<Mutation> {
        let (object, generation) = version.version_of()?;
        let mut value = Vec::new();
        varint::put(&mut value, u64::from(generation));
        Some(Mutation::SetAttribute { object: self.0, key: Self::key(object), value })
    }

    /// What takes the version of an object out.
    pub(super) const fn without(&self, object: ObjectId) -> Mutation {
        Mutation::RemoveAttribute { object: self.0, key: Self::key(object) }
    }

    /// Objects and their versions, in order, from an object on.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn entries<D: ObjectDevice + ?Sized>(
        &self,
        device: &D,
        from: ObjectId,
        limit: usize,
    ) -> Result<Vec<ListedVersion>> {
        let found = device.attributes(self.0, Self::key(from), limit)?;
        let entry = |(key, value): (AttributeKey, Vec<u8>)| {
            let generation = varint::take(&mut value.as_slice()).and_then(|it| u32::try_from(it).ok());
            let object = ObjectId(key.index);
            let version = generation.filter(|_| key.kind == AttributeKind::SNAPSHOT).and_then(|it| object.version(it));
            let malformed = || Error::of(ErrorKind::Corrupt, self.0, "the list of a snapshot is malformed");
            version.map(|version| ListedVersion { object, version }).ok_or_else(malformed)
        };
        found.into_iter().map(entry).collect()
    }
}

/// An entry of a [`List`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedVersion {
    pub(super) object: ObjectId,
    pub(super) version: ObjectId,
}

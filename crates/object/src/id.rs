//! Names of things on a device: flat numbers without a relation to any place.

/// Names one object on one device. 0 names none; a number is never used for a second object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The first id that [`reserve_ids`](crate::ObjectDevice::reserve_ids) hands out; the ids below
    /// it are well known and belong to the host (root directory, volume object), but for
    /// [`POOL`](Self::POOL), [`STAGED`](Self::STAGED), [`SNAPSHOTS`](Self::SNAPSHOTS),
    /// [`RECEIVED`](Self::RECEIVED) and [`AUTHENTICATED`](Self::AUTHENTICATED).
    pub const FIRST_FREE: Self = Self(64);
    /// What a member of a pool keeps of the pool; the host never sees it. It is well known and no
    /// host uses it, so that a device needs to know nothing of pools.
    pub const POOL: Self = Self(63);
    /// What the service of transactions keeps of one that is too large for a transaction of the
    /// device; it is there only as long as it is needed, and the host never sees it.
    pub const STAGED: Self = Self(62);
    /// What the service of snapshots keeps of them; the host never sees it.
    pub const SNAPSHOTS: Self = Self(61);
    /// What a device keeps of a stream that it receives; the host never sees it.
    pub const RECEIVED: Self = Self(60);
    /// What the service of authentication keeps of all other objects; the host never sees it.
    pub const AUTHENTICATED: Self = Self(58);
    /// The first id of a version, which is what snapshots keep of an object that has changed since.
    /// These ids come from no `reserve_ids`: the service of snapshots makes them, and the host
    /// never sees them. All versions of one object follow each other.
    pub const FIRST_VERSION: Self = Self(1 << 63);
    /// Ids from here on belong to the device itself; the host never sees them.
    pub const FIRST_OF_DEVICE: Self = Self(u64::MAX - 0xffff);
    /// The last generation that a version can be of.
    pub const LAST_GENERATION: u32 = (1 << Self::GENERATION_BITS) - 1;

    /// Objects from this number on are in no snapshot: the ids that versions of them would have, as
    /// many as there are objects before, are those of what clones have.
    pub const FIRST_UNVERSIONED: Self = Self(1 << 38);

    const GENERATION_BITS: u32 = 22;

    /// The id of the version of this object that snapshots up to `generation` see; `None` for a
    /// generation past [`LAST_GENERATION`](Self::LAST_GENERATION) and for an object that can have
    /// no versions, as its number is too large or it is a version itself.
    #[must_use]
    pub const fn version(self, generation: u32) -> Option<Self> {
        if self.0 >= (1 << (63 - Self::GENERATION_BITS)) - 1 || generation > Self::LAST_GENERATION {
            return None;
        }
        Some(Self(Self::FIRST_VERSION.0 | (self.0 << Self::GENERATION_BITS) | generation as u64))
    }

    /// Whether this is the id of a version.
    #[must_use]
    pub const fn is_version(self) -> bool {
        self.0 >= Self::FIRST_VERSION.0 && self.0 < Self::FIRST_OF_DEVICE.0
    }

    /// The object that this is a version of, and the generation; `None` if it is no version.
    #[must_use]
    pub const fn version_of(self) -> Option<(Self, u32)> {
        if !self.is_version() {
            return None;
        }
        let origin = (self.0 & !Self::FIRST_VERSION.0) >> Self::GENERATION_BITS;
        Some((Self(origin), (self.0 as u32) & Self::LAST_GENERATION))
    }

    /// The id of what a clone has of this object, which for a device is a version like others;
    /// `None` for a number past [`LAST_GENERATION`](Self::LAST_GENERATION) and for an object that
    /// is in no snapshot.
    #[must_use]
    pub const fn in_clone(self, clone: u32) -> Option<Self> {
        if self.0 < Self::FIRST_UNVERSIONED.0 { Self(self.0 | Self::FIRST_UNVERSIONED.0).version(clone) } else { None }
    }

    /// The object that a clone has in this one, and the number of the clone; `None` if this is
    /// another object.
    #[must_use]
    pub const fn in_clone_of(self) -> Option<(Self, u32)> {
        match self.version_of() {
            Some((origin, clone)) if origin.0 >= Self::FIRST_UNVERSIONED.0 => {
                Some((Self(origin.0 & !Self::FIRST_UNVERSIONED.0), clone))
            }
            _ => None,
        }
    }

    /// The object that this is a version of, or this one itself: the same of all between which
    /// content can [move](crate::Mutation::Move).
    #[must_use]
    pub const fn origin(self) -> Self {
        match self.version_of() {
            Some((origin, _)) => origin,
            None => self,
        }
    }

    /// The number that `reserve_ids` hands out next once an object of this id was made, if it was
    /// `next` before. Ids of versions were never handed out, so they count for nothing.
    #[must_use]
    pub const fn next_free(self, next: u64) -> u64 {
        if self.is_version() || self.0 < next { next } else { self.0.saturating_add(1) }
    }
}

impl core::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "object {}", self.0)
    }
}

/// What an attribute is for. Devices keep every kind alike and may place them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeKind(pub u8);

impl AttributeKind {
    /// The inode of a file (paper 1: embedded in the onode by a hint).
    pub const INODE: Self = Self(1);
    /// One bucket of directory entries; the index is the hash of the name.
    pub const ENTRY: Self = Self(2);
    /// One bucket of extended attributes; the index is the hash of the name.
    pub const XATTR: Self = Self(3);
    /// Settings of the whole volume.
    pub const VOLUME: Self = Self(4);
    /// An object that has no name any more but is still open; the index is its id.
    pub const ORPHAN: Self = Self(5);
    /// What a service between host and device keeps of an object, compression for example; the host
    /// never sees it. An object whose content a service changed has
    /// [`COMPRESSED`](AttributeKey::COMPRESSED) or [`ENCRYPTED`](AttributeKey::ENCRYPTED): it is
    /// set before such content is written, and removed after what it told of was written anew, so
    /// that a device on which content may become durable late knows which must not.
    pub const SERVICE: Self = Self(6);
    /// What the service of transactions keeps on the object [`STAGED`](ObjectId::STAGED).
    pub const STAGED: Self = Self(7);
    /// What the service of snapshots keeps on the object [`SNAPSHOTS`](ObjectId::SNAPSHOTS) and on
    /// versions; the host never sees it.
    pub const SNAPSHOT: Self = Self(8);
    /// Limits of directory trees, users and groups with what is used of them, on the object of the
    /// volume.
    pub const QUOTA: Self = Self(9);
    /// Kinds from here on are free for users of the object interface.
    pub const FIRST_FREE: Self = Self(32);
    /// Kinds from here on are not: the service of snapshots says with them which attributes an
    /// object did not have.
    pub const FIRST_ABSENT: Self = Self(128);
}

/// Where an attribute stands in its object: attributes are ordered by kind, then index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeKey {
    /// What it is for.
    pub kind: AttributeKind,
    /// Which one of that kind.
    pub index: u64,
}

impl AttributeKey {
    /// What an object has of which some content is compressed.
    pub const COMPRESSED: Self = Self::new(AttributeKind::SERVICE, 0);
    /// What an object has whose content is encrypted.
    pub const ENCRYPTED: Self = Self::new(AttributeKind::SERVICE, 3 << 62);
    /// What tells of all other attributes of an object that is authenticated.
    pub const AUTHENTICATED: Self = Self::new(AttributeKind::SERVICE, (3 << 62) + (1 << 61));

    /// What the object of a volume has if some of its objects may be compressed.
    pub const VOLUME_COMPRESSED: Self = Self::new(AttributeKind::SERVICE, u64::MAX - 1);
    /// What the object of a volume has if all of the volume is encrypted.
    pub const VOLUME_ENCRYPTED: Self = Self::new(AttributeKind::SERVICE, (3 << 62) + (1 << 60));
    /// What the object [`POOL`](ObjectId::POOL) of a member of a pool has: which one it is.
    pub const POOL_MEMBER: Self = Self::new(AttributeKind::SERVICE, 1);

    /// What the object [`STAGED`](ObjectId::STAGED) has: how far a transaction is put in place.
    pub const STAGED_STATE: Self = Self::new(AttributeKind::STAGED, 0);
    /// Where the object [`STAGED`](ObjectId::STAGED) lists objects that are not to be seen: from
    /// here on, each by its number.
    pub const STAGED_OBJECTS: Self = Self::new(AttributeKind::STAGED, 16);

    /// The key of `kind` and `index`.
    #[must_use]
    pub const fn new(kind: AttributeKind, index: u64) -> Self {
        Self { kind, index }
    }

    /// The key right after this one; `None` at the very end.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match (self.index.checked_add(1), self.kind.0.checked_add(1)) {
            (Some(index), _) => Some(Self { kind: self.kind, index }),
            (None, Some(kind)) => Some(Self { kind: AttributeKind(kind), index: 0 }),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_snapshots_and_of_clones_are_told_apart() {
        for object in [1, 64, ObjectId::FIRST_UNVERSIONED.0 - 1].map(ObjectId) {
            for number in [0, 7, ObjectId::LAST_GENERATION] {
                let (version, cloned) = (object.version(number).unwrap(), object.in_clone(number).unwrap());
                assert_eq!((version.version_of(), version.in_clone_of()), (Some((object, number)), None));
                assert_eq!(cloned.in_clone_of(), Some((object, number)));
                assert!(cloned.is_version() && cloned.origin() != object, "its content moves to no other version");
                // A memory has versions below half of their ids only.
                assert!(cloned.0 < 3 << 62);
            }
        }
        assert_eq!(ObjectId::FIRST_UNVERSIONED.in_clone(1), None);
        assert_eq!((ObjectId(64).in_clone_of(), ObjectId(u64::MAX).in_clone_of()), (None, None));
    }
}

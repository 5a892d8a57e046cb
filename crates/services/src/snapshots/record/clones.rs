//! What the records say of clones.

use crate::snapshots::record::{CLONE, DELETED, Records, SNAPSHOTS_MAX, Snapshot, check_name, malformed};
use onode_base::{Timestamp, varint};
use onode_object::{Error, ErrorKind, Mutation, ObjectId, Result};

/// A clone: all objects as a snapshot has them, changed since on their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneInfo {
    /// Its number: no other clone and no snapshot ever has that.
    pub generation: u32,
    /// What people call it.
    pub name: String,
    /// The name of the snapshot that it was made of.
    pub base: String,
    /// When it was made, by the clock of whoever made it.
    pub created: Timestamp,
}

/// The same as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::snapshots) struct CloneRecord {
    pub(in crate::snapshots) generation: u32,
    pub(in crate::snapshots) name: String,
    /// The number of the snapshot.
    pub(in crate::snapshots) base: u32,
    created: Timestamp,
    /// It is gone for people; what it has of its own is being removed.
    pub(in crate::snapshots) is_deleted: bool,
}

impl CloneRecord {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![CLONE | if self.is_deleted { DELETED } else { 0 }];
        bytes.extend_from_slice(&self.created.seconds.to_le_bytes());
        bytes.extend_from_slice(&self.created.nanoseconds.to_le_bytes());
        varint::put(&mut bytes, u64::from(self.base));
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    pub(super) fn decode(generation: u32, mut bytes: &[u8]) -> Option<Self> {
        let flags = *bytes.split_off_first().filter(|flags| **flags <= CLONE | DELETED)?;
        let (seconds, rest) = bytes.split_first_chunk()?;
        let (nanoseconds, mut rest) = rest.split_first_chunk()?;
        let (seconds, nanoseconds) = (i64::from_le_bytes(*seconds), u32::from_le_bytes(*nanoseconds));
        let base = u32::try_from(varint::take(&mut rest)?).ok()?;
        let name = std::str::from_utf8(rest).ok()?.to_owned();
        let is_sound = nanoseconds < 1_000_000_000 && base < generation && check_name(&name).is_ok();
        let created = Timestamp { seconds, nanoseconds };
        is_sound.then_some(Self { generation, name, base, created, is_deleted: flags & DELETED != 0 })
    }
}

impl Records {
    /// The clones that people see.
    pub(in crate::snapshots) fn shown_clones(&self) -> impl Iterator<Item = &CloneRecord> {
        self.clones.iter().filter(|one| !one.is_deleted)
    }

    /// The one of this name that people see.
    pub(in crate::snapshots) fn clone_named(&self, name: &str) -> Option<&CloneRecord> {
        self.shown_clones().find(|one| one.name == name)
    }

    /// Whether people see the clone of this number.
    pub(in crate::snapshots) fn shows_clone(&self, generation: u32) -> bool {
        self.shown_clones().any(|one| one.generation == generation)
    }

    /// The one that is removed next.
    pub(in crate::snapshots) fn next_removed_clone(&self) -> Option<u32> {
        self.clones.iter().find(|one| one.is_deleted).map(|one| one.generation)
    }

    /// The snapshot that a clone was made of.
    ///
    /// # Errors
    /// `Corrupt` if there is none.
    pub(in crate::snapshots) fn base_of(&self, clone: &CloneRecord) -> Result<&Snapshot> {
        let found = self.shown().find(|one| one.generation == clone.base);
        found.ok_or_else(|| {
            let why = format!("the clone `{}` has lost the snapshot that it was made of", clone.name);
            Error::of(ErrorKind::Corrupt, ObjectId::SNAPSHOTS, why)
        })
    }

    /// Whether a name is free: a snapshot and a clone do not have the same one.
    ///
    /// # Errors
    /// `Exists`.
    pub(super) fn check_new_name(&self, name: &str) -> Result<()> {
        let exists = |what| Err(Error::new(ErrorKind::Exists, format!("there is a {what} `{name}` already")));
        match (self.named(name), self.clone_named(name)) {
            (Some(_), _) => exists("snapshot"),
            (_, Some(_)) => exists("clone"),
            (None, None) => Ok(()),
        }
    }

    /// What people are told of a clone.
    pub(in crate::snapshots) fn told_of(&self, clone: &CloneRecord) -> CloneInfo {
        let base = self.base_of(clone).map_or_else(|_| "?".to_owned(), |base| base.name.clone());
        CloneInfo { generation: clone.generation, name: clone.name.clone(), base, created: clone.created }
    }

    /// The records with one more clone, and what says so.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be one; `NotFound` if there is no such snapshot; `Exists`;
    /// `NoSpace` if there are too many.
    pub(in crate::snapshots) fn with_clone(
        &self,
        name: &str,
        base: &str,
        created: Timestamp,
    ) -> Result<(Self, CloneRecord, Vec<Mutation>)> {
        check_name(name)?;
        if self.is_unreadable {
            return Err(malformed());
        }
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no snapshot `{base}`"));
        let base = self.named(base).ok_or_else(missing)?.generation;
        self.check_new_name(name)?;
        let generation = self.next.unwrap_or(1);
        if self.shown_clones().count() >= SNAPSHOTS_MAX || generation >= ObjectId::LAST_GENERATION {
            let why = format!("a volume has at most {SNAPSHOTS_MAX} clones; delete some");
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        let clone = CloneRecord { generation, name: name.to_owned(), base, created, is_deleted: false };
        let (mut records, mutations) = self.numbered(generation, clone.encode());
        records.clones.push(clone.clone());
        Ok((records, clone, mutations))
    }

    /// The records with a clone that people see no more, and what says so.
    ///
    /// # Errors
    /// `NotFound`.
    pub(in crate::snapshots) fn deleting_clone(&self, name: &str) -> Result<(Self, Vec<Mutation>)> {
        let mut records = self.clone();
        let found = records.clones.iter_mut().find(|one| !one.is_deleted && one.name == name);
        let Some(clone) = found else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no clone `{name}`")));
        };
        clone.is_deleted = true;
        let (object, key, value) = (ObjectId::SNAPSHOTS, Snapshot::key(clone.generation), clone.encode());
        Ok((records, vec![Mutation::SetAttribute { object, key, value }]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshots::record::NewSnapshot;

    fn with_base() -> Records {
        let new = NewSnapshot { name: "base".to_owned(), created: Timestamp::default(), id: None };
        Records::default().with(&new, ObjectId(70)).expect("a good name").0
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let created = Timestamp { seconds: -5, nanoseconds: 999_999_999 };
        let name = "next week".to_owned();
        for is_deleted in [false, true] {
            let one = CloneRecord { generation: 900, name: name.clone(), base: 300, created, is_deleted };
            assert_eq!(CloneRecord::decode(900, &one.encode()), Some(one.clone()));
            assert_eq!(CloneRecord::decode(300, &one.encode()), None, "its snapshot is an earlier one");
            for length in 0..16 {
                assert_eq!(CloneRecord::decode(900, &one.encode()[..length]), None, "{length} bytes");
            }
        }
    }

    #[test]
    fn a_snapshot_stays_as_long_as_a_clone_stands_on_it() {
        let (records, clone, _) = with_base().with_clone("copy", "base", Timestamp::default()).expect("it is made");
        assert_eq!((clone.generation, clone.base), (2, 1));
        assert_eq!(records.deleting("base").map(drop).map_err(|error| error.kind), Err(ErrorKind::Busy));
        let again = records.with_clone("copy", "base", Timestamp::default());
        assert_eq!(again.map(drop).map_err(|error| error.kind), Err(ErrorKind::Exists));
        let (records, _) = records.deleting_clone("copy").expect("it is there");
        assert_eq!((records.shows_clone(2), records.next_removed_clone()), (false, Some(2)));
        let (records, _) = records.deleting("base").expect("nothing needs it");
        let (records, mutations) = records.without(1);
        assert!(!matches!(mutations[..], [Mutation::Remove { .. }]), "the clone is not removed yet");
        assert_eq!(records.without(2), (Records::default(), vec![Mutation::Remove { object: ObjectId::SNAPSHOTS }]));
    }

    #[test]
    fn numbers_are_not_used_twice() {
        let (records, _, _) = with_base().with_clone("copy", "base", Timestamp::default()).expect("it is made");
        let new = NewSnapshot { name: "later".to_owned(), created: Timestamp::default(), id: None };
        let (records, _) = records.with(&new, ObjectId(70)).expect("a good name");
        assert_eq!(records.latest().map(|one| one.generation), Some(3));
        let missing = records.with_clone("other", "none", Timestamp::default());
        assert_eq!(missing.map(drop).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    }
}

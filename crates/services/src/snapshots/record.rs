//! What a volume keeps of its snapshots and clones: one object with an attribute for each.
//!
//! The object is there only while there are snapshots, or what they kept is still being removed.
//! Bytes: `docs/format/snapshots.md`.

mod clones;

pub use clones::CloneInfo;
pub(super) use clones::CloneRecord;
use onode_base::{Timestamp, varint};
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

/// The form of everything that is kept for snapshots.
const FORM: u8 = 1;
/// Bits of the first byte of a snapshot.
const DELETED: u8 = 1 << 0;
const IDENTIFIED: u8 = 1 << 1;
/// Of a clone.
const CLONE: u8 = 1 << 2;
/// The longest name of a snapshot, in bytes.
pub const SNAPSHOT_NAME_BYTES_MAX: usize = 255;
/// Snapshots that a volume has at most.
pub const SNAPSHOTS_MAX: usize = 16_000;

/// A number that says of snapshots on several volumes that they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotId(pub [u8; 16]);

impl SnapshotId {
    /// The number that is written as text in this way.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        if text.len() != 2 * id.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A snapshot that is to be taken.
#[derive(Clone, Debug)]
pub struct NewSnapshot {
    /// What people call it.
    pub name: String,
    /// When it is taken, by the clock of whoever takes it.
    pub created: Timestamp,
    /// A number that no other one has; without, it cannot be sent.
    pub id: Option<SnapshotId>,
}

/// The state of all objects at one moment, kept since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its number: a later snapshot has a higher one, and none has that of another one before.
    pub generation: u32,
    /// What people call it.
    pub name: String,
    /// When it was taken, by the clock of whoever took it.
    pub created: Timestamp,
    /// A number that no other snapshot has anywhere, but for those that were received of it.
    pub id: Option<SnapshotId>,
    /// Objects from here on came later.
    pub(super) next_id: ObjectId,
    /// It is gone for people; what it kept is being removed.
    pub(super) is_deleted: bool,
}

impl Snapshot {
    /// Objects from here on came after it.
    #[must_use]
    pub const fn first_later_id(&self) -> ObjectId {
        self.next_id
    }

    const fn key(generation: u32) -> AttributeKey {
        AttributeKey::new(AttributeKind::SNAPSHOT, generation as u64)
    }

    fn encode(&self) -> Vec<u8> {
        let deleted = if self.is_deleted { DELETED } else { 0 };
        let mut bytes = vec![if self.id.is_some() { deleted | IDENTIFIED } else { deleted }];
        bytes.extend_from_slice(&self.created.seconds.to_le_bytes());
        bytes.extend_from_slice(&self.created.nanoseconds.to_le_bytes());
        varint::put(&mut bytes, self.next_id.0);
        bytes.extend_from_slice(self.id.as_ref().map_or(&[], |id| &id.0));
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    fn decode(generation: u32, mut bytes: &[u8]) -> Option<Self> {
        let flags = *bytes.split_off_first().filter(|flags| **flags <= DELETED | IDENTIFIED)?;
        let is_deleted = flags & DELETED != 0;
        let (seconds, rest) = bytes.split_first_chunk()?;
        let (nanoseconds, rest) = rest.split_first_chunk()?;
        let (seconds, nanoseconds) = (i64::from_le_bytes(*seconds), u32::from_le_bytes(*nanoseconds));
        bytes = rest;
        let next_id = ObjectId(varint::take(&mut bytes)?);
        let mut id = None;
        if flags & IDENTIFIED != 0 {
            let (number, rest) = bytes.split_first_chunk()?;
            (id, bytes) = (Some(SnapshotId(*number)), rest);
        }
        let name = std::str::from_utf8(bytes).ok()?.to_owned();
        let is_sound = nanoseconds < 1_000_000_000 && check_name(&name).is_ok();
        let created = Timestamp { seconds, nanoseconds };
        is_sound.then_some(Self { generation, name, created, id, next_id, is_deleted })
    }
}

/// All snapshots of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    /// In the order in which they were taken, those included that are being removed.
    all: Vec<Snapshot>,
    /// Likewise.
    clones: Vec<CloneRecord>,
    /// The number of the next one; `None` if there is no object for snapshots.
    next: Option<u32>,
    /// What there is cannot be read.
    is_unreadable: bool,
}

impl Records {
    /// What a device keeps.
    ///
    /// # Errors
    /// `Corrupt` if that is malformed; those of the device.
    pub(super) fn load<D: ObjectDevice + ?Sized>(device: &D) -> Result<Self> {
        let mut records = Self::default();
        let mut from = Some(Snapshot::key(0));
        while let Some(first) = from {
            let found = match device.attributes(ObjectId::SNAPSHOTS, first, 64) {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(records),
                found => found?,
            };
            from = found.last().and_then(|(key, _)| key.next());
            if found.is_empty() {
                break;
            }
            for (key, value) in found {
                records.add(key, &value).ok_or_else(malformed)?;
            }
        }
        if records.next.is_some() { Ok(records) } else { Err(malformed()) }
    }

    /// Those of a device that does not tell them.
    pub(super) fn unreadable() -> Self {
        Self { is_unreadable: true, ..Self::default() }
    }

    fn add(&mut self, key: AttributeKey, mut value: &[u8]) -> Option<()> {
        if key.kind != AttributeKind::SNAPSHOT {
            return None;
        }
        let generation = u32::try_from(key.index).ok().filter(|it| *it <= ObjectId::LAST_GENERATION)?;
        if generation == 0 {
            let form = *value.split_off_first()?;
            let next = u32::try_from(varint::take(&mut value)?).ok()?;
            self.next = (form == FORM && value.is_empty()).then_some(next);
            return self.next.map(drop);
        }
        if generation >= self.next? {
            return None;
        }
        if value.first()? & CLONE != 0 {
            self.clones.push(CloneRecord::decode(generation, value)?);
        } else {
            self.all.push(Snapshot::decode(generation, value)?);
        }
        Some(())
    }

    /// Whether nothing is kept for snapshots.
    pub(super) const fn is_new(&self) -> bool {
        self.next.is_none() && !self.is_unreadable
    }

    /// The snapshots that people see.
    pub(super) fn shown(&self) -> impl DoubleEndedIterator<Item = &Snapshot> {
        self.all.iter().filter(|one| !one.is_deleted)
    }

    /// The last one of them: what changes now is kept for it, and for those before it.
    pub(super) fn latest(&self) -> Option<&Snapshot> {
        self.shown().next_back()
    }

    /// The one that is removed next. The oldest comes first: so all that lies between it and the
    /// snapshot before it is its own.
    pub(super) fn next_removed(&self) -> Option<&Snapshot> {
        self.all.iter().find(|one| one.is_deleted)
    }

    /// The last one that people see before a generation.
    pub(super) fn before(&self, generation: u32) -> Option<&Snapshot> {
        self.shown().rev().find(|one| one.generation < generation)
    }

    /// The snapshot of this name that people see.
    pub(super) fn named(&self, name: &str) -> Option<&Snapshot> {
        self.shown().find(|one| one.name == name)
    }

    /// The generations of all snapshots, those included that are being removed, in order.
    pub(super) fn generations(&self) -> impl Iterator<Item = u32> {
        self.all.iter().map(|one| one.generation)
    }

    /// The generations of all lists: those of snapshots and of clones.
    pub(super) fn lists(&self) -> impl Iterator<Item = u32> {
        self.generations().chain(self.clones.iter().map(|one| one.generation))
    }

    /// Whether people see the snapshot of this generation.
    pub(super) fn shows(&self, generation: u32) -> bool {
        self.all.binary_search_by_key(&generation, |one| one.generation).is_ok_and(|at| !self.all[at].is_deleted)
    }

    /// The records with one more snapshot, and what says so.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be one; `Exists`; `NoSpace` if there are too many.
    pub(super) fn with(&self, new: &NewSnapshot, next_id: ObjectId) -> Result<(Self, Vec<Mutation>)> {
        let NewSnapshot { name, created, id } = new;
        check_name(name)?;
        if self.is_unreadable {
            return Err(malformed());
        }
        self.check_new_name(name)?;
        let generation = self.next.unwrap_or(1);
        if self.shown().count() >= SNAPSHOTS_MAX || generation >= ObjectId::LAST_GENERATION {
            let why = format!("a volume has at most {SNAPSHOTS_MAX} snapshots; delete some");
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        // Ids that were handed out and never used come again after a mount. What then gets one came
        // after the earlier snapshots, too, and that is told by a version for the latest one only.
        let next_id = self.all.iter().map(|one| one.next_id).fold(next_id, Ord::max);
        let (name, created, id) = (name.clone(), *created, *id);
        let snapshot = Snapshot { generation, name, created, id, next_id, is_deleted: false };
        let (mut records, mutations) = self.numbered(generation, snapshot.encode());
        records.all.push(snapshot);
        Ok((records, mutations))
    }

    /// The records with the next number used, and what says so: what has it is stored in this form.
    fn numbered(&self, generation: u32, value: Vec<u8>) -> (Self, Vec<Mutation>) {
        let object = ObjectId::SNAPSHOTS;
        let mut mutations = Vec::new();
        if self.next.is_none() {
            mutations.push(Mutation::Create { object, hints: onode_object::Hints::default() });
        }
        let mut header = vec![FORM];
        varint::put(&mut header, u64::from(generation + 1));
        mutations.push(Mutation::SetAttribute { object, key: Snapshot::key(0), value: header });
        mutations.push(Mutation::SetAttribute { object, key: Snapshot::key(generation), value });
        (Self { next: Some(generation + 1), ..self.clone() }, mutations)
    }

    /// The records with a snapshot that people see no more, and what says so.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if a clone stands on it.
    pub(super) fn deleting(&self, name: &str) -> Result<(Self, Vec<Mutation>)> {
        let generation = self.named(name).map(|one| one.generation);
        if let Some(clone) = self.shown_clones().find(|one| Some(one.base) == generation) {
            let why = format!("the clone `{}` was made of the snapshot `{name}` and needs it", clone.name);
            return Err(Error::new(ErrorKind::Busy, why));
        }
        let mut records = self.clone();
        let found = records.all.iter_mut().find(|one| !one.is_deleted && one.name == name);
        let Some(snapshot) = found else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no snapshot `{name}`")));
        };
        snapshot.is_deleted = true;
        let (object, key, value) = (ObjectId::SNAPSHOTS, Snapshot::key(snapshot.generation), snapshot.encode());
        Ok((records, vec![Mutation::SetAttribute { object, key, value }]))
    }

    /// The records without a snapshot or clone of which nothing is left, and what says so.
    pub(super) fn without(&self, generation: u32) -> (Self, Vec<Mutation>) {
        let object = ObjectId::SNAPSHOTS;
        let mut records = self.clone();
        records.all.retain(|one| one.generation != generation);
        records.clones.retain(|one| one.generation != generation);
        if records.all.is_empty() && records.clones.is_empty() {
            return (Self::default(), vec![Mutation::Remove { object }]);
        }
        (records, vec![Mutation::RemoveAttribute { object, key: Snapshot::key(generation) }])
    }
}

/// Whether a name can be one of a snapshot: it is to be one of a directory, and to be printed.
///
/// # Errors
/// `Invalid`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "a snapshot needs a name"
    } else if name.len() > SNAPSHOT_NAME_BYTES_MAX {
        "a snapshot's name has at most 255 bytes"
    } else if name == "." || name == ".." || name.contains('/') || name.chars().any(char::is_control) {
        "a snapshot's name is one of a directory: without `/` and control characters, not `.` or `..`"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Invalid, why))
}

fn malformed() -> Error {
    Error::of(ErrorKind::Corrupt, ObjectId::SNAPSHOTS, "what it says of snapshots is malformed")
}

#[cfg(test)]
mod tests;

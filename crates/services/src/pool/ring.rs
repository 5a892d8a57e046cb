//! Which objects the last transactions changed: a ring of attributes, one or more of which every
//! transaction sets.
//!
//! The sequence number of the newest is that of the member: a transaction and its number are on the
//! medium together or not at all. A member that lags behind another one by a few transactions gets
//! what these changed, and no more is compared.

use onode_object::{AttributeKey, AttributeKind, ObjectId};
use std::collections::{BTreeMap, BTreeSet};

/// Objects that one place of the ring names.
const OBJECTS: usize = 6;
/// Places that one transaction takes at most; one that changes more objects says only that.
const PLACES_MAX: usize = 8;
const BYTES: usize = 64;
/// A flag: more objects changed than are named.
const MANY: u8 = 1;
/// A flag: all members had what stands before, durably, when the pool was closed.
const SYNCED: u8 = 2;
const FIRST: u64 = 1 << 32;

/// What one place of the ring says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeEntry {
    pub(crate) sequence: u64,
    is_many: bool,
    is_synced: bool,
    objects: Vec<ObjectId>,
}

impl ChangeEntry {
    /// What a new ring has in every place.
    const NONE: Self = Self { sequence: 0, is_many: false, is_synced: false, objects: Vec::new() };

    /// Its value; the place follows from the number.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.sequence.to_le_bytes().to_vec();
        let flags = if self.is_many { MANY } else { 0 } | if self.is_synced { SYNCED } else { 0 };
        bytes.extend_from_slice(&[flags, self.objects.len() as u8, 0, 0, 0, 0, 0, 0]);
        self.objects.iter().for_each(|object| bytes.extend_from_slice(&object.0.to_le_bytes()));
        bytes.resize(BYTES, 0);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<16>()?;
        let [flags, count] = [head[8], head[9]];
        if bytes.len() != BYTES || usize::from(count) > OBJECTS {
            return None;
        }
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        let objects = rest.chunks_exact(8).take(count.into()).filter_map(number).map(ObjectId).collect();
        let [is_many, is_synced] = [MANY, SYNCED].map(|flag| flags & flag != 0);
        Some(Self { sequence: number(&head[..8])?, is_many, is_synced, objects })
    }
}

/// The ring of one pool.
#[derive(Clone, Debug)]
pub(crate) struct ChangeRing {
    slots: u32,
    entries: BTreeMap<u64, ChangeEntry>,
}

impl ChangeRing {
    pub(crate) const fn new(slots: u32) -> Self {
        Self { slots, entries: BTreeMap::new() }
    }

    /// The attributes of a ring that says nothing yet.
    pub(crate) fn blank(slots: u32) -> impl Iterator<Item = (AttributeKey, Vec<u8>)> {
        (0..u64::from(slots)).map(|place| (Self::key(place), ChangeEntry::NONE.encode()))
    }

    const fn key(place: u64) -> AttributeKey {
        AttributeKey::new(AttributeKind::SERVICE, FIRST + place)
    }

    /// The first key of the ring, and the one behind its last.
    pub(crate) const fn bounds(slots: u32) -> [AttributeKey; 2] {
        [Self::key(0), Self::key(slots as u64)]
    }

    /// Takes in what an attribute says; whether it could be understood.
    pub(crate) fn read(&mut self, value: &[u8]) -> bool {
        let Some(entry) = ChangeEntry::decode(value) else { return false };
        if entry.sequence > 0 {
            self.entries.insert(entry.sequence, entry);
        }
        true
    }

    /// The number of the last change; 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.entries.last_key_value().map_or(0, |(last, _)| *last)
    }

    /// What a transaction that changes these objects is to say.
    pub(crate) fn plan(&self, objects: &BTreeSet<ObjectId>) -> Vec<ChangeEntry> {
        let objects: Vec<_> = objects.iter().copied().collect();
        let parts: Vec<&[ObjectId]> = objects.chunks(OBJECTS).collect();
        let first = self.last() + 1;
        if parts.is_empty() || parts.len() > PLACES_MAX {
            let is_many = !parts.is_empty();
            return vec![ChangeEntry { sequence: first, is_many, ..ChangeEntry::NONE }];
        }
        let entry = |(sequence, part): (u64, &&[ObjectId])| {
            let objects = part.to_vec();
            ChangeEntry { sequence, objects, ..ChangeEntry::NONE }
        };
        (first..).zip(&parts).map(entry).collect()
    }

    /// What says that all members have everything; nothing if that is the last that was said.
    pub(crate) fn mark(&self) -> Option<ChangeEntry> {
        let (last, entry) = self.entries.last_key_value()?;
        (!entry.is_synced).then(|| ChangeEntry { sequence: last + 1, is_synced: true, ..ChangeEntry::NONE })
    }

    /// What a member may lack of that has everything but the last changes.
    fn recent(&self) -> impl Iterator<Item = &ChangeEntry> {
        let synced = self.entries.values().rev().find(|entry| entry.is_synced).map_or(0, |entry| entry.sequence);
        self.entries.range(synced..).map(|(_, entry)| entry)
    }

    /// The attribute that an entry is.
    pub(crate) fn attribute(&self, entry: &ChangeEntry) -> (AttributeKey, Vec<u8>) {
        (Self::key(entry.sequence % u64::from(self.slots)), entry.encode())
    }

    /// Takes in what a transaction said.
    pub(crate) fn take(&mut self, entries: Vec<ChangeEntry>) {
        for entry in entries {
            self.entries.insert(entry.sequence, entry);
        }
        while self.entries.len() > self.slots as usize {
            self.entries.pop_first();
        }
    }

    /// All attributes of the ring as they are now.
    pub(crate) fn attributes(&self) -> Vec<(AttributeKey, Vec<u8>)> {
        let mut all: BTreeMap<_, _> = Self::blank(self.slots).collect();
        all.extend(self.entries.values().map(|entry| self.attribute(entry)));
        all.into_iter().collect()
    }

    /// The objects that changed after this number; `None` if they are not all named.
    pub(crate) fn since(&self, sequence: u64) -> Option<BTreeSet<ObjectId>> {
        let wanted = self.last().checked_sub(sequence)?;
        let later = || self.entries.range(sequence + 1..).map(|(_, entry)| entry);
        let is_complete = later().count() as u64 == wanted && !later().any(|entry| entry.is_many);
        is_complete.then(|| later().flat_map(|entry| entry.objects.iter().copied()).collect())
    }

    /// All objects that it names since members were known to have everything; `None` if it does not
    /// name all that it tells of.
    pub(crate) fn all(&self) -> Option<BTreeSet<ObjectId>> {
        let is_many = self.recent().any(|entry| entry.is_many);
        (!is_many).then(|| self.named())
    }

    /// The same, whether it names all or not.
    pub(crate) fn named(&self) -> BTreeSet<ObjectId> {
        self.recent().flat_map(|entry| entry.objects.iter().copied()).collect()
    }

    /// After how many changes members have to be synced, so that none lags by more than the ring.
    pub(crate) const fn half(&self) -> u64 {
        self.slots as u64 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(range: std::ops::Range<u64>) -> BTreeSet<ObjectId> {
        range.map(ObjectId).collect()
    }

    #[test]
    fn a_ring_names_what_changed_as_far_as_it_reaches() {
        let mut ring = ChangeRing::new(64);
        let plan = ring.plan(&objects(1..9));
        assert_eq!(plan.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [1, 2]);
        ring.take(plan);
        assert_eq!(
            (ring.since(0), ring.since(1), ring.since(2)),
            (Some(objects(1..9)), Some(objects(7..9)), Some(objects(0..0)))
        );
        assert_eq!(ring.since(3), None, "it knows nothing of the future");
        for _ in 0..70 {
            let plan = ring.plan(&objects(20..21));
            ring.take(plan);
        }
        assert_eq!((ring.last(), ring.since(7), ring.since(8)), (72, None, Some(objects(20..21))));
        let mut again = ChangeRing::new(64);
        assert!(ring.attributes().iter().all(|(_, value)| again.read(value)));
        assert_eq!((again.last(), again.all()), (72, Some(objects(20..21))));
        let many = ring.plan(&objects(1..100));
        assert_eq!(many.len(), 1);
        ring.take(many);
        assert_eq!((ring.since(72), ring.since(73)), (None, Some(objects(0..0))));
        assert!(!again.read(&[1; 5]));
    }

    #[test]
    fn what_all_members_have_is_not_told_again() {
        let mut ring = ChangeRing::new(64);
        assert_eq!(ring.mark(), None, "there is nothing to be had");
        ring.take(ring.plan(&objects(1..100)));
        assert_eq!(ring.all(), None);
        ring.take(ring.mark().into_iter().collect());
        assert_eq!((ring.last(), ring.all(), ring.mark()), (2, Some(objects(0..0)), None));
        ring.take(ring.plan(&objects(7..8)));
        let mut again = ChangeRing::new(64);
        assert!(ring.attributes().iter().all(|(_, value)| again.read(value)));
        assert_eq!((again.all(), again.since(0), again.since(1)), (Some(objects(7..8)), None, Some(objects(7..8))));
    }
}

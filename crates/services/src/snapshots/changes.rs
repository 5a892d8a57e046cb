//! What changed between two moments of which at least the first has a snapshot.
//!
//! It is asked of the lists and versions that are kept anyway, so it takes as long as there are
//! objects that changed, and not as long as there are objects. It may name more than what changed:
//! a change that was taken back, for example. Whoever asks compares both moments.

use crate::ranges::Ranges;
use crate::snapshots::Versioned;
use crate::snapshots::record::Snapshot;
use crate::snapshots::version::{Completeness, List, Version, is_kept, present};
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, ObjectDevice, ObjectId, Result};
use std::collections::BTreeSet;

/// Objects and attributes that are looked at at once.
const AT_ONCE: usize = 256;

/// What may have changed of one object.
pub(crate) enum ObjectChange {
    /// There was none at the first moment, or there is none at the second one, or it is another
    /// one.
    Whole,
    /// Some attributes, and content in some ranges, in bytes of the device below; hints and size.
    Part { keys: BTreeSet<AttributeKey>, content: Ranges },
}

/// From the moment of one snapshot to that of a later one, or until now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: u32,
    /// Objects from here on came later than the first moment.
    next_id: ObjectId,
    /// `None`: now.
    until: Option<u32>,
}

impl Span {
    /// Between two snapshots, or from one until now.
    ///
    /// # Errors
    /// `Invalid` if the first is not the earlier one.
    pub(crate) fn new(from: &Snapshot, until: Option<&Snapshot>) -> Result<Self> {
        if until.is_some_and(|until| until.generation <= from.generation) {
            let why = format!("the snapshot `{}` is not an earlier one", from.name);
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        Ok(Self { from: from.generation, next_id: from.next_id, until: until.map(|until| until.generation) })
    }

    /// Whether an object came later than the first moment.
    pub(crate) fn is_later(&self, object: ObjectId) -> bool {
        object >= self.next_id
    }

    /// The first object that did.
    pub(crate) const fn next_id(&self) -> ObjectId {
        self.next_id
    }

    fn has(&self, generation: u32) -> bool {
        generation >= self.from && self.until.is_none_or(|until| generation < until)
    }
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// Objects that may have changed, in order; those are missing that came later than the first
    /// moment and have not changed since they came: [`Span::is_later`] tells them.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(crate) fn changed_objects(&self, span: &Span) -> Result<BTreeSet<ObjectId>> {
        let generations: Vec<_> = self.records().generations().filter(|one| span.has(*one)).collect();
        let mut objects = BTreeSet::new();
        // What is kept for a deleted snapshot may go to the list of one before meanwhile.
        for list in generations.into_iter().rev().filter_map(List::of) {
            let mut from = Some(ObjectId(0));
            while let Some(first) = from {
                let _records = self.records();
                let found = match list.entries(self.inner(), first, AT_ONCE) {
                    Err(error) if error.kind == ErrorKind::NotFound => break,
                    found => found?,
                };
                from = found.last().map(|last| ObjectId(last.object.0 + 1));
                objects.extend(found.into_iter().map(|one| one.object));
            }
        }
        Ok(objects)
    }

    /// What may have changed of an object.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(crate) fn change_of(&self, object: ObjectId, span: &Span) -> Result<ObjectChange> {
        if span.is_later(object) {
            return Ok(ObjectChange::Whole);
        }
        let _records = self.records();
        let _content = self.reading(object);
        let (mut keys, mut content) = (BTreeSet::new(), Ranges::default());
        for version in Version::all(self.inner(), object, span.from)? {
            if !version.id.version_of().is_some_and(|(_, generation)| span.has(generation)) {
                break;
            }
            if version.standing != Completeness::Part {
                return Ok(ObjectChange::Whole);
            }
            self.add_keys(&version, &mut keys)?;
            let covered = version.covers(self.inner(), 0, version.size)?;
            covered.data.iter().chain(covered.holes.iter()).for_each(|(from, until)| content.add(from, until));
            // What lay behind the end came later.
            if !is_planted(Bug::StreamTailForgotten) {
                content.add(version.size, u64::MAX);
            }
        }
        Ok(ObjectChange::Part { keys, content })
    }

    fn add_keys(&self, version: &Version, keys: &mut BTreeSet<AttributeKey>) -> Result<()> {
        let mut next = Some(AttributeKey::new(AttributeKind(0), 0));
        while let Some(from) = next {
            let found = self.inner().attributes(version.id, from, AT_ONCE)?;
            next = found.last().and_then(|(key, _)| key.next());
            let is_absent =
                |key: AttributeKey| key.kind >= AttributeKind::FIRST_ABSENT && !is_planted(Bug::StreamAbsenceForgotten);
            let told = found.into_iter().map(|(key, _)| key);
            keys.extend(told.filter(|key| is_kept(*key) || is_absent(*key)).map(present));
        }
        Ok(())
    }
}

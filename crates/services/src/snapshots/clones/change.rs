//! From a transaction on a clone to one of the device below.
//!
//! An object that the clone made is one of its versions as a whole, and what changes it changes
//! that. Of an object of the snapshot the version has what has changed only; all changes of its
//! content are taken together (`content`).

use crate::life::Life;
use crate::snapshots::chain::VersionChain;
use crate::snapshots::clones::layer::CloneLayer;
use crate::snapshots::version::{Completeness, GRAIN_BYTES, Version, absent, is_kept};
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, Hints, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// How an object stands in the clone, after the mutations so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Neither the clone nor the snapshot has it.
    Nowhere,
    /// As in the snapshot.
    Unchanged,
    /// The clone has a version that says so.
    In(Completeness),
}

/// An object that changes.
pub(super) struct Subject {
    /// The version of the clone, whether there is one or not.
    pub(super) id: ObjectId,
    standing: Presence,
    /// The version as it was before.
    pub(super) version: Option<Version>,
    /// The list of the clone names it.
    is_listed: bool,
    /// The object in the snapshot.
    pub(super) below: Option<VersionChain>,
    /// Attributes that the version says are none, since this transaction.
    absent: BTreeSet<AttributeKey>,
    /// Changes of content of an object of which the version is a part.
    life: Option<Life<()>>,
}

impl Subject {
    fn retargeted(&self, mut mutation: Mutation) -> Mutation {
        *mutation.object_mut() = self.id;
        mutation
    }

    fn header(&self, standing: Completeness, is_told: bool) -> Mutation {
        Version { id: self.id, standing, size: 0, is_told }.header()
    }

    /// The object as it was before the transaction, if the version is a part of it.
    pub(super) fn before(&self) -> Option<VersionChain> {
        let below = self.below.as_ref()?;
        let versions = self.version.iter().chain(&below.versions).copied().collect();
        Some(VersionChain { object: below.object, versions, live_size: below.live_size })
    }
}

/// What a transaction becomes.
pub(super) struct Change<'a, D: ?Sized> {
    device: &'a D,
    layer: &'a CloneLayer,
    subjects: BTreeMap<ObjectId, Subject>,
    mutations: Vec<Mutation>,
}

impl<'a, D: ObjectDevice + ?Sized> Change<'a, D> {
    pub(super) const fn new(device: &'a D, layer: &'a CloneLayer) -> Self {
        Self { device, layer, subjects: BTreeMap::new(), mutations: Vec::new() }
    }

    /// The mutations for the device below. The transaction can apply, and nobody else changes its
    /// objects meanwhile.
    ///
    /// # Errors
    /// `NoSpace` for objects that can have no versions; those of the device.
    pub(super) fn translate(mut self, transaction: Transaction) -> Result<Vec<Mutation>> {
        for mutation in transaction.mutations {
            self.add(mutation)?;
        }
        for (_, mut subject) in std::mem::take(&mut self.subjects) {
            if subject.standing == Presence::In(Completeness::Part) {
                let life = subject.life.take();
                self.mutations.extend(subject.content(self.device, life)?);
            }
        }
        Ok(self.mutations)
    }

    fn add(&mut self, mutation: Mutation) -> Result<()> {
        let object = mutation.object();
        let changes_nothing = match &mutation {
            Mutation::Write { data, .. } => data.is_empty(),
            Mutation::RemoveAttribute { key, .. } => !is_kept(*key),
            _ => false,
        };
        if changes_nothing {
            return Ok(());
        }
        let mut subject = match self.subjects.remove(&object) {
            Some(subject) => subject,
            None => self.subject(object)?,
        };
        let added = match mutation {
            Mutation::Create { hints, .. } => {
                self.create(&mut subject, hints);
                Ok(())
            }
            Mutation::Remove { .. } => self.remove(&mut subject, object),
            other => self.change(&mut subject, other),
        };
        self.subjects.insert(object, subject);
        added
    }

    fn subject(&self, object: ObjectId) -> Result<Subject> {
        let id = self.layer.version_id(object)?;
        let version = self.layer.version(self.device, object)?;
        let below = self.layer.below(self.device, object)?;
        let standing = match (&version, &below) {
            (Some(version), _) => Presence::In(version.standing),
            (None, Some(_)) => Presence::Unchanged,
            (None, None) => Presence::Nowhere,
        };
        let is_listed = version.is_some();
        Ok(Subject { id, standing, version, is_listed, below, absent: BTreeSet::new(), life: None })
    }

    /// Makes the version, which says what it says of the object.
    fn make(&mut self, subject: &mut Subject, hints: Hints, standing: Completeness) {
        self.mutations.push(Mutation::Create { object: subject.id, hints });
        // Behind one that is whole is nothing that its holes could hide.
        let is_told = standing == Completeness::Part && !self.device.extents_are_exact();
        self.mutations.push(subject.header(standing, is_told));
        if !subject.is_listed {
            self.mutations.extend(self.layer.list().with(subject.id));
            subject.is_listed = true;
        }
        subject.standing = Presence::In(standing);
    }

    fn create(&mut self, subject: &mut Subject, hints: Hints) {
        if subject.standing == Presence::In(Completeness::Absent) {
            self.mutations.push(Mutation::Remove { object: subject.id });
        }
        self.make(subject, hints, Completeness::Whole);
    }

    fn remove(&mut self, subject: &mut Subject, object: ObjectId) -> Result<()> {
        subject.life = None;
        subject.absent.clear();
        if matches!(subject.standing, Presence::In(_)) {
            self.mutations.push(Mutation::Remove { object: subject.id });
        }
        if subject.below.is_some() {
            self.make(subject, Hints::default(), Completeness::Absent);
        } else {
            let listed = self.layer.version_id(object)?.version_of();
            self.mutations.extend(listed.map(|(listed, _)| self.layer.list().without(listed)));
            (subject.is_listed, subject.standing) = (false, Presence::Nowhere);
        }
        // What is made anew has nothing of before.
        subject.version = None;
        Ok(())
    }

    fn change(&mut self, subject: &mut Subject, mutation: Mutation) -> Result<()> {
        if subject.standing == Presence::Unchanged
            && let Some(below) = &subject.below
        {
            let stat = below.stat(self.device)?;
            self.make(subject, stat.hints, Completeness::Part);
            if stat.accessed != 0 {
                self.mutations.push(Mutation::SetAccessTime { object: subject.id, time: stat.accessed });
            }
        }
        if subject.standing != Presence::In(Completeness::Part) {
            self.mutations.push(subject.retargeted(mutation));
            return Ok(());
        }
        match mutation {
            Mutation::Write { .. } | Mutation::Truncate { .. } | Mutation::Punch { .. } => {
                let size = subject.version.map(|version| version.size);
                let size = size.or_else(|| subject.below.as_ref().map(VersionChain::size));
                let life = || Life::new(mutation.object(), GRAIN_BYTES, (), size);
                subject.life.get_or_insert_with(life).apply(mutation);
            }
            Mutation::SetAttribute { key, value, .. } => self.set_attribute(subject, key, value)?,
            Mutation::RemoveAttribute { key, .. } => self.remove_attribute(subject, key)?,
            other => self.mutations.push(subject.retargeted(other)),
        }
        Ok(())
    }

    fn set_attribute(&mut self, subject: &mut Subject, key: AttributeKey, value: Vec<u8>) -> Result<()> {
        let object = subject.id;
        let was_absent = match subject.absent.remove(&key) {
            true => true,
            false => match &subject.version {
                Some(version) => version.attribute(self.device, key)? == Some(None),
                None => false,
            },
        };
        if was_absent {
            self.mutations.push(Mutation::RemoveAttribute { object, key: absent(key) });
        }
        self.mutations.push(Mutation::SetAttribute { object, key, value });
        Ok(())
    }

    fn remove_attribute(&mut self, subject: &mut Subject, key: AttributeKey) -> Result<()> {
        let object = subject.id;
        self.mutations.push(Mutation::RemoveAttribute { object, key });
        let below = subject.below.as_ref();
        let is_below = below.map_or(Ok(None), |below| below.attribute(self.device, key))?.is_some();
        if is_below && !is_planted(Bug::CloneAbsenceForgotten) {
            self.mutations.push(Mutation::SetAttribute { object, key: absent(key), value: Vec::new() });
            subject.absent.insert(key);
        }
        Ok(())
    }
}

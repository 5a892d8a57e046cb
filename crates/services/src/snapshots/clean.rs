//! Cleaning: what a deleted snapshot kept is removed, but for what the snapshot before it needs.
//!
//! The oldest deleted snapshot is cleaned first, object by object, each step one transaction. A
//! version that the snapshot before it needs, too, goes to the list of that one as it is; where
//! that one has a version itself, it gets what it does not have.

use crate::snapshots::Versioned;
use crate::snapshots::record::Snapshot;
use crate::snapshots::version::{Completeness, List, ListedVersion, Version, is_kept, present};
use onode_base::planted::{Bug, is_planted};
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ErrorKind, Maintenance, Mutation, ObjectDevice, ObjectId, Result,
    Transaction,
};

/// Attributes that go in one step.
const ATTRIBUTES: usize = 64;
/// Holes that do.
const HOLES: usize = 16;
/// Content that is copied in one step, a multiple of what devices have it in.
const COPIED_BYTES: u64 = 256 << 10;
/// Content that is moved in one step.
const MOVED_BYTES: u64 = 4 << 20;

/// What is cleaned: a deleted snapshot, and the one before it that is to stay as it is.
struct Work {
    snapshot: Snapshot,
    before: Option<Snapshot>,
    list: List,
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// Does up to `budget` steps of removing what deleted snapshots kept.
    ///
    /// # Errors
    /// `NoSpace`, `ReadOnly`; those of the device.
    pub fn clean(&self, budget: u32) -> Result<Maintenance> {
        let mut done = 0;
        if let Some(why) = self.inner().info().read_only.filter(|_| self.is_cleaning()) {
            return Err(Error::new(ErrorKind::ReadOnly, why));
        }
        while done < budget {
            if self.clean_clone()? {
                done += 1;
                continue;
            }
            let records = self.records();
            let Some(snapshot) = records.next_removed().cloned() else {
                return Ok(Maintenance { done, more: false });
            };
            let before = records.before(snapshot.generation).cloned();
            let Some(list) = List::of(snapshot.generation) else { return Ok(Maintenance { done, more: false }) };
            let work = Work { snapshot, before, list };
            match work.list.entries(self.inner(), ObjectId(0), 1)?.first() {
                Some(next) => self.clean_version(&work, *next)?,
                None => {
                    drop(records);
                    self.finish(&work)?;
                }
            }
            done += 1;
        }
        Ok(Maintenance { done, more: self.is_cleaning() })
    }

    /// What a snapshot keeps of content that has changed since, up to the next one, in bytes of the
    /// medium. Takes as long as there are objects that have changed.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub fn kept_bytes(&self, generation: u32) -> Result<u64> {
        List::of(generation).map_or(Ok(0), |list| self.listed_bytes(&list, ObjectId(0)))
    }

    /// What the versions of a list take from an object on, in bytes of the medium.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn listed_bytes(&self, list: &List, from: ObjectId) -> Result<u64> {
        let (mut bytes, mut from) = (0, from);
        loop {
            let _records = self.records();
            let found = match list.entries(self.inner(), from, ATTRIBUTES) {
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(bytes),
                found => found?,
            };
            let Some(last) = found.last() else { return Ok(bytes) };
            from = ObjectId(last.object.0 + 1);
            for one in found {
                bytes += self.inner().stat(one.version)?.allocated;
            }
        }
    }

    /// Nothing is left of a snapshot, if nothing came meanwhile.
    fn finish(&self, work: &Work) -> Result<()> {
        let mut records = self.records.write();
        if !work.list.entries(self.inner(), ObjectId(0), 1)?.is_empty() {
            return Ok(());
        }
        let (left, mut mutations) = records.without(work.snapshot.generation);
        mutations.push(Mutation::Remove { object: work.list.0 });
        self.inner().commit(Transaction { mutations }, Durability::Buffered)?;
        *records = left;
        Ok(())
    }

    /// One step with the version of one object.
    fn clean_version(&self, work: &Work, listed: ListedVersion) -> Result<()> {
        let ListedVersion { object, version } = listed;
        let _changing = self.shards.change([object].into_iter());
        let out = work.list.without(object);
        let gone = vec![Mutation::Remove { object: version }, out.clone()];
        let mutations = match &work.before {
            // Nobody else looks at it, or the object came later.
            None => gone,
            Some(before) if object >= before.next_id => gone,
            Some(_) if is_planted(Bug::SnapshotBeforeForgotten) => gone,
            Some(before) => {
                let own = Version::first(self.inner(), object, before.generation)?;
                let own = own.filter(|own| own.id < version);
                let missing = || Error::new(ErrorKind::Bug, "a snapshot has a number that no version can have");
                let list = List::of(before.generation).ok_or_else(missing)?;
                match own {
                    None => list.with(version).into_iter().chain([out]).collect(),
                    Some(own) if own.standing != Completeness::Part => gone,
                    Some(own) => self.merge(own, Version::load(self.inner(), version)?)?.unwrap_or(gone),
                }
            }
        };
        let commit = || self.inner().commit(Transaction { mutations }, Durability::Buffered);
        self.shards.alone([object].into_iter(), commit)
    }

    /// What gives a version a part of what a later one has and it does not; `None` if there is no
    /// more of that.
    fn merge(&self, own: Version, later: Version) -> Result<Option<Vec<Mutation>>> {
        let attributes = self.merge_attributes(own, later)?;
        if !attributes.is_empty() {
            return Ok(Some(attributes));
        }
        let content = self.merge_content(own, later)?;
        if !content.is_empty() {
            return Ok(Some(content));
        }
        // Last, as from then on nothing is looked for behind it.
        if later.standing == Completeness::Part {
            return Ok(None);
        }
        Ok(Some(vec![Version { standing: Completeness::Whole, ..own }.header()]))
    }

    /// Some attributes: each goes to the version that lacks it, or just goes.
    fn merge_attributes(&self, own: Version, later: Version) -> Result<Vec<Mutation>> {
        let mut mutations = Vec::new();
        let mut next = Some(AttributeKey::new(AttributeKind(0), 0));
        while let Some(from) = next.filter(|_| mutations.is_empty()) {
            let found = self.inner().attributes(later.id, from, ATTRIBUTES)?;
            next = found.last().and_then(|(key, _)| key.next());
            for (key, value) in found {
                let is_absent = key.kind >= AttributeKind::FIRST_ABSENT;
                if !is_absent && !is_kept(key) {
                    continue;
                }
                if own.attribute(self.inner(), present(key))?.is_none() {
                    mutations.push(Mutation::SetAttribute { object: own.id, key, value });
                }
                mutations.push(Mutation::RemoveAttribute { object: later.id, key });
            }
        }
        Ok(mutations)
    }

    /// Some content and holes: they go to the version as far as it lacks them, or just go.
    fn merge_content(&self, own: Version, later: Version) -> Result<Vec<Mutation>> {
        // What lay behind the end of the later one was gone when that was made.
        if later.size < own.size && later.standing == Completeness::Part {
            let missing = own.covers(self.inner(), later.size, own.size)?.missing(later.size, own.size);
            if let Some((start, end)) = missing.iter().next() {
                return own.with_hole(self.inner(), start, end);
            }
        }
        let mut mutations = Vec::new();
        for (start, end) in later.holes(self.inner(), 0, HOLES)? {
            let until = end.min(own.size);
            for (start, end) in own.covers(self.inner(), start, until)?.missing(start, until).iter() {
                mutations.extend(own.with_hole(self.inner(), start, end)?);
            }
            mutations.push(later.without_hole(end));
        }
        if !mutations.is_empty() {
            return Ok(mutations);
        }
        let moves = self.inner().move_unit() == Some(1);
        let window = if moves { MOVED_BYTES } else { COPIED_BYTES };
        let Some(start) = later.first_data(self.inner())? else { return Ok(mutations) };
        let useful = own.size.min(later.size);
        let end = (start + window).min(useful);
        if start >= end {
            return Ok(mutations);
        }
        let lacks = own.covers(self.inner(), start, end)?.missing(start, end);
        for (from, until) in later.data_in(self.inner(), start, end)?.iter() {
            for (from, until) in lacks.within(from, until) {
                mutations.extend(own.with_data(self.inner(), from, until)?);
                mutations.push(if moves {
                    Mutation::Move { object: later.id, offset: from, length: until - from, to: own.id }
                } else {
                    let mut data = vec![0; (until - from) as usize];
                    self.inner().read(later.id, from, &mut data)?;
                    Mutation::Write { object: own.id, offset: from, data }
                });
            }
        }
        // What lies behind goes with it: a part of a unit would stay for ever.
        let length = if end == useful { u64::MAX - start } else { end - start };
        mutations.push(Mutation::Punch { object: later.id, offset: start, length });
        mutations.extend(later.without_data(self.inner(), start, end)?);
        Ok(mutations)
    }
}

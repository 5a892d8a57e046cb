//! What snapshots and clones lost when a repair dropped parts of the device below.
//!
//! A version that is gone leaves no trace for who reads through it: what came later would be shown
//! in its place. So a snapshot or clone that may need a version which lost something is given up,
//! and the lists are brought in line with what is there, so that the rest can be cleaned.
//!
//! It keeps true: a snapshot that stays shows nothing that never was in it. It goes by what the
//! repair says that it dropped, and by versions that are listed and not there.

use crate::snapshots::Versioned;
use crate::snapshots::record::{Records, Snapshot};
use crate::snapshots::version::{Completeness, FIRST_CLONED, List, Version};
use onode_object::{Durability, Error, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Objects or entries that are looked at together.
const AT_ONCE: usize = 64;

/// What a repair of a device dropped.
#[derive(Clone, Debug, Default)]
pub struct Dropped {
    objects: Vec<RangeInclusive<ObjectId>>,
    content: Vec<(ObjectId, Range<u64>)>,
}

impl Dropped {
    /// Something of these objects is gone, or they are.
    pub fn add_objects(&mut self, objects: RangeInclusive<ObjectId>) {
        self.objects.push(objects);
    }

    /// This range of an object is a hole now.
    pub fn add_content(&mut self, object: ObjectId, range: Range<u64>) {
        self.content.push((object, range));
    }

    /// Whether nothing is gone.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.content.is_empty()
    }

    fn has(&self, object: ObjectId) -> bool {
        self.objects.iter().any(|objects| objects.contains(&object))
    }

    /// Whether versions may be gone that nothing tells of.
    fn has_versions(&self) -> bool {
        ObjectId(1).version(0).is_some_and(|first| self.objects.iter().any(|objects| *objects.end() >= first))
    }
}

/// What is kept for snapshots and clones, as a repair left it.
struct Remains<'a, D: ?Sized> {
    device: &'a D,
    dropped: &'a Dropped,
    /// Versions that are there and whole, by object.
    sound: BTreeMap<ObjectId, Vec<(u32, Version)>>,
    /// Those that lost something or are gone.
    damaged: BTreeSet<(ObjectId, u32)>,
    /// Lists that lost entries.
    lists: BTreeSet<u32>,
    /// Those of the sound versions that are listed.
    listed: BTreeSet<ObjectId>,
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// Brings what is kept for snapshots and clones in line with what a repair left of the device:
    /// those that may show what never was in them are given up. Returns what is to be told of that,
    /// a sentence each.
    ///
    /// # Errors
    /// Those of the device.
    pub fn settle_dropped(inner: &Arc<D>, dropped: &Dropped) -> Result<Vec<String>> {
        let versions = inner.list(ObjectId::FIRST_VERSION, 1)?;
        let opened = match Self::open(Arc::clone(inner)) {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(opened)) if opened.records().is_new() && versions.is_empty() => return Ok(Vec::new()),
            Ok(Some(opened)) => Some(opened),
            Err(error) if error.kind == ErrorKind::Corrupt => None,
            Err(error) => return Err(error),
        };
        let known = |opened: &Self| !opened.records().is_new() && !dropped.has(ObjectId::SNAPSHOTS);
        let Some(opened) = opened.filter(known) else {
            Self::open_giving_up(Arc::clone(inner)).remove_all()?;
            return Ok(vec!["lost: all snapshots and clones: what told of them is lost".to_owned()]);
        };
        let records = opened.records().clone();
        let mut remains = Remains::of(inner.as_ref(), dropped);
        remains.look(&records)?;
        remains.enter_unlisted(&records)?;
        remains.tell_holes()?;
        let told = opened.give_up(&records, &remains)?;
        inner.sync(onode_object::SyncScope::All)?;
        Ok(told)
    }

    /// Gives up the snapshots and clones that may show what never was in them.
    fn give_up(&self, records: &Records, remains: &Remains<'_, D>) -> Result<Vec<String>> {
        let snapshots: Vec<&Snapshot> = records.shown().filter(|one| remains.hit_snapshot(one)).collect();
        let is_hit = |generation| snapshots.iter().any(|one| one.generation == generation);
        let mut told = Vec::new();
        for clone in records.shown_clones() {
            let has_base = records.base_of(clone).is_ok();
            if !has_base || is_hit(clone.base) || remains.hit_clone(clone.generation) {
                self.delete_clone(&clone.name, None)?;
                told.push(format!("lost: the clone `{}`: files in it lost what they had there", clone.name));
            }
        }
        for snapshot in snapshots {
            self.delete(&snapshot.name)?;
            told.push(format!("lost: the snapshot `{}`: what it had kept of files is lost", snapshot.name));
        }
        Ok(told)
    }
}

impl<'a, D: ObjectDevice + ?Sized> Remains<'a, D> {
    const fn of(device: &'a D, dropped: &'a Dropped) -> Self {
        Self {
            device,
            dropped,
            sound: BTreeMap::new(),
            damaged: BTreeSet::new(),
            lists: BTreeSet::new(),
            listed: BTreeSet::new(),
        }
    }

    fn commit(&self, mutations: Vec<Mutation>) -> Result<()> {
        if mutations.is_empty() {
            return Ok(());
        }
        self.device.commit(Transaction { mutations }, Durability::Buffered)
    }

    /// Looks at all versions and lists; what is damaged goes.
    fn look(&mut self, records: &Records) -> Result<()> {
        let mut from = ObjectId(1).version(0);
        while let Some(first) = from {
            let found = self.device.list(first, AT_ONCE)?;
            from = found.last().map(|last| ObjectId(last.0 + 1));
            for id in found {
                let Some((object, generation)) = id.version_of() else { return self.look_at_lists(records) };
                let version = match Version::load(self.device, id) {
                    Err(error) if error.kind != ErrorKind::Corrupt => return Err(error),
                    version => version.ok().filter(|_| !self.dropped.has(id)),
                };
                match version {
                    Some(version) => self.sound.entry(object).or_default().push((generation, version)),
                    None => {
                        self.damaged.insert((object, generation));
                        self.commit(vec![Mutation::Remove { object: id }])?;
                    }
                }
            }
        }
        self.look_at_lists(records)
    }

    fn look_at_lists(&mut self, records: &Records) -> Result<()> {
        for generation in records.lists() {
            let List(id) = List::of(generation).ok_or_else(impossible)?;
            let is_there = match self.device.stat(id) {
                Err(error) if error.kind == ErrorKind::NotFound => false,
                found => found.map(|_| true)?,
            };
            if !is_there || self.dropped.has(id) {
                self.lists.insert(generation);
            }
            let mut is_whole = is_there;
            if is_there {
                is_whole = match self.look_at_list(&List(id)) {
                    Err(error) if error.kind == ErrorKind::Corrupt => false,
                    looked => looked.map(|()| true)?,
                };
            }
            if !is_whole {
                self.lists.insert(generation);
                let removal = is_there.then_some(Mutation::Remove { object: id });
                self.commit(removal.into_iter().collect())?;
                self.commit(vec![Mutation::Create { object: id, hints: Hints::default() }])?;
            }
        }
        Ok(())
    }

    /// Takes out of a list what is not there.
    fn look_at_list(&mut self, list: &List) -> Result<()> {
        // The first number of a list is none of an object: that of a clone says which come next.
        let mut from = ObjectId(1);
        loop {
            let found = list.entries(self.device, from, AT_ONCE)?;
            let Some(last) = found.last() else { return Ok(()) };
            from = ObjectId(last.object.0 + 1);
            let mut out = Vec::new();
            for one in found {
                let Some((object, generation)) = one.version.version_of() else { continue };
                if self.sound_of(object).any(|(known, _)| *known == generation) {
                    self.listed.insert(one.version);
                } else {
                    self.damaged.insert((object, generation));
                    out.push(list.without(one.object));
                }
            }
            self.commit(out)?;
        }
    }

    fn sound_of(&self, object: ObjectId) -> impl Iterator<Item = &(u32, Version)> {
        self.sound.get(&object).into_iter().flatten()
    }

    /// Enters versions whose lists lost them, so that they go when nobody needs them.
    fn enter_unlisted(&self, records: &Records) -> Result<()> {
        for (object, versions) in &self.sound {
            for (generation, version) in versions.iter().filter(|(_, version)| !self.listed.contains(&version.id)) {
                let list = match *object >= FIRST_CLONED {
                    true => records.lists().find(|list| list == generation),
                    false => records.generations().filter(|list| list <= generation).last(),
                };
                let entry = list.and_then(List::of).and_then(|list| list.with(version.id));
                self.commit(vec![entry.unwrap_or(Mutation::Remove { object: version.id })])?;
            }
        }
        Ok(())
    }

    /// What became a hole of a version is one in the snapshot: what came later must not be shown
    /// there.
    fn tell_holes(&self) -> Result<()> {
        for (id, range) in self.dropped.content.iter().filter(|(id, _)| id.is_version()) {
            let found = id.version_of().and_then(|(object, _)| self.sound_of(object).find(|(_, one)| one.id == *id));
            if let Some((_, version)) = found.filter(|(_, version)| !version.is_told) {
                self.commit(version.with_hole(self.device, range.start, range.end)?)?;
            }
        }
        Ok(())
    }

    /// Whether a snapshot may show what never was in it.
    fn hit_snapshot(&self, snapshot: &Snapshot) -> bool {
        let needs = |(object, damaged): &(ObjectId, u32)| {
            // One that says that it is all hides those behind it.
            let hides = |(generation, version): &(u32, Version)| {
                (snapshot.generation..*damaged).contains(generation) && version.standing != Completeness::Part
            };
            *damaged >= snapshot.generation && *object < snapshot.next_id && !self.sound_of(*object).any(hides)
        };
        // Without its list nobody knows of a version that it was.
        let unknown = self.dropped.has_versions() && self.lists.iter().any(|list| *list >= snapshot.generation);
        unknown || self.damaged.iter().any(needs)
    }

    /// Whether a clone may. Its list has the numbers of what is made in it, too.
    fn hit_clone(&self, generation: u32) -> bool {
        let is_own = |(object, damaged): &(ObjectId, u32)| *object >= FIRST_CLONED && *damaged == generation;
        self.lists.contains(&generation) || self.damaged.iter().any(is_own)
    }
}

fn impossible() -> Error {
    Error::new(ErrorKind::Bug, "a snapshot has a number that no version can have")
}

#[cfg(test)]
mod tests;

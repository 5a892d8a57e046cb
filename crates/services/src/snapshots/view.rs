//! A snapshot as a device on which nothing changes: what versions kept, over what has not changed
//! since.

use crate::ranges::Ranges;
use crate::snapshots::Versioned;
use crate::snapshots::merge::Merge;
use crate::snapshots::version::{Completeness, Version, data_of};
use onode_object::powers::Decision;
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, ErrorKind, Health, Maintenance, ObjectDevice, ObjectId, ObjectStat,
    Result, Space, SyncScope, Transaction,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Ids that are looked at at once.
const IDS: usize = 64;
/// Content whose places are looked up at once.
const WINDOW_BYTES: u64 = 4 << 20;

/// A device that shows another one as it was when a snapshot was taken.
pub struct SnapshotView<D: ?Sized> {
    device: Arc<Versioned<D>>,
    generation: u32,
    next_id: ObjectId,
}

/// An object as the snapshot has it.
struct ObjectThen {
    object: ObjectId,
    versions: Vec<Version>,
    /// What is in no version is in the object itself, which has this size.
    live_size: Option<u64>,
}

impl ObjectThen {
    fn size(&self) -> u64 {
        self.versions.first().map_or(self.live_size.unwrap_or(0), |first| first.size)
    }
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// The snapshot of a name, as a device on which nothing changes.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn view(self: &Arc<Self>, name: &str) -> Result<SnapshotView<D>> {
        let records = self.records();
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no snapshot `{name}`"));
        let snapshot = records.named(name).ok_or_else(missing)?;
        let (generation, next_id) = (snapshot.generation, snapshot.next_id);
        drop(records);
        Ok(SnapshotView { device: Arc::clone(self), generation, next_id })
    }
}

impl<D: ObjectDevice + ?Sized> SnapshotView<D> {
    fn inner(&self) -> &D {
        self.device.inner()
    }

    /// Looks at an object while nothing of it goes to a version.
    fn look<T>(&self, object: ObjectId, look: impl FnOnce() -> Result<T>) -> Result<T> {
        let records = self.device.records();
        if !records.shows(self.generation) {
            return Err(Error::new(ErrorKind::Stale, "the snapshot was deleted"));
        }
        let _content = self.device.reading(object);
        look()
    }

    /// The object, if the snapshot has it.
    fn find(&self, object: ObjectId) -> Result<Option<ObjectThen>> {
        if object >= self.next_id || Versioned::<D>::is_own(object) {
            return Ok(None);
        }
        let mut versions = Version::all(self.inner(), object, self.generation)?;
        if versions.first().is_some_and(|first| first.standing == Completeness::Absent) {
            return Ok(None);
        }
        if let Some(last) = versions.iter().position(|one| one.standing != Completeness::Part) {
            versions.truncate(last + 1);
            return Ok(Some(ObjectThen { object, versions, live_size: None }));
        }
        match self.inner().stat(object) {
            Ok(stat) => Ok(Some(ObjectThen { object, versions, live_size: Some(stat.size) })),
            Err(error) if error.kind == ErrorKind::NotFound => {
                let lost = || Error::of(ErrorKind::Corrupt, object, "a version has lost the object that it is of");
                if versions.is_empty() { Ok(None) } else { Err(lost()) }
            }
            Err(error) => Err(error),
        }
    }

    fn require(&self, object: ObjectId) -> Result<ObjectThen> {
        self.find(object)?.ok_or_else(|| Error::of(ErrorKind::NotFound, object, "the snapshot has no such object"))
    }

    /// Where the content in a range lies, by objects, as far as there is any.
    fn places(&self, seen: &ObjectThen, start: u64, end: u64) -> Result<Vec<(ObjectId, Ranges)>> {
        let mut left = Ranges::of(start, end);
        let mut places = Vec::new();
        for version in &seen.versions {
            // What lay behind the end of a version was gone when it was made.
            left.remove(version.size, u64::MAX);
            if left.is_empty() {
                return Ok(places);
            }
            let covered = version.covers(self.inner(), start, left.end())?;
            let mut found = Ranges::default();
            for (from, until) in covered.data.iter() {
                left.within(from, until).for_each(|(from, until)| found.add(from, until));
            }
            covered.leave_out(&mut left);
            places.push((version.id, found));
        }
        if let Some(size) = seen.live_size {
            left.remove(size, u64::MAX);
            let data = if left.is_empty() {
                Ranges::default()
            } else {
                data_of(self.inner(), seen.object, start, left.end())?
            };
            let mut found = Ranges::default();
            for (from, until) in data.iter() {
                left.within(from, until).for_each(|(from, until)| found.add(from, until));
            }
            places.push((seen.object, found));
        }
        Ok(places)
    }

    /// Where the next content may begin, at or after `from`; `None` if there is none.
    fn next_data(&self, seen: &ObjectThen, from: u64) -> Result<Option<u64>> {
        let ids = seen.versions.iter().map(|version| version.id).chain(seen.live_size.map(|_| seen.object));
        let mut next = None;
        for id in ids {
            if let Some((start, _)) = self.inner().extents(id, from, 1)?.first() {
                let start = (*start).max(from);
                next = Some(next.map_or(start, |next: u64| next.min(start)));
            }
        }
        Ok(next.filter(|next| *next < seen.size()))
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for SnapshotView<D> {
    fn info(&self) -> DeviceInfo {
        let info = self.inner().info();
        DeviceInfo { read_only: Some("a snapshot does not change".into()), ..info }
    }

    fn reserve_ids(&self, _: u64) -> Result<ObjectId> {
        Err(fixed())
    }

    fn commit(&self, _: Transaction, _: Durability) -> Result<()> {
        Err(fixed())
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        Ok(())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.look(object, || {
            let seen = self.require(object)?;
            let count = (buffer.len() as u64).min(seen.size().saturating_sub(offset));
            let buffer = &mut buffer[..count as usize];
            if seen.versions.is_empty() {
                return self.inner().read(object, offset, buffer);
            }
            buffer.fill(0);
            for (id, ranges) in self.places(&seen, offset, offset + count)? {
                for (from, until) in ranges.iter() {
                    let part = &mut buffer[(from - offset) as usize..(until - offset) as usize];
                    self.inner().read(id, from, part)?;
                }
            }
            Ok(count as usize)
        })
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.look(object, || {
            let seen = self.require(object)?;
            for version in &seen.versions {
                if let Some(kept) = version.attribute(self.inner(), key)? {
                    return Ok(kept);
                }
            }
            if seen.live_size.is_some() { self.inner().attribute(object, key) } else { Ok(None) }
        })
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.look(object, || {
            let seen = self.require(object)?;
            let live = seen.live_size.map(|_| object);
            Merge::new(self.inner(), &seen.versions, live, from).take(limit)
        })
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.look(object, || {
            let seen = self.require(object)?;
            let Some(first) = seen.versions.first() else { return self.inner().stat(object) };
            let stat = self.inner().stat(first.id)?;
            let mut allocated = stat.allocated;
            for id in seen.versions.iter().skip(1).map(|one| one.id).chain(seen.live_size.map(|_| object)) {
                allocated += self.inner().stat(id)?.allocated;
            }
            // Later content may lie in what was a hole then, or behind the end.
            Ok(ObjectStat { size: first.size, allocated: allocated.min(first.size), ..stat })
        })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut from = from;
        loop {
            // Those that are there now, and those of which only versions are.
            let now = self.device.list(from, IDS)?;
            let gone = match from.version(0).filter(|_| from < self.next_id) {
                Some(first) => self.inner().list(first, IDS)?,
                None => Vec::new(),
            };
            let gone: Vec<_> = gone.into_iter().filter_map(|id| Some(id.version_of()?.0)).collect();
            // Of the one that goes on, what lies behind its last one is not known yet.
            let ends = [now.last(), gone.last()].into_iter().flatten().copied();
            let Some(end) = ends.min() else { return Ok(Vec::new()) };
            let all: BTreeSet<_> = now.into_iter().chain(gone).filter(|id| *id >= from && *id <= end).collect();
            let mut found = Vec::new();
            for object in all.into_iter().take_while(|object| *object < self.next_id) {
                if self.look(object, || self.find(object))?.is_some() {
                    found.push(object);
                }
            }
            found.truncate(limit);
            if !found.is_empty() || end >= self.next_id {
                return Ok(found);
            }
            from = ObjectId(end.0 + 1);
        }
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.look(object, || {
            let seen = self.require(object)?;
            if seen.versions.is_empty() {
                return self.inner().extents(object, offset, limit);
            }
            let mut all = Ranges::default();
            let mut at = offset;
            while all.count() < limit
                && let Some(start) = self.next_data(&seen, at)?
            {
                at = (start + WINDOW_BYTES).min(seen.size());
                for (_, ranges) in self.places(&seen, start, at)? {
                    ranges.iter().for_each(|(from, until)| all.add(from, until));
                }
            }
            Ok(all.iter().take(limit).map(|(from, until)| (from, until - from)).collect())
        })
    }

    fn space(&self) -> Space {
        Space { available: 0, ..self.inner().space() }
    }

    fn maintain(&self, _: u32) -> Result<Maintenance> {
        Ok(Maintenance::default())
    }

    /// The device that the snapshot is of stays open.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn health(&self) -> Health {
        self.inner().health()
    }

    fn decisions(&self, _: ObjectId) -> Result<Vec<Decision>> {
        Ok(Vec::new())
    }
}

fn fixed() -> Error {
    Error::new(ErrorKind::ReadOnly, "a snapshot does not change")
}

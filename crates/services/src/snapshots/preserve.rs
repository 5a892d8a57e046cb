//! Preserving: what a transaction is about to change goes to versions of its objects first.
//!
//! All is preserved as it is before the transaction, by mutations that stand before those of the
//! transaction. Nothing is preserved twice: what an object was at the last snapshot is what the
//! first change since then finds.
//!
//! Content is moved where the device can do that, else copied. Copies may become durable before the
//! change that they are for: they say what is still true then. So they go ahead in transactions of
//! their own if they are large. What is moved is gone from its object, which the same transaction
//! changes.

use crate::ranges::Ranges;
use crate::snapshots::record::Snapshot;
use crate::snapshots::version::{Completeness, GRAIN_BYTES, List, Version, absent, data_of, version_id};
use onode_object::{AttributeKey, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Content that is copied at once.
const COPIED_BYTES: u64 = 256 << 10;
/// Attributes that are looked at once.
const ATTRIBUTES: usize = 64;

/// What is preserved of an object.
struct Kept {
    /// Where it goes.
    version: Version,
    /// Versions that tell already how the object was: that one, if it was there before, and those
    /// of later snapshots that are gone, but not yet cleaned.
    before: Vec<Version>,
    /// All of the object is told: there was none, or it goes.
    is_over: bool,
    /// Attributes that were looked after.
    keys: BTreeSet<AttributeKey>,
    /// Content that was.
    content: Ranges,
}

/// What preserves the state of one snapshot.
pub(super) struct Preserving<'a, D: ?Sized> {
    device: &'a D,
    snapshot: &'a Snapshot,
    list: List,
    /// Content is moved in whole ones of these; `None`: it is copied.
    unit: Option<u64>,
    objects: BTreeMap<ObjectId, Option<Kept>>,
    /// What can become durable by itself.
    ahead: Vec<Mutation>,
    ahead_bytes: u64,
    ahead_bytes_max: u64,
    /// What can not.
    last: Vec<Mutation>,
}

impl<'a, D: ObjectDevice + ?Sized> Preserving<'a, D> {
    /// Nothing is preserved yet. Content is copied unless it may be moved, and the device can.
    pub(super) fn new(device: &'a D, snapshot: &'a Snapshot, moves: bool) -> Option<Self> {
        Some(Self {
            device,
            snapshot,
            list: List::of(snapshot.generation)?,
            unit: device.move_unit().filter(|_| moves),
            objects: BTreeMap::new(),
            ahead: Vec::new(),
            ahead_bytes: 0,
            ahead_bytes_max: (device.info().transaction_bytes as u64 / 2).max(COPIED_BYTES),
            last: Vec::new(),
        })
    }

    /// What has to be done before a transaction, and with it. Who calls this waits for nobody else
    /// to change the objects of the transaction.
    ///
    /// # Errors
    /// `NoSpace` and others of the device; nothing was changed then that anybody sees.
    pub(super) fn preserve(mut self, transaction: &Transaction) -> Result<Vec<Mutation>> {
        for mutation in &transaction.mutations {
            self.preserve_for(mutation)?;
        }
        self.ahead.append(&mut self.last);
        Ok(self.ahead)
    }

    fn preserve_for(&mut self, mutation: &Mutation) -> Result<()> {
        let object = mutation.object();
        if matches!(mutation, Mutation::SetAccessTime { .. }) || !self.is_kept(object)? {
            return Ok(());
        }
        match mutation {
            // That there was none is told by the version.
            Mutation::Create { .. } | Mutation::SetHints { .. } | Mutation::SetAccessTime { .. } => Ok(()),
            Mutation::Remove { .. } => self.preserve_all(object),
            Mutation::Write { offset, data, .. } => {
                self.preserve_content(object, *offset..offset.saturating_add(data.len() as u64), true)
            }
            Mutation::Truncate { size, .. } => self.preserve_content(object, *size..u64::MAX, false),
            Mutation::Punch { offset, length, .. } => {
                self.preserve_content(object, *offset..offset.saturating_add(*length), false)
            }
            Mutation::SetAttribute { key, .. } | Mutation::RemoveAttribute { key, .. } => {
                self.preserve_attribute(object, *key)
            }
            Mutation::Move { .. } => {
                Err(Error::of(ErrorKind::Invalid, object, "nothing is moved between objects here"))
            }
        }
    }

    /// Whether anything of an object is preserved; its version is made if there is none.
    fn is_kept(&mut self, object: ObjectId) -> Result<bool> {
        if let Some(known) = self.objects.get(&object) {
            return Ok(known.as_ref().is_some_and(|kept| !kept.is_over));
        }
        let kept = if object >= self.snapshot.next_id { None } else { self.version_of(object)? };
        let is_kept = kept.as_ref().is_some_and(|kept| !kept.is_over);
        self.objects.insert(object, kept);
        Ok(is_kept)
    }

    fn version_of(&mut self, object: ObjectId) -> Result<Option<Kept>> {
        let (keys, content) = (BTreeSet::new(), Ranges::default());
        let before = Version::all(self.device, object, self.snapshot.generation)?;
        if let Some(version) = before.first().copied() {
            // What lies behind an end is told by no later one.
            let is_over = before.iter().any(|one| one.standing != Completeness::Part);
            return Ok(Some(Kept { version, before, is_over, keys, content }));
        }
        let too_many = || Error::of(ErrorKind::NoSpace, object, "objects with such numbers can have no versions");
        let id = version_id(object, self.snapshot.generation).ok_or_else(too_many)?;
        let (standing, stat) = match self.device.stat(object) {
            Ok(stat) => (Completeness::Part, stat),
            Err(error) if error.kind == ErrorKind::NotFound => (Completeness::Absent, Default::default()),
            Err(error) => return Err(error),
        };
        let is_told = standing == Completeness::Part && !self.device.extents_are_exact();
        let version = Version { id, standing, size: stat.size, is_told };
        self.ahead.push(Mutation::Create { object: id, hints: stat.hints });
        self.ahead.push(version.header());
        if stat.accessed != 0 {
            self.ahead.push(Mutation::SetAccessTime { object: id, time: stat.accessed });
        }
        self.ahead.extend(self.list.with(id));
        let is_over = standing == Completeness::Absent;
        Ok(Some(Kept { version, before, is_over, keys, content }))
    }

    fn kept(&mut self, object: ObjectId) -> Option<&mut Kept> {
        self.objects.get_mut(&object).and_then(Option::as_mut)
    }

    fn preserve_attribute(&mut self, object: ObjectId, key: AttributeKey) -> Result<()> {
        match self.lacking(object, key)? {
            Some(version) => self.keep_attribute(version, key, self.device.attribute(object, key)?),
            None => Ok(()),
        }
    }

    /// The version that is to keep an attribute of an object, if nothing tells of it yet.
    fn lacking(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<ObjectId>> {
        let Some(kept) = self.objects.get_mut(&object).and_then(Option::as_mut) else { return Ok(None) };
        if !kept.keys.insert(key) {
            return Ok(None);
        }
        for one in &kept.before {
            if one.attribute(self.device, key)?.is_some() {
                return Ok(None);
            }
        }
        Ok(Some(kept.version.id))
    }

    fn keep_attribute(&mut self, version: ObjectId, key: AttributeKey, value: Option<Vec<u8>>) -> Result<()> {
        let (key, value) = match value {
            Some(value) => (key, value),
            None => (absent(key), Vec::new()),
        };
        let bytes = value.len() as u64;
        self.ahead.push(Mutation::SetAttribute { object: version, key, value });
        self.count(bytes)
    }

    /// Preserves content in a range; it is to be filled, or to be a hole.
    fn preserve_content(&mut self, object: ObjectId, changed: Range<u64>, fills: bool) -> Result<()> {
        let Some(kept) = self.kept(object) else { return Ok(()) };
        let (version, before) = (kept.version, kept.before.clone());
        // What lay behind an end was gone when a version was made.
        let known_end = before.iter().map(|one| one.size).min().unwrap_or(version.size);
        if changed.start >= changed.end.min(known_end) {
            return Ok(());
        }
        let size = self.device.stat(object)?.size;
        let movable = self.movable(&changed, size);
        // A device may have data in whole units only, and says so of all of one of which a part has
        // some: a version has all of it or nothing.
        let start = changed.start / GRAIN_BYTES * GRAIN_BYTES;
        let end = changed.end.checked_next_multiple_of(GRAIN_BYTES).unwrap_or(u64::MAX).min(known_end);
        let mut wanted = Ranges::of(start, end);
        if let Some(kept) = self.kept(object) {
            kept.content.within(start, end).for_each(|(from, until)| wanted.remove(from, until));
        }
        for (start, end) in wanted.iter() {
            let mut missing = Ranges::of(start, end);
            for one in &before {
                one.covers(self.device, start, end)?.leave_out(&mut missing);
            }
            for (start, end) in missing.iter() {
                let data = data_of(self.device, object, start, end.min(size))?;
                for (from, until) in data.iter() {
                    self.keep_content(object, version, from..until, &movable)?;
                }
                let mut done = data;
                // What becomes a hole where one was is as it was until it is filled.
                if fills {
                    let mut holes = Ranges::of(start, end);
                    done.iter().for_each(|(from, until)| holes.remove(from, until));
                    for (from, until) in holes.iter() {
                        self.ahead.extend(version.with_hole(self.device, from, until)?);
                        done.add(from, until);
                    }
                }
                if let Some(kept) = self.kept(object) {
                    done.iter().for_each(|(from, until)| kept.content.add(from, until));
                }
            }
        }
        Ok(())
    }

    /// What of a changed range of an object can be moved: whole units of it.
    fn movable(&self, changed: &Range<u64>, size: u64) -> Range<u64> {
        let Some(unit) = self.unit else { return 0..0 };
        let start = changed.start.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
        start..if changed.end >= size { size } else { changed.end / unit * unit }
    }

    /// Gives a version content that an object has: moved as far as that can be, else copied.
    fn keep_content(
        &mut self,
        object: ObjectId,
        version: Version,
        range: Range<u64>,
        movable: &Range<u64>,
    ) -> Result<()> {
        let (version, told) = (version.id, version.with_data(self.device, range.start, range.end)?);
        self.last.extend(told);
        let (from, until) = (range.start.max(movable.start), range.end.min(movable.end));
        if from >= until {
            return self.copy(object, version, range);
        }
        self.copy(object, version, range.start..from)?;
        self.copy(object, version, until..range.end)?;
        self.last.push(Mutation::Move { object, offset: from, length: until - from, to: version });
        Ok(())
    }

    fn copy(&mut self, object: ObjectId, version: ObjectId, range: Range<u64>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let mut data = vec![0; (range.end - at).min(COPIED_BYTES) as usize];
            let count = self.device.read(object, at, &mut data)?;
            data.truncate(count);
            if data.is_empty() {
                break;
            }
            let offset = at;
            at += count as u64;
            self.ahead.push(Mutation::Write { object: version, offset, data });
            self.count(count as u64)?;
        }
        Ok(())
    }

    /// Preserves all that there is of an object, which is about to go.
    fn preserve_all(&mut self, object: ObjectId) -> Result<()> {
        let mut next = Some(AttributeKey::new(onode_object::AttributeKind(0), 0));
        while let Some(from) = next {
            let found = self.device.attributes(object, from, ATTRIBUTES)?;
            next = found.last().and_then(|(key, _)| key.next());
            for (key, value) in found {
                if let Some(version) = self.lacking(object, key)? {
                    self.keep_attribute(version, key, Some(value))?;
                }
            }
        }
        self.preserve_content(object, 0..u64::MAX, false)?;
        if let Some(kept) = self.kept(object) {
            kept.is_over = true;
            let end = kept.before.last().copied().unwrap_or(kept.version);
            self.last.push(Version { standing: Completeness::Whole, ..end }.header());
        }
        Ok(())
    }

    /// Counts what goes ahead; it goes when it is too much for one transaction.
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.ahead_bytes += bytes;
        if self.ahead_bytes < self.ahead_bytes_max {
            return Ok(());
        }
        self.ahead_bytes = 0;
        let mutations = std::mem::take(&mut self.ahead);
        self.device.commit(Transaction { mutations }, Durability::Buffered)
    }
}

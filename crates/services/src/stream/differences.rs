//! Differences: the mutations that lead from one state of all objects to another.
//!
//! They are made one small batch after another, from two devices that show the two states. With a
//! span it is known where the two can differ at all, and only there is looked. Services below may
//! change what content reads as and leave their stored bytes alone: a hole in the middle of what
//! was sealed or compressed as one is an attribute of theirs. So content counts as changed that an
//! attribute of a service tells of.

use crate::ranges::Ranges;
use crate::snapshots::{ObjectChange, Snapshot, Span, Versioned, data_of};
use crate::stream::stat;
use onode_base::planted::{Bug, is_planted};
use onode_object::{
    AttributeKey, AttributeKind, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, ObjectStat, Result,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of mutations in one batch, somewhat less than that or one step more.
const BATCH_BYTES: usize = 256 << 10;
/// What services below may store as one: a range that changed there may have changed in all of it.
const WINDOW_BYTES: u64 = 64 << 10;
/// Content is compared in these.
const BLOCK_BYTES: usize = 4096;
/// Content that is read in one step, a multiple of the window.
const STEP_BYTES: u64 = 128 << 10;
/// Objects and attributes that are asked for at once.
const AT_ONCE: usize = 128;
/// What a mutation takes beside its bytes.
const MUTATION_BYTES: usize = 32;

/// The other state, and where to look.
struct Compared {
    state: Arc<dyn ObjectDevice>,
    versioned: Arc<Versioned<dyn ObjectDevice>>,
    span: Span,
}

/// Which objects are looked at next.
enum Ahead {
    /// Those from here on of the other state, which this one may not have. They come first: what
    /// goes makes room.
    Gone(ObjectId),
    /// These.
    Changed,
    /// Those that there are from here on.
    Listed(ObjectId),
    Nothing,
}

/// How far an object is.
struct Current {
    object: ObjectId,
    size: u64,
    /// The attributes that are compared; `None`: all that the object has are told.
    keys: Option<BTreeSet<AttributeKey>>,
    /// Attributes from here on are not told yet.
    next_key: Option<AttributeKey>,
    /// Where content is compared; `None`: all of it is told.
    content: Option<Ranges>,
    /// Content from here on is not told yet.
    at: u64,
}

/// What leads from one state to another.
pub struct Differences {
    state: Arc<dyn ObjectDevice>,
    before: Option<Compared>,
    ahead: Ahead,
    changed: BTreeSet<ObjectId>,
    found: Vec<ObjectId>,
    current: Option<Current>,
    batch: Vec<Mutation>,
    batch_bytes: usize,
}

impl Differences {
    /// From nothing to all that a device shows.
    #[must_use]
    pub fn whole(state: Arc<dyn ObjectDevice>) -> Self {
        Self::new(state, None, BTreeSet::new())
    }

    /// From a snapshot to a later one. `from` and `to` show the two, with all services that stand
    /// on the device that has them.
    ///
    /// # Errors
    /// `Invalid` if the first is not the earlier one; `Corrupt`; those of the device.
    pub fn between(
        versioned: &Arc<Versioned<dyn ObjectDevice>>,
        from: (&Snapshot, Arc<dyn ObjectDevice>),
        to: (&Snapshot, Arc<dyn ObjectDevice>),
    ) -> Result<Self> {
        Self::compared(versioned, Span::new(from.0, Some(to.0))?, from.1, to.1)
    }

    /// Back to a snapshot, from what there is now.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub fn back(
        versioned: &Arc<Versioned<dyn ObjectDevice>>,
        now: Arc<dyn ObjectDevice>,
        to: (&Snapshot, Arc<dyn ObjectDevice>),
    ) -> Result<Self> {
        Self::compared(versioned, Span::new(to.0, None)?, now, to.1)
    }

    fn compared(
        versioned: &Arc<Versioned<dyn ObjectDevice>>,
        span: Span,
        from: Arc<dyn ObjectDevice>,
        to: Arc<dyn ObjectDevice>,
    ) -> Result<Self> {
        let mut changed = versioned.changed_objects(&span)?;
        // The others are listed.
        drop(changed.split_off(&span.next_id()));
        let before = Compared { state: from, versioned: Arc::clone(versioned), span };
        Ok(Self::new(to, Some(before), changed))
    }

    fn new(state: Arc<dyn ObjectDevice>, before: Option<Compared>, changed: BTreeSet<ObjectId>) -> Self {
        let ahead = match &before {
            Some(before) => Ahead::Gone(before.span.next_id()),
            None => Ahead::Listed(ObjectId(0)),
        };
        Self { state, before, ahead, changed, found: Vec::new(), current: None, batch: Vec::new(), batch_bytes: 0 }
    }

    /// The next mutations; none after the last ones.
    ///
    /// # Errors
    /// `Stale` if a snapshot was deleted meanwhile; those of the devices.
    pub fn next_batch(&mut self) -> Result<Vec<Mutation>> {
        while self.batch_bytes < BATCH_BYTES {
            match self.current.take() {
                Some(current) => self.current = self.go_on(current)?,
                None => match self.next_object()? {
                    Some(object) => self.current = self.begin(object)?,
                    None => break,
                },
            }
        }
        self.batch_bytes = 0;
        Ok(std::mem::take(&mut self.batch))
    }

    fn push(&mut self, mutation: Mutation) {
        self.batch_bytes += MUTATION_BYTES
            + match &mutation {
                Mutation::Write { data, .. } => data.len(),
                Mutation::SetAttribute { value, .. } => value.len(),
                _ => 0,
            };
        self.batch.push(mutation);
    }

    fn next_object(&mut self) -> Result<Option<ObjectId>> {
        loop {
            if let Some(object) = self.found.pop() {
                return Ok(Some(object));
            }
            let next_id = self.before.as_ref().map_or(ObjectId(0), |before| before.span.next_id());
            let (device, from) = match (&mut self.ahead, &self.before) {
                (Ahead::Gone(from), Some(before)) => (&before.state, from),
                (Ahead::Changed, _) => match self.changed.pop_first() {
                    Some(object) => return Ok(Some(object)),
                    None => {
                        self.ahead = Ahead::Listed(next_id);
                        continue;
                    }
                },
                (Ahead::Listed(from), _) => (&self.state, from),
                (Ahead::Gone(_) | Ahead::Nothing, _) => return Ok(None),
            };
            self.found = device.list(*from, AT_ONCE)?;
            self.found.reverse();
            if let Some(last) = self.found.first() {
                *from = ObjectId(last.0 + 1);
                continue;
            }
            self.ahead = match self.ahead {
                Ahead::Gone(_) => Ahead::Changed,
                _ => Ahead::Nothing,
            };
        }
    }

    /// Begins with an object; `None` if all is told of it.
    fn begin(&mut self, object: ObjectId) -> Result<Option<Current>> {
        let now = stat(self.state.as_ref(), object)?;
        // It is told when it is listed.
        if matches!(self.ahead, Ahead::Gone(_)) && now.is_some() {
            return Ok(None);
        }
        let Some(before) = &self.before else { return Ok(now.map(|now| self.create(object, &now))) };
        let then = stat(before.state.as_ref(), object)?;
        let change = before.versioned.change_of(object, &before.span)?;
        Ok(match (then, now, change) {
            (None, None, _) => None,
            (Some(_), None, _) => {
                self.push(Mutation::Remove { object });
                None
            }
            (Some(then), Some(now), ObjectChange::Part { keys, content }) => {
                Some(self.change(object, [&then, &now], keys, &content))
            }
            // It went and came again meanwhile: with a restore, for example, much as it was.
            (Some(then), Some(now), ObjectChange::Whole) => {
                let mut keys = keys_of(before.state.as_ref(), object)?;
                keys.append(&mut keys_of(self.state.as_ref(), object)?);
                Some(self.change(object, [&then, &now], keys, &Ranges::of(0, u64::MAX)))
            }
            (None, Some(now), _) => Some(self.create(object, &now)),
        })
    }

    /// Says that an object is to be made, all of which is told then.
    fn create(&mut self, object: ObjectId, stat: &ObjectStat) -> Current {
        self.push(Mutation::Create { object, hints: stat.hints });
        if stat.size > 0 {
            self.push(Mutation::Truncate { object, size: stat.size });
        }
        if stat.accessed > 0 {
            self.push(Mutation::SetAccessTime { object, time: stat.accessed });
        }
        let next_key = Some(AttributeKey::new(AttributeKind(0), 0));
        Current { object, size: stat.size, keys: None, next_key, content: None, at: 0 }
    }

    /// Says what differs of the object itself.
    fn change(
        &mut self,
        object: ObjectId,
        [then, now]: [&ObjectStat; 2],
        keys: BTreeSet<AttributeKey>,
        changed: &Ranges,
    ) -> Current {
        if then.hints != now.hints {
            self.push(Mutation::SetHints { object, hints: now.hints });
        }
        if then.size != now.size {
            self.push(Mutation::Truncate { object, size: now.size });
        }
        if then.accessed != now.accessed {
            self.push(Mutation::SetAccessTime { object, time: now.accessed });
        }
        let mut content = Ranges::default();
        for (start, end) in changed.iter() {
            let start = start - start % WINDOW_BYTES;
            content.add(start, end.checked_next_multiple_of(WINDOW_BYTES).unwrap_or(u64::MAX).min(now.size));
        }
        content.add(then.size.min(now.size), now.size);
        if !is_planted(Bug::StreamServiceForgotten) {
            let told = keys.iter().filter_map(|key| content_of(*key));
            told.for_each(|range| content.add(range.start, range.end.min(now.size)));
        }
        let next_key = keys.first().copied();
        Current { object, size: now.size, keys: Some(keys), next_key, content: Some(content), at: 0 }
    }

    /// Tells some more of an object; `None` if that is all.
    fn go_on(&mut self, mut current: Current) -> Result<Option<Current>> {
        if let Some(from) = current.next_key {
            current.next_key = match &current.keys {
                None => self.tell_attributes(current.object, from)?,
                Some(keys) => {
                    let keys: Vec<_> = keys.range(from..).copied().take(AT_ONCE).collect();
                    self.compare_attributes(current.object, &keys)?;
                    keys.last().and_then(|last| last.next()).filter(|_| keys.len() == AT_ONCE)
                }
            };
            return Ok(Some(current));
        }
        let next = match &current.content {
            None => self.tell_content(&current)?,
            Some(ranges) => self.compare_content(&current, ranges)?,
        };
        Ok(next.map(|at| Current { at, ..current }))
    }

    fn tell_attributes(&mut self, object: ObjectId, from: AttributeKey) -> Result<Option<AttributeKey>> {
        let found = self.state.attributes(object, from, AT_ONCE)?;
        let next = found.last().and_then(|(key, _)| key.next());
        for (key, value) in found {
            self.push(Mutation::SetAttribute { object, key, value });
        }
        Ok(next)
    }

    fn compare_attributes(&mut self, object: ObjectId, keys: &[AttributeKey]) -> Result<()> {
        for key in keys {
            let now = self.state.attribute(object, *key)?;
            let then = match &self.before {
                Some(before) => before.state.attribute(object, *key)?,
                None => None,
            };
            match now {
                now if now == then => {}
                Some(value) => self.push(Mutation::SetAttribute { object, key: *key, value }),
                None => self.push(Mutation::RemoveAttribute { object, key: *key }),
            }
        }
        Ok(())
    }

    /// Tells the next content; returns where it goes on.
    fn tell_content(&mut self, current: &Current) -> Result<Option<u64>> {
        let Current { object, size, at, .. } = *current;
        let Some((start, length)) = self.state.extents(object, at, 1)?.first().copied() else { return Ok(None) };
        let (start, end) = (start.max(at), (start + length).min(size));
        if start >= end {
            return Ok(None);
        }
        let end = end.min(start + STEP_BYTES);
        self.write(object, start, end)?;
        Ok(Some(end))
    }

    fn write(&mut self, object: ObjectId, start: u64, end: u64) -> Result<()> {
        let data = read(self.state.as_ref(), object, start, end)?;
        self.push(Mutation::Write { object, offset: start, data });
        Ok(())
    }

    /// Compares the next content in ranges that may have changed; returns where it goes on.
    fn compare_content(&mut self, current: &Current, ranges: &Ranges) -> Result<Option<u64>> {
        let Current { object, size, at, .. } = *current;
        let Some(then) = self.before.as_ref().map(|before| Arc::clone(&before.state)) else { return Ok(None) };
        let Some((start, end)) = ranges.within(at, size).next() else { return Ok(None) };
        // Holes may be very large.
        let next = |device: &dyn ObjectDevice| -> Result<Option<u64>> {
            Ok(device.extents(object, start, 1)?.first().map(|(from, _)| (*from).max(start)))
        };
        let nearest = [next(then.as_ref())?, next(self.state.as_ref())?].into_iter().flatten().min();
        let Some(nearest) = nearest.filter(|nearest| *nearest < size) else { return Ok(None) };
        if nearest >= end {
            return Ok(Some(end));
        }
        let start = nearest - nearest % BLOCK_BYTES as u64;
        let start = start.max(at);
        let end = end.min((start + STEP_BYTES) / WINDOW_BYTES * WINDOW_BYTES);
        let data = data_of(self.state.as_ref(), object, start, end)?;
        let before = data_of(then.as_ref(), object, start, end)?;
        for (from, until) in before.iter() {
            let mut gone = Ranges::of(from, until);
            data.iter().for_each(|(from, until)| gone.remove(from, until));
            for (from, until) in gone.iter() {
                // A device may keep a part of a block that was punched.
                if read(then.as_ref(), object, from, until)?.iter().any(|byte| *byte != 0) {
                    self.push(Mutation::Punch { object, offset: from, length: until - from });
                }
            }
        }
        for (from, until) in data.iter() {
            let bytes = read(self.state.as_ref(), object, from, until)?;
            let mut old = vec![0; bytes.len()];
            let count = then.read(object, from, &mut old)?;
            old[count..].fill(0);
            let differs = |block: &(usize, usize)| {
                let (first, end) = (from + block.0 as u64, from + block.1 as u64);
                !before.covers(first, end) || bytes[block.0..block.1] != old[block.0..block.1]
            };
            let mut changed = Ranges::default();
            for (first, end) in blocks(from, until).filter(differs) {
                changed.add(first as u64, end as u64);
            }
            for (first, end) in changed.iter() {
                let data = bytes[first as usize..end as usize].to_vec();
                self.push(Mutation::Write { object, offset: from + first, data });
            }
        }
        Ok(Some(end))
    }
}

/// The content of which an attribute of a service below tells.
fn content_of(key: AttributeKey) -> Option<Range<u64>> {
    #[cfg(feature = "compression")]
    if let Some(told) = crate::compressed::map::content_of(key) {
        return Some(told);
    }
    #[cfg(feature = "encryption")]
    if let Some(told) = crate::encrypted::map::content_of(key) {
        return Some(told);
    }
    let _ = key;
    None
}

/// The parts of a range that lie in one block each, from its first byte on.
fn blocks(from: u64, until: u64) -> impl Iterator<Item = (usize, usize)> {
    let block = BLOCK_BYTES as u64;
    let starts = (from / block..until.div_ceil(block)).map(move |number| number * block);
    starts.map(move |start| ((start.max(from) - from) as usize, ((start + block).min(until) - from) as usize))
}

fn keys_of(device: &dyn ObjectDevice, object: ObjectId) -> Result<BTreeSet<AttributeKey>> {
    let mut keys = BTreeSet::new();
    let mut next = Some(AttributeKey::new(AttributeKind(0), 0));
    while let Some(from) = next {
        let found = device.attributes(object, from, AT_ONCE)?;
        next = found.last().and_then(|(key, _)| key.next());
        keys.extend(found.into_iter().map(|(key, _)| key));
    }
    Ok(keys)
}

fn read(device: &dyn ObjectDevice, object: ObjectId, start: u64, end: u64) -> Result<Vec<u8>> {
    let mut data = vec![0; (end - start) as usize];
    let count = device.read(object, start, &mut data)?;
    if count < data.len() {
        return Err(Error::of(ErrorKind::Bug, object, "it has less content than it says"));
    }
    Ok(data)
}

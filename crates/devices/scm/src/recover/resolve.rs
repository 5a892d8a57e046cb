//! What the log says of objects, put in order: the entries of the index come out of it, sorted.
//!
//! A log of many files speaks of ever new objects, one after another, and in between of the
//! directories that they are in. So what is said of new objects is in order when it arrives, and
//! only the rest is sorted. What replaces an earlier statement takes its place at once: a directory
//! whose inode was written ten thousand times is one entry. Nothing here is trusted: whatever a log
//! says, something comes out of it, and what it means is for the caller to check.

use crate::index::node::{Key, Value, log_bytes};
use crate::medium::slot::{is_table, is_version};
use onode_object::ObjectId;
use std::collections::BTreeMap;

/// Something that the log says of an object.
#[derive(Clone, Copy, Debug)]
struct Event {
    object: u64,
    /// The key's class, and below the number of the event.
    what: u64,
    index: u64,
    /// The place of the item; [`GONE`] for an entry that is taken back. For an extent, which of
    /// [`Events::blocks`].
    place: u64,
}

const ORDER_BITS: u32 = 48;

impl Event {
    const fn class(&self) -> u64 {
        self.what >> ORDER_BITS
    }

    const fn order(&self) -> u64 {
        self.what & ((1 << ORDER_BITS) - 1)
    }

    const fn key(&self) -> Key {
        Key { object: self.object, class: self.class(), index: self.index }
    }

    /// Events of one object are sorted by this.
    const fn rank(&self) -> (u64, u64, u64) {
        (self.class(), self.index, self.what)
    }
}

/// Says of an entry or of bytes that they are there no more.
pub(crate) const GONE: u64 = u64::MAX;

/// Bytes of an object and the block that they lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub object: ObjectId,
    pub offset: u64,
    pub address: u64,
    pub length: u64,
    /// The number of the statement that says so.
    pub order: u64,
}

/// A part of an object's map: offset, address, length, and the number of the statement that says
/// so.
type Part = (u64, u64, u64, u64);

/// Statements that are looked for among those before, a power of two.
const RECENT: usize = 64;

/// All that the log says, in the order of the log until [`Events::finish`] is called.
pub(crate) struct Events {
    /// Of objects in ascending order, as it happens.
    ascending: Vec<Event>,
    others: Vec<Event>,
    /// Address and length of each extent.
    blocks: Vec<(u64, u64)>,
    count: u64,
    /// Where in `others` it was said last what may soon be said again.
    recent: [usize; RECENT],
}

impl Default for Events {
    fn default() -> Self {
        let (ascending, others, blocks) = (Vec::new(), Vec::new(), Vec::new());
        Self { ascending, others, blocks, count: 0, recent: [usize::MAX; RECENT] }
    }
}

impl Events {
    /// The next thing that the log says.
    pub(crate) fn push(&mut self, key: Key, value: Value) {
        let what = key.class << ORDER_BITS | self.count;
        let mut event = Event { object: key.object, what, index: key.index, place: value.0 };
        self.count += 1;
        if key.is_extent() {
            event.place = self.blocks.len() as u64;
            self.blocks.push((value.0, value.1));
        }
        if self.ascending.last().is_none_or(|last| last.object <= key.object)
            && !is_table(key.object)
            && !is_version(key.object)
        {
            self.ascending.push(event);
            return;
        }
        if key.index == 0 && !key.is_extent() && value.0 != GONE {
            let slot = (key.object.wrapping_add(key.class)) as usize % RECENT;
            let before = self.others.get_mut(self.recent[slot]);
            if let Some(before) = before.filter(|before| before.key() == key) {
                *before = event;
                return;
            }
            self.recent[slot] = self.others.len();
        }
        self.others.push(event);
    }

    /// Puts everything in order.
    pub(crate) fn finish(&mut self) {
        for of_object in self.ascending.chunk_by_mut(|a, b| a.object == b.object) {
            of_object.sort_unstable_by_key(Event::rank);
        }
        self.others = sorted(std::mem::take(&mut self.others));
    }

    /// Calls `with` for what is said of each object, by their ids.
    fn each_object<E>(&self, mut with: impl FnMut(&[Event]) -> Result<(), E>) -> Result<(), E> {
        let (mut ascending, mut others) = (&self.ascending[..], &self.others[..]);
        let mut both = Vec::new();
        loop {
            let object = match (ascending.first(), others.first()) {
                (None, None) => return Ok(()),
                (Some(one), None) | (None, Some(one)) => one.object,
                (Some(one), Some(other)) => one.object.min(other.object),
            };
            let (one, other);
            (one, ascending) = split_object(ascending, object);
            (other, others) = split_object(others, object);
            if other.is_empty() {
                with(one)?;
            } else if one.is_empty() {
                with(other)?;
            } else {
                both.clear();
                both.extend_from_slice(one);
                both.extend_from_slice(other);
                both.sort_unstable_by_key(Event::rank);
                with(&both)?;
            }
        }
    }

    /// All bytes that lie in blocks.
    pub(crate) fn mapped(&self) -> Vec<Mapped> {
        let (mut all, mut map) = (Vec::new(), Vec::new());
        if self.blocks.is_empty() {
            return all;
        }
        let done: Result<(), std::convert::Infallible> = self.each_object(|events| {
            if let Some(alive) = Alive::of(events) {
                self.map_of(alive.extents, alive.from, &mut map);
                let object = ObjectId(alive.onode.object);
                let mapped = |(offset, address, length, order)| Mapped { object, offset, address, length, order };
                all.extend(map.iter().copied().map(mapped));
            }
            Ok(())
        });
        let Ok(()) = done;
        all
    }

    /// Calls `with` for each entry of the index, sorted; returns the number of objects and the
    /// bytes in the log that the entries keep alive.
    pub(crate) fn each_entry<E>(&self, mut with: impl FnMut(Key, Value) -> Result<(), E>) -> Result<(u64, u64), E> {
        let (mut objects, mut live) = (0, 0);
        let mut map = Vec::new();
        self.each_object(|events| {
            let Some(alive) = Alive::of(events) else { return Ok(()) };
            objects += u64::from(!is_table(alive.onode.object));
            self.map_of(alive.extents, alive.from, &mut map);
            let allocated = map.iter().map(|(_, _, length, _)| length).sum();
            let mut add = |key: Key, value: Value| {
                live += log_bytes(&key, value);
                with(key, value)
            };
            add(alive.onode.key(), Value(alive.onode.place, allocated))?;
            let object = ObjectId(alive.onode.object);
            for (offset, address, length, _) in &map {
                add(Key::extent(object, *offset), Value(*address, *length))?;
            }
            for versions in alive.attributes.chunk_by(|a, b| a.class() == b.class() && a.index == b.index) {
                if let Some(last) = versions.last().filter(|last| last.order() >= alive.from && last.place != GONE) {
                    add(last.key(), Value(last.place, 0))?;
                }
            }
            Ok(())
        })?;
        Ok((objects, live))
    }

    /// Objects of which something is said but not that they exist, or are gone: that was lost.
    pub(crate) fn without_onode(&self) -> Vec<ObjectId> {
        let mut all = Vec::new();
        let done: Result<(), std::convert::Infallible> = self.each_object(|events| {
            let is_said = events.iter().any(|event| event.key().is_onode());
            all.extend(events.first().filter(|_| !is_said).map(|event| ObjectId(event.object)));
            Ok(())
        });
        let Ok(()) = done;
        all
    }

    /// Where the bytes of an object lie after all that was said about it from `from` on: offsets,
    /// addresses, lengths.
    fn map_of(&self, events: &[Event], from: u64, map: &mut Vec<Part>) {
        map.clear();
        let mut end = 0;
        for event in events {
            let Some((address, length)) = self.blocks.get(event.place as usize).copied() else { continue };
            if event.order() < from || address == GONE || length == 0 || event.index < end {
                // Something was said twice, or taken back.
                return self.map_in_order(events, from, map);
            }
            end = event.index.saturating_add(length);
            map.push((event.index, address, length, event.order()));
        }
    }

    fn map_in_order(&self, events: &[Event], from: u64, map: &mut Vec<Part>) {
        let mut in_order: Vec<&Event> = events.iter().filter(|event| event.order() >= from).collect();
        in_order.sort_unstable_by_key(|event| event.order());
        let mut pieces = BTreeMap::new();
        for event in in_order {
            let Some((address, length)) = self.blocks.get(event.place as usize).copied() else { continue };
            take_out(&mut pieces, event.index, event.index.saturating_add(length));
            if address != GONE && length > 0 {
                pieces.insert(event.index, (address, length, event.order()));
            }
        }
        map.clear();
        map.extend(pieces.into_iter().map(|(offset, (address, length, order))| (offset, address, length, order)));
    }
}

/// The events of an object that is the first one, if it is, and the rest.
fn split_object(events: &[Event], object: u64) -> (&[Event], &[Event]) {
    let others = events.iter().position(|event| event.object != object);
    events.split_at(others.unwrap_or(events.len()))
}

/// What is said of an object that there is.
struct Alive<'a> {
    onode: Event,
    extents: &'a [Event],
    attributes: &'a [Event],
    /// What was said before is of an object with the same id that is gone.
    from: u64,
}

impl<'a> Alive<'a> {
    fn of(events: &'a [Event]) -> Option<Self> {
        let (onodes, rest) = events.split_at(events.iter().take_while(|event| event.key().is_onode()).count());
        let onode = *onodes.last().filter(|event| event.place != GONE)?;
        let from = onodes.iter().rev().find(|event| event.place == GONE).map_or(0, |event| event.order() + 1);
        let (extents, attributes) = rest.split_at(rest.iter().take_while(|event| event.key().is_extent()).count());
        Some(Self { onode, extents, attributes, from })
    }
}

/// The events by object and rank.
///
/// Ids are handed out one after another, so most logs speak of many ids between two: then each
/// event has its place by counting, and only what is said of one object is compared.
fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    let objects = || events.iter().map(|event| event.object);
    let low = objects().min().unwrap_or_default();
    let span = objects().max().unwrap_or_default() - low;
    if span / 2 > events.len() as u64 {
        events.sort_unstable_by_key(|event| (event.object, event.rank()));
        return events;
    }
    // Where the events of each object end; first, how many there are.
    let mut ends = vec![0_usize; span as usize + 1];
    events.iter().for_each(|event| ends[(event.object - low) as usize] += 1);
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    let mut all = vec![Event { object: 0, what: 0, index: 0, place: 0 }; events.len()];
    for event in events.into_iter().rev() {
        let place = &mut ends[(event.object - low) as usize];
        *place -= 1;
        all[*place] = event;
    }
    for of_object in all.chunk_by_mut(|a, b| a.object == b.object) {
        of_object.sort_unstable_by_key(Event::rank);
    }
    all
}

/// Takes `start..end` out of a map, and leaves what lies before and behind.
fn take_out(map: &mut BTreeMap<u64, (u64, u64, u64)>, start: u64, end: u64) {
    let before = map.range(..start).next_back().map(|(offset, (_, length, _))| offset.saturating_add(*length) > start);
    let first =
        if before == Some(true) { map.range(..start).next_back().map_or(start, |(offset, _)| *offset) } else { start };
    let touched: Vec<u64> = map.range(first..end.max(first)).map(|(offset, _)| *offset).collect();
    for offset in touched {
        let Some((address, length, order)) = map.remove(&offset) else { continue };
        if offset < start {
            map.insert(offset, (address, start - offset, order));
        }
        let stop = offset.saturating_add(length);
        if stop > end {
            map.insert(end, (address.saturating_add(end - offset), stop - end, order));
        }
    }
}

#[cfg(test)]
mod tests;

//! Recovery: the log says everything; blocks and index are made anew from it.
//!
//! It reads the log once, puts in place what the last records had not, claims every block that is mapped and
//! builds the index from sorted entries. It can be cut anywhere: it writes nothing that a second one would read otherwise.

use crate::allocator::Allocator;
use crate::core::{Blocks, log_bytes};
use crate::errors::{damaged, from_media};
use crate::format::{RECORD_HEADER, Superblock};
use crate::item::{Item, Objects};
use crate::log::Place;
use crate::node::{Key, Value};
use crate::scan::{RecordAt, Scan};
use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{ObjectId, Result};
use std::collections::BTreeMap;

/// Something that the log says of an object.
#[derive(Clone, Copy, Debug)]
struct Event {
    key: Key,
    order: u64,
    /// What [`Value`] has, or [`GONE`] for an entry that is taken back.
    value: Value,
}

const GONE: u64 = u64::MAX;

/// What the log came to.
pub(crate) struct Recovered {
    pub scan: Scan,
    pub entries: Vec<(Key, Value)>,
    pub objects: u64,
    pub live_log_bytes: u64,
    /// No object had this id or a higher one.
    pub next_id: u64,
}

struct Reader<'a, P: Pmem + ?Sized> {
    memory: &'a P,
    /// Blocks lie in here.
    area: std::ops::Range<u64>,
}

/// Reads the log and puts in place what had not been.
pub(crate) fn recover<P: Pmem + ?Sized>(
    memory: &P,
    superblock: &Superblock,
    area: std::ops::Range<u64>,
    read_only: bool,
) -> Result<Recovered> {
    let mut scan = Scan::read(memory, superblock, area.start)?;
    let reader = Reader { memory, area };
    reader.cut_unfinished(&mut scan, superblock.accepted)?;
    let mut events = Vec::new();
    let mut next_id = superblock.next_id.max(ObjectId::FIRST_FREE.0);
    let put_from = scan.records.last().map_or(0, |last| last.head.sequence - u64::from(last.head.unapplied));
    let put_from = put_from.max(superblock.accepted);
    let mut bytes = Vec::new();
    for record in &scan.records {
        reader.each_item(record, &mut bytes, |item, place| {
            if let Item::Put { address, bytes } = item {
                if record.head.sequence >= put_from && !is_planted(Bug::ScmPutsForgotten) {
                    reader.check_range(address, bytes.len() as u64)?;
                    memory.write_through(address, bytes);
                }
            } else if let Item::Zero { address, length } = item {
                if record.head.sequence >= put_from && !is_planted(Bug::ScmZerosForgotten) {
                    reader.check_range(address, length)?;
                    memory.zero(address, length);
                    memory.flush(address, length);
                }
            } else if let Some((key, value)) = event(&item, place) {
                let order = events.len() as u64;
                events.push(Event { key, order, value });
                if key.object < ObjectId::FIRST_OF_DEVICE.0 {
                    next_id = next_id.max(key.object + 1);
                }
            }
            Ok(())
        })?;
    }
    // A private copy is not to survive.
    if !read_only {
        memory.fence().map_err(|error| from_media("recovering", &error))?;
    }
    let (entries, objects, live_log_bytes) = resolve(events);
    Ok(Recovered { scan, entries, objects, live_log_bytes, next_id })
}

/// What an item says about the index.
fn event(item: &Item<'_>, place: Place) -> Option<(Key, Value)> {
    Some(match *item {
        Item::Onode(object, _) => (Key::onode(object), Value(place.0, 0)),
        Item::Removed(object) => (Key::onode(object), Value(GONE, 0)),
        Item::Attribute(object, key, _) => (Key::attribute(object, key), Value(place.0, 0)),
        Item::NoAttribute(object, key) => (Key::attribute(object, key), Value(GONE, 0)),
        Item::Extent { object, offset, address, length } => (Key::extent(object, offset), Value(address, length)),
        Item::NoExtent { object, offset, length } => (Key::extent(object, offset), Value(GONE, length)),
        Item::Put { .. } | Item::Zero { .. } | Item::Check { .. } => return None,
    })
}

impl<P: Pmem + ?Sized> Reader<'_, P> {
    fn check_range(&self, address: u64, length: u64) -> Result<()> {
        match address.checked_add(length) {
            Some(end) if address >= self.area.start && end <= self.area.end => Ok(()),
            _ => Err(damaged(format!("the log names {length} bytes at {address}, which is outside of the blocks"))),
        }
    }

    /// Calls `with` for the items of a record; `bytes` is room for them.
    fn each_item(
        &self,
        record: &RecordAt,
        bytes: &mut Vec<u8>,
        mut with: impl FnMut(Item<'_>, Place) -> Result<()>,
    ) -> Result<()> {
        bytes.resize(record.head.bytes as usize, 0);
        self.memory.read(record.address, bytes);
        let items = bytes.get(RECORD_HEADER as usize..).unwrap_or_default();
        let mut input = items;
        let mut objects = Objects::default();
        while !input.is_empty() {
            let before = input.len();
            let at = record.address + RECORD_HEADER + (items.len() - before) as u64;
            let Some(item) = Item::decode(&mut input, &mut objects) else {
                return Err(damaged(format!("log item at byte {at}")));
            };
            with(item, Place::new(at, (before - input.len()) as u64))?;
        }
        Ok(())
    }

    /// Ends the log before the first record whose content did not become durable with it.
    fn cut_unfinished(&self, scan: &mut Scan, accepted: u64) -> Result<()> {
        let Some(last) = scan.records.last().filter(|_| !is_planted(Bug::ScmChecksSkipped)) else { return Ok(()) };
        let doubtful = accepted.max(last.head.sequence - u64::from(last.head.unfenced));
        let first = scan.records.partition_point(|record| record.head.sequence < doubtful);
        let mut bytes = Vec::new();
        for record in &scan.records[first..] {
            let mut sound = true;
            self.each_item(record, &mut bytes, |item, _| {
                if let Item::Check { address, length, crc } = item {
                    self.check_range(address, length)?;
                    sound &= self.checksum(address, length) == crc;
                }
                Ok(())
            })?;
            if !sound {
                let sequence = record.head.sequence;
                scan.cut_at(sequence);
                break;
            }
        }
        Ok(())
    }

    fn checksum(&self, address: u64, length: u64) -> u32 {
        let mut crc = crc32c(&[]);
        let mut piece = [0; 4096];
        let mut done = 0;
        while done < length {
            let part = &mut piece[..(length - done).min(4096) as usize];
            self.memory.read(address + done, part);
            crc = crc32c_append(crc, part);
            done += part.len() as u64;
        }
        crc
    }
}

/// The entries of the index, sorted, with the number of objects and the bytes in the log that they keep alive.
fn resolve(events: Vec<Event>) -> (Vec<(Key, Value)>, u64, u64) {
    let events = sorted(events);
    let mut entries = Vec::with_capacity(events.len());
    let (mut objects, mut live) = (0, 0);
    for of_object in events.chunk_by(|a, b| a.key.object == b.key.object) {
        let onodes = of_object.partition_point(|event| event.key.is_onode());
        let gone = of_object[..onodes].iter().rev().find(|event| event.value.0 == GONE).map_or(0, |it| it.order + 1);
        let Some(onode) = of_object[..onodes].last().filter(|event| event.value.0 != GONE) else { continue };
        objects += 1;
        let extents_end = of_object.partition_point(|event| event.key.is_onode() || event.key.is_extent());
        let extents = map_of(&of_object[onodes..extents_end], gone);
        let allocated = extents.values().map(|(_, length)| length).sum();
        let first = entries.len();
        entries.push((onode.key, Value(onode.value.0, allocated)));
        let object = ObjectId(onode.key.object);
        let mapped = extents
            .into_iter()
            .map(|(offset, (address, length))| (Key::extent(object, offset), Value(address, length)));
        entries.extend(mapped);
        for versions in of_object[extents_end..].chunk_by(|a, b| a.key == b.key) {
            if let Some(last) = versions.last().filter(|last| last.order >= gone && last.value.0 != GONE) {
                entries.push((last.key, last.value));
            }
        }
        live += entries[first..].iter().map(|(key, value)| log_bytes(key, *value)).sum::<u64>();
    }
    (entries, objects, live)
}

/// The events by key, those of one key in their order.
///
/// Ids are handed out one after another, so most logs speak of nearly all ids between two: then each event has its place by
/// counting, and only what is said of one object is compared. A million files are sorted many times as fast by that.
fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    let objects = || events.iter().map(|event| event.key.object);
    let low = objects().min().unwrap_or_default();
    let span = objects().max().unwrap_or_default() - low;
    if span / 2 > events.len() as u64 {
        events.sort_unstable_by_key(|event| (event.key, event.order));
        return events;
    }
    // Where the events of each object end; first, how many there are.
    let mut ends = vec![0_usize; span as usize + 1];
    events.iter().for_each(|event| ends[(event.key.object - low) as usize] += 1);
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    let nothing = Event { key: Key::FIRST, order: 0, value: Value::default() };
    let mut all = vec![nothing; events.len()];
    for event in events.into_iter().rev() {
        let place = &mut ends[(event.key.object - low) as usize];
        *place -= 1;
        all[*place] = event;
    }
    for of_object in all.chunk_by_mut(|a, b| a.key.object == b.key.object) {
        // Stable, and fast where much is said of the same.
        of_object.sort_by_key(|event| (event.key.class, event.key.index));
    }
    all
}

/// Where the bytes of an object lie after all that was said about it, from `gone` on.
fn map_of(events: &[Event], gone: u64) -> BTreeMap<u64, (u64, u64)> {
    let mut in_order: Vec<&Event> = events.iter().filter(|event| event.order >= gone).collect();
    in_order.sort_unstable_by_key(|event| event.order);
    let mut map = BTreeMap::new();
    for event in in_order {
        let (offset, length) = (event.key.index, event.value.1);
        take_out(&mut map, offset, offset.saturating_add(length));
        if event.value.0 != GONE && length > 0 {
            map.insert(offset, (event.value.0, length));
        }
    }
    map
}

/// Takes `start..end` out of a map, and leaves what lies before and behind.
fn take_out(map: &mut BTreeMap<u64, (u64, u64)>, start: u64, end: u64) {
    let before = map.range(..start).next_back().map(|(offset, (_, length))| offset.saturating_add(*length) > start);
    let first =
        if before == Some(true) { map.range(..start).next_back().map_or(start, |(offset, _)| *offset) } else { start };
    let touched: Vec<u64> = map.range(first..end.max(first)).map(|(offset, _)| *offset).collect();
    for offset in touched {
        let Some((address, length)) = map.remove(&offset) else { continue };
        if offset < start {
            map.insert(offset, (address, start - offset));
        }
        let stop = offset.saturating_add(length);
        if stop > end {
            map.insert(end, (address.saturating_add(end - offset), stop - end));
        }
    }
}

/// Claims the log's segments and every mapped block; two owners of a block are damage.
pub(crate) fn claim<P: Pmem>(blocks: &Blocks<P>, recovered: &Recovered, next: u64, chunk_bytes: u64) -> Result<()> {
    let claim = |address: u64, bytes: u64, what: &dyn Fn() -> String| {
        Allocator::claim(blocks, address, bytes)
            .map_err(|error| damaged(format!("{} at byte {address}: {error:?}", what())))
    };
    for (address, head) in &recovered.scan.segments {
        claim(*address, chunk_bytes, &|| format!("segment {} of the log", head.sequence))?;
    }
    claim(next, chunk_bytes, &|| "the log's next segment".to_owned())?;
    for (key, value) in &recovered.entries {
        if key.is_extent() {
            claim(value.0, value.1, &|| format!("{}, bytes from {} on,", key.object(), key.index))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn events_are_sorted_by_key_and_order_however_ids_lie() {
        let mut prng = Prng::new(5);
        for ids in [1, 7, 1000, u64::MAX] {
            let mut events = Vec::new();
            for order in 0..2000 {
                let key = Key { object: prng.below(ids), class: prng.below(3), index: prng.below(3) };
                events.push(Event { key, order, value: Value(order, 0) });
            }
            let order = |events: &[Event]| events.iter().map(|event| event.order).collect::<Vec<_>>();
            let mut expected = events.clone();
            expected.sort_by_key(|event| (event.key, event.order));
            assert_eq!(order(&sorted(events)), order(&expected), "{ids} ids");
        }
        assert!(sorted(Vec::new()).is_empty());
    }
}

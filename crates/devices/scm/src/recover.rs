//! Recovery: the log says everything; blocks and index are made anew from it.
//!
//! It reads the log once, puts in place what the last records had not, claims every block that is mapped and
//! builds the index from sorted entries. It can be cut anywhere: it writes nothing that a second one would read otherwise.

use crate::allocator::Allocator;
use crate::core::Blocks;
use crate::errors::{damaged, from_media};
use crate::format::{RECORD_HEADER, Superblock};
use crate::item::{Item, Objects};
use crate::log::Place;
use crate::node::{Key, Value};
use crate::resolve::{Events, GONE, Mapped};
use crate::scan::{RecordAt, Scan};
use crate::slot::{FIRST_TABLE, PAGE_BYTES, first_slot, words_of};
use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{ObjectId, Result};

/// What the log came to.
pub(crate) struct Recovered {
    pub scan: Scan,
    /// What is said of objects, in order.
    pub events: Events,
    /// All bytes of objects that lie in blocks.
    pub mapped: Vec<Mapped>,
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
    let mut events = Events::default();
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
                events.push(key, value);
                if key.object < FIRST_TABLE {
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
    events.finish();
    let mut mapped = events.mapped();
    if !is_planted(Bug::ScmSlotsForgotten) {
        reader.add_slots(u64::from(superblock.chunk_bytes), &mut mapped)?;
    }
    Ok(Recovered { scan, events, mapped, next_id })
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

    /// Adds the blocks that slots name to those that the log names.
    fn add_slots(&self, chunk_bytes: u64, mapped: &mut Vec<Mapped>) -> Result<()> {
        let mut named = Vec::new();
        for page in mapped.iter().filter(|page| page.object.0 >= FIRST_TABLE) {
            let Mapped { object, offset, address, .. } = *page;
            self.check_range(address, PAGE_BYTES)?;
            for (slot, word) in words_of(self.memory, address, first_slot(offset)) {
                let block = word.block(chunk_bytes).map(|(address, length)| (address, length, slot));
                named.extend(block.map(|(address, length, offset)| Mapped { object, offset, address, length }));
            }
        }
        mapped.append(&mut named);
        Ok(())
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
    for Mapped { object, offset, address, length } in &recovered.mapped {
        claim(*address, *length, &|| format!("{object}, bytes from {offset} on,"))?;
    }
    Ok(())
}

//! Recovery: the log says everything; blocks and index are made anew from it.
//!
//! It reads the log once, puts in place what the last records had not, claims every block that is
//! mapped and builds the index from sorted entries. It can be cut anywhere: it writes nothing that
//! a second one would read otherwise.

pub mod open;
pub mod resolve;

use crate::index::node::{Key, Value};
use crate::log::item::{Item, Objects};
use crate::log::losses::Losses;
use crate::log::mark;
use crate::log::place::Place;
use crate::log::scan::{RecordAt, Scan};
use crate::medium::errors::{damaged, from_media};
use crate::medium::format::{RECORD_HEADER, Superblock, salt_of};
use crate::medium::slot::{PAGE_BYTES, first_slot, is_table, is_version, words_of};
use crate::recover::resolve::{Events, GONE, Mapped};
use crate::space::Blocks;
use crate::space::allocator::Allocator;
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

/// What a recovery may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The memory is a private copy.
    pub read_only: bool,
    /// What was promised and is missing is consented to.
    pub accept_loss: bool,
}

/// Reads the log and puts in place what had not been.
pub(crate) fn recover<P: Pmem + ?Sized>(
    memory: &P,
    superblock: &Superblock,
    area: std::ops::Range<u64>,
    Terms { read_only, accept_loss }: Terms,
) -> Result<Recovered> {
    let marked = mark::load(memory, salt_of(&superblock.uuid), superblock.session);
    let promised = if is_planted(Bug::DamagedScmEndNotCompared) { 0 } else { superblock.accepted.max(marked) };
    let mut scan = Scan::read(memory, superblock, area.clone(), promised)?;
    let reader = Reader { memory, area };
    let damaged = reader.cut_unfinished(&mut scan, superblock.accepted, promised)?;
    if (scan.losses.is_loss() || !damaged.is_empty()) && !accept_loss {
        // Nothing was changed so far.
        reader.note_damaged(&mut scan.losses, damaged, &[]);
        return Err(scan.losses.error());
    }
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
                if !is_table(key.object) && !is_version(key.object) {
                    next_id = key.object().next_free(next_id);
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
    reader.note_damaged(&mut scan.losses, damaged, &mapped);
    if scan.losses.is_loss() {
        for object in events.without_onode() {
            scan.losses.note_object(object);
        }
    }
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
        for page in mapped.iter().filter(|page| is_table(page.object.0)) {
            let Mapped { object, offset, address, .. } = *page;
            self.check_range(address, PAGE_BYTES)?;
            for (slot, word) in words_of(self.memory, address, first_slot(offset)) {
                let block = word.block(chunk_bytes);
                named.extend(block.map(|(address, length)| Mapped { object, offset: slot, address, length, order: 0 }));
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

    /// Ends the log before the first record whose content did not become durable with it. Of
    /// records below `promised` that had become durable, and is damaged: those bytes are returned.
    fn cut_unfinished(&self, scan: &mut Scan, accepted: u64, promised: u64) -> Result<Vec<(u64, u64)>> {
        let mut damaged = Vec::new();
        let Some(last) = scan.records.last().filter(|_| !is_planted(Bug::ScmChecksSkipped)) else { return Ok(damaged) };
        let unverified_from = accepted.max(last.head.sequence - u64::from(last.head.unfenced));
        let first = scan.records.partition_point(|record| record.head.sequence < unverified_from);
        let mut bytes = Vec::new();
        for record in &scan.records[first..] {
            let mut sound = true;
            self.each_item(record, &mut bytes, |item, _| {
                if let Item::Check { address, length, crc } = item {
                    self.check_range(address, length)?;
                    let is_sound = self.checksum(address, length) == crc;
                    if !is_sound && record.head.sequence < promised {
                        damaged.push((address, length));
                    }
                    sound &= is_sound || record.head.sequence < promised;
                }
                Ok(())
            })?;
            if !sound {
                let sequence = record.head.sequence;
                scan.cut_at(sequence);
                break;
            }
        }
        Ok(damaged)
    }

    /// Notes damaged content, and whose it is as far as that is known.
    fn note_damaged(&self, losses: &mut Losses, damaged: Vec<(u64, u64)>, mapped: &[Mapped]) {
        for (address, length) in damaged {
            losses.note(format!("{length} bytes of content at byte {address}, which were durable, are damaged"));
            let is_there =
                |mapped: &&Mapped| mapped.address < address + length && address < mapped.address + mapped.length;
            mapped.iter().filter(is_there).for_each(|mapped| losses.note_object(mapped.object));
        }
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

impl Recovered {
    /// Has every block have one owner, the one that was said last, where what took it from another
    /// one was lost.
    pub(crate) fn resolve_owners<P: Pmem>(&mut self, blocks: &Blocks<P>, next: u64, chunk_bytes: u64) {
        blocks.reset();
        let segments = self.scan.segments.iter().map(|(address, _)| *address);
        for segment in segments.chain([next]) {
            // Whatever lies there is not to be given away.
            let _ = blocks.claim(segment, chunk_bytes);
        }
        self.mapped.sort_unstable_by_key(|mapped| std::cmp::Reverse(mapped.order));
        let (events, losses) = (&mut self.events, &mut self.scan.losses);
        self.mapped.retain(|mapped| {
            let Mapped { object, offset, address, length, .. } = *mapped;
            let is_its_own = blocks.claim(address, length).is_ok();
            if !is_its_own {
                events.push(Key::extent(object, offset), Value(GONE, length));
                losses.note(format!("{length} bytes of {object} from {offset} on are not its own any more"));
                losses.note_object(object);
            }
            is_its_own
        });
        events.finish();
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
    if next != 0 {
        claim(next, chunk_bytes, &|| "the log's next segment".to_owned())?;
    }
    for Mapped { object, offset, address, length, .. } in &recovered.mapped {
        claim(*address, *length, &|| format!("{object}, bytes from {offset} on,"))?;
    }
    Ok(())
}

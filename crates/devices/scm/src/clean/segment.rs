//! What a segment of the log still says: the items that entries of the index refer to, or that tell
//! where bytes of an object lie.
//!
//! Because the oldest segment goes first, nothing that a statement takes back can be older than the
//! statement's own segment: items that say that something is gone are never repeated. Nothing is
//! appended and no entry changes here.

use crate::index::Index;
use crate::index::extents::Extent;
use crate::index::node::{Key, Value};
use crate::log::batch::Batch;
use crate::log::item::{Item, Objects};
use crate::log::place::Place;
use crate::log::scan::Records;
use crate::medium::errors::damaged;
use crate::medium::format::{RECORD_HEADER, SegmentHead};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{ObjectId, Result};

/// The bytes of a segment, and its head.
pub(crate) struct Segment {
    address: u64,
    bytes: Vec<u8>,
    head: SegmentHead,
}

impl Segment {
    /// Reads the segment of `length` bytes at an address, of the volume with this salt.
    pub(crate) fn read<P: Pmem + ?Sized>(memory: &P, address: u64, length: u64, salt: u64) -> Result<Self> {
        let mut bytes = vec![0; length as usize];
        memory.read(address, &mut bytes);
        let head = bytes.first_chunk().and_then(|head| SegmentHead::decode(head, salt));
        let head = head.ok_or_else(|| damaged(format!("head of the log's segment at byte {address}")))?;
        Ok(Self { address, bytes, head })
    }

    /// The number of its first record.
    pub(crate) const fn first_record(&self) -> u64 {
        self.head.first_record
    }
}

/// An entry of the index that refers to an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveEntry {
    pub key: Key,
    /// Where the item lies before it is said again.
    pub before: Place,
    /// The other word of the entry.
    pub second: u64,
}

/// An item that is said again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated {
    /// The entry that waits for it, if one does.
    pub entry: Option<LiveEntry>,
    /// Where it is going to lie.
    pub now: Place,
}

/// The items of a segment that are to be said again.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub batch: Batch,
    pub repeated: Vec<Repeated>,
}

impl Live {
    /// Adds what a segment still says; the number of the record after the last that could be read.
    /// Where records are damaged it goes on behind them if it `salvages`.
    pub(crate) fn add<P: Pmem>(
        &mut self,
        index: &Index<P>,
        segment: &Segment,
        salt: u64,
        salvages: bool,
    ) -> Result<u64> {
        let mut records = Records::of_segment(&segment.bytes, salt, &segment.head);
        let mut next = segment.first_record();
        loop {
            for record in records.by_ref() {
                next = record.head.sequence + 1;
                self.add_record(index, segment.address + record.start + RECORD_HEADER, record.items)?;
            }
            if !salvages || records.resume().is_none() {
                return Ok(next);
            }
        }
    }

    fn push(&mut self, item: &Item<'_>, entry: Option<LiveEntry>) {
        let now = self.batch.push(item);
        self.repeated.push(Repeated { entry, now });
    }

    /// Adds what a record still says; `start` is where its items lie.
    fn add_record<P: Pmem>(&mut self, index: &Index<P>, start: u64, items: &[u8]) -> Result<()> {
        let mut input = items;
        let mut objects = Objects::default();
        while !input.is_empty() {
            let at = start + (items.len() - input.len()) as u64;
            let before = input.len();
            let Some(item) = Item::decode(&mut input, &mut objects) else {
                return Err(damaged(format!("log item at byte {at}")));
            };
            let place = Place::new(at, (before - input.len()) as u64);
            let is_here =
                |key: Key| index.get(key).filter(|Value(first, _)| Place(*first).address() == place.address());
            match item {
                Item::Onode(object, _) => {
                    if let Some(value) = is_here(Key::onode(object)) {
                        self.push(&item, Some(LiveEntry { key: Key::onode(object), before: place, second: value.1 }));
                    }
                }
                Item::Attribute(object, key, _) => {
                    if let Some(value) = is_here(Key::attribute(object, key)) {
                        let key = Key::attribute(object, key);
                        self.push(&item, Some(LiveEntry { key, before: place, second: value.1 }));
                    }
                }
                Item::Extent { .. } if is_planted(Bug::ScmCleanerForgetsExtents) => {}
                Item::Extent { object, offset, address, length } => {
                    self.add_extent(index, object, &Extent { offset, address, length });
                }
                Item::NoAttribute(..)
                | Item::NoExtent { .. }
                | Item::Removed(_)
                | Item::Put { .. }
                | Item::Zero { .. }
                | Item::Check { .. } => {}
            }
        }
        Ok(())
    }

    /// What is left of an extent may be several parts.
    fn add_extent<P: Pmem>(&mut self, index: &Index<P>, object: ObjectId, said: &Extent) {
        let mut at = said.offset;
        while at < said.end() {
            let Some(extent) = index.extent_at(object, at).filter(|extent| extent.offset < said.end()) else { break };
            let same = extent.offset >= said.offset && extent.address == said.address + (extent.offset - said.offset);
            if same && extent.end() <= said.end() {
                let Extent { offset, address, length } = extent;
                self.push(&Item::Extent { object, offset, address, length }, None);
            }
            at = extent.end();
        }
    }
}

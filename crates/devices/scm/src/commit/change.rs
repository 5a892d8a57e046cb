//! A transaction in the making: the index changes at once, everything else waits for the record.
//!
//! What it did to the index can be undone, blocks that it took go back, and blocks that it gives up
//! stay until its record is durable. So a transaction that finds no room at its very end leaves
//! nothing behind, and no space needs to be guessed before. Bytes that a durable state shows are
//! never touched before the record is durable: they are in the record and are put in place
//! afterwards.

use crate::commit::lists::{Changed, Lists, Pending, Put};
use crate::index::Index;
use crate::index::node::{Key, Value, log_bytes};
use crate::index::tree::NoRoom;
use crate::log::item::{Item, Onode};
use crate::log::place::Place;
use crate::medium::errors::no_space;
use crate::medium::slot::{is_table, table_of};
use crate::persist::Persistence;
use crate::persist::mode::Mode;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::{AttributeKey, Error, ErrorKind, Hints, Mutation, ObjectId, ObjectKind, Result};

/// What an object has whose content a service changed.
const SERVICES: [AttributeKey; 2] = [AttributeKey::COMPRESSED, AttributeKey::ENCRYPTED];

/// The transaction.
pub(crate) struct Change<'a, P: Pmem> {
    pub(super) index: &'a mut Index<P>,
    pub(super) store: &'a mut Persistence<P>,
    pub(super) lists: Box<Lists>,
    /// It takes bytes away from an object.
    pub(super) shrinks: bool,
    /// The object whose block is not to be freed with it.
    pub(super) withdrawn: Option<ObjectId>,
    log_bytes: i64,
    objects: i64,
}

impl From<NoRoom> for onode_object::Error {
    fn from(_: NoRoom) -> Self {
        no_space("no room for the index")
    }
}

impl<'a, P: Pmem> Change<'a, P> {
    /// Begins; the lists are empty.
    pub(crate) fn new(index: &'a mut Index<P>, store: &'a mut Persistence<P>, mut lists: Box<Lists>) -> Self {
        store.begin(&mut lists.batch);
        Self { index, store, lists, shrinks: false, withdrawn: None, log_bytes: 0, objects: 0 }
    }

    /// Applies a valid mutation.
    pub(crate) fn apply(&mut self, mutation: &Mutation) -> Result<()> {
        match mutation {
            Mutation::Create { object, hints } => self.create(*object, *hints),
            Mutation::Remove { object } => self.remove(*object),
            Mutation::Write { object, offset, data } => self.write(*object, *offset, data),
            Mutation::Truncate { object, size } => self.truncate(*object, *size),
            Mutation::Punch { object, offset, length } => self.punch(*object, *offset, *length),
            // It was refused before.
            Mutation::Move { object, .. } => {
                Err(Error::of(ErrorKind::Invalid, *object, "this device does not move content"))
            }
            Mutation::SetAttribute { object, key, value } => self.set_attribute(*object, *key, value),
            Mutation::RemoveAttribute { object, key } => {
                if self.unset(Key::attribute(*object, *key)).is_some() {
                    self.lists.batch.push(&Item::NoAttribute(*object, *key));
                }
                Ok(())
            }
            Mutation::SetHints { object, hints } => self.change_onode(*object, |onode| onode.hints = *hints),
            Mutation::SetAccessTime { object, time } => self.change_onode(*object, |onode| onode.accessed = *time),
        }
    }

    pub(crate) fn create(&mut self, object: ObjectId, hints: Hints) -> Result<()> {
        // It comes into the index when all of it is known.
        let onode = Onode { hints, ..Onode::default() };
        let changed = Changed { onode, logged: None, allocated: 0, stable: 0 };
        match self.position(object) {
            Ok(at) => self.lists.onodes[at].1 = changed,
            Err(at) => self.lists.onodes.insert(at, (object, changed)),
        }
        if !is_table(object.0) {
            self.index.note_created(object);
            self.objects += 1;
        }
        Ok(())
    }

    fn remove(&mut self, object: ObjectId) -> Result<()> {
        let table = table_of(object);
        if self.store.has_slots() && object != table && self.index.get(Key::onode(table)).is_some() {
            self.empty_slots(table);
            self.remove(table)?;
        }
        let keeps_block = self.withdrawn == Some(object);
        let mut next = Some(Key::onode(object));
        while let Some(from) = next {
            let (lists, log_bytes) = (&mut *self.lists, &mut self.log_bytes);
            next = self.index.remove_object(from, |key, value| {
                if key.is_extent() && !keeps_block {
                    lists.give_up(value.0, value.1, false);
                }
                lists.note_unset(key, value, log_bytes);
            });
        }
        if let Ok(at) = self.position(object) {
            self.lists.onodes.remove(at);
        }
        if !is_planted(Bug::ScmRemovedDropped) {
            self.lists.batch.push(&Item::Removed(object));
        }
        self.index.note_removed(object);
        self.objects -= i64::from(!is_table(object.0));
        // The release of its blocks is deferred until nothing brings it back, unless they become
        // memory.
        self.shrinks |= self.withdrawn == Some(object);
        Ok(())
    }

    fn set_attribute(&mut self, object: ObjectId, key: AttributeKey, value: &[u8]) -> Result<()> {
        let place = self.lists.batch.push(&Item::Attribute(object, key, value));
        self.set(Key::attribute(object, key), Value(place.0, 0))
    }

    fn changed(&mut self, object: ObjectId) -> Result<&mut Changed> {
        let at = match self.position(object) {
            Ok(at) => at,
            Err(at) => {
                let (onode, place, allocated) = self.index.onode_at(object)?;
                let logged = Some((onode, place));
                self.lists.onodes.insert(at, (object, Changed { onode, logged, allocated, stable: onode.size }));
                at
            }
        };
        Ok(&mut self.lists.onodes[at].1)
    }

    /// Where an object is among those that change, or belongs.
    fn position(&self, object: ObjectId) -> std::result::Result<usize, usize> {
        match self.lists.onodes.last() {
            None => Err(0),
            Some((last, _)) if *last < object => Err(self.lists.onodes.len()),
            Some(_) => self.lists.onodes.binary_search_by_key(&object, |(object, _)| *object),
        }
    }

    fn change_onode(&mut self, object: ObjectId, change: impl FnOnce(&mut Onode)) -> Result<()> {
        change(&mut self.changed(object)?.onode);
        Ok(())
    }

    pub(crate) fn size(&mut self, object: ObjectId) -> Result<u64> {
        Ok(self.changed(object)?.onode.size)
    }

    /// Whether any block is mapped.
    pub(crate) fn has_extents(&mut self, object: ObjectId) -> Result<bool> {
        Ok(self.changed(object)?.allocated > 0)
    }

    /// Bytes of the object below this were there before the transaction: they change with the
    /// record, not before.
    pub(crate) fn stable(&mut self, object: ObjectId) -> Result<u64> {
        Ok(self.changed(object)?.stable)
    }

    pub(crate) fn set_size(&mut self, object: ObjectId, size: u64) -> Result<()> {
        self.change_onode(object, |onode| onode.size = size)
    }

    /// Sets an entry of the index.
    fn set(&mut self, key: Key, value: Value) -> Result<()> {
        let before = self.index.insert(self.store.blocks(), key, value)?;
        if let Some(before) = before {
            self.lists.forget_pending(&key, before);
            self.log_bytes -= log_bytes(&key, before) as i64;
        }
        self.log_bytes += log_bytes(&key, value) as i64;
        self.lists.undo.push((key, before));
        if !key.is_extent()
            && let Some(item) = Place(value.0).as_pending()
        {
            self.lists.pending.push(Pending { key, item, second: value.1 });
        }
        Ok(())
    }

    fn unset(&mut self, key: Key) -> Option<Value> {
        let before = self.index.remove(key)?;
        self.lists.note_unset(key, before, &mut self.log_bytes);
        Some(before)
    }

    /// Maps bytes of an object to a block, in place of nothing.
    pub(crate) fn map(&mut self, object: ObjectId, offset: u64, address: u64, length: u64) -> Result<()> {
        self.set(Key::extent(object, offset), Value(address, length))?;
        self.changed(object)?.allocated += length;
        self.lists.batch.push(&Item::Extent { object, offset, address, length });
        Ok(())
    }

    /// Makes the block at `offset` of an object longer in the map.
    pub(crate) fn remap(&mut self, object: ObjectId, offset: u64, address: u64, before: u64, now: u64) -> Result<()> {
        self.changed(object)?.allocated -= before;
        self.map(object, offset, address, now)
    }

    /// Takes an extent out of the map; what is said about it in the log is for the caller.
    pub(crate) fn unmap(&mut self, object: ObjectId, offset: u64) -> Result<()> {
        if let Some(Value(_, length)) = self.unset(Key::extent(object, offset)) {
            self.changed(object)?.allocated -= length;
        }
        Ok(())
    }

    /// Puts a part of an extent back into the map that was taken out with it; the log knows of it
    /// already.
    pub(crate) fn keep_mapped(&mut self, object: ObjectId, offset: u64, address: u64, length: u64) -> Result<()> {
        self.set(Key::extent(object, offset), Value(address, length))?;
        self.changed(object)?.allocated += length;
        Ok(())
    }

    /// Takes a block of at least `bytes`.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        if !self.store.blocks().has_free(bytes.saturating_add(self.store.reserve_bytes())) {
            return None;
        }
        let address = self.store.blocks().allocate(bytes)?;
        self.lists.fresh.push((address, bytes, false));
        Some(address)
    }

    pub(crate) fn give_up(&mut self, address: u64, bytes: u64, part: bool) {
        self.lists.give_up(address, bytes, part);
    }

    /// Whether the transaction took the block that holds `address`.
    pub(crate) fn is_fresh(&self, address: u64) -> bool {
        self.lists.fresh.iter().any(|(start, bytes, _)| (*start..*start + *bytes).contains(&address))
    }

    /// Writes bytes of an object that no durable state shows.
    pub(crate) fn write_now(&mut self, object: ObjectId, address: u64, bytes: &[u8]) -> Result<()> {
        self.store.allow_change(address, bytes.len() as u64)?;
        if self.store.mode() == Mode::Meta && self.is_data(object)? {
            self.store.write_unflushed(address, bytes);
            return Ok(());
        }
        self.write_flushed(address, bytes)
    }

    /// Whether the bytes of an object are content, and not what a file system knows of its files,
    /// nor what a service keeps in place of content: if some of that is not there, all of a chunk
    /// is lost, and with it what was durable before.
    fn is_data(&mut self, object: ObjectId) -> Result<bool> {
        let is_changed = SERVICES.iter().any(|one| self.index.get(Key::attribute(object, *one)).is_some());
        if is_changed && !is_planted(Bug::ServicesFramesLate) {
            return Ok(false);
        }
        Ok(match self.changed(object)?.onode.hints.kind {
            ObjectKind::Unknown | ObjectKind::Data | ObjectKind::Memory => true,
            ObjectKind::Directory | ObjectKind::SymbolicLink | ObjectKind::Special | ObjectKind::Volume => {
                is_planted(Bug::ScmMetaNamesBuffered)
            }
        })
    }

    /// The same for bytes that were durable already, elsewhere: they must not be less now.
    fn write_flushed(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.store.allow_change(address, bytes.len() as u64)?;
        if is_planted(Bug::ScmContentNotFlushed) {
            self.store.memory().write(address, bytes);
        } else {
            self.store.memory().write_through(address, bytes);
        }
        self.note_written(address, bytes.len() as u64);
        Ok(())
    }

    pub(crate) fn zero_now(&mut self, address: u64, length: u64) -> Result<()> {
        if length > 0 {
            self.store.allow_change(address, length)?;
            self.store.memory().zero(address, length);
            // In every mode: a hole that gets a block was zeros before, durably.
            self.store.memory().flush(address, length);
            self.note_written(address, length);
        }
        Ok(())
    }

    pub(crate) fn note_written(&mut self, address: u64, length: u64) {
        match self.lists.written.last_mut() {
            Some((start, before)) if *start + *before == address => *before += length,
            _ => self.lists.written.push((address, length)),
        }
    }

    /// Has bytes put in place by the record.
    pub(crate) fn write_later(&mut self, address: u64, bytes: &[u8]) {
        let most = self.store.log().most_value_bytes();
        for (i, piece) in bytes.chunks(most).enumerate() {
            let address = address + (i * most) as u64;
            self.lists.batch.push(&Item::Put { address, bytes: piece });
            self.lists.puts.push(Put::Bytes { address, start: self.lists.content.len(), length: piece.len() });
            self.lists.content.extend_from_slice(piece);
        }
    }

    pub(crate) fn zero_later(&mut self, address: u64, length: u64) {
        if length > 0 {
            self.lists.batch.push(&Item::Zero { address, length });
            self.lists.puts.push(Put::Zero { address, length });
        }
    }

    /// Copies `length` bytes as the transaction has left them so far from one block to a fresh one.
    pub(crate) fn copy(&mut self, from: u64, to: u64, length: u64) -> Result<()> {
        let mut bytes = vec![0; length as usize];
        self.store.memory().read(from, &mut bytes);
        for put in &self.lists.puts {
            let (address, count) = put.range();
            let (start, end) = (address.max(from), (address + count).min(from + length));
            if start >= end {
                continue;
            }
            let target = &mut bytes[(start - from) as usize..(end - from) as usize];
            match *put {
                Put::Bytes { address, start: first, .. } => {
                    let first = first + (start - address) as usize;
                    target.copy_from_slice(&self.lists.content[first..first + target.len()]);
                }
                Put::Zero { .. } => target.fill(0),
            }
        }
        self.write_flushed(to, &bytes)
    }

    /// States the changed onodes, and the checksums of what was written already if `checked`.
    pub(crate) fn finish_items(&mut self, checked: bool) -> Result<()> {
        for at in 0..self.lists.onodes.len() {
            let lists = &mut *self.lists;
            let Some((object, changed)) = lists.onodes.get(at) else { break };
            let place = match &changed.logged {
                // The bytes of its blocks are in the index only.
                Some((onode, place)) if *onode == changed.onode => *place,
                _ => lists.batch.push(&Item::Onode(*object, changed.onode)),
            };
            let (key, value) = (Key::onode(*object), Value(place.0, changed.allocated));
            self.set(key, value)?;
        }
        if checked && !self.lists.written.is_empty() {
            let mut piece = [0; 4096];
            for (address, length) in joined(self.lists.written.clone()) {
                let mut crc = crc32c(&[]);
                let mut done = 0;
                while done < length {
                    let part = &mut piece[..(length - done).min(4096) as usize];
                    self.store.memory().read(address + done, part);
                    crc = crc32c_append(crc, part);
                    done += part.len() as u64;
                }
                self.lists.batch.push(&Item::Check { address, length, crc });
                self.lists.checked.push((address, length));
            }
        }
        Ok(())
    }

    /// The index says where the items lie now.
    pub(crate) fn patch_places(&mut self) {
        let mut log_bytes = 0;
        for Pending { key, item, second } in self.lists.pending.drain(..) {
            if let Some(place) = self.lists.places.get(item) {
                self.index.replace(key, Value(place.0, second));
                log_bytes += place.bytes() as i64;
            }
        }
        self.log_bytes += log_bytes;
        self.store.count_live(self.log_bytes);
        self.index.count_objects(self.objects);
    }

    /// Bytes of the log that count after the transaction.
    pub(crate) fn live_after(&self) -> u64 {
        let pending: usize = self.lists.pending.iter().map(|pending| self.lists.batch.bytes_of(pending.item)).sum();
        self.store.log().live_bytes().saturating_add_signed(self.log_bytes) + pending as u64
    }

    /// Takes everything back; the lists, empty.
    pub(crate) fn undo(mut self) -> Result<Box<Lists>> {
        for (key, before) in std::mem::take(&mut self.lists.undo).into_iter().rev() {
            match before {
                Some(value) => {
                    self.index.insert(self.store.blocks(), key, value)?;
                }
                None => {
                    self.index.remove(key);
                }
            }
        }
        for (address, bytes, part) in std::mem::take(&mut self.lists.fresh).into_iter().rev() {
            if part {
                self.store.blocks().release_part(address, bytes);
            } else {
                self.store.blocks().release(address, bytes);
            }
        }
        Ok(self.into_lists())
    }

    /// The lists, empty, for the next transaction.
    pub(super) fn into_lists(self) -> Box<Lists> {
        let mut lists = self.lists;
        lists.clear();
        lists
    }
}

/// The ranges in order, none twice.
fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, length) in ranges {
        match joined.last_mut() {
            Some((first, before)) if start <= *first + *before => *before = (*before).max(start + length - *first),
            _ => joined.push((start, length)),
        }
    }
    joined
}

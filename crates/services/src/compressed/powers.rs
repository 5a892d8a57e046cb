//! Optional powers of the wrapped device that have to do with content: objects as memory,
//! verification, removal for good. The others are handed on as they are.
//!
//! Memory holds what processors work on, so an object is stored plain before it becomes memory.

use crate::compressed::Compressed;
use crate::compressed::map::{CHUNK_BYTES, Entry};
use crate::compressed::policy::Wish;
use crate::life::Life;
use crate::plan::Plan;
use crate::ranges::Ranges;
use crate::turn::Turn;
use onode_object::powers::{Content, Erase, GroupScrub, MapObjects, Placed, Scrub, ScrubPart, ScrubReport};
use onode_object::{Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    fn memory(&self) -> Result<&dyn MapObjects> {
        let why = "the objects of this device are not memory";
        self.inner().map_objects().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// Stores an object plain, if it has compressed chunks, one after the other.
    fn store_plain(&self, object: ObjectId) -> Result<()> {
        if self.group(object, 0)?.is_none() {
            return Ok(());
        }
        for chunk in 0..self.stat(object)?.size.div_ceil(CHUNK_BYTES) {
            let _turn = Turn::take(self.inner().as_ref());
            let _changing = self.shards().change([object].into_iter());
            let entry = self.entry(object, chunk)?;
            if !entry.is_compressed() {
                continue;
            }
            let loaded = self.load(object, chunk, entry)?;
            let mut data = Ranges::of(0, entry.valid());
            loaded.holes.iter().for_each(|(start, end)| data.remove(start, end));
            let wish = Wish { algorithm: None, tries_first: false };
            let mut life = Life::new(object, CHUNK_BYTES, wish, Some(self.size(object)?));
            for (start, end) in data.iter() {
                let data = loaded.plain[start as usize..end as usize].to_vec();
                life.apply(Mutation::Write { object, offset: chunk * CHUNK_BYTES + start, data });
            }
            let mut plan = Plan::default();
            self.settle(life, &mut plan)?;
            self.carry_out(plan, |transaction| self.inner().commit(transaction, Durability::Buffered))?;
        }
        Ok(())
    }

    /// The size of an object that nobody else changes.
    fn size(&self, object: ObjectId) -> Result<u64> {
        let hidden = self.group(object, 0)?.map_or(0, |head| head.hidden());
        Ok(self.inner().stat(object)?.size.saturating_sub(hidden))
    }

    fn refuse_compressed(&self, object: ObjectId) -> Result<()> {
        match self.group(object, 0)? {
            None => Ok(()),
            Some(_) => Err(Error::of(ErrorKind::Invalid, object, "it is compressed, until it is gathered")),
        }
    }

    /// Damage of the wrapped object as damage of this one.
    fn as_seen(&self, error: Error) -> Error {
        let (Some(object), Some(range)) = (error.object, error.range.clone()) else { return error };
        let chunk_of = |at: u64| (at / CHUNK_BYTES, self.entry(object, at / CHUNK_BYTES).unwrap_or(Entry::PLAIN));
        let mut seen = range.clone();
        let (first, entry) = chunk_of(range.start);
        if entry.is_compressed() {
            seen.start = first * CHUNK_BYTES;
            seen.end = seen.end.max(seen.start + entry.valid());
        }
        let (last, entry) = chunk_of(range.end.saturating_sub(1).max(range.start));
        if entry.is_compressed() {
            seen.end = last * CHUNK_BYTES + entry.valid();
        }
        error.in_bytes(seen)
    }
}

impl<D: ObjectDevice + ?Sized> MapObjects for Compressed<D> {
    fn publish(&self, transaction: Transaction, contents: &[Content], durability: Durability) -> Result<()> {
        let memory = self.memory()?;
        self.change(transaction, |transaction| memory.publish(transaction, contents, durability))
    }

    fn withdraw(&self, transaction: Transaction, object: ObjectId) -> Result<Content> {
        let memory = self.memory()?;
        self.change(transaction, |transaction| {
            self.refuse_compressed(object)?;
            memory.withdraw(transaction, object)
        })
    }

    fn gather(&self, object: ObjectId) -> Result<()> {
        let memory = self.memory()?;
        self.store_plain(object)?;
        memory.gather(object)
    }

    fn make_slots(&self, object: ObjectId) -> Result<()> {
        self.memory()?.make_slots(object)
    }

    fn fill_slot(&self, content: &Content, slot: u64) -> Result<()> {
        self.memory()?.fill_slot(content, slot)
    }

    fn take_slot(&self, object: ObjectId, slot: u64) -> Result<Content> {
        self.memory()?.take_slot(object, slot)
    }

    fn slot(&self, object: ObjectId, slot: u64) -> Option<(u64, u64)> {
        self.inner().map_objects()?.slot(object, slot)
    }

    fn whole(&self, object: ObjectId, length: u64) -> Option<u64> {
        let is_plain = matches!(self.group(object, 0), Ok(None));
        self.inner().map_objects().filter(|_| is_plain)?.whole(object, length)
    }

    fn look(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        self.memory()?.look(address, buffer)
    }

    fn overwrites(&self) -> bool {
        self.inner().map_objects().is_some_and(MapObjects::overwrites)
    }

    fn overwrite(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.memory()?.overwrite(address, bytes)
    }

    fn placement(&self, object: ObjectId) -> Result<Vec<Placed>> {
        self.refuse_compressed(object)?;
        self.memory()?.placement(object)
    }
}

impl<D: ObjectDevice + ?Sized> Scrub for Compressed<D> {
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport> {
        let why = "this device verifies nothing";
        let scrub = self.inner().scrub().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        let mut report = scrub.scrub(from, limit)?;
        report.damaged = report.damaged.into_iter().map(|error| self.as_seen(error)).collect();
        Ok(report)
    }

    fn scrub_part(&self, object: ObjectId, from: u64, limit: u64) -> Result<Option<ScrubPart>> {
        let Some(scrub) = self.inner().scrub() else { return Ok(None) };
        let part = scrub.scrub_part(object, from, limit)?;
        Ok(part.map(|mut part| {
            let damaged = part.found.damaged.into_iter();
            part.found.damaged = damaged.map(|error| self.as_seen(error)).collect();
            part
        }))
    }

    fn scrub_groups(&self, from: u64, limit: u32) -> Result<GroupScrub> {
        self.inner().scrub().map_or_else(|| Ok(GroupScrub::default()), |scrub| scrub.scrub_groups(from, limit))
    }
}

impl<D: ObjectDevice + ?Sized> Erase for Compressed<D> {
    fn erase(&self, object: ObjectId) -> Result<()> {
        let why = "this device keeps what it removes";
        let erase = self.inner().erase().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        let _turn = Turn::take(self.inner().as_ref());
        let _changing = self.shards().change([object].into_iter());
        self.shards().alone([object].into_iter(), || {
            self.shards().of(object).forget(object);
            erase.erase(object)
        })
    }
}

//! Reading: content of an object whose chunks are partly compressed, and what is wrong with it.
//!
//! A compressed chunk is read from its start with the hole behind it, which costs the device
//! nothing, so a reader needs to know of a chunk only that it is compressed. Memory for two chunks
//! is all that a read takes. Damage of a frame is damage of the bytes that it holds, and of no
//! others.

use crate::compressed::Compressed;
use crate::compressed::chunk::{Algorithm, algorithm_of, decode};
use crate::compressed::map::{
    CHUNK_BYTES, Entry, GROUP_BYTES, GROUP_CHUNKS, Group, INLINE, add_holes, group_key, holes_key, part_of,
};
use crate::ranges::Ranges;
use crate::shards::Known;
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, Error, ErrorKind, ObjectDevice, ObjectId, Result};
use std::sync::Arc;

/// Attributes that one call asks for.
const FETCHED: usize = 64;

/// A chunk that was compressed.
pub(crate) struct Loaded {
    /// Its bytes that count; holes are zeros.
    pub(crate) plain: Vec<u8>,
    pub(crate) holes: Ranges,
    /// What made its frame, if it has one.
    pub(crate) algorithm: Option<Algorithm>,
}

/// A chunk of an object, and what is known of it.
#[derive(Clone, Copy)]
struct Part {
    object: ObjectId,
    chunk: u64,
    entry: Entry,
}

/// Memory for one chunk as it is stored and as it is.
struct Scratch {
    stored: Vec<u8>,
    plain: Vec<u8>,
}

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// What is known of a group of an object.
    ///
    /// # Errors
    /// `NotFound` if there is no such object; `Corrupt`.
    pub(crate) fn group(&self, object: ObjectId, group: u64) -> Result<Known<Group>> {
        let shard = self.shards().of(object);
        // Another host may change it any time: then the device is asked.
        if !self.is_shared()
            && let Some(known) = shard.known(object, group)
        {
            return Ok(known);
        }
        let known = match self.inner().attribute(object, group_key(group))? {
            Some(value) => Some(Arc::new(self.parse(object, group, &value)?)),
            None => None,
        };
        if !self.is_shared() {
            shard.learn(object, group, known.clone());
        }
        Ok(known)
    }

    /// What an attribute says of a group.
    pub(crate) fn parse(&self, object: ObjectId, group: u64, value: &[u8]) -> Result<Group> {
        Group::parse(group, value).map_err(|why| {
            let size = self.inner().stat(object).map_or(u64::MAX, |stat| stat.size);
            // Without the head nothing of the object is known.
            let range = if group == 0 { 0..size } else { group * GROUP_BYTES..((group + 1) * GROUP_BYTES).min(size) };
            Error::corrupt(object, range, format!("which of its chunks are compressed is lost: {why}"))
        })
    }

    /// The entry of a chunk of an object that has compressed chunks.
    pub(crate) fn entry(&self, object: ObjectId, chunk: u64) -> Result<Entry> {
        let group = self.group(object, chunk / GROUP_CHUNKS)?;
        Ok(group.map_or(Entry::PLAIN, |group| group.entry(chunk)))
    }

    /// The holes of a compressed chunk.
    pub(crate) fn holes(&self, object: ObjectId, chunk: u64, entry: Entry) -> Result<Ranges> {
        if !entry.has_holes() || is_planted(Bug::ServicesHoleForgotten) {
            return Ok(Ranges::default());
        }
        let mut holes = Ranges::default();
        for (part, value) in self.hole_lists(object, chunk)? {
            add_holes(part, &value, &mut holes).map_err(|why| damaged(object, chunk, entry, why))?;
        }
        if holes.is_empty() { Err(damaged(object, chunk, entry, "the list of its holes is gone")) } else { Ok(holes) }
    }

    /// What the attributes say that list the holes of a chunk, by parts.
    pub(crate) fn hole_lists(&self, object: ObjectId, chunk: u64) -> Result<Vec<(u64, Vec<u8>)>> {
        let (mut lists, mut from) = (Vec::new(), Some(holes_key(chunk, 0)));
        while let Some(start) = from {
            let some = self.inner().attributes(object, start, FETCHED)?;
            from = some.last().map(|(key, _)| *key).filter(|key| part_of(*key, chunk).is_some());
            from = from.and_then(AttributeKey::next);
            lists.extend(some.into_iter().filter_map(|(key, value)| Some((part_of(key, chunk)?, value))));
        }
        Ok(lists)
    }

    /// Reads with nobody who changes what is compressed in between.
    pub(crate) fn read_content(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self.group(object, 0)? {
            None => self.inner().read(object, offset, buffer),
            Some(head) => self.read_mixed(object, &head, offset, buffer),
        }
    }

    /// Reads an object that has compressed chunks.
    fn read_mixed(&self, object: ObjectId, head: &Group, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut length = buffer.len() as u64;
        if head.hidden() > 0 {
            let size = self.inner().stat(object)?.size.saturating_sub(head.hidden());
            length = length.min(size.saturating_sub(offset));
        }
        let mut scratch = Scratch { stored: Vec::new(), plain: Vec::new() };
        let mut done = 0;
        while done < length {
            let at = offset + done;
            let chunk = at / CHUNK_BYTES;
            let entry = self.entry(object, chunk)?;
            let wanted = ((chunk + 1) * CHUNK_BYTES - at).min(length - done);
            let count = if entry.is_compressed() {
                let part = &mut buffer[done as usize..(done + wanted) as usize];
                self.read_chunk(Part { object, chunk, entry }, at % CHUNK_BYTES, part, &mut scratch)?
            } else {
                let wanted = self.plain_run(object, at, length - done)?;
                let part = &mut buffer[done as usize..(done + wanted) as usize];
                let count = self.inner().read(object, at, part)? as u64;
                if count < wanted {
                    return Ok((done + count) as usize);
                }
                count
            };
            done += count;
            if entry.is_compressed() && count < wanted {
                break;
            }
        }
        Ok(done as usize)
    }

    /// How many of `length` bytes lie in chunks that are not compressed, one after the other.
    fn plain_run(&self, object: ObjectId, at: u64, length: u64) -> Result<u64> {
        let end = at + length;
        let mut until = (at / CHUNK_BYTES + 1) * CHUNK_BYTES;
        while until < end && !self.entry(object, until / CHUNK_BYTES)?.is_compressed() {
            until += CHUNK_BYTES;
        }
        Ok(until.min(end) - at)
    }

    /// Reads a part of a compressed chunk, as far as the object goes.
    fn read_chunk(&self, of: Part, inside: u64, part: &mut [u8], scratch: &mut Scratch) -> Result<u64> {
        let Part { object, chunk, entry } = of;
        scratch.stored.resize(CHUNK_BYTES as usize, 0);
        scratch.plain.resize(CHUNK_BYTES as usize, 0);
        let stored = self.stored(object, chunk, entry, &mut scratch.stored)?;
        let holes = self.holes(object, chunk, entry)?;
        self.unpack(of, &holes, &scratch.stored[..stored], &mut scratch.plain)?;
        // Where the wrapped object ends this one does, or its hidden bytes were counted before.
        let count = (stored as u64).saturating_sub(inside).min(part.len() as u64);
        let from = inside as usize;
        part[..count as usize].copy_from_slice(&scratch.plain[from..from + count as usize]);
        Ok(count)
    }

    /// Reads the range of a compressed chunk as the wrapped device has it.
    fn stored(&self, object: ObjectId, chunk: u64, entry: Entry, buffer: &mut [u8]) -> Result<usize> {
        self.inner().read(object, chunk * CHUNK_BYTES, buffer).map_err(|error| match error.kind {
            ErrorKind::Corrupt => damaged(object, chunk, entry, &error.detail),
            _ => error,
        })
    }

    /// All of a compressed chunk.
    pub(crate) fn load(&self, object: ObjectId, chunk: u64, entry: Entry) -> Result<Loaded> {
        let mut stored = vec![0; CHUNK_BYTES as usize];
        let count = self.stored(object, chunk, entry, &mut stored)?;
        let holes = self.holes(object, chunk, entry)?;
        let mut plain = vec![0; CHUNK_BYTES as usize];
        self.unpack(Part { object, chunk, entry }, &holes, &stored[..count], &mut plain)?;
        let algorithm = if entry.is_inline() { None } else { algorithm_of(&stored).ok() };
        plain.truncate(entry.valid() as usize);
        if is_planted(Bug::ServicesRestForgotten) {
            plain.fill(0);
        }
        Ok(Loaded { plain, holes, algorithm })
    }

    /// Puts what a chunk reads as into `plain`, which has room for a chunk.
    fn unpack(&self, of: Part, holes: &Ranges, stored: &[u8], plain: &mut [u8]) -> Result<()> {
        let Part { object, chunk, entry } = of;
        let damaged = |why: &str| damaged(object, chunk, entry, why);
        let count = if entry.is_inline() {
            let value = self.inner().attribute(object, INLINE)?.ok_or_else(|| damaged("its bytes are gone"))?;
            plain[..value.len()].copy_from_slice(&value);
            value.len()
        } else {
            decode(stored, plain).map_err(damaged)?
        };
        let valid = entry.valid() as usize;
        if valid > count {
            return Err(damaged("less is stored than should be"));
        }
        if is_planted(Bug::ServicesCutForgotten) {
            plain[count..].fill(0);
        } else {
            plain[valid..].fill(0);
        }
        for (start, end) in holes.iter() {
            plain[start as usize..end as usize].fill(0);
        }
        Ok(())
    }
}

/// The bytes of a compressed chunk are lost.
pub(crate) fn damaged(object: ObjectId, chunk: u64, entry: Entry, why: &str) -> Error {
    let start = chunk * CHUNK_BYTES;
    Error::corrupt(object, start..start + entry.valid(), format!("compressed content: {why}"))
}

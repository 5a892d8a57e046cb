//! The files of an arena: its slots, its records, and the names of checkpoints.
//!
//! ```text
//! /.checkpoints/ARENA/arena              what it is: its size
//!                     slots-NUMBER       saved pages
//!                     record-SEQUENCE    where the pages of a checkpoint lie
//!                     name-NAME          the record that a name stands for
//! ```
//! A name is replaced by one transaction, after everything that it leads to is durable: there is
//! never one that leads to half a checkpoint.

use super::memory::PAGE_BYTES;
use super::record::{Record, Saved};
use super::slots::CheckpointSlots;
use crate::error::{Error, Result};
use crate::heap::Heap;
use onode_base::ErrorKind;
use onode_base::checksum::crc32c;
use onode_fs::Follow;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const ROOM: &[u8] = b"/.checkpoints";
const ARENA_MAGIC: [u8; 8] = *b"ONODEARN";
const NAME_MAGIC: [u8; 8] = *b"ONODENAM";
const NUMBERS_BYTES: usize = 32;

/// What a record adds to, and with how many entries.
#[derive(Clone, Copy, Debug)]
struct Link {
    parent: u64,
    entries: usize,
}

pub(crate) struct Store {
    heap: Heap,
    directory: Vec<u8>,
    pub slots: CheckpointSlots,
    pages: usize,
    records: BTreeMap<u64, Link>,
    names: BTreeMap<Vec<u8>, u64>,
    next: u64,
}

/// Two numbers under a checksum.
fn encode(magic: [u8; 8], numbers: [u64; 2]) -> [u8; NUMBERS_BYTES] {
    let mut bytes = [0; NUMBERS_BYTES];
    bytes[..8].copy_from_slice(&magic);
    bytes[8..16].copy_from_slice(&numbers[0].to_le_bytes());
    bytes[16..24].copy_from_slice(&numbers[1].to_le_bytes());
    let crc = crc32c(&bytes[..24]);
    bytes[24..28].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(magic: [u8; 8], bytes: &[u8]) -> Option<[u64; 2]> {
    let bytes: &[u8; NUMBERS_BYTES] = bytes.try_into().ok()?;
    let long = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let crc = u32::from_le_bytes(bytes.get(24..28)?.try_into().ok()?);
    (bytes[..8] == magic && crc32c(&bytes[..24]) == crc).then_some([long(8)?, long(16)?])
}

pub(crate) fn directory_of(arena: &[u8]) -> Vec<u8> {
    [ROOM, b"/", arena].concat()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Store {
    /// Makes the files of an arena of `bytes`, whole pages.
    pub(crate) fn create(heap: &Heap, arena: &[u8], bytes: usize) -> Result<Self> {
        let directory = directory_of(arena);
        let file = [&directory[..], b"/arena"].concat();
        if heap.files().resolve(&file, Follow::No).is_ok() {
            return Err(Error::new(ErrorKind::Exists, format!("there is an arena {} already", words(arena))));
        }
        heap.make_directories(&directory)?;
        let segment = (bytes / 8).next_multiple_of(64 << 10).clamp(256 << 10, 32 << 20);
        heap.put_whole(&file, &encode(ARENA_MAGIC, [bytes as u64, segment as u64]))?;
        Self::open(heap, arena).map(|(store, _)| store)
    }

    /// Opens the files of an arena; returns its bytes as well.
    pub(crate) fn open(heap: &Heap, arena: &[u8]) -> Result<(Self, usize)> {
        let directory = directory_of(arena);
        let file = [&directory[..], b"/arena"].concat();
        let content = heap.files().read_file(&file).map_err(|error| match error.kind {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("there is no arena {}", words(arena))),
            _ => Error::of_files(&format!("cannot open the arena {}", words(arena)), &error),
        })?;
        let damaged =
            |what: &str| Error::new(ErrorKind::Corrupt, format!("the arena {} is damaged: {what}", words(arena)));
        let [bytes, segment] = decode(ARENA_MAGIC, &content).ok_or_else(|| damaged("its first file"))?;
        let fits =
            |bytes: u64| usize::try_from(bytes).ok().filter(|bytes| *bytes > 0 && bytes.is_multiple_of(PAGE_BYTES));
        let bytes = fits(bytes).ok_or_else(|| damaged("its size"))?;
        let segment = fits(segment).ok_or_else(|| damaged("the size of its segments"))?;
        let slots = CheckpointSlots::open(heap, &directory, segment)?;
        let (records, names) = (BTreeMap::new(), BTreeMap::new());
        let mut store =
            Self { heap: heap.clone(), directory, slots, pages: bytes / PAGE_BYTES, records, names, next: 1 };
        store.read_directory()?;
        Ok((store, bytes))
    }

    fn path(&self, name: &[u8]) -> Vec<u8> {
        [&self.directory[..], b"/", name].concat()
    }

    fn record_path(&self, sequence: u64) -> Vec<u8> {
        self.path(format!("record-{sequence:016x}").as_bytes())
    }

    fn name_path(&self, name: &[u8]) -> Vec<u8> {
        self.path(&[b"name-", name].concat())
    }

    fn read_directory(&mut self) -> Result<()> {
        let files = self.heap.files();
        let failed = |error: onode_fs::Error| Error::of_files("cannot list the checkpoints", &error);
        let directory = files.resolve(&self.directory, Follow::Yes).map_err(failed)?;
        for entry in files.list(directory).map_err(failed)? {
            if let Some(name) = entry.name.strip_prefix(b"name-") {
                let content = files.read_file(&self.path(&entry.name)).map_err(failed)?;
                // One that is damaged leads nowhere, and says so when it is asked for.
                let sequence = decode(NAME_MAGIC, &content).map_or(0, |[sequence, _]| sequence);
                self.names.insert(name.to_vec(), sequence);
            } else if let Some(number) = entry.name.strip_prefix(b"record-")
                && let Some(sequence) =
                    std::str::from_utf8(number).ok().and_then(|hex| u64::from_str_radix(hex, 16).ok())
            {
                self.next = self.next.max(sequence.saturating_add(1));
                if let Ok(record) = self.read_record(sequence) {
                    let link = Link { parent: record.parent, entries: record.entries.len() };
                    self.records.insert(sequence, link);
                }
            }
        }
        Ok(())
    }

    fn read_record(&self, sequence: u64) -> Result<Record> {
        let bytes = self.heap.files().read_file(&self.record_path(sequence));
        let bytes = bytes.map_err(|error| Error::of_files(&format!("record {sequence} of a checkpoint"), &error))?;
        let damaged =
            |why| Error::new(ErrorKind::Corrupt, format!("record {sequence} of a checkpoint is damaged: {why}"));
        let record = Record::decode(&bytes).map_err(damaged)?;
        if record.sequence != sequence || record.pages != self.pages as u64 {
            return Err(damaged("it is one of another arena"));
        }
        Ok(record)
    }

    /// Name and record of every checkpoint.
    pub(crate) const fn names(&self) -> &BTreeMap<Vec<u8>, u64> {
        &self.names
    }

    /// The record that a name stands for.
    pub(crate) fn named(&self, name: &[u8]) -> Result<u64> {
        match self.names.get(name) {
            Some(0) => {
                Err(Error::new(ErrorKind::Corrupt, format!("the checkpoint {} is damaged: its name", words(name))))
            }
            Some(sequence) => Ok(*sequence),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no checkpoint {}", words(name)))),
        }
    }

    /// When a checkpoint was made.
    pub(crate) fn modified(&self, name: &[u8]) -> Option<onode_base::Timestamp> {
        let files = self.heap.files();
        let inode = files.resolve(&self.name_path(name), Follow::No).ok()?;
        files.attributes(inode).ok().map(|attributes| attributes.modified)
    }

    /// Where every page lies according to a record and those that it adds to.
    pub(crate) fn map_of(&self, sequence: u64) -> Result<Vec<Saved>> {
        let mut chain = vec![self.read_record(sequence)?];
        while let Some(parent) = chain.last().map(|record| record.parent).filter(|parent| *parent != 0) {
            chain.push(self.read_record(parent)?);
        }
        let mut map = vec![Saved::ZEROS; self.pages];
        for (page, saved) in chain.iter().rev().flat_map(|record| &record.entries) {
            map[*page as usize] = *saved;
        }
        Ok(map)
    }

    /// Entries of a record and of those that it adds to but for the first, which names all pages.
    pub(crate) fn entries_since_full(&self, sequence: u64) -> usize {
        let mut count = 0;
        let mut at = self.records.get(&sequence);
        while let Some(link) = at.filter(|link| link.parent != 0) {
            count += link.entries;
            at = self.records.get(&link.parent);
        }
        count
    }

    /// Stores a record; returns its number and its bytes.
    pub(crate) fn add_record(&mut self, parent: u64, entries: Vec<(u32, Saved)>) -> Result<(u64, u64)> {
        let sequence = self.next;
        self.next += 1;
        let count = entries.len();
        let record = Record { sequence, parent, pages: self.pages as u64, entries };
        let bytes = record.encode();
        self.heap.put_whole(&self.record_path(sequence), &bytes)?;
        self.records.insert(sequence, Link { parent, entries: count });
        Ok((sequence, bytes.len() as u64))
    }

    /// Has a name stand for a record, in place of what it stood for; returns the bytes written.
    pub(crate) fn set_name(&mut self, name: &[u8], sequence: u64) -> Result<u64> {
        let bytes = encode(NAME_MAGIC, [sequence, 0]);
        self.heap.put_whole(&self.name_path(name), &bytes)?;
        self.names.insert(name.to_vec(), sequence);
        Ok(bytes.len() as u64)
    }

    pub(crate) fn remove_name(&mut self, name: &[u8]) -> Result<()> {
        if !self.names.contains_key(name) {
            self.named(name)?;
        }
        self.unlink(&self.name_path(name))?;
        self.names.remove(name);
        Ok(())
    }

    fn unlink(&self, path: &[u8]) -> Result<()> {
        let files = self.heap.files();
        let gone = files.resolve_parent(path).and_then(|(parent, name)| files.unlink(parent, name));
        gone.map_err(|error| Error::of_files(&format!("cannot remove {}", words(path)), &error))
    }

    /// The records that names or `current` stand for.
    fn held(&self, current: u64) -> BTreeSet<u64> {
        self.names.values().copied().chain([current]).filter(|sequence| *sequence != 0).collect()
    }

    /// Removes records that nothing needs. One that stays because of an error goes another time.
    pub(crate) fn drop_records(&mut self, current: u64) {
        let mut needed = BTreeSet::new();
        for mut at in self.held(current) {
            while at != 0 && needed.insert(at) {
                at = self.records.get(&at).map_or(0, |link| link.parent);
            }
        }
        let gone: Vec<u64> = self.records.keys().filter(|sequence| !needed.contains(sequence)).copied().collect();
        for sequence in gone {
            if self.unlink(&self.record_path(sequence)).is_ok() {
                self.records.remove(&sequence);
            }
        }
    }

    /// Makes at least `needed` slots free: those that no record names, `live` neither; new ones, if
    /// those are too few.
    pub(crate) fn gather_slots(
        &mut self,
        current: u64,
        live: impl Iterator<Item = Saved>,
        needed: usize,
    ) -> Result<()> {
        let mut is_live = vec![false; self.slots.count()];
        let mut mark = |saved: &Saved| {
            if let Some(slot) = is_live.get_mut(saved.slot as usize) {
                *slot = true;
            }
        };
        live.for_each(|saved| mark(&saved));
        let mut all_known = true;
        for sequence in self.held(current) {
            match self.map_of(sequence) {
                Ok(map) => map.iter().for_each(&mut mark),
                // Which pages it has nobody knows, so none may be written to until it is removed.
                Err(_) => all_known = false,
            }
        }
        all_known &= !self.names.values().any(|sequence| *sequence == 0);
        if !all_known {
            is_live.fill(true);
        }
        self.slots.set_free(&is_live);
        // Looking at all records is worth it only for many slots.
        let wanted = needed.max(self.slots.count() / 16);
        while self.slots.free_count() < wanted {
            let free = self.slots.free_count();
            match self.slots.grow() {
                Err(error) if free >= needed && error.kind == ErrorKind::NoSpace => break,
                other => other?,
            }
        }
        Ok(())
    }

    /// Removes an arena with all its checkpoints.
    pub(crate) fn remove(heap: &Heap, arena: &[u8]) -> Result<()> {
        let directory = directory_of(arena);
        let failed = |error: onode_fs::Error| match error.kind {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("there is no arena {}", words(arena))),
            _ => Error::of_files(&format!("cannot remove the arena {}", words(arena)), &error),
        };
        let files = heap.files();
        // Without this one it is none any more, whatever happens to the rest.
        let file = [&directory[..], b"/arena"].concat();
        files.resolve_parent(&file).and_then(|(parent, name)| files.unlink(parent, name)).map_err(failed)?;
        files.remove_all(&directory).map(drop).map_err(failed)
    }

    /// The number of an arena's file, which no other file ever has.
    pub(crate) fn number_of(heap: &Heap, arena: &[u8]) -> Result<u64> {
        let file = [&directory_of(arena)[..], b"/arena"].concat();
        let found = heap.files().resolve(&file, Follow::No).map_err(|error| match error.kind {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("there is no arena {}", words(arena))),
            _ => Error::of_files(&format!("cannot open the arena {}", words(arena)), &error),
        });
        found.map(|inode| inode.0)
    }

    /// The names of all arenas.
    pub(crate) fn arenas(heap: &Heap) -> Result<Vec<Vec<u8>>> {
        let files = heap.files();
        let room = match files.resolve(ROOM, Follow::Yes) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| Error::of_files("cannot list the arenas", &error))?,
        };
        let names = files.list(room).map_err(|error| Error::of_files("cannot list the arenas", &error))?;
        Ok(names.into_iter().map(|entry| entry.name).collect())
    }
}

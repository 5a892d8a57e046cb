//! From changed pages to a checkpoint, in three steps: copy ahead, freeze, commit.

use super::arena::Arena;
use super::memory::{Memory, PAGE_BYTES};
use super::record::Saved;
use super::store::Store;
use super::tracking::{KernelNotes, Tracking};
use crate::error::{Error, Result};
use crate::whole::check_name;
use onode_base::ErrorKind;
use onode_base::checksum::crc32c;
use onode_media::Pmem;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Times that pages are copied ahead before what is left is copied in the pause.
const MOST_ROUNDS: u32 = 6;
/// So few changed pages are not worth another round.
const FEW_PAGES: usize = 64;
/// Slots kept free for the pause, in which none should have to be looked for.
const SLOTS_FOR_PAUSE: usize = 1024;

/// What a checkpoint cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Pages that differ from the checkpoint before.
    pub pages: u64,
    /// Bytes written for it: pages, those twice that changed while they were copied, record and
    /// name.
    pub bytes_written: u64,
    /// Pages copied during the pause.
    pub pages_in_pause: u64,
}

/// What is known of an arena's pages.
pub(crate) struct State {
    pub memory: Arc<Memory>,
    /// `None`: pages are compared.
    pub notes: Option<KernelNotes>,
    pub store: Store,
    /// Where the pages lie according to the record `parent`.
    pub current: Vec<Saved>,
    /// Pages of `current` that are not zeros.
    mapped: usize,
    pub parent: u64,
    /// Copied since, and in no record yet.
    pending: HashMap<u32, Saved>,
    /// The same of an image that waits to be committed.
    frozen: Option<HashMap<u32, Saved>>,
    /// Changed pages that could not be copied so far.
    missed: Vec<Range<usize>>,
    written: u64,
    in_pause: u64,
}

fn of_kernel(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Media, format!("the kernel does not say which pages have changed: {error}"))
}

impl State {
    pub(crate) fn new(memory: Arc<Memory>, notes: Option<KernelNotes>, store: Store) -> Self {
        let current = vec![Saved::ZEROS; memory.pages()];
        Self {
            memory,
            notes,
            store,
            current,
            mapped: 0,
            parent: 0,
            pending: HashMap::new(),
            frozen: None,
            missed: Vec::new(),
            written: 0,
            in_pause: 0,
        }
    }

    pub(crate) const fn tracking(&self) -> Tracking {
        if self.notes.is_some() { Tracking::Kernel } else { Tracking::Comparison }
    }

    /// What was saved of a page last.
    fn saved(&self, page: usize) -> Saved {
        let key = page as u32;
        let copied = self.pending.get(&key).or_else(|| self.frozen.as_ref()?.get(&key));
        copied.or_else(|| self.current.get(page)).copied().unwrap_or(Saved::ZEROS)
    }

    /// The pages that may differ from what was saved of them.
    fn changed(&mut self) -> Result<Vec<Range<usize>>> {
        let mut changed = std::mem::take(&mut self.missed);
        if let Some(notes) = &mut self.notes {
            notes.take(&self.memory, |range| changed.push(range)).map_err(|error| of_kernel(&error))?;
            return Ok(changed);
        }
        let (mut there, mut saved) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        for page in 0..self.memory.pages() {
            self.memory.copy_page(page, &mut there);
            self.store.slots.read(self.saved(page), &mut saved)?;
            if there != saved {
                changed.push(page..page + 1);
            }
        }
        Ok(changed)
    }

    /// Copies pages to slots; each gets one of its own that no record names.
    fn copy(&mut self, ranges: &[Range<usize>]) -> Result<()> {
        let mut bytes = [0; PAGE_BYTES];
        for page in ranges.iter().cloned().flatten() {
            self.memory.copy_page(page, &mut bytes);
            let before = self.saved(page);
            let key = page as u32;
            if bytes == [0; PAGE_BYTES] {
                if !before.is_zeros() {
                    self.pending.insert(key, Saved::ZEROS);
                }
                continue;
            }
            let own = self.pending.get(&key).filter(|saved| !saved.is_zeros()).map(|saved| saved.slot);
            let slot = match own.or_else(|| self.store.slots.take()) {
                Some(slot) => slot,
                None => {
                    self.gather(1)?;
                    let none = || Error::new(ErrorKind::NoSpace, "no room is left for the pages of a checkpoint");
                    self.store.slots.take().ok_or_else(none)?
                }
            };
            self.store.slots.write(slot, &bytes)?;
            self.written += PAGE_BYTES as u64;
            self.pending.insert(key, Saved { slot, crc: crc32c(&bytes) });
        }
        Ok(())
    }

    /// Makes at least `needed` slots free.
    fn gather(&mut self, needed: usize) -> Result<()> {
        let copied = self.pending.values().chain(self.frozen.iter().flat_map(HashMap::values));
        let live = self.current.iter().chain(copied).copied();
        self.store.gather_slots(self.parent, live, needed)
    }

    /// Looks for changed pages and copies them; returns how many there were.
    fn round(&mut self) -> Result<usize> {
        let ranges = self.changed()?;
        let copied = self.copy(&ranges);
        if copied.is_err() {
            self.missed.clone_from(&ranges);
        }
        copied.map(|()| ranges.iter().map(ExactSizeIterator::len).sum())
    }

    fn copy_ahead(&mut self) -> Result<()> {
        // Comparing costs as much each time as the first.
        let rounds = if self.notes.is_some() { MOST_ROUNDS } else { 1 };
        for _ in 0..rounds {
            if self.round()? <= FEW_PAGES {
                break;
            }
        }
        if self.store.slots.free_count() < SLOTS_FOR_PAUSE.min(self.memory.pages()) {
            // Not needed yet: if there is no room, the pause asks for what it needs.
            let _ = self.gather(SLOTS_FOR_PAUSE.min(self.memory.pages()));
        }
        Ok(())
    }

    fn freeze(&mut self) -> Result<()> {
        if self.frozen.is_some() {
            return Err(Error::new(ErrorKind::Busy, "another checkpoint of the arena is not committed yet"));
        }
        self.in_pause = self.round()? as u64;
        self.frozen = Some(std::mem::take(&mut self.pending));
        Ok(())
    }

    /// The image is not to be a checkpoint after all.
    fn thaw(&mut self) {
        for (page, saved) in self.frozen.take().into_iter().flatten() {
            self.pending.entry(page).or_insert(saved);
        }
    }

    fn commit(&mut self, name: &[u8]) -> Result<Report> {
        check_name("a checkpoint", name)?;
        self.store.slots.fence()?;
        let frozen = self.frozen.as_ref();
        let mut entries: Vec<(u32, Saved)> =
            frozen.into_iter().flatten().map(|(page, saved)| (*page, *saved)).collect();
        entries.sort_unstable_by_key(|(page, _)| *page);
        let pages = entries.len() as u64;
        let mut bytes = 0;
        let mut sequence = self.parent;
        if !entries.is_empty() || sequence == 0 {
            let is_long = self.store.entries_since_full(sequence) + entries.len() > self.mapped;
            let (parent, named) =
                if sequence == 0 || is_long { (0, self.all_with(&entries)) } else { (sequence, entries.clone()) };
            (sequence, bytes) = self.store.add_record(parent, named)?;
        }
        bytes += self.store.set_name(name, sequence)?;
        self.adopt(sequence, &entries);
        self.frozen = None;
        self.store.drop_records(sequence);
        let written = std::mem::take(&mut self.written);
        Ok(Report { pages, bytes_written: written + bytes, pages_in_pause: self.in_pause })
    }

    /// All pages that are not zeros, with `entries` in place of what they were.
    fn all_with(&self, entries: &[(u32, Saved)]) -> Vec<(u32, Saved)> {
        let mut all = self.current.clone();
        for (page, saved) in entries {
            all[*page as usize] = *saved;
        }
        let pages = (0_u32..).zip(all);
        pages.filter(|(_, saved)| !saved.is_zeros()).collect()
    }

    fn adopt(&mut self, sequence: u64, entries: &[(u32, Saved)]) {
        for (page, saved) in entries {
            if let Some(slot) = self.current.get_mut(*page as usize) {
                self.mapped -= usize::from(!slot.is_zeros());
                self.mapped += usize::from(!saved.is_zeros());
                *slot = *saved;
            }
        }
        self.parent = sequence;
    }

    /// Makes the memory what a checkpoint saved.
    pub(crate) fn restore(&mut self, name: &[u8]) -> Result<()> {
        let sequence = self.store.named(name)?;
        let map = self.store.map_of(sequence)?;
        let cannot = |error: std::io::Error| Error::new(ErrorKind::Media, format!("cannot clear an arena: {error}"));
        let mut bytes = [0; PAGE_BYTES];
        // All is looked at before anything is given up.
        for (page, saved) in map.iter().enumerate() {
            self.store.slots.read_verified(page, *saved, &mut bytes)?;
        }
        self.memory.clear().map_err(cannot)?;
        for (page, saved) in map.iter().enumerate().filter(|(_, saved)| !saved.is_zeros()) {
            self.store.slots.read_verified(page, *saved, &mut bytes)?;
            self.memory.write((page * PAGE_BYTES) as u64, &bytes);
        }
        if let Some(notes) = &mut self.notes {
            notes.take(&self.memory, |_| ()).map_err(|error| of_kernel(&error))?;
        }
        self.mapped = map.iter().filter(|saved| !saved.is_zeros()).count();
        (self.current, self.parent) = (map, sequence);
        (self.pending, self.frozen, self.written) = (HashMap::new(), None, 0);
        self.missed.clear();
        Ok(())
    }
}

/// An image of an arena that is no checkpoint yet; dropped, it becomes none, and what was copied is
/// of use to the next.
#[must_use]
pub struct Frozen<'a> {
    arena: &'a Arena,
    is_done: bool,
}

impl Frozen<'_> {
    /// Makes the image the checkpoint `name`, in place of the one that had the name. The program
    /// may go on meanwhile.
    ///
    /// # Errors
    /// `NoSpace`, `Media`, `Invalid` or `NameTooLong` for a name that cannot be one; the checkpoint
    /// before is as it was.
    pub fn commit(mut self, name: &[u8]) -> Result<Report> {
        let report = self.arena.state().commit(name)?;
        self.is_done = true;
        Ok(report)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.arena.state().thaw();
        }
    }
}

impl Arena {
    /// Saves the arena as it is under a name, in place of what had the name; durable on return.
    /// Nobody may store to it during the call; a program with threads that do uses
    /// [`copy_ahead`](Self::copy_ahead), [`freeze`](Self::freeze) and [`Frozen::commit`] instead.
    ///
    /// # Errors
    /// As [`Frozen::commit`]; `Busy` if a frozen image is not committed yet.
    pub fn checkpoint(&self, name: &[u8]) -> Result<Report> {
        check_name("a checkpoint", name)?;
        self.copy_ahead()?;
        self.freeze()?.commit(name)
    }

    /// Whether a checkpoint can have this name.
    ///
    /// # Errors
    /// `Invalid`, `NameTooLong`.
    pub fn check_name_of_checkpoint(name: &[u8]) -> Result<()> {
        check_name("a checkpoint", name)
    }

    /// Copies what has changed since the last checkpoint, so that the next one finds little to do.
    /// The program goes on storing meanwhile.
    ///
    /// # Errors
    /// `NoSpace`, `Media`.
    pub fn copy_ahead(&self) -> Result<()> {
        self.state().copy_ahead()
    }

    /// Takes the image of this moment. Nobody may store to the arena during the call: this is the
    /// pause. How long it takes goes with what was stored to since
    /// [`copy_ahead`](Self::copy_ahead).
    ///
    /// # Errors
    /// `NoSpace`, `Media`; `Busy` if the image before is not committed yet.
    pub fn freeze(&self) -> Result<Frozen<'_>> {
        let mut state = self.state();
        let _nobody_allocates = self.allocating();
        state.freeze()?;
        Ok(Frozen { arena: self, is_done: false })
    }
}

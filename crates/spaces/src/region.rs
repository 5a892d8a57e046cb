//! A memory with its partition table: make, open, change.
//!
//! The table has two copies. A change writes one of them, waits until it is durable, then the
//! other; each carries checksums, so that a cut in the middle leaves one that counts. A copy that
//! is damaged or behind is written first, so that there never is a moment without a good one.
//! Opening stores nothing.

use crate::format::{Header, encode};
use crate::layout::{ENTRY_BYTES, HEADER_BYTES, HEADERS, HEADERS_END, PAGE_BYTES};
use crate::open::Open;
use crate::place::next_taken;
use crate::table::{Kind, SpaceInfo, Table, check_name};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};
use onode_media::error::{Error, MediaErrorKind, Result};
use onode_media::pmem::Pmem;

mod restore;
mod space;

pub use restore::KnownSpace;
pub use space::Space;

/// The smallest region.
pub const LENGTH_MIN: u64 = 64 << 10;
/// From so many bytes on, spaces begin at large pages.
pub(super) const LARGE_REGION: u64 = 64 << 20;
pub(super) const LARGE_PAGE_BYTES: u64 = 2 << 20;
/// Bytes that are copied or cleared at once.
const CHUNK_BYTES: u64 = 64 << 10;

/// A memory that is divided into spaces. Clones are the same region.
pub struct Region<P> {
    core: Arc<Core<P>>,
}

impl<P> Clone for Region<P> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }
}

pub(super) struct Core<P> {
    pub(super) pmem: P,
    state: Mutex<State, rank::Spaces>,
}

struct State {
    table: Table,
    /// The copy that a change writes first.
    first: usize,
    /// What is wrong with the table, though it can be read.
    warning: Option<String>,
    /// A change failed half-way: what the memory holds is not known any more.
    failed: bool,
    open: BTreeMap<u64, Weak<Open>>,
}

/// Whether a memory has a partition table, be it damaged.
pub fn is_region<P: Pmem>(pmem: &P) -> bool {
    if pmem.length() < HEADERS_END {
        return false;
    }
    HEADERS.iter().any(|at| {
        let mut bytes = [0; HEADER_BYTES];
        pmem.read(*at, &mut bytes);
        !matches!(Header::decode(&bytes, pmem.length()), Err(error) if error.kind == MediaErrorKind::NotAnImage)
    })
}

impl<P: Pmem> Region<P> {
    /// Makes an empty partition table; what the memory held is gone. `is_zero` says that it reads
    /// as zeros all over.
    ///
    /// # Errors
    /// `Invalid` (too small), `Host`, `HostFull`, `ReadOnly`.
    pub fn format(pmem: P, uuid: [u8; 16], is_zero: bool) -> Result<Self> {
        let length = pmem.length() - pmem.length() % PAGE_BYTES;
        if length < LENGTH_MIN {
            let detail = format!("a region needs {LENGTH_MIN} bytes, this memory has {}", pmem.length());
            return Err(Error::new(MediaErrorKind::Invalid, detail));
        }
        let table = Table {
            uuid,
            generation: 0,
            length,
            alignment: if length >= LARGE_REGION { LARGE_PAGE_BYTES } else { PAGE_BYTES },
            fresh_from: if is_zero { HEADERS_END + 2 * PAGE_BYTES } else { length },
            next_id: 1,
            lists: [HEADERS_END, HEADERS_END + PAGE_BYTES],
            list_bytes: PAGE_BYTES,
            spaces: Vec::new(),
        };
        let region = Self::with(pmem, table.clone(), 0, None);
        region.core.commit(&mut region.core.state.lock(), table)?;
        Ok(region)
    }

    /// Opens the region that a memory holds.
    ///
    /// # Errors
    /// `NotAnImage` (no partition table), `NewerFormat`, `Damaged` (no copy of the table can be
    /// read, or the memory is shorter than the table says), `Host`.
    pub fn open(pmem: P) -> Result<Self> {
        let mut best: Option<(usize, Table)> = None;
        let mut errors = Vec::new();
        let mut same = true;
        for copy in 0..2 {
            match read_copy(&pmem, copy) {
                Err(error) => errors.push(error),
                Ok(table) => {
                    let known = best.as_ref().map(|(_, known)| known.generation);
                    same &= known.is_none_or(|known| known == table.generation);
                    if known.is_none_or(|known| known < table.generation) {
                        best = Some((copy, table));
                    }
                }
            }
        }
        let Some((copy, table)) = best else {
            // A newer format is better news than damage, and damage better than nothing.
            let rank = |error: &Error| match error.kind {
                MediaErrorKind::NewerFormat => 0,
                MediaErrorKind::Damaged => 1,
                _ => 2,
            };
            errors.sort_by_key(rank);
            let nothing = || Error::new(MediaErrorKind::NotAnImage, "it has no table of spaces");
            return Err(errors.into_iter().next().unwrap_or_else(nothing));
        };
        let warning = match errors.first() {
            Some(error) => {
                Some(format!("one of two copies of the table is lost ({error}); the next change writes it anew"))
            }
            None if !same => {
                Some("one of two copies of the table is behind; the next change writes it anew".to_string())
            }
            None => None,
        };
        // What was read may be in the caches only, if a process died; who saw it may rely on it.
        for (at, length) in HEADERS.into_iter().zip([HEADER_BYTES as u64; 2]) {
            pmem.flush(at, length);
        }
        pmem.flush(table.lists[copy], (table.spaces.len() * ENTRY_BYTES) as u64);
        match pmem.fence() {
            Err(error) if error.kind != MediaErrorKind::ReadOnly => Err(error),
            _ => Ok(Self::with(pmem, table, if warning.is_some() { 1 - copy } else { 0 }, warning)),
        }
    }

    fn with(pmem: P, table: Table, first: usize, warning: Option<String>) -> Self {
        let state = State { table, first, warning, failed: false, open: BTreeMap::new() };
        Self { core: Arc::new(Core { pmem, state: Mutex::new(state) }) }
    }

    /// A region with this table, stored or only known.
    pub(super) fn with_table(pmem: P, table: Table, store: bool) -> Result<Self> {
        let warning = Some("both copies of the table were lost".to_string());
        let region = Self::with(pmem, table.clone(), 0, warning);
        if store {
            region.core.commit(&mut region.core.state.lock(), table)?;
        }
        Ok(region)
    }

    /// The memory itself.
    #[must_use]
    #[inline]
    pub fn pmem(&self) -> &P {
        &self.core.pmem
    }

    /// Bytes of the region.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.core.state.lock().table.length
    }

    /// Its identity.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.core.state.lock().table.uuid
    }

    /// What spaces begin at a multiple of.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.core.state.lock().table.alignment
    }

    /// Bytes that no space has.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let state = self.core.state.lock();
        let taken: u64 = state.table.taken().iter().map(|extent| extent.length).sum();
        state.table.length - taken
    }

    /// The longest space that could be made now.
    #[must_use]
    pub fn largest_free(&self) -> u64 {
        let state = self.core.state.lock();
        crate::place::largest(&state.table.taken(), state.table.length, state.table.alignment)
    }

    /// What is wrong with the table, though it can be read.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.core.state.lock().warning.clone()
    }

    /// All spaces, in the order of their making.
    #[must_use]
    pub fn list(&self) -> Vec<SpaceInfo> {
        self.core.state.lock().table.spaces.clone()
    }

    /// A space by its name.
    ///
    /// # Errors
    /// `NoSuchSpace`.
    pub fn space(&self, name: &str) -> Result<Space<P>> {
        let mut state = self.core.state.lock();
        let info = state.table.spaces[state.table.position(name)?].clone();
        Ok(self.handle(&mut state, info))
    }

    fn handle(&self, state: &mut State, info: SpaceInfo) -> Space<P> {
        let open = match state.open.get(&info.id).and_then(Weak::upgrade) {
            Some(open) => open,
            None => Arc::new(Open::new(&info)),
        };
        state.open.insert(info.id, Arc::downgrade(&open));
        Space::new(self.clone(), open)
    }

    /// Makes a space of at least `length` bytes, which reads as zeros.
    ///
    /// # Errors
    /// `Exists`, `Invalid` (name or length), `NoSpace`, and those of the memory.
    pub fn create(&self, name: &str, kind: Kind, length: u64) -> Result<Space<P>> {
        self.create_with(name, kind, length, None)
    }

    /// Makes a space that holds `image` and may only be read.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_image(&self, name: &str, kind: Kind, image: &[u8]) -> Result<Space<P>> {
        self.create_with(name, kind, image.len() as u64, Some(image))
    }

    fn create_with(&self, name: &str, kind: Kind, length: u64, image: Option<&[u8]>) -> Result<Space<P>> {
        check_name(name)?;
        let length = whole_pages(length)?;
        let mut state = self.core.state.lock();
        let mut table = state.table.clone();
        if table.position(name).is_ok() {
            return Err(Error::new(MediaErrorKind::Exists, format!("space '{name}'")));
        }
        table.make_room_in_list()?;
        let start = table.place(length).ok_or_else(|| table.full(length, "for the space"))?;
        let info =
            SpaceInfo { id: table.next_id, name: name.to_string(), kind, read_only: image.is_some(), start, length };
        if let Some(image) = image {
            table.fresh_from = table.fresh_from.max(start + length);
            self.core.forget_fresh(&mut state, &table)?;
            self.core.pmem.write_through(start, image);
            let written = image.len() as u64;
            self.core.clear(&mut table, start + written, length - written);
        } else {
            self.core.forget_fresh(&mut state, &table)?;
            self.core.clear(&mut table, start, length);
        }
        table.next_id += 1;
        table.spaces.push(info.clone());
        self.core.commit(&mut state, table)?;
        Ok(self.handle(&mut state, info))
    }

    /// Removes a space; its bytes are free.
    ///
    /// # Errors
    /// `NoSuchSpace`, `InUse`, and those of the memory.
    pub fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.core.state.lock();
        let mut table = state.table.clone();
        let info = table.spaces.remove(table.position(name)?);
        state.check_unused(&info)?;
        self.core.commit(&mut state, table)
    }

    /// Makes a space longer or shorter. A longer one may move, or have those behind it moved; what
    /// is added reads as zeros.
    ///
    /// # Errors
    /// `NoSuchSpace`, `Invalid`, `NoSpace`, `InUse` (a space that somebody uses stays where it
    /// lies), `ReadOnly`, and those of the memory.
    pub fn resize(&self, name: &str, length: u64) -> Result<()> {
        let length = whole_pages(length)?;
        let mut state = self.core.state.lock();
        let way = state.table.position(name).ok().and_then(|position| state.table.way_for(position, length));
        for (id, start) in way.into_iter().flatten() {
            self.core.relocate(&mut state, id, start)?;
        }
        let position = state.table.position(name)?;
        let info = state.table.spaces[position].clone();
        if info.read_only {
            let detail = format!("space '{name}' holds an image that may only be read; remove it and make a new one");
            return Err(Error::new(MediaErrorKind::ReadOnly, detail));
        }
        let mut table = state.table.clone();
        if length < info.length {
            state.check_unused(&info)?;
        } else if let Err(full) = self.grow_in_place(&mut table, position, length) {
            let start = table.place(length).ok_or(full)?;
            state.check_unused(&info)?;
            table.fresh_from = table.fresh_from.max(start + length);
            self.core.forget_fresh(&mut state, &table)?;
            self.core.copy(info.start, start, info.length);
            self.core.clear(&mut table, start + info.length, length - info.length);
            table.spaces[position].start = start;
        }
        table.spaces[position].length = length;
        self.core.commit(&mut state, table)?;
        state.tell_length(info.id, length);
        Ok(())
    }

    fn grow_in_place(&self, table: &mut Table, position: usize, length: u64) -> Result<()> {
        let extent = table.spaces[position].extent();
        let room = next_taken(&table.taken(), table.length, extent.end()) - extent.start;
        if length > room {
            return Err(table.full(length, "for the space"));
        }
        self.core.clear(table, extent.end(), length - extent.length);
        Ok(())
    }

    /// Makes the space of a handle longer where it lies, and the region if it is the last one.
    pub(super) fn grow_space(&self, id: u64, length: u64) -> Result<()> {
        let length = whole_pages(length)?;
        let mut state = self.core.state.lock();
        let mut table = state.table.clone();
        let position = table.spaces.iter().position(|space| space.id == id);
        let Some(position) = position else {
            return Err(Error::new(MediaErrorKind::NoSuchSpace, "it was removed"));
        };
        let extent = table.spaces[position].extent();
        if length <= extent.length {
            return Ok(());
        }
        let end = extent.start.checked_add(length);
        let is_last = next_taken(&table.taken(), table.length, extent.end()) == table.length;
        match end {
            Some(end) if is_last && end > table.length => self.core.grow_memory(&mut table, end)?,
            _ => {}
        }
        self.grow_in_place(&mut table, position, length)?;
        table.spaces[position].length = length;
        self.core.commit(&mut state, table)?;
        state.tell_length(id, length);
        Ok(())
    }

    /// Makes the region at least `length` bytes long, or as long as the memory has become.
    ///
    /// # Errors
    /// `HostFull`, `OutOfRange`, and others of the memory.
    pub fn grow(&self, length: u64) -> Result<()> {
        let mut state = self.core.state.lock();
        let mut table = state.table.clone();
        self.core.grow_memory(&mut table, length.max(self.core.pmem.length()))?;
        if table == state.table {
            return Ok(());
        }
        self.core.commit(&mut state, table)
    }
}

impl State {
    fn check_unused(&self, info: &SpaceInfo) -> Result<()> {
        if self.open.get(&info.id).is_some_and(|open| open.strong_count() > 0) {
            return Err(Error::new(MediaErrorKind::InUse, format!("space '{}'", info.name)));
        }
        Ok(())
    }

    fn tell_length(&self, id: u64, length: u64) {
        if let Some(open) = self.open.get(&id).and_then(Weak::upgrade) {
            open.set_length(length);
        }
    }
}

impl<P: Pmem> Core<P> {
    /// Makes a changed table the one that counts.
    fn commit(&self, state: &mut State, mut table: Table) -> Result<()> {
        if state.failed {
            let detail = "an earlier change of the table of spaces failed; open the region anew";
            return Err(Error::new(MediaErrorKind::Host, detail));
        }
        table.generation = state.table.generation + 1;
        let (header, list) = encode(&table);
        // What a new space holds is durable before the space is.
        let mut done = self.pmem.fence();
        for copy in [state.first, 1 - state.first] {
            if done.is_ok() {
                self.pmem.write_through(table.lists[copy], &list);
                self.pmem.write_through(HEADERS[copy], &header);
                done = self.pmem.fence();
            }
        }
        state.failed = done.is_err();
        done?;
        (state.table, state.first, state.warning) = (table, 0, None);
        Ok(())
    }

    /// Makes it known that bytes are not zeros any more, before anything is stored to them that no
    /// table tells of yet.
    fn forget_fresh(&self, state: &mut State, table: &Table) -> Result<()> {
        if table.fresh_from == state.table.fresh_from {
            return Ok(());
        }
        let known = Table { fresh_from: table.fresh_from, ..state.table.clone() };
        self.commit(state, known)
    }

    /// Makes free bytes read as zeros.
    fn clear(&self, table: &mut Table, start: u64, length: u64) {
        let end = start + length;
        let mut at = start;
        while at < end.min(table.fresh_from) {
            let part = CHUNK_BYTES.min(end.min(table.fresh_from) - at);
            self.pmem.zero(at, part);
            self.pmem.flush(at, part);
            at += part;
        }
        table.fresh_from = table.fresh_from.max(end);
    }

    /// Moves a space that nobody uses to free bytes. A cut leaves it at the one place or the other,
    /// whole.
    fn relocate(&self, state: &mut State, id: u64, start: u64) -> Result<()> {
        let mut table = state.table.clone();
        let Some(space) = table.spaces.iter_mut().find(|space| space.id == id) else { return Ok(()) };
        state.check_unused(space)?;
        let (from, length) = (core::mem::replace(&mut space.start, start), space.length);
        let known = Table { fresh_from: table.fresh_from.max(start + length), ..state.table.clone() };
        self.forget_fresh(state, &known)?;
        table.fresh_from = known.fresh_from;
        self.copy(from, start, length);
        self.commit(state, table)
    }

    fn copy(&self, from: u64, to: u64, length: u64) {
        let mut buffer = alloc::vec![0; CHUNK_BYTES.min(length) as usize];
        let mut done = 0;
        while done < length {
            let part = (length - done).min(CHUNK_BYTES) as usize;
            let (bytes, _) = buffer.split_at_mut(part);
            self.pmem.read(from + done, bytes);
            self.pmem.write_through(to + done, bytes);
            done += part as u64;
        }
    }

    fn grow_memory(&self, table: &mut Table, length: u64) -> Result<()> {
        let before = self.pmem.length();
        if length > before {
            self.pmem.grow(length.checked_next_multiple_of(PAGE_BYTES).unwrap_or(length))?;
        }
        if before > table.length {
            // Somebody else made it longer, with bytes that are not known.
            table.fresh_from = table.fresh_from.max(before);
        }
        table.length = self.pmem.length() - self.pmem.length() % PAGE_BYTES;
        Ok(())
    }
}

fn read_copy<P: Pmem>(pmem: &P, copy: usize) -> Result<Table> {
    if pmem.length() < LENGTH_MIN {
        return Err(Error::new(MediaErrorKind::NotAnImage, "it has no table of spaces"));
    }
    let mut bytes = [0; HEADER_BYTES];
    pmem.read(HEADERS[copy], &mut bytes);
    let header = Header::decode(&bytes, pmem.length())?;
    let mut list = alloc::vec![0; header.list_length()];
    pmem.read(header.list_at(copy), &mut list);
    header.decode_list(&list)
}

fn whole_pages(length: u64) -> Result<u64> {
    match length.checked_next_multiple_of(PAGE_BYTES) {
        Some(length) if length > 0 => Ok(length),
        _ => Err(Error::new(MediaErrorKind::Invalid, format!("a space cannot have {length} bytes"))),
    }
}

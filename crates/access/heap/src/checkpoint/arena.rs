//! An arena: its memory, its blocks, its root and the list of its checkpoints.

use super::capture::State;
use super::claim::Claim;
use super::memory::{Memory, PAGE_BYTES};
use super::store::Store;
use super::tracking::{KernelNotes, Tracking};
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::reference::{BlockMemory, Plain, Ref};
use crate::roots::Kind;
use crate::whole::check_name;
use onode_base::ErrorKind;
use onode_base::sync::{Mutex, MutexGuard, rank};
use onode_media::Pmem;
use onode_scm::allocator::{Allocator, Misuse};
use std::ptr::NonNull;
use std::sync::Arc;

/// The smallest arena.
const SMALLEST_BYTES: usize = 256 << 10;
const MAGIC: u64 = u64::from_le_bytes(*b"onodear1");
/// Where what the arena's root is begins in its first page, behind magic number and length.
const ROOT: u64 = 64;

/// A checkpoint as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its name.
    pub name: Vec<u8>,
    /// Later ones have higher numbers; two names of the same image have the same.
    pub sequence: u64,
    /// When it was made, in seconds since 1970.
    pub seconds: i64,
}

/// Working memory that can be saved by [`checkpoint`](Self::checkpoint) and gone on with by
/// [`Heap::restore`].
pub struct Arena {
    name: Vec<u8>,
    heap: Heap,
    memory: Arc<Memory>,
    blocks: Allocator<Arc<Memory>>,
    /// Held by whoever changes the tables of blocks, so that no image has a half change of them.
    allocating: Mutex<(), rank::ArenaBlocks>,
    state: Mutex<State, rank::ArenaState>,
    _claim: Claim,
}

const fn chunk_bytes(arena_bytes: usize) -> u64 {
    if arena_bytes < 4 << 20 {
        4 << 10
    } else if arena_bytes < 64 << 20 {
        16 << 10
    } else {
        64 << 10
    }
}

impl Heap {
    /// Makes an arena of at least `bytes`, which reads as zeros. It has no checkpoint yet: until it
    /// has one there is nothing to go on from.
    ///
    /// # Errors
    /// `Exists`, `Invalid` (no name, less than 256 KiB), `NoSpace`.
    pub fn create_arena(&self, name: &[u8], bytes: usize) -> Result<Arena> {
        check_name("an arena", name)?;
        let wrong = || Error::new(ErrorKind::Invalid, format!("an arena cannot have {bytes} bytes: 256 KiB to 8 TiB"));
        let bytes = bytes.checked_next_multiple_of(64 << 10).filter(|bytes| (SMALLEST_BYTES..=8 << 40).contains(bytes));
        let bytes = bytes.ok_or_else(wrong)?;
        let memory = Arena::reserve(bytes)?;
        let mut claim = self.shared().claim_arena(name)?;
        let store = Store::create(self, name, bytes)?;
        claim.among_processes(self.shared().memory(), Store::number_of(self, name)?)?;
        let arena = Arena::assemble(self, name, memory, store, claim)?;
        arena.blocks.reset();
        arena.memory.store(0, MAGIC);
        arena.memory.store(8, bytes as u64);
        Ok(arena)
    }

    /// Opens an arena as the checkpoint has saved it.
    ///
    /// # Errors
    /// `NotFound` if there is no such arena or checkpoint, `Corrupt` if what it needs is damaged,
    /// `Busy` if the arena is open already, here or in another process.
    pub fn restore(&self, arena: &[u8], checkpoint: &[u8]) -> Result<Arena> {
        check_name("an arena", arena)?;
        let mut claim = self.shared().claim_arena(arena)?;
        claim.among_processes(self.shared().memory(), Store::number_of(self, arena)?)?;
        let (store, bytes) = Store::open(self, arena)?;
        store.named(checkpoint)?;
        let mut opened = Arena::assemble(self, arena, Arena::reserve(bytes)?, store, claim)?;
        opened.restore(checkpoint)?;
        Ok(opened)
    }

    /// The names of all arenas.
    ///
    /// # Errors
    /// Those of the device.
    pub fn arenas(&self) -> Result<Vec<Vec<u8>>> {
        Store::arenas(self)
    }

    /// The checkpoints of an arena, the oldest first.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`.
    pub fn checkpoints(&self, arena: &[u8]) -> Result<Vec<Checkpoint>> {
        check_name("an arena", arena)?;
        Store::open(self, arena).map(|(store, _)| list(&store))
    }

    /// Removes an arena with all its checkpoints.
    ///
    /// # Errors
    /// `NotFound`; `Busy` if it is open, here or in another process.
    pub fn remove_arena(&self, arena: &[u8]) -> Result<()> {
        check_name("an arena", arena)?;
        let mut claim = self.shared().claim_arena(arena)?;
        claim.among_processes(self.shared().memory(), Store::number_of(self, arena)?)?;
        Store::remove(self, arena)
    }
}

fn list(store: &Store) -> Vec<Checkpoint> {
    let named = |(name, sequence): (&Vec<u8>, &u64)| {
        let seconds = store.modified(name).map_or(0, |time| time.seconds);
        Checkpoint { name: name.clone(), sequence: *sequence, seconds }
    };
    let mut all: Vec<Checkpoint> = store.names().iter().map(named).collect();
    all.sort_by_key(|checkpoint| checkpoint.sequence);
    all
}

impl Arena {
    fn reserve(bytes: usize) -> Result<Arc<Memory>> {
        let memory = Memory::new(bytes);
        memory.map(Arc::new).map_err(|error| Error::new(ErrorKind::NoSpace, format!("no memory for an arena: {error}")))
    }

    fn assemble(heap: &Heap, name: &[u8], memory: Arc<Memory>, store: Store, claim: Claim) -> Result<Self> {
        let (bytes, chunk) = (memory.length(), chunk_bytes(memory.pages() * PAGE_BYTES));
        let blocks = Allocator::attach(Arc::clone(&memory), chunk, bytes - chunk, chunk);
        let blocks =
            blocks.map_err(|error| Error::new(ErrorKind::Invalid, format!("an arena has no blocks: {error}")))?;
        let notes = KernelNotes::of(&memory).ok();
        let state = Mutex::new(State::new(Arc::clone(&memory), notes, store));
        let heap = heap.clone();
        Ok(Self { name: name.to_vec(), heap, memory, blocks, allocating: Mutex::new(()), state, _claim: claim })
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn allocating(&self) -> MutexGuard<'_, ()> {
        self.allocating.lock()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The heap that its checkpoints lie in.
    #[must_use]
    pub const fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Bytes in all.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.memory.pages() * PAGE_BYTES
    }

    /// Where it begins in this process; elsewhere it begins at another place.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.memory.base()
    }

    /// How changed pages are found.
    #[must_use]
    pub fn tracking(&self) -> Tracking {
        self.state().tracking()
    }

    /// Has changed pages be found by comparing, whatever the kernel can do.
    pub fn compare_pages(&self) {
        self.state().notes = None;
    }

    /// A block of at least `bytes`: where it begins, in bytes from the start of the arena. It holds
    /// anything.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn allocate(&self, bytes: usize) -> Result<u64> {
        let _alone = self.allocating();
        let block = self.blocks.allocate(bytes.max(1) as u64);
        block.ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("no block of {bytes} bytes is left in the arena")))
    }

    /// A block for a value, and the value in it.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn put<T: Plain>(&self, value: T) -> Result<Ref<T>> {
        let reference = Ref::at(self.allocate(size_of::<T>())?);
        // It fits: the block was made for it.
        reference.set(self, value);
        Ok(reference)
    }

    /// Frees a block by where it begins.
    ///
    /// # Errors
    /// `Invalid`, and nothing happened: no block begins there, or it was freed before.
    pub fn free(&self, address: u64) -> Result<()> {
        let _alone = self.allocating();
        self.blocks.try_release(address).map_err(|misuse| {
            let why = match misuse {
                Misuse::OutOfArea => "it does not lie in the arena",
                Misuse::Wild => "no block begins there",
                Misuse::DoubleFree => "the block was freed before",
                Misuse::Published => "the block belongs to a file",
            };
            Error::new(ErrorKind::Invalid, format!("cannot free the memory at {address:#x} of the arena: {why}"))
        })
    }

    /// Start and length of the block that holds an address.
    #[must_use]
    pub fn block_of(&self, address: u64) -> Option<(u64, u64)> {
        self.blocks.block_of(address)
    }

    /// Where the data structure of the arena begins, for whoever restores it. It is part of every
    /// checkpoint.
    ///
    /// # Errors
    /// `Invalid` if the reference does not lead to a block of the arena.
    pub fn set_root<T: Plain>(&self, root: Ref<T>) -> Result<()> {
        self.set_root_of(root.address(), &Kind::of::<T>())
    }

    /// As [`set_root`](Self::set_root), with a type in numbers.
    ///
    /// # Errors
    /// As there.
    pub fn set_root_of(&self, address: u64, kind: &Kind) -> Result<()> {
        if kind.start_in(self, address).is_none() {
            let why = format!("the root of an arena cannot be {address:#x}: no {} lies there", kind.name());
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        self.memory.write(ROOT, &kind.encode(address));
        Ok(())
    }

    /// What [`set_root`](Self::set_root) was given.
    ///
    /// # Errors
    /// `NotFound` if that was nothing, `Invalid` if it was a value of another type or layout,
    /// `Corrupt`.
    pub fn root<T: Plain>(&self) -> Result<Ref<T>> {
        self.root_of(&Kind::of::<T>()).map(Ref::at)
    }

    /// As [`root`](Self::root), with a type in numbers.
    ///
    /// # Errors
    /// As there.
    pub fn root_of(&self, kind: &Kind) -> Result<u64> {
        let mut bytes = [0; Kind::BYTES];
        self.memory.read(ROOT, &mut bytes);
        let what = format!("the arena {}", String::from_utf8_lossy(&self.name));
        if bytes == [0; Kind::BYTES] {
            return Err(Error::new(ErrorKind::NotFound, format!("{what} has no root")));
        }
        let address = kind.decode(&bytes, &format!("the root of {what}"))?;
        let gone = || Error::new(ErrorKind::Stale, format!("the block that the root of {what} led into was freed"));
        kind.start_in(self, address).map(|_| address).ok_or_else(gone)
    }

    /// Makes the arena what a checkpoint of it has saved; what was stored since is lost. References
    /// hold as far as they did then.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`: the arena is as it was. `Media` from a host that does not clear
    /// memory.
    pub fn restore(&mut self, checkpoint: &[u8]) -> Result<()> {
        self.state().restore(checkpoint)?;
        if self.memory.load(0) != MAGIC || self.memory.load(8) != self.memory.length() {
            let why = format!("the checkpoint {} is none of an arena", String::from_utf8_lossy(checkpoint));
            return Err(Error::new(ErrorKind::Corrupt, why));
        }
        Ok(())
    }

    /// Its checkpoints, the oldest first.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        list(&self.state().store)
    }

    /// Removes a checkpoint; what only it had becomes free.
    ///
    /// # Errors
    /// `NotFound`; those of the device.
    pub fn remove_checkpoint(&self, name: &[u8]) -> Result<()> {
        let mut state = self.state();
        state.store.remove_name(name)?;
        let current = state.parent;
        state.store.drop_records(current);
        Ok(())
    }
}

impl BlockMemory for Arena {
    fn block_at(&self, address: u64) -> Option<(u64, u64)> {
        self.block_of(address)
    }

    fn place(&self, address: u64) -> NonNull<u8> {
        // SAFETY: the address lies in a block, which lies in the memory.
        unsafe { self.memory.base().add(address as usize) }
    }
}

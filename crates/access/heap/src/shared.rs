//! What blocks, mappings and the caches of threads need of a heap, as long as any of them is there.
//!
//! The last one that goes closes the volume. Before that the gate is closed, so that no thread that
//! ends looks at a heap that is gone.

pub mod cache;
pub mod sizes;

use crate::checkpoint::{Claim, Claims};
use crate::error::Result;
use crate::process::Opener;
use crate::shared::cache::Gate;
use crate::shared::sizes::Sizes;
use onode::memory::HeapMemory;
use onode::{MappedSpace, Volume};
use onode_base::sync::{Mutex, MutexGuard, rank};
use onode_fs::{FileSystem, InodeNumber};
use onode_media::Pmem;
use onode_scm::allocator::Allocator;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

/// What blocks, mappings and the caches of threads need of a heap.
pub(crate) struct Shared {
    /// These two stay as they are where a child of the opener drops them.
    memory: ManuallyDrop<HeapMemory>,
    volume: ManuallyDrop<Volume>,
    opener: Opener,
    gate: Arc<Gate>,
    arenas: Claims,
    sizes: Sizes,
    /// Files that are looked at as memory, and how often.
    looks: Mutex<HashMap<InodeNumber, usize>, rank::HeapLooks>,
}

// SAFETY: `base` is the only part that is not Send or Sync by itself; it is a number that is added
// to, and who may touch which bytes is settled by the owners of blocks.
unsafe impl Send for Shared {}
// SAFETY: as for Send.
unsafe impl Sync for Shared {}

impl Shared {
    /// Of a volume that was just opened and its memory.
    pub(crate) fn new(memory: HeapMemory, volume: Volume) -> Result<Arc<Self>> {
        let sizes = Sizes::of_memory(memory.memory.length())?;
        let opener = Opener::this()?;
        let (gate, arenas, looks) = (Gate::new(), Claims::default(), Mutex::default());
        let (memory, volume) = (ManuallyDrop::new(memory), ManuallyDrop::new(volume));
        Ok(Arc::new(Self { memory, volume, opener, gate, arenas, sizes, looks }))
    }

    /// Closes the volume and says whether that went well; the gate is closed.
    pub(crate) fn close(&self) -> onode::Result<()> {
        self.volume.close()
    }

    /// Which process opened it.
    #[inline]
    pub(crate) const fn opener(&self) -> Opener {
        self.opener
    }

    pub(crate) fn blocks(&self) -> &Allocator<Arc<MappedSpace>> {
        &self.memory.blocks
    }

    /// Whoever has it open here does not lose it by waiting.
    pub(crate) fn begin(&self) -> onode::Result<onode::UserTransaction> {
        self.volume.begin(onode::TransactionOptions { expiry_seconds: 0, ..onode::TransactionOptions::default() })
    }

    pub(crate) fn files(&self) -> &FileSystem {
        self.volume.files()
    }

    /// The memory that addresses count in.
    pub(crate) fn memory(&self) -> &Arc<MappedSpace> {
        &self.memory.memory
    }

    /// The right to have an arena open.
    pub(crate) fn claim_arena(&self, name: &[u8]) -> Result<Claim> {
        self.arenas.claim(name)
    }

    #[inline]
    pub(crate) const fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    #[inline]
    pub(crate) fn pointer(&self, address: u64) -> NonNull<u8> {
        // SAFETY: addresses come from the allocator or were checked against it, so they lie within
        // the mapping.
        unsafe { self.memory.base.add(address as usize) }
    }

    /// How many bytes were asked for, of blocks without a [`Block`].
    #[inline]
    pub(crate) const fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Files that are looked at as memory, and how often.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn looks(&self) -> MutexGuard<'_, HashMap<InodeNumber, usize>> {
        self.looks.lock()
    }

    /// The address of a pointer; `None` if it is not of this heap.
    pub(crate) fn address_of(&self, pointer: NonNull<u8>) -> Option<u64> {
        let distance = (pointer.as_ptr() as usize).checked_sub(self.memory.base.as_ptr() as usize)? as u64;
        (distance < self.memory.memory.length()).then_some(distance)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The blocks, the medium and its lock are the opener's, and another thread of it may have
        // held any of the locks here when it was forked.
        if !self.opener.is_here() {
            return;
        }
        *self.gate.lock() = false;
        self.memory.blocks.leave();
        // Whoever wants to hear of an error closes the heap.
        let _ = self.volume.close();
        // SAFETY: they are dropped once, here, and nobody uses them afterwards.
        unsafe {
            ManuallyDrop::drop(&mut self.memory);
            ManuallyDrop::drop(&mut self.volume);
        }
    }
}

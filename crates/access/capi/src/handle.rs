//! What the functions for files work on: a heap, a transaction, a volume, a snapshot or a clone.

use crate::descriptors::Files;
use crate::error::{Failure, Outcome};
use onode::Volume;
use onode_base::ErrorKind;
use onode_base::sync::{Mutex, rank};
use onode_fs::FileSystem;
use onode_heap::{Heap, Mapping, Opener, UserTransaction};
use std::collections::HashMap;
use std::sync::Arc;

/// Files looked at as memory, by where they lie; several looks at one count.
pub(crate) type Mappings = Mutex<HashMap<usize, Vec<Mapping>>, rank::CMappings>;

/// Files that are open in this process: those of a heap of storage-class memory
/// (`onode_open_heap`), of a transaction (`onode_tx_begin`), of a volume on any device
/// (`onode_open_volume`), of a snapshot or of a clone (`onode_open_state`). A heap has memory
/// besides. It belongs to the process that opened it: in a child that inherited it by fork(2),
/// after daemon(3), too, every call fails with EPERM, and closing it only forgets it.
pub struct OnodeHeap {
    pub(crate) files: Files,
    pub(crate) held: Held,
    opener: Opener,
}

/// What a handle keeps open.
pub(crate) enum Held {
    /// A heap.
    Memory { heap: Heap, mappings: Mappings },
    /// A transaction; what it began on stays open behind it.
    Transaction { transaction: UserTransaction, base: Base },
    /// A volume, or a snapshot or a clone that is open alone.
    Volume(Arc<Volume>),
    /// A snapshot or a clone beside its volume, which stays open.
    State { files: Arc<FileSystem>, _of: Arc<Volume> },
}

/// What a transaction began on.
pub(crate) enum Base {
    Memory(#[expect(dead_code, reason = "kept open")] Heap),
    Volume(#[expect(dead_code, reason = "kept open")] Arc<Volume>),
}

/// A handle that is a heap.
pub(crate) struct InHeap<'a> {
    pub(crate) heap: &'a Heap,
    pub(crate) files: &'a Files,
    pub(crate) mappings: &'a Mappings,
}

impl OnodeHeap {
    /// A pointer for C, which gets it back to close it.
    pub(crate) fn handed_out(held: Held) -> Outcome<*mut Self> {
        let opener = Opener::this()?;
        Ok(Box::into_raw(Box::new(Self { files: Files::of_process(), held, opener })))
    }

    /// Its files.
    pub(crate) fn system(&self) -> &FileSystem {
        match &self.held {
            Held::Memory { heap, .. } => heap.files(),
            Held::Transaction { transaction, .. } => transaction.files(),
            Held::Volume(volume) => volume.files(),
            Held::State { files, .. } => files,
        }
    }
}

/// The heap or whatever else has files behind a pointer, if this process opened it.
///
/// # Safety
/// `handle` came from a function that returns one and was not closed, or is null.
#[inline]
pub(crate) unsafe fn files_of<'a>(handle: *const OnodeHeap) -> Outcome<&'a OnodeHeap> {
    // SAFETY: the caller's promise.
    let opened = unsafe { handle.as_ref() };
    let opened = opened.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no heap: the pointer is NULL"))?;
    opened.opener.check()?;
    Ok(opened)
}

/// Forgets a handle that this process inherited; false if it is its own. To drop what is behind it
/// would write an end to the medium, and give up the lock, as if the parent had closed it.
///
/// # Safety
/// As [`files_of`]; if it was inherited, this is the last use of it.
pub(crate) unsafe fn is_forgotten(handle: *mut OnodeHeap) -> bool {
    // SAFETY: the caller's promise.
    if unsafe { handle.as_ref() }.is_none_or(|opened| opened.opener.is_here()) {
        return false;
    }
    // SAFETY: the pointer came from a box, and this is the last use of it.
    let opened = unsafe { Box::from_raw(handle) };
    std::mem::forget(opened.held);
    true
}

/// The heap behind a pointer.
///
/// # Safety
/// As [`files_of`].
#[inline]
pub(crate) unsafe fn heap_of<'a>(handle: *const OnodeHeap) -> Outcome<InHeap<'a>> {
    // SAFETY: the caller's promise.
    let opened = unsafe { files_of(handle) }?;
    let words = match &opened.held {
        Held::Memory { heap, mappings } => return Ok(InHeap { heap, files: &opened.files, mappings }),
        Held::Transaction { .. } => "a transaction has files and no memory, and is not closed",
        Held::Volume(_) | Held::State { .. } => "a volume has files and no memory; onode_close_volume closes it",
    };
    Err(Failure::new(ErrorKind::Invalid, words))
}

/// The volume behind a pointer.
///
/// # Safety
/// As [`files_of`].
pub(crate) unsafe fn volume_of<'a>(handle: *const OnodeHeap) -> Outcome<&'a Arc<Volume>> {
    // SAFETY: the caller's promise.
    match &unsafe { files_of(handle) }?.held {
        Held::Volume(volume) => Ok(volume),
        Held::Memory { .. } => Err(Failure::new(
            ErrorKind::NotSupported,
            "a heap has neither snapshots nor clones: its memory changes without a call",
        )),
        Held::Transaction { .. } => Err(Failure::new(ErrorKind::Invalid, "it is a transaction; use its volume")),
        Held::State { .. } => {
            Err(Failure::new(ErrorKind::Invalid, "it is a snapshot or a clone; use the volume that it is of"))
        }
    }
}

//! Arenas: working memory that is saved as it is at a moment, and gone on with in another process.

use crate::arguments::{name_field, place_of, text_of};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, heap_of};
use crate::roots::kind_of;
use onode_base::ErrorKind;
use onode_base::sync::{Mutex, rank};
use onode_heap::{Arena, Frozen, Report};
use std::ffi::{c_char, c_int, c_long, c_void};

/// Working memory of this process with an allocator of its own, which checkpoints save and bring
/// back.
pub struct OnodeArena {
    /// Before the arena that it borrows from, so that it is dropped first.
    frozen: Mutex<Option<Frozen<'static>>, rank::CFrozen>,
    arena: Arena,
}

/// What a checkpoint cost.
#[repr(C)]
pub struct Cost {
    /// Pages of 4 KiB that differ from the checkpoint before.
    pub pages: u64,
    /// Bytes written for it.
    pub bytes_written: u64,
    /// Pages that were copied while the program was not to store, in `onode_arena_freeze`.
    pub pages_in_pause: u64,
}

/// A checkpoint of an arena.
#[repr(C)]
pub struct Saved {
    /// Later ones have higher numbers.
    pub sequence: u64,
    /// When it was made, in seconds since 1970.
    pub seconds: i64,
    /// Its name, ended by a zero byte.
    pub name: [c_char; 256],
}

/// The arena behind a pointer.
///
/// # Safety
/// `arena` came from `onode_create_arena` or `onode_restore_arena` and was not closed, or is null.
unsafe fn arena_of<'a>(arena: *const OnodeArena) -> Outcome<&'a OnodeArena> {
    // SAFETY: the caller's promise.
    let opened = unsafe { arena.as_ref() };
    let opened = opened.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no arena: the pointer is NULL"))?;
    opened.arena.heap().opener().check()?;
    Ok(opened)
}

fn boxed(arena: Arena) -> *mut OnodeArena {
    Box::into_raw(Box::new(OnodeArena { frozen: Mutex::default(), arena }))
}

/// Where a pointer into an arena points, counted from the arena's start.
fn offset_in(arena: &Arena, pointer: *const c_void) -> Outcome<u64> {
    let distance = (pointer as usize).checked_sub(arena.as_ptr().as_ptr() as usize);
    let inside = distance.filter(|distance| *distance < arena.bytes() && !pointer.is_null());
    let inside = inside.ok_or_else(|| Failure::new(ErrorKind::Invalid, "the pointer is not of this arena"))?;
    Ok(inside as u64)
}

fn pointer_in(arena: &Arena, offset: u64) -> *mut c_void {
    arena.as_ptr().as_ptr().wrapping_add(offset as usize).cast()
}

/// Makes an arena of at least `bytes`, all zeros. Until its first checkpoint nothing of it outlives
/// the process.
///
/// # Safety
/// `heap` is an open heap, `name` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_create_arena(
    heap: *mut OnodeHeap,
    name: *const c_char,
    bytes: usize,
) -> *mut OnodeArena {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (heap_of(heap)?, text_of(name)?) };
        Ok(boxed(opened.heap.create_arena(name, bytes)?))
    })
}

/// Opens an arena as `checkpoint` has saved it. It may begin elsewhere than before: what is stored
/// in it are offsets from its start (`ONODE_REF`) or distances (`ONODE_NEAR`), and no pointers.
///
/// # Safety
/// `heap` is an open heap, `name` and `checkpoint` are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_restore_arena(
    heap: *mut OnodeHeap,
    name: *const c_char,
    checkpoint: *const c_char,
) -> *mut OnodeArena {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name, checkpoint) = unsafe { (heap_of(heap)?, text_of(name)?, text_of(checkpoint)?) };
        Ok(boxed(opened.heap.restore(name, checkpoint)?))
    })
}

/// Closes an arena; what no checkpoint has is gone. Its heap is closed after it.
///
/// # Safety
/// `arena` is an open arena, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_close_arena(arena: *mut OnodeArena) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        if unsafe { arena.as_ref() }.is_some_and(|opened| !opened.arena.heap().opener().is_here()) {
            // What is behind it is the parent's.
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        unsafe { arena_of(arena) }?;
        // SAFETY: the pointer came from a box, and this is the last use of it.
        drop(unsafe { Box::from_raw(arena) });
        Ok(0)
    })
}

/// Removes an arena with all its checkpoints. It is not open.
///
/// # Safety
/// `heap` is an open heap, `name` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_remove_arena(heap: *mut OnodeHeap, name: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (heap_of(heap)?, text_of(name)?) };
        opened.heap.remove_arena(name)?;
        Ok(0)
    })
}

/// Where an arena begins in this process.
///
/// # Safety
/// `arena` is an open arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_start(arena: *mut OnodeArena) -> *mut c_void {
    // SAFETY: the caller's promise.
    answer(|| Ok(unsafe { arena_of(arena) }?.arena.as_ptr().as_ptr().cast()))
}

/// A block of at least `bytes` of an arena. It holds anything.
///
/// # Safety
/// `arena` is an open arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_alloc(arena: *mut OnodeArena, bytes: usize) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let arena = &unsafe { arena_of(arena) }?.arena;
        Ok(pointer_in(arena, arena.allocate(bytes)?))
    })
}

/// Frees a block of an arena; NULL is nothing.
///
/// # Safety
/// `arena` is an open arena, and nobody uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_free(arena: *mut OnodeArena, block: *mut c_void) -> c_int {
    if block.is_null() {
        return 0;
    }
    answer(|| {
        // SAFETY: the caller's promise.
        let arena = &unsafe { arena_of(arena) }?.arena;
        arena.free(offset_in(arena, block)?)?;
        Ok(0)
    })
}

/// Has the arena's data structure begin with the `bytes` at `root`, for whoever restores it; part
/// of every checkpoint.
///
/// # Safety
/// `arena` is an open arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_set_root(
    arena: *mut OnodeArena,
    root: *const c_void,
    bytes: usize,
    tag: u64,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let arena = &unsafe { arena_of(arena) }?.arena;
        arena.set_root_of(offset_in(arena, root)?, &kind_of(bytes, tag))?;
        Ok(0)
    })
}

/// Where the arena's data structure begins. NULL with ENOENT if that was never said, EINVAL if it
/// has another size or tag.
///
/// # Safety
/// `arena` is an open arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_root(arena: *mut OnodeArena, bytes: usize, tag: u64) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let arena = &unsafe { arena_of(arena) }?.arena;
        Ok(pointer_in(arena, arena.root_of(&kind_of(bytes, tag))?))
    })
}

/// Tells what a checkpoint cost, to whoever wants to know.
///
/// # Safety
/// `cost` is NULL or a place for the answer.
unsafe fn tell(report: Report, cost: *mut Cost) {
    let Report { pages, bytes_written, pages_in_pause } = report;
    // SAFETY: the caller's promise.
    if let Some(cost) = unsafe { cost.as_mut() } {
        *cost = Cost { pages, bytes_written, pages_in_pause };
    }
}

/// Saves an arena as it is under a name, in place of what had the name; durable on return. Nobody
/// stores to it during the call.
///
/// # Safety
/// `arena` is an open arena, `name` a string, `cost` NULL or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_checkpoint(arena: *mut OnodeArena, name: *const c_char, cost: *mut Cost) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (arena_of(arena)?, text_of(name)?) };
        let report = opened.arena.checkpoint(name)?;
        // SAFETY: the caller's promise.
        unsafe { tell(report, cost) };
        Ok(0)
    })
}

/// The first of three steps that do what `onode_checkpoint` does with a short pause: copies what
/// has changed since the last checkpoint while the program goes on storing.
///
/// # Safety
/// `arena` is an open arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_copy_ahead(arena: *mut OnodeArena) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { arena_of(arena) }?.arena.copy_ahead()?;
        Ok(0)
    })
}

/// The second step, the pause: takes the image of this moment. Nobody stores to the arena during
/// the call.
///
/// # Safety
/// `arena` is an open arena, and is not closed before `onode_arena_commit`, or not used by others
/// when it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_freeze(arena: *mut OnodeArena) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened: &'static OnodeArena = unsafe { arena_of(arena) }?;
        let frozen = opened.arena.freeze()?;
        *opened.frozen.lock() = Some(frozen);
        Ok(0)
    })
}

/// The third step: makes the frozen image the checkpoint `name`, while the program goes on; durable
/// on return. If `name` can be none (EINVAL, ENAMETOOLONG) the image stays frozen; after any other
/// failure it is given up, and the next one has what it had.
///
/// # Safety
/// As [`onode_checkpoint`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_arena_commit(arena: *mut OnodeArena, name: *const c_char, cost: *mut Cost) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (arena_of(arena)?, text_of(name)?) };
        Arena::check_name_of_checkpoint(name)?;
        let frozen = opened.frozen.lock().take();
        let frozen = frozen.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no image of the arena is frozen"))?;
        let report = frozen.commit(name)?;
        // SAFETY: the caller's promise.
        unsafe { tell(report, cost) };
        Ok(0)
    })
}

/// A checkpoint of an arena of the heap, the oldest first: `number` counts from 0. Returns 1, 0 if
/// there are not so many, -1 on failure.
///
/// # Safety
/// `heap` is an open heap, `arena` a string, `saved` a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_list_checkpoints(
    heap: *mut OnodeHeap,
    arena: *const c_char,
    number: c_long,
    saved: *mut Saved,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, arena) = unsafe { (heap_of(heap)?, text_of(arena)?) };
        let all = opened.heap.checkpoints(arena)?;
        let Some(found) = usize::try_from(number).ok().and_then(|number| all.get(number)) else { return Ok(0) };
        // SAFETY: the caller's promise.
        *unsafe { place_of(saved) }? =
            Saved { sequence: found.sequence, seconds: found.seconds, name: name_field(&found.name) };
        Ok(1)
    })
}

/// Removes a checkpoint of an open arena; what only it had becomes free.
///
/// # Safety
/// `arena` is an open arena, `name` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_remove_checkpoint(arena: *mut OnodeArena, name: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (arena_of(arena)?, text_of(name)?) };
        opened.arena.remove_checkpoint(name)?;
        Ok(0)
    })
}

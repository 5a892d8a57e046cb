//! Slots: durable references to blocks that need no name of their own.

use crate::arguments::text_of;
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, heap_of};
use crate::memory::owned_block;
use onode_base::ErrorKind;
use onode_heap::{Heap, Slots};
use std::ffi::{c_char, c_int, c_void};

/// A table of slots: 2^30 of them, each empty or with a block of at most 4 GiB.
pub struct OnodeSlots {
    slots: Slots,
    heap: Heap,
}

/// The table behind a pointer.
///
/// # Safety
/// `slots` came from `onode_open_slots` and was not closed, or is null.
unsafe fn slots_of<'a>(slots: *const OnodeSlots) -> Outcome<&'a OnodeSlots> {
    // SAFETY: the caller's promise.
    let opened = unsafe { slots.as_ref() };
    let opened = opened.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no table of slots: the pointer is NULL"))?;
    opened.heap.opener().check()?;
    Ok(opened)
}

/// Opens the table of slots with that name; makes an empty one if there is none.
///
/// # Safety
/// `heap` is an open heap, `name` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_slots(heap: *mut OnodeHeap, name: *const c_char) -> *mut OnodeSlots {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (heap_of(heap)?, text_of(name)?) };
        let slots = opened.heap.slots(name)?;
        Ok(Box::into_raw(Box::new(OnodeSlots { slots, heap: opened.heap.clone() })))
    })
}

/// Closes a table, before its heap. The slots keep what they hold.
///
/// # Safety
/// `slots` is an open table, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_close_slots(slots: *mut OnodeSlots) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        if unsafe { slots.as_ref() }.is_some_and(|opened| !opened.heap.opener().is_here()) {
            // What is behind it is the parent's.
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        unsafe { slots_of(slots) }?;
        // SAFETY: the pointer came from a box, and this is the last use of it.
        drop(unsafe { Box::from_raw(slots) });
        Ok(0)
    })
}

/// Has a slot hold a block of the heap, in place of the one that it held, which is free then: one
/// line of the memory and one fence. After a crash the slot holds the one or the other. The first
/// `bytes` of the block are made durable before; 0 if they are already, or need not be. If it fails
/// the block is still the caller's.
///
/// # Safety
/// `slots` is an open table; the caller owns `block`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_fill_slot(slots: *mut OnodeSlots, slot: u64, block: *mut c_void, bytes: usize) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let table = unsafe { slots_of(slots) }?;
        // SAFETY: the caller's promise.
        let memory = unsafe { owned_block(&table.heap, block, bytes) }?;
        match table.slots.fill(slot, memory, bytes == 0) {
            Ok(()) => Ok(0),
            Err(refused) => {
                let (memory, error) = refused.into_parts();
                memory.leave();
                Err(error.into())
            }
        }
    })
}

/// The block in a slot, which stays there; NULL with ENOENT if the slot is empty.
///
/// # Safety
/// `slots` is an open table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_slot(slots: *mut OnodeSlots, slot: u64) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let table = unsafe { slots_of(slots) }?;
        let pointer = table.slots.address(slot)?.and_then(|address| table.heap.pointer_at(address));
        let empty = || Failure::new(ErrorKind::NotFound, format!("slot {slot} is empty"));
        Ok(pointer.ok_or_else(empty)?.as_ptr().cast())
    })
}

/// Takes the block out of a slot: it is the caller's, and is gone with the process unless it is put
/// somewhere. NULL with ENOENT if the slot is empty.
///
/// # Safety
/// `slots` is an open table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_take_slot(slots: *mut OnodeSlots, slot: u64) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let table = unsafe { slots_of(slots) }?;
        Ok(table.slots.take(slot)?.into_raw().as_ptr().cast())
    })
}

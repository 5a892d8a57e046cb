//! Roots: names for the entries of data structures.

use crate::arguments::text_of;
use crate::error::{Failure, answer};
use crate::handle::{OnodeHeap, heap_of};
use onode_base::ErrorKind;
use onode_heap::Kind;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

/// What values are, as far as it can be told in another program: `tag` is any number that the
/// programs agree on.
pub(crate) fn kind_of(bytes: usize, tag: u64) -> Kind {
    Kind::new(bytes as u64, 1, tag, "value")
}

/// Has `name` lead to the `bytes` at `root` in the heap, in place of what it led to; durable on
/// return. They lie in a file's memory (`onode_mm_to_file`): other memory is gone with the process.
/// `tag` tells what they are, and is asked for again by `onode_root`.
///
/// # Safety
/// `heap` is an open heap, `name` a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_set_root(
    heap: *mut OnodeHeap,
    name: *const c_char,
    root: *const c_void,
    bytes: usize,
    tag: u64,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (heap_of(heap)?, text_of(name)?) };
        let pointer = NonNull::new(root.cast_mut().cast::<u8>());
        let address = pointer.and_then(|pointer| opened.heap.address_of(pointer));
        let wrong = || Failure::new(ErrorKind::Invalid, "a root leads into the heap, and this pointer does not");
        opened.heap.set_root_of(name, address.ok_or_else(wrong)?, &kind_of(bytes, tag))?;
        Ok(0)
    })
}

/// What `name` leads to. NULL with ENOENT if there is no such root, EINVAL if it has another size
/// or another tag, ESTALE if the file that it lay in is gone.
///
/// # Safety
/// As [`onode_set_root`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_root(heap: *mut OnodeHeap, name: *const c_char, bytes: usize, tag: u64) -> *mut c_void {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (heap_of(heap)?, text_of(name)?) };
        let address = opened.heap.root_of(name, &kind_of(bytes, tag))?;
        let gone = || Failure::new(ErrorKind::Stale, "the file that the root led into is gone");
        Ok(opened.heap.pointer_at(address).ok_or_else(gone)?.as_ptr().cast())
    })
}

/// Forgets a root; what it led to stays.
///
/// # Safety
/// As [`onode_set_root`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_remove_root(heap: *mut OnodeHeap, name: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, name) = unsafe { (heap_of(heap)?, text_of(name)?) };
        opened.heap.remove_root(name)?;
        Ok(0)
    })
}

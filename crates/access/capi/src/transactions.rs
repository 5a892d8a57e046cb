//! Transactions of files: what is done with them happens together, or not at all.

use crate::error::{Failure, Outcome, answer};
use crate::memory::{OnodeHeap, files_of, heap_of};
use onode_base::ErrorKind;
use std::ffi::c_int;

/// Begins a transaction. The functions for files take it as a heap, and see and change files as
/// they are in it; nobody else sees that before it is committed. It has no memory: as long as it is
/// open, blocks of its heap cannot become files, nor files blocks. Not while other processes have
/// the heap open (EBUSY).
///
/// # Safety
/// `heap` is an open heap, and stays open until the transaction has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_tx_begin(heap: *mut OnodeHeap) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { heap_of(heap) }?;
        let transaction = opened.heap.begin()?;
        Ok(Box::into_raw(Box::new(OnodeHeap::new(opened.heap.clone(), Some(transaction)))))
    })
}

/// Ends a transaction and has all that was done in it happen, durably. Fails with EBUSY if somebody
/// else has changed what it changed or read meanwhile: then nothing of it happens. Its descriptors
/// are closed, and the pointer is none any more, whatever comes of it.
///
/// # Safety
/// `transaction` came from `onode_tx_begin`, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_tx_commit(transaction: *mut OnodeHeap) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { ended(transaction) }?;
        let OnodeHeap { files, transaction, .. } = *opened;
        let Some(transaction) = transaction else { return Ok(0) };
        files.close_all(transaction.files());
        transaction.commit().map_err(|error| {
            let kind = match error.class {
                onode_heap::Class::Conflict | onode_heap::Class::InUse => ErrorKind::Busy,
                onode_heap::Class::VolumeFull => ErrorKind::NoSpace,
                onode_heap::Class::NotFound => ErrorKind::Stale,
                onode_heap::Class::ReadOnly => ErrorKind::ReadOnly,
                _ => ErrorKind::Media,
            };
            Failure::new(kind, error.to_string())
        })?;
        Ok(0)
    })
}

/// Ends a transaction; nothing of what was done in it happens.
///
/// # Safety
/// As [`onode_tx_commit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_tx_abort(transaction: *mut OnodeHeap) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { ended(transaction) }?);
        Ok(0)
    })
}

/// A transaction that is used for the last time.
///
/// # Safety
/// As [`onode_tx_commit`].
unsafe fn ended(transaction: *mut OnodeHeap) -> Outcome<Box<OnodeHeap>> {
    // SAFETY: the caller's promise.
    if unsafe { files_of(transaction) }?.transaction.is_none() {
        return Err(Failure::new(ErrorKind::Invalid, "it is a heap, and no transaction of one"));
    }
    // SAFETY: the pointer came from a box, and this is the last use of it.
    Ok(unsafe { Box::from_raw(transaction) })
}

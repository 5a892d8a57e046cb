//! Transactions of files: what is done with them happens together, or not at all.

use crate::error::{Failure, Outcome, answer};
use crate::handle::{Base, Held, OnodeHeap, files_of, is_forgotten};
use onode::{Class, TransactionOptions, UserTransaction, Volume};
use onode_base::ErrorKind;
use std::ffi::c_int;
use std::sync::Arc;

/// Begins a transaction. The functions for files take it as a heap, and see and change files as
/// they are in it; nobody else sees that before it is committed. It has no memory: as long as it is
/// open, blocks of its heap cannot become files, nor files blocks. Not while other processes have
/// the heap open (EBUSY). It can begin on a volume, too, or on a clone that is open alone.
///
/// # Safety
/// `heap` is an open heap or volume, and stays open until the transaction has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_tx_begin(heap: *mut OnodeHeap) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let (transaction, base) = match &unsafe { files_of(heap) }?.held {
            Held::Memory { heap, .. } => (heap.begin()?, Base::Memory(heap.clone())),
            Held::Volume(volume) => (begun(volume)?, Base::Volume(Arc::clone(volume))),
            Held::Transaction { .. } => {
                return Err(Failure::new(ErrorKind::Invalid, "it is a transaction itself"));
            }
            Held::State { .. } => {
                let words = "a snapshot or clone beside its volume has no transactions; open the clone alone";
                return Err(Failure::new(ErrorKind::NotSupported, words));
            }
        };
        OnodeHeap::handed_out(Held::Transaction { transaction, base })
    })
}

/// Whoever has it open here does not lose it by waiting.
fn begun(volume: &Volume) -> Outcome<UserTransaction> {
    if volume.files().options().read_only {
        return Err(Failure::new(ErrorKind::ReadOnly, "the volume is open for reading only"));
    }
    Ok(volume.begin(TransactionOptions { expiry_seconds: 0, ..TransactionOptions::default() })?)
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
        let opened = unsafe { ended(transaction) };
        // SAFETY: the caller's promise.
        if opened.is_err() && unsafe { is_forgotten(transaction) } {
            return opened.map(|_| 0);
        }
        let opened = opened?;
        let OnodeHeap { files, held: Held::Transaction { transaction, base }, .. } = *opened else { return Ok(0) };
        files.close_all(transaction.files());
        let committed = transaction.commit();
        drop(base);
        committed.map_err(|error| match error.class {
            // It has expired.
            Class::NotFound => Failure::new(ErrorKind::Stale, error.to_string()),
            _ => error.into(),
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
        if !unsafe { is_forgotten(transaction) } {
            // SAFETY: the caller's promise.
            drop(unsafe { ended(transaction) }?);
        }
        Ok(0)
    })
}

/// A transaction that is used for the last time.
///
/// # Safety
/// As [`onode_tx_commit`].
unsafe fn ended(transaction: *mut OnodeHeap) -> Outcome<Box<OnodeHeap>> {
    // SAFETY: the caller's promise.
    if !matches!(unsafe { files_of(transaction) }?.held, Held::Transaction { .. }) {
        return Err(Failure::new(ErrorKind::Invalid, "it is a heap or a volume, and no transaction of one"));
    }
    // SAFETY: the pointer came from a box, and this is the last use of it.
    Ok(unsafe { Box::from_raw(transaction) })
}

//! Keys of directories of an encrypted volume.

use crate::arguments::text_of;
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, volume_of};
use crate::volumes::keys::{GivenKey, first_key_of, secret_of};
use onode::keys::DirectoryKeyring;
use onode_base::ErrorKind;
use onode_fs::Follow;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::Arc;

/// The keys of directories of an open volume.
///
/// # Safety
/// `heap` is a heap that is open.
unsafe fn keyring_of<'a>(heap: *const OnodeHeap) -> Outcome<&'a Arc<DirectoryKeyring>> {
    // SAFETY: the caller's promise.
    let volume = unsafe { volume_of(heap) }?;
    volume.directory_keys().ok_or_else(|| {
        let why = "its directories have no keys of their own: it is not encrypted, or no volume but a part of one";
        Failure::new(ErrorKind::Invalid, why)
    })
}

/// Gives a directory without files a new key, which what is made in it needs from then on, and
/// which is unlocked until the volume is closed: returns its number, which is never used again; -1
/// on failure. The hint "key" of files tells it (`onode_hint`). EINVAL for a volume that is not
/// encrypted, and for a directory that can have no key; EBUSY while a transaction is open.
///
/// # Safety
/// `heap` is a volume, `path` a string, `key` a key whose `bytes` are `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_new_directory_key(
    heap: *mut OnodeHeap,
    path: *const c_char,
    key: *const GivenKey,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (keyring, volume) = unsafe { (keyring_of(heap)?, volume_of(heap)?) };
        // SAFETY: the caller's promise.
        let (path, key) = unsafe { (text_of(path)?, first_key_of(key)?) };
        let directory = volume.files().resolve(path, Follow::Yes)?;
        Ok(keyring.create_for(directory, &key.new_key())? as c_int)
    })
}

/// Unlocks all keys of directories that this one opens: returns how many, -1 on failure. ENOKEY if
/// it opens none.
///
/// # Safety
/// `heap` is a volume, `key` a key whose `bytes` are `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_unlock_directories(heap: *mut OnodeHeap, key: *const GivenKey) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (keyring, secret) = unsafe { (keyring_of(heap)?, secret_of(key)?) };
        Ok(keyring.unlock(None, &secret)?.len() as c_int)
    })
}

/// Locks the key of directories of this number: returns 1 if it was unlocked, 0 if not, -1 on
/// failure. EBUSY while files are open that need it, or a transaction is. ENOENT if there is no
/// such key.
///
/// # Safety
/// `heap` is a volume.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_lock_directories(heap: *mut OnodeHeap, number: c_uint) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let keyring = unsafe { keyring_of(heap) }?;
        Ok(c_int::from(!keyring.lock(number)?.is_empty()))
    })
}

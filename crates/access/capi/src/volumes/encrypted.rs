//! Encrypted volumes, opened and made with a key.

use crate::arguments::text_of;
use crate::error::{Failure, Outcome, answer};
use crate::handle::{Held, OnodeHeap};
use crate::volumes::keys::{FirstKey, GivenKey, KeyInUse, first_key_of};
use crate::volumes::{mount_options, opened};
use onode::keys::Encryption;
use onode::{MountOptions, Volume};
use onode_base::ErrorKind;
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Opens an encrypted volume, or a snapshot or clone of one, as `onode_open_volume` opens others;
/// with O_CREAT it makes an encrypted one if none is there, whose first key is this. Content, names
/// and sizes are encrypted. ENOKEY if the key does not open it, and if `onode_open_volume` finds an
/// encrypted one; EINVAL for what can be no key, as an empty passphrase or fewer than 32 bytes, and
/// for a volume that is there and not encrypted. To try a passphrase takes as much memory and time
/// as the volume says.
///
/// # Safety
/// `spec` is a string, `key` a key whose `bytes` are `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_encrypted(
    spec: *const c_char,
    flags: c_int,
    key: *const GivenKey,
) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let (text, key) = unsafe { (text_of(spec)?, first_key_of(key)?) };
        let volume = unlocked(OsStr::from_bytes(text), flags, mount_options(flags), &key)?;
        OnodeHeap::handed_out(Held::Volume(Arc::new(volume)))
    })
}

/// An encrypted volume, opened or made.
pub(crate) fn unlocked(text: &OsStr, flags: c_int, options: MountOptions, key: &FirstKey<'_>) -> Outcome<Volume> {
    let _in_use = KeyInUse::begin(key.secret())?;
    unlocked_as(text, flags, options, &Encryption::All(key.new_key()))
}

/// The same with the key that this thread uses; if it is made it is encrypted in this way.
pub(crate) fn unlocked_as(text: &OsStr, flags: c_int, options: MountOptions, how: &Encryption<'_>) -> Outcome<Volume> {
    let make = |spec: &_, options: &_| Volume::create_encrypted(spec, options, how);
    let volume = opened(text, flags, options, &make)?;
    if KeyInUse::was_asked_for() {
        return Ok(volume);
    }
    // What is written there would lie open, which whoever gives a key does not expect.
    volume.close()?;
    Err(Failure::new(ErrorKind::Invalid, "the volume is not encrypted; onode_open_volume opens it"))
}

//! Volumes that tell what somebody put back on their medium.

use crate::arguments::{places_of, string_into, text_of, words_of};
use crate::error::{Failure, answer};
use crate::handle::{Held, OnodeHeap, volume_of};
use crate::volumes::encrypted::unlocked_as;
use crate::volumes::keys::{GivenKey, KeyInUse, first_key_of};
use crate::volumes::mount_options;
use onode::keys::{Anchor, Encryption};
use onode_base::ErrorKind;
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Opens an authenticated volume, as `onode_open_encrypted` opens others; with O_CREAT it makes one
/// if none is there. Whatever is not what was stored last is refused with EIO. With an `anchor`,
/// which `onode_note_anchor` told earlier, that is so for the volume as a whole: an older copy of
/// it is refused. NULL expects none. EINVAL for a volume that is not authenticated, and for what is
/// no anchor; memory that processes share cannot have it.
///
/// # Safety
/// `spec` is a string, `key` a key whose `bytes` are `length` bytes, `anchor` a string or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_authenticated(
    spec: *const c_char,
    flags: c_int,
    key: *const GivenKey,
    anchor: *const c_char,
) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let (text, key) = unsafe { (OsStr::from_bytes(text_of(spec)?), first_key_of(key)?) };
        let expected = if anchor.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            let words = unsafe { words_of(anchor) }?;
            let parsed = words.parse::<Anchor>();
            Some(parsed.map_err(|error| Failure::new(ErrorKind::Invalid, error.detail))?)
        };
        let in_use = KeyInUse::begin(key.secret())?.expecting(expected);
        let volume = unlocked_as(text, flags, mount_options(flags), &Encryption::Authenticated(key.new_key()))?;
        drop(in_use);
        if volume.anchor().is_none() {
            volume.close()?;
            let why = "the volume is not authenticated; onode_open_encrypted opens it";
            return Err(Failure::new(ErrorKind::Invalid, why));
        }
        OnodeHeap::handed_out(Held::Volume(Arc::new(volume)))
    })
}

/// Puts into `buffer` what a program may note of the state of an authenticated volume, a string
/// that is shorter than 100 bytes, and returns its length; -1 on failure. What was changed before
/// is durable then. EINVAL for another volume, ERANGE if it does not fit.
///
/// # Safety
/// `volume` is one, `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_note_anchor(volume: *mut OnodeHeap, buffer: *mut c_char, size: usize) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, place) = unsafe { (volume_of(volume)?, places_of(buffer, size)?) };
        let anchor = volume.note_anchor()?.ok_or_else(|| {
            Failure::new(ErrorKind::Invalid, "the volume is not authenticated, or it is a snapshot or a clone")
        })?;
        string_into(place, anchor.to_string().as_bytes())
    })
}

//! Volumes whose content is compressed as it is written.

use crate::arguments::{compression_of, text_of};
use crate::error::answer;
use crate::handle::{Held, OnodeHeap};
use crate::volumes::encrypted::unlocked;
use crate::volumes::keys::{GivenKey, first_key_of};
use crate::volumes::{mount_options, opened};
use onode::{MountOptions, Volume};
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Opens a volume as `onode_open_volume` does, or with a key as `onode_open_encrypted`, and has
/// content compressed that is written from now on: "fast" (LZ4), "small" (Zstandard), "auto", which
/// is one of them as it pays, "none" or NULL. What is compressed is read whatever this says, by
/// every way to open the volume. A file whose hint
/// "compress" says otherwise is stored as that says (`onode_set_hint`). EINVAL for other words.
///
/// # Safety
/// `spec` is a string, `compress` one or NULL, `key` NULL or a key whose `bytes` are `length`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_compressed(
    spec: *const c_char,
    flags: c_int,
    compress: *const c_char,
    key: *const GivenKey,
) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let (text, compression) = unsafe { (OsStr::from_bytes(text_of(spec)?), compression_of(compress)?) };
        let options = MountOptions { compression, ..mount_options(flags) };
        let volume = if key.is_null() {
            opened(text, flags, options, &Volume::create)?
        } else {
            // SAFETY: the caller's promise.
            unlocked(text, flags, options, &unsafe { first_key_of(key) }?)?
        };
        OnodeHeap::handed_out(Held::Volume(Arc::new(volume)))
    })
}

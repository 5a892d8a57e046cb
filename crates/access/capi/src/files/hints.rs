//! Hints of files: how long they stay, how often they are used, how they are compressed and placed.

use crate::arguments::{places_of, string_into, text_of, words_of};
use crate::descriptors::at_path;
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, files_of};
use onode_base::ErrorKind;
use onode_fs::Hint;
use std::ffi::{c_char, c_int};

/// The hint of a name.
fn hint_of(name: &str) -> Outcome<Hint> {
    Hint::from_name(name).ok_or_else(|| {
        let names = Hint::ALL.map(Hint::name).join(", ");
        Failure::new(ErrorKind::Invalid, format!("no hint is called `{name}`; there are {names}"))
    })
}

/// Sets a hint of a file for what is written to it from now on; of a directory, for what is made in
/// it from now on. Hints are advice: they change what storing costs, never what is read.
///
/// - "lifetime", how long content stays as it is: "short", "medium", "long", "unknown"
/// - "temperature", how often it is used: "cold", "warm", "hot", "unknown"
/// - "size", how many bytes a file will have: "4096", "64K", "10M", "1G", "unknown"
/// - "compress": "none", "fast", "small", or "auto", which is as whoever opens the volume says
/// - "parity", how many lost pages of a group it outlives, on flash made for that: "1", "2", "3",
///   "none", "default"
/// - "placement", of two disks: "default", "bypass" or a section; "safe", "either", "big" or
///   "volume"; "pin" or "unpin"; several with commas between
///
/// EINVAL for another name or value, EOPNOTSUPP for "compress", "parity" and "placement" on a
/// volume that has no such choice, ENOENT, EROFS.
///
/// # Safety
/// `heap` is an open heap or volume, `path`, `name` and `value` are strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_set_hint(
    heap: *mut OnodeHeap,
    path: *const c_char,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        // SAFETY: the caller's promise.
        let (hint, value) = unsafe { (hint_of(words_of(name)?)?, words_of(value)?) };
        let files = opened.system();
        at_path(files, path, |inode| Ok(files.set_hint(inode, hint, value)?))?;
        Ok(0)
    })
}

/// The value of a hint as `onode_set_hint` takes it, ended by a zero byte; of a directory, that of
/// what is made in it. Returns how many bytes it has without that one, -1 on failure: ERANGE if
/// `size` bytes are too few for it; otherwise as `onode_set_hint`.
///
/// # Safety
/// `heap` is an open heap or volume, `path` and `name` are strings, `value` has room for `size`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_hint(
    heap: *mut OnodeHeap,
    path: *const c_char,
    name: *const c_char,
    value: *mut c_char,
    size: usize,
) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, path) = unsafe { (files_of(heap)?, text_of(path)?) };
        // SAFETY: the caller's promise.
        let (hint, place) = unsafe { (hint_of(words_of(name)?)?, places_of(value, size)?) };
        let files = opened.system();
        string_into(place, at_path(files, path, |inode| Ok(files.hint(inode, hint)?))?.as_bytes())
    })
}

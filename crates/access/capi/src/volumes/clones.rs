//! Clones: file systems of their own that begin as a snapshot of a volume.

use crate::arguments::{name_field, place_of, words_of};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, volume_of};
use crate::volumes::snapshots::snapshots_of;
use onode::{Clones, Volume};
use onode_base::ErrorKind;
use std::ffi::{c_char, c_int};

/// A clone of a volume.
#[repr(C)]
pub struct MadeClone {
    /// Later ones have higher numbers, and no other snapshot or clone ever has this one.
    pub number: u32,
    /// When it was made: nanoseconds behind the seconds.
    pub nanoseconds: u32,
    /// Seconds since 1970.
    pub seconds: i64,
    /// Its name, ended by a zero byte.
    pub name: [c_char; 256],
    /// The name of the snapshot that it was made of.
    pub base: [c_char; 256],
}

/// The clones of a volume that can have some.
pub(crate) fn clones_of(volume: &Volume) -> Outcome<&Clones> {
    // Where there are no snapshots, that says why.
    snapshots_of(volume)?;
    volume.clones().map(AsRef::as_ref).ok_or_else(|| Failure::new(ErrorKind::NotSupported, "it has no clones"))
}

/// The clone that was made next after the one with the number `after`, which need not be there any
/// more; the first one after 0. Returns 1, 0 if there is none, -1 on failure.
///
/// # Safety
/// `volume` came from `onode_open_volume`, `clone` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_list_clones(volume: *mut OnodeHeap, after: u32, clone: *mut MadeClone) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, place) = unsafe { (volume_of(volume)?, place_of(clone)?) };
        let Some(found) = clones_of(volume)?.list().into_iter().find(|one| one.generation > after) else {
            return Ok(0);
        };
        *place = MadeClone {
            number: found.generation,
            nanoseconds: found.created.nanoseconds,
            seconds: found.created.seconds,
            name: name_field(found.name.as_bytes()),
            base: name_field(found.base.as_bytes()),
        };
        Ok(1)
    })
}

/// Makes a clone of a snapshot, or of all files as they are now if `snapshot` is NULL: then a
/// snapshot is taken for it, which has the name of the clone with ".base" behind. Durable on
/// return. It takes no longer for a large volume than for an empty one. Errors are those of
/// `onode_take_snapshot`, and ENOENT if there is no such snapshot.
///
/// # Safety
/// `volume` came from `onode_open_volume`, `name` is a string, `snapshot` one or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_make_clone(
    volume: *mut OnodeHeap,
    name: *const c_char,
    snapshot: *const c_char,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        // SAFETY: the caller's promise.
        let snapshot = if snapshot.is_null() { None } else { Some(unsafe { words_of(snapshot) }?) };
        clones_of(volume)?.make(name, snapshot)?;
        Ok(0)
    })
}

/// Deletes a clone, open or not, and the snapshot that was taken for it if no other clone was made
/// of that. What only they kept is removed as with `onode_delete_snapshot`.
///
/// # Safety
/// `volume` came from `onode_open_volume`, `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_delete_clone(volume: *mut OnodeHeap, name: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        clones_of(volume)?.delete(name)?;
        Ok(0)
    })
}

/// What a clone has of its own, in bytes of the medium.
///
/// # Safety
/// As [`onode_delete_clone`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_clone_bytes(volume: *mut OnodeHeap, name: *const c_char) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        let clones = clones_of(volume)?;
        let none = || Failure::new(ErrorKind::NotFound, format!("there is no clone `{name}`"));
        let bytes = clones.own_bytes(clones.named(name).ok_or_else(none)?.generation)?;
        Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
    })
}

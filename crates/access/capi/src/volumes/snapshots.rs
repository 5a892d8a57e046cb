//! Snapshots of a volume: all files as they were at one moment.

use crate::arguments::{name_field, place_of, words_of};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, volume_of};
use onode::{Snapshots, Volume};
use onode_base::ErrorKind;
use std::ffi::{c_char, c_int};

/// A snapshot of a volume.
#[repr(C)]
pub struct TakenSnapshot {
    /// Later ones have higher numbers, and no other snapshot or clone ever has this one.
    pub number: u32,
    /// When it was taken: nanoseconds behind the seconds.
    pub nanoseconds: u32,
    /// Seconds since 1970.
    pub seconds: i64,
    /// Its name, ended by a zero byte.
    pub name: [c_char; 256],
}

/// The snapshots of a volume that can have some.
pub(crate) fn snapshots_of(volume: &Volume) -> Outcome<&Snapshots> {
    let lacking = || Failure::new(ErrorKind::NotSupported, Snapshots::lacking(volume.spec(), String::new()).why);
    volume.snapshots().map(AsRef::as_ref).ok_or_else(lacking)
}

/// The snapshot that was taken next after the one with the number `after`, which need not be there
/// any more; the first one after 0. Returns 1, 0 if there is none, -1 on failure.
///
/// # Safety
/// `volume` came from `onode_open_volume`, `snapshot` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_list_snapshots(
    volume: *mut OnodeHeap,
    after: u32,
    snapshot: *mut TakenSnapshot,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, place) = unsafe { (volume_of(volume)?, place_of(snapshot)?) };
        let Some(found) = snapshots_of(volume)?.list().into_iter().find(|one| one.generation > after) else {
            return Ok(0);
        };
        *place = TakenSnapshot {
            number: found.generation,
            nanoseconds: found.created.nanoseconds,
            seconds: found.created.seconds,
            name: name_field(found.name.as_bytes()),
        };
        Ok(1)
    })
}

/// Keeps all files as they are now, under a name; durable on return. What was written is in it,
/// synced or not. It takes no longer for a large volume than for an empty one. EINVAL for a name
/// that cannot be one of a directory, EEXIST, ENOSPC, EROFS; EOPNOTSUPP on storage-class memory
/// that processes share.
///
/// # Safety
/// `volume` came from `onode_open_volume`, `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_take_snapshot(volume: *mut OnodeHeap, name: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        snapshots_of(volume)?.take(name)?;
        Ok(0)
    })
}

/// Deletes a snapshot, open or not; durable on return. What only it kept is removed by
/// `onode_clean_snapshots`, in a later run too, or by a mount. EBUSY if there are clones of it.
///
/// # Safety
/// As [`onode_take_snapshot`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_delete_snapshot(volume: *mut OnodeHeap, name: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        snapshots_of(volume)?.delete(name)?;
        Ok(0)
    })
}

/// Removes some of what deleted snapshots and clones kept, in at most `budget` steps, each about as
/// long as the change of a file: 1 if there is more, 0 if there is nothing left, -1 on failure.
///
/// # Safety
/// `volume` came from `onode_open_volume`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_clean_snapshots(volume: *mut OnodeHeap, budget: u32) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let volume = unsafe { volume_of(volume) }?;
        Ok(c_int::from(snapshots_of(volume)?.clean(budget)?))
    })
}

/// What a snapshot keeps of content that has changed since, up to the next one, in bytes of the
/// medium.
///
/// # Safety
/// As [`onode_take_snapshot`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_snapshot_bytes(volume: *mut OnodeHeap, name: *const c_char) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        let snapshots = snapshots_of(volume)?;
        let none = || Failure::new(ErrorKind::NotFound, format!("there is no snapshot `{name}`"));
        let bytes = snapshots.kept_bytes(snapshots.named(name).ok_or_else(none)?.generation)?;
        Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
    })
}

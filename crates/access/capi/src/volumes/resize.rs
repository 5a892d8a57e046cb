//! A volume takes up more of its device, or gives some of it back, while it is open.

use crate::arguments::place_of;
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, files_of};
use crate::volumes::progress::{CallProgress, Listener};
use onode_base::ErrorKind;
use onode_fs::FileSystem;
use std::ffi::c_int;

/// What a volume has of its device, in bytes of the device, those for the volume's own records
/// included.
#[repr(C)]
pub struct VolumeExtent {
    /// What it has.
    pub bytes: u64,
    /// What there is room for now: a disk may have become larger. An image file can become longer
    /// than that.
    pub most: u64,
    /// The fewest with which it would be larger than now.
    pub least: u64,
    /// About the fewest that have room for what is in it; `bytes` if it cannot become smaller now.
    pub fewest: u64,
    /// Sizes are multiples of this.
    pub unit: u64,
}

/// Tells how large a volume is and could be. EOPNOTSUPP on storage-class memory, where a volume
/// takes up what its file or space got when it is opened, and for snapshots, clones and
/// transactions.
///
/// # Safety
/// `volume` came from a function that opens volumes, `extent` is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_volume_extent(volume: *mut OnodeHeap, extent: *mut VolumeExtent) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, place) = unsafe { (files_of(volume)?, place_of(extent)?) };
        let found = opened.system().extent()?;
        *place = VolumeExtent {
            bytes: found.bytes,
            most: found.most,
            least: found.least,
            fewest: found.fewest,
            unit: found.unit,
        };
        Ok(0)
    })
}

/// Has a volume take up `bytes` of its device from now on, rounded down to a whole unit, on two
/// disks perhaps to a few blocks less; durable on return, and an image file has become longer or
/// shorter. Files stay, and may be used meanwhile.
/// To become larger takes a moment; to become smaller everything behind the new end moves first,
/// and `progress` is told how many bytes have moved. Stopped by it (ECANCELED), after any other
/// failure and after a crash the volume is as large as before and has everything. EINVAL for a size
/// that it cannot have, ENOSPC if what is in it has no room there or the host has none for the
/// image, EBUSY if another thread gave it another size meanwhile, EROFS; EOPNOTSUPP where
/// `onode_volume_extent` fails with that.
///
/// # Safety
/// `volume` came from a function that opens volumes; `progress` is NULL or one that can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_resize(volume: *mut OnodeHeap, bytes: u64, progress: *const CallProgress) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, listener) = unsafe { (files_of(volume)?, Listener::of(progress)) };
        let files = opened.system();
        let before = files.extent()?;
        let wanted = bytes - bytes % before.unit.max(1);
        if wanted > before.bytes {
            files.grow(wanted)?;
        } else if wanted < before.bytes {
            files.begin_shrinking(wanted)?;
            shrink(files, wanted, &listener).inspect_err(|_| {
                // Whatever is told of that, the first error is the one that counts.
                let _ = files.stop_shrinking();
            })?;
        }
        Ok(0)
    })
}

/// Goes on until the volume has so many bytes.
fn shrink(files: &FileSystem, wanted: u64, listener: &Listener<'_>) -> Outcome<()> {
    let (mut all, mut last) = (0, 0);
    loop {
        let extent = files.extent()?;
        // What comes to lie behind the new end meanwhile is more to be moved.
        all += extent.moving.saturating_sub(last);
        last = extent.moving;
        if !listener.goes_on(all - last, all) {
            return Err(Failure::stopped("the program stopped it: the volume is as large as before"));
        }
        if files.shrink_some()? {
            break;
        }
    }
    // Two disks end in front of pages of their bitmap rather than among them.
    if files.extent()?.bytes <= wanted {
        return Ok(());
    }
    Err(Failure::new(ErrorKind::Busy, "another thread gave the volume another size meanwhile"))
}

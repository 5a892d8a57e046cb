//! All that a volume holds is read and verified, and repaired where there is a good copy.

use crate::arguments::{place_of, places_of};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, files_of};
use crate::volumes::progress::{CallProgress, Listener};
use onode_base::ErrorKind;
use onode_fs::FileSystem;
use onode_fs::scrub::STEP_BYTES_MAX;
use onode_fs::scrub::record::{DamagedRange, ScrubFindings};
use onode_fs::scrub::state::ScrubOwner;
use std::ffi::c_int;

/// What a scrub found.
#[repr(C)]
pub struct Scrubbed {
    /// Files and other objects verified.
    pub objects: u64,
    /// Bytes of content verified.
    pub bytes: u64,
    /// Bytes that were damaged and written again from a good copy.
    pub repaired_bytes: u64,
    /// Pages of flash that cannot be read and were found again from parity.
    pub rebuilt_pages: u64,
    /// Ranges that cannot be read any more; `onode_list_damage` names the first 64.
    pub damaged_ranges: u64,
    /// Other than 0: the index is damaged, and from some file on none could be found.
    pub is_cut: c_int,
}

/// Bytes of a file that cannot be read any more.
#[repr(C)]
pub struct DamagedBytes {
    /// The number of the file, as `onode_stat_path` tells it.
    pub inode: u64,
    /// The first byte.
    pub start: u64,
    /// The byte behind the last; `start` if not content is damaged but what belongs to it.
    pub end: u64,
}

impl Scrubbed {
    const fn of(found: &ScrubFindings) -> Self {
        Self {
            objects: found.objects,
            bytes: found.bytes,
            repaired_bytes: found.repaired,
            rebuilt_pages: found.rebuilt,
            damaged_ranges: found.damaged.len() as u64 + found.more_damaged,
            is_cut: found.is_cut as c_int,
        }
    }
}

/// Reads and verifies all that an open volume holds, snapshots and clones, too, and writes again
/// what is damaged and has a good copy; of a volume that is open for reading only it changes
/// nothing. Files may be used meanwhile. Returns 0 if all can be read, 1 if something cannot, -1
/// on failure; `found`, which may be NULL, tells what was found. `progress` is told bytes. Stopped
/// by it (ECANCELED) the volume keeps how far it is, and with `resumes` other than 0 the next scrub
/// goes on from there. EBUSY if another one is at work, EOPNOTSUPP on storage-class memory, which
/// keeps no checksums of content.
///
/// # Safety
/// `volume` came from a function that opens volumes, `found` is NULL or a place for the answer;
/// `progress` is NULL or one that can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_scrub(
    volume: *mut OnodeHeap,
    resumes: c_int,
    found: *mut Scrubbed,
    progress: *const CallProgress,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, listener) = unsafe { (files_of(volume)?, Listener::of(progress)) };
        let findings = scrubbed(opened.system(), resumes != 0, &listener)?;
        if !found.is_null() {
            // SAFETY: the caller's promise.
            *unsafe { place_of(found) }? = Scrubbed::of(&findings);
        }
        Ok(c_int::from(findings.is_damaged()))
    })
}

/// Makes a pass to its end.
fn scrubbed(files: &FileSystem, resumes: bool, listener: &Listener<'_>) -> Outcome<ScrubFindings> {
    // Not 0, which is the background.
    let owner = ScrubOwner(u64::from_le_bytes(onode::random_bytes()?) | 1);
    files.begin_scrub(owner, resumes)?;
    loop {
        let status = files.scrub_status()?;
        let done = status.pass.map_or(0, |pass| pass.done);
        if !listener.goes_on(done, status.total.max(done)) {
            files.stop_scrub(owner)?;
            return Err(Failure::stopped("the program stopped the scrub; the next one can go on from there"));
        }
        let goes_on = files.step_scrub(owner, STEP_BYTES_MAX).inspect_err(|_| {
            // What was done before is kept, unless somebody else has it now.
            let _ = files.stop_scrub(owner);
        })?;
        if !goes_on {
            break;
        }
    }
    let last = files.last_scrub().ok_or_else(|| Failure::new(ErrorKind::Busy, "another scrub began meanwhile"))?;
    Ok(last.found)
}

/// Lists what the last scrub of a volume that came to its end found damaged, in this run or an
/// earlier one, at most 64 ranges: fills in as many as `count`, and returns how many there are; -1
/// on failure. Of a volume that was never scrubbed there are none.
///
/// # Safety
/// `volume` came from a function that opens volumes, `ranges` has room for `count` ranges, or
/// `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_list_damage(volume: *mut OnodeHeap, ranges: *mut DamagedBytes, count: usize) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, places) = unsafe { (files_of(volume)?, places_of(ranges, count)?) };
        let found = opened.system().last_scrub().map_or_else(Vec::new, |last| last.found.damaged);
        places.iter_mut().zip(&found).for_each(|(place, range)| {
            let &DamagedRange { object, start, end } = range;
            *place = DamagedBytes { inode: object, start, end };
        });
        Ok(found.len() as c_int)
    })
}

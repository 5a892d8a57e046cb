//! Limits on the bytes and the number of files of directory trees, users and groups.

use crate::arguments::{places_of, string_into};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, files_of};
use crate::volumes::progress::{CallProgress, Listener};
use onode::{Quota, QuotaCount, QuotaLimits, QuotaSubject};
use onode_base::ErrorKind;
use onode_fs::{FileSystem, InodeNumber};
use std::ffi::{c_char, c_int};

/// A limit of a directory and all that is in it, for everybody.
pub const ONODE_QUOTA_DIRECTORY: c_int = 1;
/// A limit of the files of a user in the whole volume; it does not hold the super-user.
pub const ONODE_QUOTA_USER: c_int = 2;
/// A limit of the files of a group in the whole volume; it does not hold the super-user.
pub const ONODE_QUOTA_GROUP: c_int = 3;
/// What is only counted, and not limited.
pub const ONODE_NO_LIMIT: u64 = u64::MAX;

/// Files that are counted between two questions whether to go on.
const STEP_FILES: usize = 2048;

/// A limit, with what is used of it. Bytes are those that sizes of files tell, holes included, once
/// for all names of a file; files are all that has an inode: directories and links, too.
#[repr(C)]
pub struct LimitTold {
    /// ONODE_QUOTA_DIRECTORY, ONODE_QUOTA_USER or ONODE_QUOTA_GROUP.
    pub kind: c_int,
    /// The number of the directory, as `onode_stat_path` tells it, or that of the user or group.
    pub number: u64,
    /// The most bytes, or ONODE_NO_LIMIT.
    pub limit_bytes: u64,
    /// The most files, or ONODE_NO_LIMIT.
    pub limit_files: u64,
    /// Bytes used. To set a limit it does not count.
    pub used_bytes: u64,
    /// Files used. To set a limit it does not count.
    pub used_files: u64,
}

impl LimitTold {
    fn of(quota: &Quota) -> Self {
        let (kind, number) = match quota.subject {
            QuotaSubject::Directory(number) => (ONODE_QUOTA_DIRECTORY, number.0),
            QuotaSubject::User(uid) => (ONODE_QUOTA_USER, u64::from(uid)),
            QuotaSubject::Group(gid) => (ONODE_QUOTA_GROUP, u64::from(gid)),
        };
        Self {
            kind,
            number,
            limit_bytes: quota.limits.bytes.unwrap_or(ONODE_NO_LIMIT),
            limit_files: quota.limits.files.unwrap_or(ONODE_NO_LIMIT),
            used_bytes: quota.used.bytes,
            used_files: quota.used.files,
        }
    }

    fn limits(&self) -> QuotaLimits {
        let limit = |number: u64| (number != ONODE_NO_LIMIT).then_some(number);
        QuotaLimits { bytes: limit(self.limit_bytes), files: limit(self.limit_files) }
    }
}

fn subject_of(kind: c_int, number: u64) -> Outcome<QuotaSubject> {
    let wrong = |words: String| Failure::new(ErrorKind::Invalid, words);
    let short = || u32::try_from(number).map_err(|_| wrong(format!("{number} is no number of a user or a group")));
    match kind {
        ONODE_QUOTA_DIRECTORY => Ok(QuotaSubject::Directory(InodeNumber(number))),
        ONODE_QUOTA_USER => short().map(QuotaSubject::User),
        ONODE_QUOTA_GROUP => short().map(QuotaSubject::Group),
        kind => Err(wrong(format!("{kind} is no kind of limit"))),
    }
}

/// Sets a limit, or changes the one that there is; durable on return. A new one counts what there
/// is first, and holds when the call returns: `progress` is told how many files it has counted.
/// Stopped by it (ECANCELED), and after any other failure, there is no new limit. What would go
/// beyond a limit fails with EDQUOT from then on; what is there stays. EEXIST for a directory in
/// one, or above one, that has a limit; ENOTDIR, ENOENT; EINVAL for user 0; EBUSY if another limit
/// is being set; EROFS; EPERM in a transaction; EOPNOTSUPP on storage-class memory that processes
/// share.
///
/// # Safety
/// `volume` came from a function that opens volumes, `limit` is a limit; `progress` is NULL or one
/// that can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_set_quota(
    volume: *mut OnodeHeap,
    limit: *const LimitTold,
    progress: *const CallProgress,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, limit, listener) = unsafe { (files_of(volume)?, limit.as_ref(), Listener::of(progress)) };
        let limit = limit.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no limit: the pointer is NULL"))?;
        let subject = subject_of(limit.kind, limit.number)?;
        count(opened.system(), subject, limit.limits(), &listener)?;
        Ok(0)
    })
}

/// Sets a limit and goes on until it holds.
fn count(files: &FileSystem, subject: QuotaSubject, limits: QuotaLimits, listener: &Listener<'_>) -> Outcome<()> {
    // Not 0, which is nobody.
    let owner = u64::from_le_bytes(onode::random_bytes()?) | 1;
    let mut count = files.begin_quota(owner, subject, limits)?;
    while let QuotaCount::Counting(used) = count {
        if !listener.goes_on(used.files, 0) {
            files.stop_quota(owner);
            return Err(Failure::stopped("the program stopped it: there is no new limit"));
        }
        count = files.step_quota(owner, STEP_FILES)?;
    }
    Ok(())
}

/// Takes a limit away; the files stay. Durable on return. ENOENT if there is none; otherwise as
/// `onode_set_quota`.
///
/// # Safety
/// `volume` came from a function that opens volumes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_remove_quota(volume: *mut OnodeHeap, kind: c_int, number: u64) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { files_of(volume) }?;
        opened.system().remove_quota(subject_of(kind, number)?)?;
        Ok(0)
    })
}

/// Lists all limits with what is used of them, those of directories first: fills in as many as
/// `count`, and returns how many there are; -1 on failure.
///
/// # Safety
/// `volume` came from a function that opens volumes, `limits` has room for `count` limits, or
/// `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_list_quotas(volume: *mut OnodeHeap, limits: *mut LimitTold, count: usize) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, places) = unsafe { (files_of(volume)?, places_of(limits, count)?) };
        let found = opened.system().quotas()?;
        places.iter_mut().zip(&found).for_each(|(place, quota)| *place = LimitTold::of(quota));
        Ok(found.len() as i64)
    })
}

/// The path of a directory by its number, as `onode_list_quotas` tells it; it is ended by a zero
/// byte. Returns how many bytes it has without that one, -1 on failure: ERANGE if `size` bytes are
/// too few for it, ENOTDIR, ENOENT.
///
/// # Safety
/// `heap` is an open heap or volume, `path` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_directory_path(
    heap: *mut OnodeHeap,
    number: u64,
    path: *mut c_char,
    size: usize,
) -> isize {
    answer(|| {
        // SAFETY: the caller's promise.
        let (opened, place) = unsafe { (files_of(heap)?, places_of(path, size)?) };
        let found = opened.system().path_of_directory(InodeNumber(number))?;
        string_into(place, &found)
    })
}

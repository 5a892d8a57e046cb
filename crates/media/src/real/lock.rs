//! Locks of a file that belong to the opening of it, not to the process: two openings in one process keep each other
//! out, too, and a lock ends with the last descriptor, however a process dies.
#![allow(unsafe_code, reason = "fcntl(2) with locks of open file descriptions has no safe face")]

use crate::error::{Error, MediaErrorKind, Result};
use crate::real::host::of_open;
use alloc::format;
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The byte that stands for the whole file: far behind every byte that there is.
const LOCKED_BYTE: libc::off_t = 1 << 62;

/// Keeps others out, or lets those in who share, too.
///
/// # Errors
/// `Locked`; others as at opening.
pub(super) fn lock(file: &File, path: &Path, shared: bool, write: bool) -> Result<()> {
    let kind = if shared || !write { libc::F_RDLCK } else { libc::F_WRLCK };
    let request = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: LOCKED_BYTE,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the request reads one flock from a pointer that is valid for the length of the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::ACCESS) => {
            let detail = format!("{}: unmount it or end the command that uses it, then retry", path.display());
            Err(Error::new(MediaErrorKind::Locked, detail))
        }
        _ => Err(of_open(path, &error)),
    }
}

//! Calls of the kernel's device drivers: the only place with `unsafe` code of this crate.
//!
//! Each function keeps the bargain of one request: it passes the type that the request wants, which
//! lives for the whole call.
#![allow(unsafe_code, reason = "ioctl(2) has no safe face")]

use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

fn outcome(code: libc::c_int) -> Result<libc::c_int, Errno> {
    if code < 0 {
        // Set by the call that failed right before, on this thread.
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(errno));
    }
    Ok(code)
}

/// Tells a block device that a range holds nothing of value.
pub(super) fn discard(file: &File, offset: u64, bytes: u64) -> Result<(), Errno> {
    let range = [offset, bytes];
    // SAFETY: the request reads two u64 from the pointer, which is valid for the length of the call.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) }).map(drop)
}

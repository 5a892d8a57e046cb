//! Locks of a file that belong to the opening of it, not to the process: two openings in one
//! process keep each other out, too, and a lock ends with the last descriptor, however a process
//! dies.
//!
//! Bytes far behind every byte that there is stand for what is locked. Who uses a file alone locks
//! [`WHOLE`] for writing, others for reading. Those who share it, and those who only read it, tell
//! so by a byte each; which of them may come in is decided by who holds [`DOOR`]. A *seat* is a
//! byte that a process which shares the file keeps locked as long as it lives.
#![allow(unsafe_code, reason = "fcntl(2) with locks of open file descriptions has no safe face")]

use crate::error::{Error, MediaErrorKind, Result};
use crate::real::host::of_open;
use alloc::format;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The byte that stands for the whole file.
const WHOLE: libc::off_t = 1 << 62;
const SHARERS: libc::off_t = WHOLE + 1;
const READERS: libc::off_t = WHOLE + 2;
const DOOR: libc::off_t = WHOLE + 3;
const SEATS: libc::off_t = WHOLE + 64;
/// Where the bytes of claims begin, one for each number.
const CLAIMS: libc::off_t = WHOLE + (1 << 61);
/// More than ever share a file.
const SEATS_MAX: u64 = 4096;
/// How often whoever wants to change a file looks whether those who read it are gone: most read it
/// for some milliseconds.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

fn request(kind: libc::c_int, byte: libc::off_t) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

/// Takes, changes or gives back a lock; false if others do not let it. `waits` says whether it
/// waits for them.
fn set(file: &File, kind: libc::c_int, byte: libc::off_t, waits: bool) -> io::Result<bool> {
    let request = request(kind, byte);
    let command = if waits { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
    loop {
        // SAFETY: the request reads one flock from a pointer that is valid for the length of the
        // call.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const request) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN | Errno::ACCESS) => return Ok(false),
            Some(Errno::INTR) => {}
            _ => return Err(error),
        }
    }
}

/// Whether another opening has a lock on a byte.
fn is_locked(file: &File, byte: libc::off_t) -> io::Result<bool> {
    let mut request = request(libc::F_WRLCK, byte);
    // SAFETY: the request reads and writes one flock at a pointer that is valid for the length of
    // the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut request) } == 0 {
        return Ok(request.l_type != libc::F_UNLCK as libc::c_short);
    }
    Err(io::Error::last_os_error())
}

fn in_use(path: &Path) -> Error {
    let detail = format!("{}: unmount it or end the command that uses it, then retry", path.display());
    Error::new(MediaErrorKind::Locked, detail)
}

/// Keeps all out who use the file as something else: images of other kinds lock the file as a
/// whole, and so does whoever replaces it with another one.
///
/// # Errors
/// As [`lock`].
pub(super) fn lock_against_other_uses(file: &File, path: &Path) -> Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(in_use(path)),
        Err(errno) => Err(of_open(path, &errno.into())),
    }
}

/// What an attempt to lock a file came to, for whoever opens it.
fn taken<T>(file: &File, path: &Path, attempt: io::Result<Option<T>>) -> Result<T> {
    let refused = match attempt {
        Ok(Some(taken)) => return Ok(taken),
        Ok(None) => in_use(path),
        Err(error) => of_open(path, &error),
    };
    // A child that another thread is about to start may have the descriptor for a moment.
    unlock(file);
    Err(refused)
}

/// Tries to lock a file until it succeeds, or something else than readers is in the way, or they
/// stay.
fn while_read<T>(file: &File, mut attempt: impl FnMut() -> io::Result<Option<T>>) -> io::Result<Option<T>> {
    for _ in 1..LOOKS {
        match attempt()? {
            None if is_locked(file, READERS)? && !is_locked(file, SHARERS)? => sleep(PAUSE),
            other => return Ok(other),
        }
    }
    attempt()
}

/// Keeps all others out; waits for readers, shortly.
///
/// # Errors
/// `Locked`; others as at opening.
pub(super) fn lock(file: &File, path: &Path) -> Result<()> {
    let attempt = || set(file, libc::F_WRLCK, WHOLE, false).map(|is_taken| is_taken.then_some(()));
    taken(file, path, while_read(file, attempt))
}

/// Keeps all out who write, those who share the file among them.
///
/// # Errors
/// As [`lock`].
pub(super) fn lock_to_read(file: &File, path: &Path) -> Result<()> {
    let locked = || {
        // Whoever waits for readers holds the door, and no new ones come in before.
        for _ in 1..LOOKS {
            if set(file, libc::F_RDLCK, DOOR, false)? {
                break;
            }
            sleep(PAUSE);
        }
        if !set(file, libc::F_RDLCK, DOOR, false)? {
            return Ok(None);
        }
        let is_read = set(file, libc::F_RDLCK, WHOLE, false)?;
        // Those who share tell so before they look for readers; readers tell so before they look
        // for them.
        let is_read = is_read && set(file, libc::F_RDLCK, READERS, false)? && !is_locked(file, SHARERS)?;
        set(file, libc::F_UNLCK, DOOR, false)?;
        Ok(is_read.then_some(()))
    };
    taken(file, path, locked())
}

/// Lets others in who also share the file; true for the first one, which has it alone until it says
/// so with [`let_in`]. The door stays closed until then, and whoever wants in waits for it. Readers
/// are waited for, shortly.
///
/// # Errors
/// As [`lock`].
pub(super) fn share(file: &File, path: &Path) -> Result<bool> {
    let attempt = || {
        let is_first = set(file, libc::F_WRLCK, WHOLE, false)?;
        if !is_first && !set(file, libc::F_RDLCK, WHOLE, false)? {
            return Ok(None);
        }
        let is_told = set(file, libc::F_RDLCK, SHARERS, false)?;
        if is_told && !is_locked(file, READERS)? {
            return Ok(Some(is_first));
        }
        set(file, libc::F_UNLCK, SHARERS, false)?;
        set(file, libc::F_UNLCK, WHOLE, false)?;
        Ok(None)
    };
    let shared = set(file, libc::F_WRLCK, DOOR, true).and_then(|_| while_read(file, attempt));
    taken(file, path, shared)
}

/// Gives back all locks of an opening. They would end with its last descriptor; but a child that
/// another thread of this program is about to start may still have one for a moment.
pub(super) fn unlock(file: &File) {
    let _ = rustix::fs::flock(file, FlockOperation::Unlock);
    let request = libc::flock { l_len: 0, ..request(libc::F_UNLCK, WHOLE) };
    // SAFETY: the request reads one flock from a pointer that is valid for the length of the call.
    let _ = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) };
}

/// Opens the door for the next one who shares.
pub(super) fn let_in(file: &File) -> io::Result<()> {
    set(file, libc::F_RDLCK, WHOLE, false)?;
    set(file, libc::F_UNLCK, DOOR, false).map(|_| ())
}

/// Takes a seat that nobody has; `None` if there is none.
pub(super) fn take_seat(file: &File) -> io::Result<Option<u64>> {
    for seat in 0..SEATS_MAX {
        if set(file, libc::F_WRLCK, SEATS + seat as libc::off_t, false)? {
            return Ok(Some(seat));
        }
    }
    Ok(None)
}

/// Whether another opening of the file has a seat. An answer that the kernel refuses counts as yes.
pub(super) fn is_seat_taken(file: &File, seat: u64) -> bool {
    seat < SEATS_MAX && is_locked(file, SEATS + seat as libc::off_t).unwrap_or(true)
}

const fn claim_of(number: u64) -> libc::off_t {
    CLAIMS + (number & ((1 << 60) - 1)) as libc::off_t
}

/// Claims a number for this opening; false if another one has it.
pub(super) fn claim(file: &File, number: u64) -> io::Result<bool> {
    set(file, libc::F_WRLCK, claim_of(number), false)
}

/// Gives a claim back.
pub(super) fn disclaim(file: &File, number: u64) -> io::Result<()> {
    set(file, libc::F_UNLCK, claim_of(number), false).map(|_| ())
}

//! Requests that the kernel works on while this process goes on, by io_uring.
//!
//! It keeps true: memory that a request reads or fills belongs to it and stays until the kernel is
//! done with it. There is no thread of ours behind it; what is done is found out when somebody
//! asks.
#![allow(unsafe_code, reason = "the kernel is handed pointers that have to live until a request is done")]

use super::aligned::AlignedBuffer;
use crate::error::Result;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use io_uring::{IoUring, Probe, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Requests under way at most.
pub(super) const DEPTH: usize = 16;

/// What a request does.
pub(super) enum Request {
    /// Everything that was written is made durable.
    Flush,
    /// So many bytes of memory are written from this offset on.
    Write { offset: u64, length: usize, memory: AlignedBuffer },
    /// So many bytes from this offset on are read into memory.
    Read { offset: u64, length: usize, memory: AlignedBuffer },
}

/// A request that is done.
pub(super) struct Done {
    /// What it was.
    pub(super) request: Request,
    /// Bytes, or the error of the kernel.
    pub(super) result: io::Result<usize>,
}

/// The requests of one file.
pub(super) struct InFlight {
    ring: IoUring,
    under_way: BTreeMap<u64, Request>,
    next: u64,
}

impl InFlight {
    /// `None` if the kernel does not offer all that is needed, or forbids it.
    pub(super) fn new() -> Option<Self> {
        let ring = IoUring::new(2 * DEPTH as u32).ok()?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).ok()?;
        let needed = [opcode::Fsync::CODE, opcode::Read::CODE, opcode::Write::CODE];
        needed.iter().all(|code| probe.is_supported(*code)).then(|| Self { ring, under_way: BTreeMap::new(), next: 0 })
    }

    /// Hands a request over and returns its number. If that fails, it was not begun.
    pub(super) fn begin(&mut self, file: &File, request: Request) -> io::Result<u64> {
        let number = self.prepare(file, request)?;
        // A kernel that takes it later than now takes it with the next call, at the latest when it
        // is waited for.
        let _ = self.ring.submit();
        Ok(number)
    }

    /// Makes a request ready, which the kernel takes with the next that is begun or waited for, and
    /// returns its number. If that fails, it was not begun.
    pub(super) fn prepare(&mut self, file: &File, mut request: Request) -> io::Result<u64> {
        let descriptor = types::Fd(file.as_raw_fd());
        let entry: squeue::Entry = match &mut request {
            Request::Flush => opcode::Fsync::new(descriptor).flags(types::FsyncFlags::DATASYNC).build(),
            Request::Write { offset, length, memory } => {
                let bytes = memory.get(*length).map_err(io::Error::other)?;
                opcode::Write::new(descriptor, bytes.as_ptr(), bytes.len() as u32).offset(*offset).build()
            }
            Request::Read { offset, length, memory } => {
                let bytes = memory.get(*length).map_err(io::Error::other)?;
                opcode::Read::new(descriptor, bytes.as_mut_ptr(), bytes.len() as u32).offset(*offset).build()
            }
        };
        let number = self.next;
        // SAFETY: the memory belongs to the request, which is kept, unmoved on the heap, until the
        // kernel says that it is done; so is the file, whose owner drops this before it closes it,
        // and dropping waits.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(number)) };
        pushed.map_err(io::Error::other)?;
        self.next += 1;
        self.under_way.insert(number, request);
        Ok(number)
    }

    /// Whether a request with that number or a lower one, of those that `matches` says, is under
    /// way.
    pub(super) fn any(&self, up_to: u64, matches: impl Fn(&Request) -> bool) -> bool {
        self.under_way.range(..=up_to).any(|(_, request)| matches(request))
    }

    /// The number of the newest.
    pub(super) const fn newest(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        self.under_way.len()
    }

    /// Waits until all are done.
    pub(super) fn finish(&mut self) -> io::Result<Vec<(u64, Done)>> {
        let mut done = Vec::new();
        while !self.under_way.is_empty() {
            match self.ring.submit_and_wait(self.under_way.len()) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => done.extend(self.reap(false)?),
            }
        }
        Ok(done)
    }

    /// Takes those that are done; if there are none and any is under way, waits for one if `waits`.
    pub(super) fn reap(&mut self, waits: bool) -> io::Result<Vec<(u64, Done)>> {
        loop {
            let found: Vec<(u64, i32)> =
                self.ring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
            let take = |(number, result): (u64, i32)| {
                let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                self.under_way.remove(&number).map(|request| (number, Done { request, result }))
            };
            let done: Vec<(u64, Done)> = found.into_iter().filter_map(take).collect();
            if !done.is_empty() || !waits || self.under_way.is_empty() {
                return Ok(done);
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
        }
    }
}

/// Whether it is worth asking again.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

/// Whether the kernel gave a request back without having tried it: it has to be made in the plain
/// way.
pub(super) fn was_not_tried(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ECANCELED | libc::EINTR | libc::EAGAIN | libc::EINVAL | libc::EOPNOTSUPP))
}

impl Drop for InFlight {
    fn drop(&mut self) {
        while !self.under_way.is_empty() {
            if self.reap(true).is_err() {
                // The kernel may still use the memory: nobody else may ever have it.
                core::mem::forget(core::mem::take(&mut self.under_way));
            }
        }
    }
}

/// Memory with these bytes in it.
pub(super) fn memory_of(bytes: &[u8]) -> Result<AlignedBuffer> {
    let mut memory = AlignedBuffer::default();
    memory.get(bytes.len())?.copy_from_slice(bytes);
    Ok(memory)
}

//! The writes and flushes of a device that are not waited for, and several reads at once.
//!
//! It keeps true: who reads or writes finds what was posted before; a flush covers all that was
//! posted before it was begun and succeeds only if all of that did; content that the device did not
//! take stays readable.

use super::DeviceFile;
use super::in_flight::{DEPTH, Done, InFlight, Request, memory_of, was_not_tried};
use super::in_the_way::InTheWay;
use crate::error::{Error, MediaErrorKind, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::io;
use std::os::unix::fs::FileExt as _;

#[cfg(test)]
mod tests;

/// Bytes that several reads fill at once at most.
const READ_BYTES: usize = 8 << 20;

/// What is under way on a device.
pub(super) struct Posted {
    requests: InFlight,
    /// A flush waits for writes up to this number.
    flush_behind: Option<u64>,
    /// What the device did not take, by its offset.
    lost: BTreeMap<u64, Vec<u8>>,
    /// What others cannot read.
    in_the_way: Arc<InTheWay>,
    /// What the next flush says.
    error: Option<Error>,
}

const fn is_flush(request: &Request) -> bool {
    matches!(request, Request::Flush)
}

const fn is_write(request: &Request) -> bool {
    matches!(request, Request::Write { .. })
}

/// Copies to `to`, which begins at `first`, what `from`, which begins at `offset`, has of the same
/// place.
fn overlap(first: u64, to: &mut [u8], offset: u64, from: &[u8]) {
    let (skip, into) = (first.saturating_sub(offset) as usize, offset.saturating_sub(first) as usize);
    let from = from.get(skip..).unwrap_or_default();
    to.iter_mut().skip(into).zip(from).for_each(|(to, from)| *to = *from);
}

impl Posted {
    /// `None` if the kernel refuses.
    pub(super) fn new() -> Option<Self> {
        let requests = InFlight::new()?;
        let in_the_way = Arc::default();
        Some(Self { requests, flush_behind: None, lost: BTreeMap::new(), in_the_way, error: None })
    }

    /// What others cannot read.
    pub(super) const fn in_the_way(&self) -> &Arc<InTheWay> {
        &self.in_the_way
    }

    /// What the device did not take before is what was written last, there too.
    fn renew_lost(&mut self, offset: u64, bytes: &[u8]) {
        for (first, lost) in &mut self.lost {
            overlap(*first, lost, offset, bytes);
        }
    }
}

impl DeviceFile {
    /// Works with the kernel by io_uring from now on, where it lets us: flushes and posted writes
    /// go on while other requests are made, and reads that are asked for together are made
    /// together.
    #[must_use]
    pub fn with_requests_in_flight(mut self) -> Self {
        self.posted = Posted::new();
        self
    }

    /// Takes note of what is done; waits for one if there is any and `waits`.
    fn notice(&mut self, waits: bool) -> Result<()> {
        let Some(posted) = self.posted.as_mut() else { return Ok(()) };
        match posted.requests.reap(waits) {
            Ok(done) => done.into_iter().for_each(|(_, done)| self.settle(done)),
            Err(error) => return Err(self.failed("wait for", &error, MediaErrorKind::Host)),
        }
        self.flush_if_due()
    }

    /// A request is done. What the kernel did in part, or gave back, is done in the plain way.
    fn settle(&mut self, done: Done) {
        let error = match (done.request, done.result) {
            (Request::Flush, Ok(_)) => return,
            (Request::Flush, Err(error)) => {
                let error = if was_not_tried(&error) { self.file().sync_data().err() } else { Some(error) };
                error.map(|error| self.failed("flush", &error, MediaErrorKind::Host))
            }
            (Request::Write { offset, length, .. }, Ok(bytes)) if bytes == length => {
                return self.end_write(offset, false);
            }
            (Request::Write { offset, length, mut memory }, _) => {
                let Ok(bytes) = memory.get(length) else { return };
                let error = self.file().write_all_at(bytes, offset).err();
                let error = error.map(|error| self.failed("write", &error, MediaErrorKind::ProgramFailed));
                if let (Some(_), Some(posted)) = (&error, self.posted.as_mut()) {
                    posted.renew_lost(offset, bytes);
                    let is_covered = posted.lost.get(&offset).is_some_and(|known| known.len() >= bytes.len());
                    if !is_covered {
                        posted.lost.insert(offset, bytes.to_vec());
                    }
                }
                self.end_write(offset, error.is_some());
                error
            }
            // Those who read wait for what they asked for.
            (Request::Read { .. }, _) => return,
        };
        if let (Some(error), Some(posted)) = (error, self.posted.as_mut()) {
            posted.error.get_or_insert(error);
        }
    }

    /// A write is over; the device has the bytes, or they are `lost`.
    fn end_write(&self, offset: u64, lost: bool) {
        if let Some(posted) = &self.posted {
            posted.in_the_way.end(offset, lost);
        }
    }

    /// Begins the flush that waited for writes, if they are done.
    fn flush_if_due(&mut self) -> Result<()> {
        let Some(posted) = self.posted.as_mut() else { return Ok(()) };
        let is_due = posted.flush_behind.is_some_and(|last| !posted.requests.any(last, is_write));
        if is_due {
            posted.flush_behind = None;
            if posted.error.is_none() && posted.requests.begin(&self.file, Request::Flush).is_err() {
                self.sync()?;
            }
        }
        Ok(())
    }

    /// Waits for writes that were posted, all of them or those that touch a range.
    pub(super) fn wait_for_writes(&mut self, range: Option<(u64, u64)>) -> Result<()> {
        let touches = |request: &Request| match (request, range) {
            (Request::Write { offset, length, .. }, Some((from, bytes))) => {
                *offset < from.saturating_add(bytes) && from < offset + *length as u64
            }
            (request, None) => is_write(request),
            _ => false,
        };
        while self.posted.as_ref().is_some_and(|posted| posted.requests.any(u64::MAX, touches)) {
            self.notice(true)?;
        }
        Ok(())
    }

    /// Gives those who read what the device did not take.
    pub(super) fn overlay(&self, offset: u64, out: &mut [u8]) {
        let Some(posted) = self.posted.as_ref().filter(|posted| !posted.lost.is_empty()) else { return };
        for (first, bytes) in &posted.lost {
            overlap(offset, out, *first, bytes);
        }
    }

    /// Bytes were zeroed or given up: they hide it as well.
    pub(super) fn clear(&mut self, offset: u64, bytes: u64) {
        for (first, lost) in self.posted.iter_mut().flat_map(|posted| &mut posted.lost) {
            let (from, end) = (offset.saturating_sub(*first), (offset + bytes).saturating_sub(*first));
            let end = (end as usize).min(lost.len());
            lost.get_mut(from as usize..end).unwrap_or_default().fill(0);
        }
    }

    /// What is written later hides what the device did not take before.
    pub(super) fn renew(&mut self, offset: u64, bytes: &[u8]) {
        if let Some(posted) = self.posted.as_mut() {
            posted.renew_lost(offset, bytes);
        }
    }

    /// What the next flush has to say.
    fn take_error(&mut self) -> Result<()> {
        self.posted.as_mut().and_then(|posted| posted.error.take()).map_or(Ok(()), Err)
    }

    fn sync(&self) -> Result<()> {
        self.file().sync_data().map_err(|error| self.failed("flush", &error, MediaErrorKind::Host))
    }

    /// Writes without waiting for it.
    pub(super) fn post(&mut self, offset: u64, bytes: &[u8]) -> Result<bool> {
        if self.posted.is_none() {
            return Ok(false);
        }
        self.wait_for_writes(Some((offset, bytes.len() as u64)))?;
        while self.posted.as_ref().is_some_and(|posted| posted.requests.count() >= DEPTH) {
            self.notice(true)?;
        }
        let request = Request::Write { offset, length: bytes.len(), memory: memory_of(bytes)? };
        let Some(posted) = self.posted.as_mut() else { return Ok(false) };
        posted.in_the_way.begin(offset, bytes.len());
        let is_begun = posted.requests.begin(&self.file, request).is_ok();
        if is_begun {
            self.renew(offset, bytes);
        } else {
            self.end_write(offset, false);
        }
        Ok(is_begun)
    }

    /// Begins a flush of all that was written and posted; false if that cannot be done.
    pub(super) fn post_flush(&mut self) -> Result<bool> {
        self.notice(false)?;
        self.take_error()?;
        let Some(posted) = self.posted.as_mut() else { return Ok(false) };
        posted.flush_behind = Some(posted.requests.newest());
        self.flush_if_due()?;
        Ok(true)
    }

    /// Whether every flush that was begun is done.
    pub(super) fn is_flushed(&mut self) -> Result<bool> {
        self.notice(false)?;
        self.take_error()?;
        let waits = |posted: &Posted| posted.flush_behind.is_some() || posted.requests.any(u64::MAX, is_flush);
        Ok(!self.posted.as_ref().is_some_and(waits))
    }

    /// Whether writes are under way.
    pub(super) fn is_writing(&mut self) -> bool {
        // What failed is said by the next flush.
        let _ = self.notice(false);
        self.posted.as_ref().is_some_and(|posted| posted.requests.any(u64::MAX, is_write))
    }

    /// Waits until everything is durable, flushes that were begun before included.
    pub(super) fn flush_all(&mut self) -> Result<()> {
        self.wait_for_writes(None)?;
        let mut flushed = self.sync();
        if let Some(posted) = self.posted.as_mut() {
            posted.flush_behind = None;
        }
        while self.posted.as_ref().is_some_and(|posted| posted.requests.any(u64::MAX, is_flush)) {
            flushed = flushed.and(self.notice(true));
            if flushed.is_err() {
                break;
            }
        }
        self.take_error().and(flushed)
    }

    /// Makes several reads at once. Returns which of them have to be made by themselves.
    pub(super) fn read_together(&mut self, reads: &mut [(u64, &mut [u8])]) -> Result<Vec<usize>> {
        let mut alone = Vec::new();
        let mut numbers = BTreeMap::new();
        let mut bytes = 0;
        for (which, (offset, out)) in reads.iter().enumerate() {
            self.wait_for_writes(Some((*offset, out.len() as u64)))?;
            bytes += out.len();
            let request = Request::Read { offset: *offset, length: out.len(), memory: Default::default() };
            let posted = self.posted.as_mut().filter(|posted| posted.requests.count() < DEPTH && bytes <= READ_BYTES);
            match posted.map(|posted| posted.requests.begin(&self.file, request)) {
                Some(Ok(number)) => _ = numbers.insert(number, which),
                _ => alone.push(which),
            }
        }
        while !numbers.is_empty() {
            let Some(posted) = self.posted.as_mut() else { break };
            let done = posted.requests.reap(true).map_err(|error| self.failed("read", &error, MediaErrorKind::Host))?;
            for (number, done) in done {
                match (numbers.remove(&number), done) {
                    (Some(which), Done { request: Request::Read { offset, length, mut memory }, result }) => {
                        let out = reads.get_mut(which).map(|(_, out)| &mut **out);
                        match (out, memory.get(length), matches!(result, Ok(read) if read == length)) {
                            (Some(out), Ok(bytes), true) => {
                                out.copy_from_slice(bytes);
                                self.overlay(offset, out);
                            }
                            _ => alone.push(which),
                        }
                    }
                    (_, done) => self.settle(done),
                }
            }
        }
        self.flush_if_due()?;
        Ok(alone)
    }

    /// The error of a request to the device; `lost` is what an error of the medium itself means.
    pub(super) fn failed(&self, verb: &str, error: &io::Error, lost: MediaErrorKind) -> Error {
        super::of_io(&self.name, verb, error, lost)
    }
}

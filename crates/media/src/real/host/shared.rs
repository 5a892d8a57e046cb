//! What of a device or file its readers use without its owner: positioned reads on the same
//! descriptor, one by a system call or several together by io_uring, and flushes.
//!
//! It keeps true: memory that direct input fills is aligned, and belongs to one read alone while it
//! is made. It keeps the descriptor open; the lock on the device ends with the owner.

use super::aligned::{AlignedBuffer, is_aligned};
use super::in_flight::{DEPTH, Done, InFlight, Request};
use super::in_the_way::InTheWay;
use super::{DeviceFile, of_io};
use crate::blockdev::{DiskRead, SharedDisk, check_request};
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onode_base::sync::{Mutex, rank};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Reads that are made together at most.
const TOGETHER: usize = 2 * DEPTH;

/// So many buffers wait for the next reads.
const KEPT: usize = TOGETHER;

/// A larger buffer is given back after the read.
const KEPT_BYTES: usize = 256 << 10;

/// The shared part of a device file.
pub(super) struct SharedFile {
    // Dropped before the file: what is under way there uses it.
    /// Those that no batch uses now, as many as there once were batches at the same time.
    rings: Mutex<Vec<InFlight>, rank::MediumNotes>,
    /// The kernel refused a ring.
    has_no_rings: AtomicBool,
    file: Arc<File>,
    name: String,
    /// Bytes of the file or device, as its owner knows them.
    bytes: Arc<AtomicU64>,
    direct: bool,
    buffers: Mutex<Vec<AlignedBuffer>, rank::MediumNotes>,
    /// What only the owner reads right, if it has requests in flight.
    in_the_way: Option<Arc<InTheWay>>,
}

impl SharedFile {
    /// That of `owner`.
    pub(super) fn of(owner: &DeviceFile) -> Self {
        let (file, name) = (Arc::clone(&owner.file), owner.name.clone());
        let (rings, buffers) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let has_no_rings = AtomicBool::new(false);
        let in_the_way = owner.posted.as_ref().map(|posted| Arc::clone(posted.in_the_way()));
        let (bytes, direct) = (Arc::clone(&owner.bytes), owner.direct);
        Self { rings, has_no_rings, file, name, bytes, direct, buffers, in_the_way }
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<()> {
        check_request(&self.name, self.bytes.load(Ordering::Acquire), offset, bytes)?;
        if self.is_in_the_way(offset, bytes) {
            return Err(Error::new(MediaErrorKind::Host, "a write is under way there"));
        }
        Ok(())
    }

    /// Makes reads together, as far as the kernel lets us; those that are left have to be made each
    /// by itself.
    fn read_together(&self, reads: &mut [&mut DiskRead<'_>]) -> Vec<usize> {
        // A ring belongs to one batch at a time.
        let kept = self.rings.lock().pop();
        let new = || if self.has_no_rings.load(Ordering::Relaxed) { None } else { InFlight::new() };
        let Some(mut ring) = kept.or_else(new) else {
            self.has_no_rings.store(true, Ordering::Relaxed);
            return (0..reads.len()).collect();
        };
        let mut left = Vec::new();
        let mut begun = Vec::with_capacity(reads.len());
        for (index, read) in reads.iter().enumerate() {
            let memory = self.buffers.lock().pop().unwrap_or_default();
            let request = Request::Read { offset: read.offset, length: read.out.len(), memory };
            match ring.prepare(&self.file, request) {
                Ok(number) => begun.push((number, index)),
                Err(_) => left.push(index),
            }
        }
        // If the kernel says nothing of some, they are made by themselves; their memory is theirs.
        let done = ring.finish();
        let is_sound = done.is_ok();
        for (number, done) in done.unwrap_or_default() {
            let Some(at) = begun.iter().position(|(begun, _)| *begun == number) else { continue };
            let (_, index) = begun.swap_remove(at);
            let (Done { request: Request::Read { length, mut memory, .. }, result }, Some(read)) =
                (done, reads.get_mut(index))
            else {
                continue;
            };
            match (memory.get(length), matches!(result, Ok(bytes) if bytes == length)) {
                (Ok(bytes), true) => read.out.copy_from_slice(bytes),
                _ => left.push(index),
            }
            self.keep(memory, length);
        }
        left.extend(begun.into_iter().map(|(_, index)| index));
        if is_sound {
            self.rings.lock().push(ring);
        }
        left
    }

    /// Keeps memory for the next read.
    fn keep(&self, memory: AlignedBuffer, length: usize) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < KEPT && length <= KEPT_BYTES {
            buffers.push(memory);
        }
    }
}

impl SharedDisk for SharedFile {
    fn is_in_the_way(&self, offset: u64, bytes: u64) -> bool {
        self.in_the_way.as_ref().is_some_and(|in_the_way| in_the_way.has(offset, bytes))
    }

    fn read_at(&self, offset: u64, out: &mut [u8], _tag: IoTag) -> Result<()> {
        self.check(offset, out.len() as u64)?;
        let result = if !self.direct || is_aligned(out) {
            self.file.read_exact_at(out, offset)
        } else {
            let mut buffer = self.buffers.lock().pop().unwrap_or_default();
            let bytes = buffer.get(out.len())?;
            let result = self.file.read_exact_at(bytes, offset);
            out.copy_from_slice(bytes);
            self.keep(buffer, out.len());
            result
        };
        result.map_err(|error| of_io(&self.name, "read", &error, MediaErrorKind::Uncorrectable))
    }

    fn read_batch(&self, reads: &mut [DiskRead<'_>], tag: IoTag) {
        let mut possible: Vec<&mut DiskRead<'_>> = Vec::with_capacity(reads.len());
        for read in reads {
            read.result = self.check(read.offset, read.out.len() as u64);
            if read.result.is_ok() {
                possible.push(read);
            }
        }
        for some in possible.chunks_mut(TOGETHER) {
            // One alone is as fast by a plain system call.
            let left = if some.len() > 1 { self.read_together(some) } else { (0..some.len()).collect() };
            for index in left {
                if let Some(read) = some.get_mut(index) {
                    read.result = self.read_at(read.offset, read.out, tag);
                }
            }
        }
    }

    fn flush(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| of_io(&self.name, "flush", &error, MediaErrorKind::Host))
    }
}

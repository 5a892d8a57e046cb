//! What of a device or file its readers use without its owner: positioned reads on the same
//! descriptor, and flushes.
//!
//! It keeps true: memory that direct input fills is aligned, and belongs to one read alone while it
//! is made. It keeps the descriptor open; the lock on the device ends with the owner.

use super::aligned::{AlignedBuffer, is_aligned};
use super::{DeviceFile, of_io};
use crate::blockdev::{SharedDisk, check_request};
use crate::error::{MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// So many buffers wait for the next reads; more than that many reads at a time are rare.
const KEPT: usize = 16;

/// A larger buffer is given back after the read.
const KEPT_BYTES: usize = 1 << 20;

/// The shared part of a device file.
pub(super) struct SharedFile {
    file: Arc<File>,
    name: String,
    bytes: u64,
    direct: bool,
    buffers: Mutex<Vec<AlignedBuffer>, rank::MediumNotes>,
}

impl SharedFile {
    /// That of `owner`, which has nothing in flight.
    pub(super) fn of(owner: &DeviceFile) -> Self {
        let (file, name) = (Arc::clone(&owner.file), owner.name.clone());
        Self { file, name, bytes: owner.bytes, direct: owner.direct, buffers: Mutex::new(Vec::new()) }
    }
}

impl SharedDisk for SharedFile {
    fn read_at(&self, offset: u64, out: &mut [u8], _tag: IoTag) -> Result<()> {
        check_request(&self.name, self.bytes, offset, out.len() as u64)?;
        let result = if !self.direct || is_aligned(out) {
            self.file.read_exact_at(out, offset)
        } else {
            let mut buffer = self.buffers.lock().pop().unwrap_or_default();
            let bytes = buffer.get(out.len())?;
            let result = self.file.read_exact_at(bytes, offset);
            out.copy_from_slice(bytes);
            let mut buffers = self.buffers.lock();
            if buffers.len() < KEPT && out.len() <= KEPT_BYTES {
                buffers.push(buffer);
            }
            result
        };
        result.map_err(|error| of_io(&self.name, "read", &error, MediaErrorKind::Uncorrectable))
    }

    fn flush(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| of_io(&self.name, "flush", &error, MediaErrorKind::Host))
    }
}

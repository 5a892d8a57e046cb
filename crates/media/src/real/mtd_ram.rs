//! Byte-addressable memory behind Linux's memory technology devices: `/dev/mtdN` of type RAM
//! (battery-backed SRAM, FeRAM, MRAM, a reserved piece of main memory), as boards have it beside a
//! raw NAND chip.
//!
//! The kernel maps no such device into a process on machines with virtual memory, so a copy is
//! kept: loads and stores go to the copy, and a fence writes what was flushed since the last one to
//! the device, in whole lines. The driver has it there when the write returns. A memory of this
//! kind has at most a few MiB.

use super::host::{lock, of_io, of_open};
use super::ioctl;
use super::kind::{Kind, identify};
use super::mtd::About;
use super::pmem::{Flushing, MappedOptions, MappedPmem, Opening};
use crate::error::{Error, MediaErrorKind, Result};
use crate::image::OpenMode;
use crate::pmem::{Domain, LINE_BYTES, Pmem};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use onode_base::sync::{Mutex, rank};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// `MTD_RAM`.
const RAM: u8 = 1;
/// `MTD_BIT_WRITEABLE` and `MTD_NO_ERASE`: bits are written both ways, without an erase before.
/// MRAM behind the driver of serial flash has another type, and these.
const LIKE_RAM: u32 = 0x800 | 0x1000;

/// What the types of memory technology devices are called, by their numbers.
pub(super) fn type_name(kind: u8) -> String {
    match kind {
        0 => "absent".to_string(),
        RAM => "RAM".to_string(),
        2 => "ROM".to_string(),
        3 => "NOR flash".to_string(),
        4 => "NAND flash".to_string(),
        6 => "DataFlash".to_string(),
        7 => "UBI volume".to_string(),
        8 => "MLC NAND flash".to_string(),
        other => format!("unknown type {other}"),
    }
}

const fn is_memory(kind: u8, flags: u32) -> bool {
    kind == RAM || flags & LIKE_RAM == LIKE_RAM
}

/// A memory technology device as memory.
pub struct MtdRam {
    file: File,
    name: String,
    read_only: bool,
    copy: MappedPmem,
    /// What the next fence has to write, from and to, in lines.
    unwritten: Mutex<Vec<(u64, u64)>, rank::MediumNotes>,
    /// Held while a fence writes: whoever finds nothing to write waits for the one that took it.
    writing: Mutex<(), rank::MediumWork>,
    /// A write failed: what the device holds is not known any more.
    failed: AtomicBool,
}

impl MtdRam {
    /// Opens the memory at `path`, keeps others out and reads it. One that is opened for reading
    /// keeps stores to itself, and its fences fail.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, `Locked`, `NotAnImage` (no such device, or one of another type),
    /// `OutOfRange` (no whole number of lines), `ReadOnly`, `Host`.
    pub fn open(path: impl AsRef<Path>, mode: OpenMode) -> Result<Self> {
        let path = path.as_ref();
        let place = path.display();
        if identify(path)? != Kind::Mtd {
            return Err(Error::new(MediaErrorKind::NotAnImage, format!("{place} is no memory technology device")));
        }
        // For reading first: a type that cannot be written at all is to be told, not that it was
        // refused.
        let file = OpenOptions::new().read(true).open(path).map_err(|error| of_open(path, &error))?;
        let info = ioctl::mtd_info(&file)
            .map_err(|errno| of_io(&place.to_string(), "ask", &errno.into(), MediaErrorKind::Host))?;
        if !is_memory(info.kind, info.flags) {
            let detail = format!(
                "{place} is a memory technology device of type {}, not RAM: its bytes cannot be written one by one",
                type_name(info.kind)
            );
            return Err(Error::new(MediaErrorKind::NotAnImage, detail));
        }
        let write = mode == OpenMode::ReadWrite;
        let file = if write {
            OpenOptions::new().read(true).write(true).open(path).map_err(|error| of_open(path, &error))?
        } else {
            file
        };
        lock(&file, path, write)?;
        let about = About::of(&file).map_err(|error| of_open(path, &error))?;
        let length = about.number("size").unwrap_or_else(|| u64::from(info.size));
        Self::of_file(file, place.to_string(), length, !write)
    }

    /// The first `length` bytes of an open file as they are.
    fn of_file(file: File, name: String, length: u64, read_only: bool) -> Result<Self> {
        if length == 0 || !length.is_multiple_of(LINE_BYTES) {
            let detail = format!("{name} has {length} bytes, which is not a whole number of lines of {LINE_BYTES}");
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        let options = MappedOptions {
            opening: Opening::Existing,
            flushing: Flushing::Detect,
            reserve: length,
            ..Default::default()
        };
        let copy = MappedPmem::anonymous(length, &options)?;
        let mut piece = vec![0; length.min(1 << 20) as usize];
        for at in (0..length).step_by(piece.len()) {
            let bytes = (length - at).min(piece.len() as u64) as usize;
            file.read_exact_at(&mut piece[..bytes], at)
                .map_err(|error| of_io(&name, "read", &error, MediaErrorKind::Uncorrectable))?;
            copy.write(at, &piece[..bytes]);
        }
        Ok(Self {
            file,
            name,
            read_only,
            copy,
            unwritten: Mutex::new(Vec::new()),
            writing: Mutex::new(()),
            failed: AtomicBool::new(false),
        })
    }

    fn write_out(&self, lines: Vec<(u64, u64)>) -> Result<()> {
        let mut bytes = Vec::new();
        for (from, to) in lines {
            bytes.resize((to - from) as usize, 0);
            self.copy.read(from, &mut bytes);
            self.file
                .write_all_at(&bytes, from)
                .map_err(|error| of_io(&self.name, "write", &error, MediaErrorKind::Host))?;
        }
        Ok(())
    }

    fn refused(&self) -> Error {
        Error::new(MediaErrorKind::ReadOnly, format!("{} is open for reading only", self.name))
    }
}

/// The same lines, each once, those side by side as one range.
fn merged(mut lines: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    lines.sort_unstable();
    lines.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
    lines
}

impl Pmem for MtdRam {
    fn length(&self) -> u64 {
        self.copy.length()
    }

    fn domain(&self) -> Domain {
        Domain::Flush
    }

    #[inline]
    fn load(&self, at: u64) -> u64 {
        self.copy.load(at)
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.copy.store(at, value);
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64> {
        self.copy.compare_exchange(at, current, new)
    }

    #[inline]
    fn read(&self, at: u64, buffer: &mut [u8]) {
        self.copy.read(at, buffer);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.copy.write(at, bytes);
    }

    fn zero(&self, at: u64, length: u64) {
        self.copy.zero(at, length);
    }

    fn flush(&self, at: u64, length: u64) {
        if length == 0 {
            return;
        }
        let end = at.saturating_add(length);
        assert!(end <= self.length(), "bytes {at} to {end} of a memory of {}", self.length());
        let lines = (at - at % LINE_BYTES, end.next_multiple_of(LINE_BYTES));
        self.unwritten.lock().push(lines);
    }

    fn fence(&self) -> Result<()> {
        if self.read_only {
            return Err(self.refused());
        }
        let _alone = self.writing.lock();
        if self.failed.load(Ordering::Acquire) {
            let detail = format!("an earlier write to {} failed; open it anew", self.name);
            return Err(Error::new(MediaErrorKind::Host, detail));
        }
        let lines = core::mem::take(&mut *self.unwritten.lock());
        self.write_out(merged(lines)).inspect_err(|_| self.failed.store(true, Ordering::Release))
    }

    fn grow(&self, length: u64) -> Result<()> {
        if length <= self.length() {
            return Ok(());
        }
        if self.read_only {
            return Err(self.refused());
        }
        let detail = format!("{} is a device of {} bytes, {length} are wanted", self.name, self.length());
        Err(Error::new(MediaErrorKind::OutOfRange, detail))
    }

    #[inline]
    fn words(&self, at: u64, count: u64) -> Option<&[AtomicU64]> {
        self.copy.words(at, count)
    }

    fn address(&self) -> Option<NonNull<u8>> {
        self.copy.address()
    }
}

#[cfg(test)]
mod tests;

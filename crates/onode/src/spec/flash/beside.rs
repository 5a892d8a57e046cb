//! Specs of a memory beside flash: `flash+scm:IMAGE,MEMORY`.

use super::{partition, size_of, unknown_part};
use crate::error::{Class, Error, Result};
use onode_base::size::exact_size;
use onode_flash::MemoryOptions;
use std::path::PathBuf;

/// The smallest memory beside flash.
const LEAST_INDEX_BYTES: u64 = 16 << 10;

/// The settings of the memory, for people.
pub(super) const KEYS: &str = "memory, buffer (on or off), log, full (spill or refuse), rebuild (on or off)";

/// A memory beside flash, as far as it was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The file or device; memory of this process if `None`.
    pub path: Option<PathBuf>,
    /// Bytes of a new one.
    pub size: Option<u64>,
    /// Once the memory is full, new files are refused instead of having their index on flash alone.
    pub refuses: bool,
    /// Whatever the memory holds is given up, and it is filled from the flash.
    pub rebuild: bool,
    /// Syncs end in the memory instead of a page of flash that is not full.
    pub buffer: bool,
    /// Bytes of a new memory for that.
    pub log: Option<u64>,
}

impl Beside {
    /// What the device is told.
    #[must_use]
    pub const fn options(&self) -> MemoryOptions {
        MemoryOptions { rebuild: self.rebuild, spill: !self.refuses, buffer: self.buffer, log_bytes: self.log }
    }

    /// Bytes of a new one for flash of `flash_bytes`: a thousandth, as in paper 3.
    #[must_use]
    pub fn bytes(&self, flash_bytes: u64) -> u64 {
        self.size.unwrap_or((flash_bytes / 1024).max(64 << 10)).next_multiple_of(4096)
    }
}

/// A spec of both, taken apart.
pub(super) struct Apart<'a> {
    /// Where the flash is.
    pub place: &'a str,
    /// The memory.
    pub memory: Beside,
    /// The settings of the flash.
    pub of_flash: Vec<&'a str>,
}

/// Takes `NAND,MEMORY` or `sim` and the settings of either apart.
pub(super) fn parts<'a>(what: &str, rest: &'a str) -> Result<Apart<'a>> {
    let mut parts = rest.split(',');
    let place = parts.next().unwrap_or_default();
    let path = if place == "sim" { None } else { parts.next().filter(|path| !path.is_empty() && !path.contains('=')) };
    if place.is_empty() || (place != "sim" && path.is_none()) {
        return Err(Error::new(Class::Usage, what, "the name of the image file or of the memory beside it is missing")
            .hint("write for example `flash+scm:disk.img,/dev/shm/disk.index,size=1G`, or `flash+scm:sim`"));
    }
    let mut memory = Beside { path: path.map(|path| partition::path_of(path, what)).transpose()?, ..Beside::default() };
    let mut of_flash = Vec::new();
    for part in parts {
        match part.split_once('=').unwrap_or((part, "")) {
            ("memory", value) => memory.size = Some(size_of(what, value)?),
            ("full", "refuse") => memory.refuses = true,
            ("full", "spill") => memory.refuses = false,
            ("rebuild", "on") => memory.rebuild = true,
            ("rebuild", "off") => memory.rebuild = false,
            ("buffer", "on") => memory.buffer = true,
            ("buffer", "off") => memory.buffer = false,
            ("log", value) => memory.log = Some(size_of(what, value)?),
            ("full" | "rebuild" | "buffer", _) => return Err(unknown_part(what, part, KEYS)),
            _ => of_flash.push(part),
        }
    }
    if let Some(size) = memory.size.filter(|size| *size < LEAST_INDEX_BYTES) {
        return Err(Error::new(Class::BadSize, what, format!("a memory of {} is too small", exact_size(size)))
            .hint(format!("the least is {}", exact_size(LEAST_INDEX_BYTES))));
    }
    Ok(Apart { place, memory, of_flash })
}

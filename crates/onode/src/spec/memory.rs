//! Specs of byte-addressable memory: `scm:PATH` and its settings.

use super::{DEFAULT_SIZE, Said, Spec, figure_of, size_of, unknown_part, whole};
use crate::error::{Class, Error, Result};
use onode_base::size::exact_size;
use onode_scm::Mode;
use std::fmt;
use std::path::{Path, PathBuf};

/// The smallest memory for objects, the table of its spaces included.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;

/// A byte-addressable memory, as far as it was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The file or device; memory of this process if `None`.
    pub path: Option<PathBuf>,
    /// Bytes of a new one.
    pub size: Option<u64>,
    /// Bytes of a chunk of a new device.
    pub chunk: Option<u32>,
    /// Bytes of a new one that are for objects; the rest is left for other spaces.
    pub objects: Option<u64>,
    /// Flush lines also where nothing needs it, to measure what it costs.
    pub flush: bool,
    /// What content is worth.
    pub mode: Mode,
    /// Whether a new one is for one process at a time, which maps none of its objects.
    pub exclusive: Option<bool>,
}

impl Memory {
    /// Bytes of a new one.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.size.unwrap_or(if self.path.is_some() { DEFAULT_SIZE } else { 256 << 20 })
    }

    fn read(what: &str, rest: &str) -> Result<Self> {
        let (place, keys) = rest.split_once(',').unwrap_or((rest, ""));
        if place.is_empty() {
            return Err(Error::new(Class::Usage, what, "the name of the file is missing")
                .hint("write for example `scm:/dev/shm/heap,size=1G`, or `scm:sim` for memory of the process"));
        }
        let path = (place != "sim").then(|| PathBuf::from(place));
        let mut memory = Self { path, ..Self::default() };
        for part in keys.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=').unwrap_or((part, "")) {
                ("size", value) => memory.size = Some(size_of(what, value)?),
                ("chunk", value) => memory.chunk = Some(figure_of(what, value)?),
                ("objects", value) => memory.objects = Some(size_of(what, value)?),
                ("flush", "on") => memory.flush = true,
                ("flush", "detect") => memory.flush = false,
                ("mode", value) => memory.mode = mode_of(what, value)?,
                ("exclusive", "" | "on") => memory.exclusive = Some(true),
                ("exclusive", "off") => memory.exclusive = Some(false),
                _ => {
                    let settings = "size, objects, chunk, mode, exclusive (on or off), flush (on or detect)";
                    return Err(unknown_part(what, part, settings));
                }
            }
        }
        if memory.exclusive == Some(true) && memory.mode != Mode::default() {
            return Err(other_mode(what, memory.mode));
        }
        let size = memory.bytes();
        if size < LEAST_MEMORY_BYTES {
            let least = exact_size(LEAST_MEMORY_BYTES);
            return Err(Error::new(Class::BadSize, what, format!("size {} is too small", exact_size(size)))
                .hint(format!("the least is {least}")));
        }
        Ok(memory)
    }
}

/// The memory in a file that is there.
pub(super) fn in_file(_: &str, path: &Path) -> Result<Spec> {
    Ok(Spec::Scm(Memory { path: Some(path.into()), ..Memory::default() }))
}

/// What stands behind `scm:`.
pub(super) fn parse(what: &str, rest: &str) -> Result<Spec> {
    Memory::read(what, rest).map(Spec::Scm)
}

/// A memory that one process at a time uses has one mode, and this is another one.
pub(crate) fn other_mode(what: impl Into<String>, mode: Mode) -> Error {
    let why = format!("a memory that one process at a time uses has mode `atomic`, not `{}`", mode.name());
    Error::new(Class::Usage, what, why).hint("leave the mode out")
}

fn mode_of(what: &str, value: &str) -> Result<Mode> {
    let found = Mode::ALL.into_iter().find(|(name, _)| *name == value);
    found.map(|(_, mode)| mode).ok_or_else(|| {
        let names = Mode::ALL.map(|(name, _)| name).join(", ");
        Error::new(Class::Usage, what, format!("`{value}` is no mode of this device"))
            .hint(format!("the modes are {names}"))
    })
}

impl Said for Memory {
    fn image_path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    #[cfg(feature = "pool")]
    fn own_paths(&mut self) -> Vec<&mut PathBuf> {
        self.path.iter_mut().collect()
    }

    fn again(&self) -> Spec {
        let path = self.path.as_deref().map(whole);
        Spec::Scm(Self { path, flush: self.flush, mode: self.mode, ..Self::default() })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "scm:{}", path.display())?,
            None => f.write_str("scm:sim")?,
        }
        if let Some(size) = self.size {
            write!(f, ",size={}", exact_size(size))?;
        }
        if let Some(chunk) = self.chunk {
            write!(f, ",chunk={}", exact_size(chunk.into()))?;
        }
        if let Some(objects) = self.objects {
            write!(f, ",objects={}", exact_size(objects))?;
        }
        if self.flush {
            f.write_str(",flush=on")?;
        }
        if let Some(exclusive) = self.exclusive {
            write!(f, ",exclusive={}", if exclusive { "on" } else { "off" })?;
        }
        if self.mode == Mode::default() { Ok(()) } else { write!(f, ",mode={}", self.mode.name()) }
    }
}

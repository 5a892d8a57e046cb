//! Device specs: one line that says what a volume lies on.
//!
//! ```text
//! disk.img                                 flash in an image file (short for flash:disk.img)
//! flash:disk.img,size=4G,page=2K           the same, with the shape that a new image gets
//! /dev/sdb1                                flash on a block device or a partition
//! flash:mtd:rootfs                         flash on the raw NAND partition of that name
//! flash:disk.raw,direct                    flash in a plain file that is used like a block device
//! flash:disk.img,placement=sepbit          the same, with another placement policy from now on
//! flash:sim,size=128M                      flash in memory, gone at the end
//! flash+scm:disk.img,index.mem             flash with its index in a memory beside it: a file in memory, a DAX device
//! flash+scm:/dev/mtd0,/dev/mtd1            the same on a raw NAND chip and a memory technology device of type RAM
//! flash+scm:sim,size=128M,memory=256K      the same in memory of this process, gone at the end
//! scm:/dev/shm/heap,size=1G                storage-class memory: a file in memory, a DAX device or any plain file
//! scm:/dev/shm/heap,mode=mem               the same without a flush; also meta, sync and atomic (as usual)
//! scm:/dev/shm/files,size=1G,exclusive=on  for one process at a time: snapshots, clones, limits
//! scm:sim,size=64M                         the same in memory of this process, gone at the end
//! tier:ssd.img,hdd.img                     a fast disk in front of a big one: files, partitions or disks
//! tier:ssd.img,hdd.img,fast=none           the big disk alone
//! pool:flash:a.img+scm:c.mem               every object on each of several devices of any kind
//! ram:size=256M                            objects in memory, gone at the end
//! ```
//! A spec only names; nothing is opened or created here. The name of a partition is looked up at
//! once, so that what it names is a device from then on.

#[cfg(any(not(feature = "flash"), not(feature = "scm"), not(feature = "tier"), not(feature = "pool")))]
mod absent;
#[cfg(feature = "flash")]
pub mod flash;
#[cfg(feature = "scm")]
pub mod memory;
#[cfg(feature = "pool")]
pub mod pool;
pub mod ram;
#[cfg(feature = "tier")]
pub mod tiers;

use crate::error::{Class, Error, Result};
#[cfg(not(feature = "flash"))]
use absent::flash;
#[cfg(not(feature = "scm"))]
use absent::memory;
#[cfg(not(feature = "pool"))]
use absent::pool;
#[cfg(not(feature = "tier"))]
use absent::tiers;
use onode_base::size::parse_size;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes of a new volume, if nothing else was said.
#[cfg(any(feature = "flash", feature = "scm", feature = "tier"))]
pub(crate) const DEFAULT_SIZE: u64 = 1 << 30;

/// What a memory begins with: `onode_spaces::MAGIC`, which a build without that device has to
/// recognise as well.
const MEMORY_MAGIC: [u8; 8] = *b"ONODESPC";

/// What a volume lies on. A build has the devices of its features.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spec {
    /// The log-structured device on NAND flash.
    #[cfg(feature = "flash")]
    Flash(flash::Flash),
    /// The device on byte-addressable memory.
    #[cfg(feature = "scm")]
    Scm(memory::Memory),
    /// The device of a fast and a big disk.
    #[cfg(feature = "tier")]
    Tier(tiers::Tiers),
    /// Every object on each of several devices.
    #[cfg(feature = "pool")]
    Pool(pool::PoolSpec),
    /// Objects in memory, without a medium.
    Ram(ram::Ram),
}

/// What every spec tells, whatever kind of device it names.
pub(crate) trait Said: fmt::Display {
    /// The image file or device, as [`Spec::image_path`].
    fn image_path(&self) -> Option<&Path>;

    /// The other file or device of a volume that lies on two.
    fn second_path(&self) -> Option<&Path> {
        None
    }

    /// All files and devices that it names.
    fn all_paths(&self) -> Vec<&Path> {
        self.image_path().into_iter().chain(self.second_path()).collect()
    }

    /// All of its paths, to be completed.
    #[cfg(feature = "pool")]
    fn own_paths(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// The paths that [`Spec::with_absolute_paths`] completes.
    fn paths_beside(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// As [`Spec::again`].
    fn again(&self) -> Spec;
}

impl Spec {
    /// What it says, whatever kind of device it names.
    pub(crate) fn said(&self) -> &dyn Said {
        match self {
            #[cfg(feature = "flash")]
            Self::Flash(flash) => flash,
            #[cfg(feature = "scm")]
            Self::Scm(memory) => memory,
            #[cfg(feature = "tier")]
            Self::Tier(tiers) => tiers,
            #[cfg(feature = "pool")]
            Self::Pool(pool) => pool,
            Self::Ram(ram) => ram,
        }
    }

    fn said_mut(&mut self) -> &mut dyn Said {
        match self {
            #[cfg(feature = "flash")]
            Self::Flash(flash) => flash,
            #[cfg(feature = "scm")]
            Self::Scm(memory) => memory,
            #[cfg(feature = "tier")]
            Self::Tier(tiers) => tiers,
            #[cfg(feature = "pool")]
            Self::Pool(pool) => pool,
            Self::Ram(ram) => ram,
        }
    }

    /// Reads a spec from the command line; a file name need not be UTF-8.
    ///
    /// # Errors
    /// `Usage` or `BadSize`, quoting the part that is wrong; `Usage` for a device that this build
    /// lacks.
    pub fn from_argument(argument: &OsStr) -> Result<Self> {
        let path = Path::new(argument);
        match argument.to_str() {
            Some(text) if !path.exists() => Self::parse(text),
            _ if is_memory(path) => memory::in_file(&misunderstood(&path.display()), path),
            _ => flash::in_image(&misunderstood(&path.display()), path),
        }
    }

    /// Reads a spec.
    ///
    /// # Errors
    /// `Usage` or `BadSize`, quoting the part that is wrong; `Usage` for a device that this build
    /// lacks.
    pub fn parse(text: &str) -> Result<Self> {
        let what = misunderstood(&text);
        match text.split_once(':') {
            Some(("ram", rest)) => ram::parse(&what, rest),
            Some(("scm", rest)) => memory::parse(&what, rest),
            Some(("flash+scm", rest)) => flash::parse_beside(&what, rest),
            Some(("flash", rest)) => flash::parse(&what, rest),
            Some(("tier", rest)) => tiers::parse(&what, rest),
            Some(("pool", rest)) => pool::parse(&what, rest),
            Some((kind, _))
                if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'+') =>
            {
                Err(Error::new(Class::Usage, what, format!("there is no device kind `{kind}`")).hint(format!(
                    "the kinds are `flash`, `flash+scm`, `scm`, `tier`, `pool` and `ram`; a file of that name is `./{text}`"
                )))
            }
            _ => flash::parse_image(&what, text),
        }
    }

    /// The image and the snapshot or clone of `IMAGE@NAME`; a file of that whole name is no such.
    #[must_use]
    pub fn state_of(argument: &OsStr) -> Option<(&str, &str)> {
        let text = argument.to_str().filter(|_| !Path::new(argument).exists())?;
        text.rsplit_once('@').filter(|(image, name)| !image.is_empty() && !name.is_empty() && !name.contains('/'))
    }

    /// The same with full paths of what is beside the image: the memory beside flash, both disks of
    /// two, all members of a pool.
    #[must_use]
    pub fn with_absolute_paths(mut self) -> Self {
        for path in self.said_mut().paths_beside() {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        self
    }

    /// The image file or device, if there is one; of two disks the big one, without which there is
    /// nothing, of a pool that of its first member.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        self.said().image_path()
    }

    /// Whether it is a memory, which processes share unless the volume on it is exclusive.
    #[must_use]
    pub const fn is_memory(&self) -> bool {
        match self {
            #[cfg(feature = "scm")]
            Self::Scm(_) => true,
            _ => false,
        }
    }

    /// The spec to open the volume with another time, from any directory: the places, and how it is
    /// used. What only making one needs is left out, and so is what is done once.
    #[must_use]
    pub fn again(self) -> Self {
        self.said().again()
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.said().fmt(f)
    }
}

fn misunderstood(spec: &dyn fmt::Display) -> String {
    format!("cannot understand the device spec `{spec}`")
}

/// Whether a file holds a device of byte-addressable memory. One that cannot be read does not;
/// opening it tells why.
fn is_memory(path: &Path) -> bool {
    let mut first = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
    read.is_ok() && first == MEMORY_MAGIC
}

/// The whole path of what is there, or will be.
#[cfg(any(feature = "flash", feature = "scm", feature = "tier"))]
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

fn size_of(what: &str, value: &str) -> Result<u64> {
    parse_size(value).map_err(|why| Error::new(Class::BadSize, what, why))
}

#[cfg(any(feature = "flash", feature = "scm", feature = "tier"))]
fn figure_of(what: &str, value: &str) -> Result<u32> {
    let size = size_of(what, value)?;
    u32::try_from(size).map_err(|_| Error::new(Class::BadSize, what, format!("`{value}` is too large")))
}

fn unknown_part(what: &str, part: &str, keys: &str) -> Error {
    Error::new(Class::Usage, what, format!("`{part}` is not a setting of this device"))
        .hint(format!("write KEY=VALUE; the keys are {keys}"))
}

#[cfg(all(test, feature = "flash", feature = "scm", feature = "tier"))]
mod tests;

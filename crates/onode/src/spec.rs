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
//! scm:sim,size=64M                         the same in memory of this process, gone at the end
//! tier:ssd.img,hdd.img                     a fast disk in front of a big one: files, partitions or disks
//! tier:ssd.img,hdd.img,fast=none           the big disk alone
//! ram:size=256M                            objects in memory, gone at the end
//! ```
//! A spec only names; nothing is opened or created here. The name of a partition is looked up at
//! once, so that what it names is a device from then on.

pub mod partition;
pub mod size;

use crate::error::{Class, Error, Result};
use crate::spec::size::{exact_size, parse_size};
use onode_flash::MemoryOptions;
use onode_flash::policy::WearPolicy;
use onode_media::Geometry;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a volume lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// The log-structured device on NAND flash.
    Flash {
        /// Where the NAND is.
        medium: Medium,
        /// The shape of a new one; of an existing image, what it must have.
        shape: Shape,
        /// The policies of the volume from now on.
        policies: Policies,
        /// The memory beside it that holds its index, if there is one.
        beside: Option<Beside>,
    },
    /// The device on byte-addressable memory.
    Scm(Memory),
    /// The device of a fast and a big disk.
    Tier(Tiers),
    /// Objects in memory, without a medium.
    Ram {
        /// Capacity in bytes.
        size: u64,
    },
}

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

/// Where a NAND is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Medium {
    /// In an image file, or on the device of that name: what it is, is seen when it is opened.
    Image(PathBuf),
    /// In a plain file that is used like a block device.
    Direct(PathBuf),
    /// In memory, simulated.
    Simulator,
}

/// The shape of a NAND, as far as it was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Data bytes in all.
    pub size: Option<u64>,
    /// Data bytes of a page.
    pub page: Option<u32>,
    /// Spare bytes of a page.
    pub spare: Option<u32>,
    /// Pages of an erase block.
    pub pages_per_block: Option<u32>,
    /// Erase blocks of a segment.
    pub blocks_per_segment: Option<u32>,
    /// Chips that work at the same time.
    pub chips: Option<u32>,
}

impl Spec {
    /// The same with wear spread by `policy` from now on.
    ///
    /// # Errors
    /// `Usage` for a device that does not wear.
    pub fn with_wear(mut self, policy: WearPolicy) -> Result<Self> {
        match &mut self {
            Self::Flash { policies, .. } => policies.wear = Some(policy),
            Self::Scm(_) | Self::Tier(_) | Self::Ram { .. } => {
                let why = "only flash has a wear policy: disks see to it themselves, and memory does not wear";
                return Err(Error::new(Class::Usage, format!("cannot use {self}"), why));
            }
        }
        Ok(self)
    }
}

impl Spec {
    /// The same with the big disk alone.
    ///
    /// # Errors
    /// `Usage` for a volume that does not lie on two disks.
    pub fn without_fast(mut self) -> Result<Self> {
        if let Self::Tier(tiers) = &mut self {
            tiers.fast = Fast::Away;
            return Ok(self);
        }
        let why = "it has no fast disk that could be away";
        Err(Error::new(Class::Usage, format!("cannot use {self} without its fast disk"), why)
            .hint("only tier:FAST,BIG has one"))
    }
}

impl Shape {
    /// Size of a new image, in bytes.
    pub const DEFAULT_SIZE: u64 = 1 << 30;
    /// The smallest size, in segments, that leaves room to work in.
    pub const MIN_SEGMENTS: u64 = 16;

    /// Bytes from which on a new volume has larger pages, if nothing else was said.
    const LARGE_SIZE: u64 = 1 << 40;
    /// Erase blocks that a new volume has at most, if nothing else was said.
    const USUAL_BLOCKS: u64 = 1 << 20;
    /// Bytes below which a new volume has smaller pages, if nothing else was said.
    const TINY_SIZE: u64 = 4 << 20;
    /// Erase blocks that a small volume has at least, if nothing else was said: log, cleaner and
    /// superblocks each need some. Its blocks have fewer pages instead.
    const LEAST_BLOCKS: u64 = 64;

    /// Erase blocks of a segment: what was said, or what suits the size.
    #[must_use]
    pub fn segment_blocks(&self) -> u32 {
        self.blocks_per_segment.unwrap_or_else(|| {
            let block_bytes = u64::from(self.page_bytes()) * u64::from(self.pages_per_block());
            let blocks = self.bytes().checked_div(block_bytes).unwrap_or(0);
            let shape = Geometry {
                page_bytes: self.page_bytes(),
                spare_bytes: 0,
                pages_per_block: self.pages_per_block(),
                blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
                chips: self.chips.unwrap_or(1),
            };
            u32::from(onode_flash::FormatOptions::default().blocks_per_segment(&shape))
        })
    }

    fn bytes(&self) -> u64 {
        self.size.unwrap_or(Self::DEFAULT_SIZE)
    }

    /// Says what was not said of pages and blocks, as it suits a medium of `bytes` if no size was
    /// said, whose pages have at least `page_bytes`.
    pub(crate) fn suit(&mut self, bytes: u64, page_bytes: u32) {
        let mut sized = Self { size: self.size.or(Some(bytes)), ..*self };
        sized.page = Some(self.page.unwrap_or(sized.page_bytes().max(page_bytes)));
        self.page = sized.page;
        self.pages_per_block = Some(sized.pages_per_block());
    }

    /// Pages of a large volume are larger, so that its segments are and their table stays small;
    /// those of a tiny one smaller, so that its segments are.
    fn page_bytes(&self) -> u32 {
        self.page.unwrap_or_else(|| match self.bytes() {
            ..Self::TINY_SIZE => 1024,
            Self::TINY_SIZE..=Self::LARGE_SIZE => 4096,
            _ => 16 << 10,
        })
    }

    /// What an erase block is given bounds how many there are: a medium keeps the state of each in
    /// memory.
    fn pages_per_block(&self) -> u32 {
        self.pages_per_block.unwrap_or_else(|| {
            let pages = self.bytes() / u64::from(self.page_bytes().max(1));
            let wanted = pages.div_ceil(Self::USUAL_BLOCKS).checked_next_power_of_two().unwrap_or(u64::MAX);
            // A small volume has few blocks of the usual size, and so many of smaller ones.
            let least = 1 << (pages / Self::LEAST_BLOCKS).clamp(16, 64).ilog2();
            u32::try_from(wanted.clamp(least, 16 << 10)).unwrap_or(64)
        })
    }

    /// The geometry of a new NAND of this shape; the size is rounded down to whole segments.
    ///
    /// # Errors
    /// `BadSize` with the figure that cannot be.
    pub fn geometry(&self) -> Result<Geometry> {
        let bad = |why: String| Error::new(Class::BadSize, "cannot make a flash volume", why);
        let (size, page_bytes, pages_per_block) = (self.bytes(), self.page_bytes(), self.pages_per_block());
        let segment_blocks = self.segment_blocks();
        if segment_blocks == 0 || segment_blocks > 1024 {
            return Err(bad(format!("blocks-per-segment={segment_blocks} is not between 1 and 1024")));
        }
        let block_bytes = u64::from(page_bytes) * u64::from(pages_per_block);
        let segment_bytes = block_bytes.saturating_mul(u64::from(segment_blocks));
        let segments = size.checked_div(segment_bytes).unwrap_or(0);
        let blocks = u32::try_from(segments * u64::from(segment_blocks)).ok().filter(|blocks| *blocks <= 1 << 24);
        let Some(blocks) = blocks else {
            let most = block_bytes.saturating_mul(1 << 24);
            return Err(bad(format!("size {} is too large", exact_size(size)))
                .hint(format!("the most with these blocks is {}; larger pages allow more", exact_size(most))));
        };
        let geometry = Geometry {
            page_bytes,
            spare_bytes: self.spare.unwrap_or(32),
            pages_per_block,
            blocks: blocks.max(8),
            chips: self.chips.unwrap_or(1),
        };
        geometry.validate().map_err(|error| bad(error.detail))?;
        if segments < Self::MIN_SEGMENTS {
            let least = segment_bytes.saturating_mul(Self::MIN_SEGMENTS);
            return Err(bad(format!("size {} is too small", exact_size(size)))
                .hint(format!("the least with these segments is {}", exact_size(least))));
        }
        Ok(geometry)
    }

    /// Every figure that was said, with its key.
    fn said(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("size", self.size),
            ("page", self.page.map(u64::from)),
            ("spare", self.spare.map(u64::from)),
            ("pages-per-block", self.pages_per_block.map(u64::from)),
            ("blocks-per-segment", self.blocks_per_segment.map(u64::from)),
            ("chips", self.chips.map(u64::from)),
        ]
    }
}

impl Spec {
    /// Reads a spec from the command line; a file name need not be UTF-8.
    ///
    /// # Errors
    /// `Usage` or `BadSize`, quoting the part that is wrong.
    pub fn from_argument(argument: &OsStr) -> Result<Self> {
        match argument.to_str() {
            Some(text) if !Path::new(text).exists() => Self::parse(text),
            _ if is_memory(Path::new(argument)) => {
                Ok(Self::Scm(Memory { path: Some(argument.into()), ..Memory::default() }))
            }
            _ => Ok(Self::image(argument)),
        }
    }

    /// Flash in the image file `path`.
    #[must_use]
    pub fn image(path: impl Into<PathBuf>) -> Self {
        let (shape, policies) = (Shape::default(), Policies::default());
        Self::Flash { medium: Medium::Image(path.into()), shape, policies, beside: None }
    }

    /// Reads a spec.
    ///
    /// # Errors
    /// `Usage` or `BadSize`, quoting the part that is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let what = format!("cannot understand the device spec `{text}`");
        match text.split_once(':') {
            Some(("ram", rest)) => parse_ram(&what, rest),
            Some(("scm", rest)) => Memory::parse(&what, rest).map(Self::Scm),
            Some(("flash+scm", rest)) => parse_beside(&what, rest),
            Some(("tier", rest)) => Tiers::parse(&what, rest).map(Self::Tier),
            Some(("flash", "sim")) => parse_flash(&what, Medium::Simulator, ""),
            Some(("flash", rest)) => match (rest.strip_prefix("sim,"), rest.strip_prefix("mtd:")) {
                (Some(keys), _) => parse_flash(&what, Medium::Simulator, keys),
                (None, Some(partition)) => parse_partition(&what, partition),
                (None, None) => parse_image(&what, rest),
            },
            Some((kind, _))
                if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'+') =>
            {
                Err(Error::new(Class::Usage, what, format!("there is no device kind `{kind}`")).hint(format!(
                    "the kinds are `flash`, `flash+scm`, `scm`, `tier` and `ram`; a file of that name is `./{text}`"
                )))
            }
            _ => parse_image(&what, text),
        }
    }

    /// The same with full paths of what is beside the image: the memory beside flash, both disks of
    /// two.
    #[must_use]
    pub fn with_absolute_paths(mut self) -> Self {
        let paths = match &mut self {
            Self::Flash { beside: Some(Beside { path: Some(path), .. }), .. } => vec![path],
            Self::Tier(Tiers { disks: Some((fast, big)), .. }) => vec![fast, big],
            _ => Vec::new(),
        };
        for path in paths {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        self
    }

    /// The image file or device, if there is one; of two disks the big one, without which there is
    /// nothing.
    #[must_use]
    pub fn image_path(&self) -> Option<&Path> {
        match self {
            Self::Flash { medium: Medium::Image(path) | Medium::Direct(path), .. } => Some(path),
            Self::Scm(memory) => memory.path.as_deref(),
            Self::Tier(tiers) => tiers.disks.as_ref().map(|(_, big)| big.as_path()),
            Self::Flash { medium: Medium::Simulator, .. } | Self::Ram { .. } => None,
        }
    }
}

fn parse_ram(what: &str, rest: &str) -> Result<Spec> {
    let mut size = 256 << 20;
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("size", value)) => size = size_of(what, value)?,
            _ => return Err(unknown_part(what, part, "size")),
        }
    }
    if size < 1 << 20 {
        return Err(
            Error::new(Class::BadSize, what, format!("size {} is too small", exact_size(size))).hint("the least is 1M")
        );
    }
    Ok(Spec::Ram { size })
}

/// Whether a file holds a device of byte-addressable memory. One that cannot be read does not;
/// opening it tells why.
fn is_memory(path: &Path) -> bool {
    let mut first = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
    read.is_ok() && first == onode_spaces::MAGIC
}

fn parse_image(what: &str, rest: &str) -> Result<Spec> {
    match rest.split_once(',').unwrap_or((rest, "")) {
        ("", _) => Err(Error::new(Class::Usage, what, "the name of the image file is missing")
            .hint("write for example `disk.img` or `flash:disk.img,size=4G`")),
        (path, keys) => parse_flash(what, Medium::Image(path.into()), keys),
    }
}

fn parse_partition(what: &str, rest: &str) -> Result<Spec> {
    let (name, keys) = rest.split_once(',').unwrap_or((rest, ""));
    let device = partition::device_of(Path::new(partition::CLASS), name, what)?;
    parse_flash(what, Medium::Image(device), keys)
}

/// `NAND,MEMORY` or `sim`, then the settings of either.
fn parse_beside(what: &str, rest: &str) -> Result<Spec> {
    let mut parts = rest.split(',');
    let place = parts.next().unwrap_or_default();
    let path = if place == "sim" { None } else { parts.next().filter(|path| !path.is_empty() && !path.contains('=')) };
    let find = |place: &str| match place.strip_prefix("mtd:") {
        Some(name) => partition::device_of(Path::new(partition::CLASS), name, what),
        None => Ok(PathBuf::from(place)),
    };
    if place.is_empty() || (place != "sim" && path.is_none()) {
        return Err(Error::new(Class::Usage, what, "the name of the image file or of the memory beside it is missing")
            .hint("write for example `flash+scm:disk.img,/dev/shm/disk.index,size=1G`, or `flash+scm:sim`"));
    }
    let mut memory = Beside { path: path.map(find).transpose()?, ..Beside::default() };
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
            ("full" | "rebuild" | "buffer", _) => {
                let known = "full (spill or refuse), rebuild (on or off), buffer (on or off)";
                return Err(unknown_part(what, part, known));
            }
            _ => of_flash.push(part),
        }
    }
    if let Some(size) = memory.size.filter(|size| *size < LEAST_INDEX_BYTES) {
        return Err(Error::new(Class::BadSize, what, format!("a memory of {} is too small", exact_size(size)))
            .hint(format!("the least is {}", exact_size(LEAST_INDEX_BYTES))));
    }
    let medium = if place == "sim" { Medium::Simulator } else { Medium::Image(find(place)?) };
    match parse_flash(what, medium, &of_flash.join(","))? {
        Spec::Flash { medium, shape, policies, .. } => {
            Ok(Spec::Flash { medium, shape, policies, beside: Some(memory) })
        }
        other => Ok(other),
    }
}

/// The smallest memory beside flash.
const LEAST_INDEX_BYTES: u64 = 16 << 10;

fn parse_flash(what: &str, medium: Medium, keys: &str) -> Result<Spec> {
    let (mut shape, mut policies) = (Shape::default(), Policies::default());
    let mut medium = medium;
    for part in keys.split(',').filter(|part| !part.is_empty()) {
        medium = match medium {
            Medium::Image(path) | Medium::Direct(path) if part == "direct" => {
                medium = Medium::Direct(path);
                continue;
            }
            other => other,
        };
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key {
            "size" => shape.size = Some(size_of(what, value)?),
            "page" => shape.page = Some(figure_of(what, value)?),
            "spare" => shape.spare = Some(figure_of(what, value)?),
            "pages-per-block" => shape.pages_per_block = Some(figure_of(what, value)?),
            "blocks-per-segment" => shape.blocks_per_segment = Some(figure_of(what, value)?),
            "chips" => shape.chips = Some(figure_of(what, value)?),
            _ if policies::take(&mut policies, what, key, value)? => {}
            _ => {
                let keys = "size, page, spare, pages-per-block, blocks-per-segment, chips, placement, victim, wear; \
                            `direct` has no value";
                return Err(unknown_part(what, part, keys));
            }
        }
    }
    Ok(Spec::Flash { medium, shape, policies, beside: None })
}

fn size_of(what: &str, value: &str) -> Result<u64> {
    parse_size(value).map_err(|why| Error::new(Class::BadSize, what, why))
}

fn figure_of(what: &str, value: &str) -> Result<u32> {
    let size = size_of(what, value)?;
    u32::try_from(size).map_err(|_| Error::new(Class::BadSize, what, format!("`{value}` is too large")))
}

fn unknown_part(what: &str, part: &str, keys: &str) -> Error {
    Error::new(Class::Usage, what, format!("`{part}` is not a setting of this device"))
        .hint(format!("write KEY=VALUE; the keys are {keys}"))
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ram { size } => write!(f, "ram:size={}", exact_size(*size)),
            Self::Tier(tiers) => write!(f, "{tiers}"),
            Self::Scm(memory) => write!(f, "{memory}"),
            Self::Flash { medium, shape, policies, beside } => {
                f.write_str(if beside.is_some() { "flash+scm:" } else { "flash:" })?;
                match medium {
                    Medium::Image(path) | Medium::Direct(path) => write!(f, "{}", path.display())?,
                    Medium::Simulator => f.write_str("sim")?,
                }
                if let Some(path) = beside.as_ref().and_then(|memory| memory.path.as_ref()) {
                    write!(f, ",{}", path.display())?;
                }
                if let Medium::Direct(_) = medium {
                    f.write_str(",direct")?;
                }
                if let Some(memory) = beside {
                    if let Some(size) = memory.size {
                        write!(f, ",memory={}", exact_size(size))?;
                    }
                    if memory.refuses {
                        f.write_str(",full=refuse")?;
                    }
                    if memory.rebuild {
                        f.write_str(",rebuild=on")?;
                    }
                    if memory.buffer {
                        f.write_str(",buffer=on")?;
                    }
                    if let Some(log) = memory.log {
                        write!(f, ",log={}", exact_size(log))?;
                    }
                }
                for (key, value) in shape.said() {
                    if let Some(value) = value {
                        write!(f, ",{key}={}", exact_size(value))?;
                    }
                }
                write!(f, "{}", policies::Parts(policies))
            }
        }
    }
}

mod again;
mod memory;
mod policies;
mod tiers;

pub use memory::Memory;
pub use policies::{Policies, wear_of};
pub use tiers::{Fast, Section, Tiers};

#[cfg(test)]
mod tests;

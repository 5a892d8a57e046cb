//! A file system on a fresh simulated device, with the device's virtual time as its clock.

use crate::chip::Chip;
use crate::report::WearSpread;
use onode::{Class, Error, Flash, Medium, Ram, Result, Spec, Volume};
use onode_base::{Clock, Timestamp};
use onode_flash::FlashDevice;
use onode_fs::{AccessTimes, FileSystem, FormatOptions, Inodes, Options};
use onode_media::{Counters, Nand, PmemOptions, SimPmem, Wear};
use onode_object::{ObjectDevice, RamDevice};
use std::sync::Arc;

/// Where virtual time begins; far enough from 1970 that nothing is near zero.
const EPOCH_NANOSECONDS: u64 = 1_000_000_000_000_000_000;
/// Names hash the same in every run.
const HASH_KEY: [u8; 16] = *b"onode lab names.";
const UUID: [u8; 16] = *b"onode lab volume";

/// When operations are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Each before the next.
    Operation,
    /// When 1 MiB has gathered, or after 5 s.
    #[default]
    Natural,
    /// When 64 MiB have gathered, or after 30 s, as on a desktop.
    Lazy,
}

impl Durability {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operation => "op",
            Self::Natural => "natural",
            Self::Lazy => "lazy",
        }
    }

    fn options(self) -> Options {
        let (write_cache_bytes, write_back_age_seconds) = match self {
            Self::Operation | Self::Natural => (1 << 20, 5),
            Self::Lazy => (64 << 20, 30),
        };
        Options { write_cache_bytes, stream_bytes: 1 << 20, write_back_age_seconds, ..Options::default() }
    }
}

/// Budgets of the flash device's caches; `None` is the device's own choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// Clean tree nodes.
    pub node_bytes: Option<usize>,
    /// Pages.
    pub page_bytes: Option<usize>,
    /// Tree nodes that wait for the next checkpoint.
    pub dirty_node_bytes: Option<usize>,
    /// Pages that each stream but the journal collects.
    pub write_buffer_bytes: Option<usize>,
    /// Journal pages between two checkpoints.
    pub checkpoint_pages: Option<u32>,
    /// Every page has its own entry in the index.
    pub without_extents: bool,
    /// Small contents and directory entries take pages of their own.
    pub without_small_object_buffer: bool,
    /// Inodes are objects of their own.
    pub without_inode_embedding: bool,
}

impl Caches {
    /// For a device of 128 MiB: the 50 KB of nodes and 10 KB of pages of paper 1, one page for each
    /// stream, and most of what 384 KB leave for what waits for a checkpoint.
    #[must_use]
    pub const fn small() -> Self {
        Self {
            node_bytes: Some(50 << 10),
            page_bytes: Some(10 << 10),
            dirty_node_bytes: Some(256 << 10),
            write_buffer_bytes: Some(0),
            checkpoint_pages: None,
            without_extents: false,
            without_small_object_buffer: false,
            without_inode_embedding: false,
        }
    }

    fn options(self) -> onode_flash::MountOptions {
        let own = onode_flash::MountOptions::default();
        onode_flash::MountOptions {
            node_cache_bytes: self.node_bytes.unwrap_or(own.node_cache_bytes),
            page_cache_bytes: self.page_bytes.unwrap_or(own.page_cache_bytes),
            write_buffer_bytes: self.write_buffer_bytes.unwrap_or(own.write_buffer_bytes),
            dirty_node_bytes: self.dirty_node_bytes.or(own.dirty_node_bytes),
            checkpoint_pages: self.checkpoint_pages.or(own.checkpoint_pages),
            extents: !self.without_extents,
            small_object_buffer: !self.without_small_object_buffer,
            ..own
        }
    }
}

/// The time is what NAND and memory have spent.
struct VirtualClock(Media);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let spent = self.0.nanoseconds();
        Timestamp::from_nanoseconds(EPOCH_NANOSECONDS + spent)
    }
}

/// What a device stands on.
#[derive(Clone, Default)]
struct Media {
    chip: Option<Chip>,
    memory: Option<Arc<SimPmem>>,
}

impl Media {
    fn nanoseconds(&self) -> u64 {
        let of_memory = self.memory.as_ref().map_or(0, |memory| memory.counters().virtual_nanoseconds);
        self.chip.as_ref().map_or(0, Chip::nanoseconds) + of_memory
    }
}

/// A file system on a device that was just made.
pub(crate) struct Bench {
    pub(crate) files: FileSystem,
    media: Media,
}

impl Bench {
    /// Makes the device of `spec`, which lives in memory only, and an empty file system on it.
    ///
    /// # Errors
    /// `Usage` for a device that is no simulation; `BadSize`.
    pub(crate) fn new(spec: &Spec, durability: Durability, caches: Caches) -> Result<Self> {
        Self::with_access_times(spec, durability, caches, AccessTimes::Never)
    }

    /// As [`new`](Self::new), with access times that reads renew.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn with_access_times(
        spec: &Spec,
        durability: Durability,
        caches: Caches,
        access_times: AccessTimes,
    ) -> Result<Self> {
        let what = || format!("cannot measure on {spec}");
        let mut media = Media::default();
        let device: Arc<dyn ObjectDevice> = match spec {
            Spec::Ram(Ram { size }) => Arc::new(RamDevice::new(*size)),
            Spec::Flash(Flash { medium: Medium::Simulator, shape, policies, beside }) => {
                let chip = Chip::new(shape.geometry()?)
                    .map_err(|error| Error::new(Class::BadSize, what(), error.to_string()))?;
                let format = onode_flash::FormatOptions {
                    blocks: None,
                    uuid: UUID,
                    blocks_per_segment: shape.blocks_per_segment.and_then(|blocks| u16::try_from(blocks).ok()),
                    parity_pages: shape.parity.map_or(0, |parity| parity.most),
                    chosen_parity: shape.parity.and_then(|parity| parity.usual),
                    policies: *policies,
                };
                media.chip = Some(chip.clone());
                let device = match beside {
                    None => FlashDevice::format(chip, &format, &caches.options()),
                    Some(beside) => {
                        let bytes = beside.bytes(chip.geometry().bytes());
                        let memory = Arc::new(SimPmem::new(bytes, PmemOptions::default()));
                        media.memory = Some(memory.clone());
                        FlashDevice::format_beside(chip, memory, &format, &caches.options(), &beside.options())
                    }
                };
                Arc::new(device.map_err(|error| Error::new(Class::of_device(&error), what(), error.to_string()))?)
            }
            Spec::Scm(_) => {
                return Err(Error::new(Class::Usage, what(), "memory has no virtual time")
                    .hint("`onode-lab scm` measures memory; this measures flash:sim,size=128M,page=2K"));
            }
            Spec::Tier(_) => {
                return Err(Error::new(Class::Usage, what(), "this counts pages of flash, and disks have none")
                    .hint("`onode-lab tier` measures two disks; this measures flash:sim,size=128M,page=2K"));
            }
            // An image or a device of flash, or of a kind that is to come.
            _ => {
                return Err(Error::new(Class::Usage, what(), "an image or a device has no virtual time")
                    .hint("use a simulated device: flash:sim,size=128M,page=2K"));
            }
        };
        let clock = Arc::new(VirtualClock(media.clone()));
        let inodes = if caches.without_inode_embedding { Inodes::Separate } else { Inodes::Embedded };
        let options = FormatOptions { uuid: UUID, hash_key: HASH_KEY, inodes, ..FormatOptions::default() };
        let files = onode_fs::format(device.as_ref(), &options, clock.now())
            .and_then(|()| FileSystem::mount(device, clock, Options { access_times, ..durability.options() }))
            .map_err(|error| Volume::error(what(), &error))?;
        Ok(Self { files, media })
    }

    /// Mounts the volume on a chip that holds one.
    ///
    /// # Errors
    /// What the device or the file system finds.
    pub(crate) fn mount(chip: Chip, durability: Durability, caches: Caches) -> Result<Self> {
        let what = "cannot mount the measured volume";
        let device = FlashDevice::mount(chip.clone(), &caches.options())
            .map_err(|error| Error::new(Class::of_device(&error), what, error.to_string()))?;
        let media = Media { chip: Some(chip), memory: None };
        let clock = Arc::new(VirtualClock(media.clone()));
        let files = FileSystem::mount(Arc::new(device), clock, durability.options())
            .map_err(|error| Volume::error(what, &error))?;
        Ok(Self { files, media })
    }

    /// Mounts the device of `spec` on media that hold one; the pages it read and the time that
    /// took.
    ///
    /// # Errors
    /// What the device finds.
    pub(crate) fn device_beside(
        spec: &Spec,
        chip: &Chip,
        memory: &Arc<SimPmem>,
        caches: Caches,
    ) -> Result<(FlashDevice, u64, u64)> {
        let what = "cannot mount the measured volume";
        let Spec::Flash(Flash { beside: Some(beside), .. }) = spec else {
            return Err(Error::new(Class::Usage, what, "it has no memory beside it"));
        };
        let (options, beside) = (caches.options(), beside.options());
        let mounted = FlashDevice::mount_beside(chip.clone(), memory.clone(), &options, &beside, &mut |_| {});
        let (device, _) = mounted.map_err(|error| Error::new(Class::of_device(&error), what, error.to_string()))?;
        let nanoseconds = chip.nanoseconds() + memory.counters().virtual_nanoseconds;
        Ok((device, chip.counters().total().reads, nanoseconds))
    }

    /// The file system on a device that stands on these media.
    ///
    /// # Errors
    /// What the file system finds.
    pub(crate) fn of_device(
        device: FlashDevice,
        chip: Chip,
        memory: Arc<SimPmem>,
        durability: Durability,
    ) -> Result<Self> {
        let media = Media { chip: Some(chip), memory: Some(memory) };
        let clock = Arc::new(VirtualClock(media.clone()));
        let files = FileSystem::mount(Arc::new(device), clock, durability.options())
            .map_err(|error| Volume::error("cannot mount the measured volume", &error))?;
        Ok(Self { files, media })
    }

    /// The memory beside the NAND, if there is one.
    pub(crate) const fn memory(&self) -> Option<&Arc<SimPmem>> {
        self.media.memory.as_ref()
    }

    /// The NAND, if there is one.
    pub(crate) const fn chip(&self) -> Option<&Chip> {
        self.media.chip.as_ref()
    }

    /// The counters of the NAND; zero for a device without one.
    pub(crate) fn counters(&self) -> Counters {
        self.media.chip.as_ref().map(Chip::counters).unwrap_or_default()
    }

    /// Virtual time spent so far.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.media.nanoseconds()
    }

    /// The wear of the NAND and how many blocks it has.
    pub(crate) fn wear(&self) -> (Wear, u32) {
        self.media.chip.as_ref().map_or((Wear::default(), 1), |chip| (chip.wear(), chip.geometry().blocks))
    }

    /// The wear of the segments; nothing for a device without any.
    pub(crate) fn segment_wear(&self) -> WearSpread {
        let inspection = self.files.device().inspect().map(|inspect| inspect.inspection());
        let spread = inspection.and_then(|inspection| inspection.wear_spread()).unwrap_or_default();
        WearSpread { min: spread.min, mean: spread.mean, max: spread.max }
    }

    /// Data bytes of a page; 0 for a device without pages.
    pub(crate) fn page_bytes(&self) -> u32 {
        self.media.chip.as_ref().map_or(0, |chip| chip.geometry().page_bytes)
    }

    /// Memory that the device says it holds.
    pub(crate) fn ram_bytes(&self) -> u64 {
        self.figures().iter().filter(|(name, _)| name.starts_with("ram.")).map(|(_, value)| value).sum()
    }

    /// The device's figures by name; nothing for a device that shows none.
    pub(crate) fn figures(&self) -> Vec<(String, u64)> {
        self.files.device().inspect().map_or_else(Vec::new, |inspect| inspect.counters())
    }
}

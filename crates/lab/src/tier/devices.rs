//! The devices of the experiments: which disks there are, and what is opened on them.

use super::model::{Disk, Phase};
use super::own::{Open, Own};
use super::workload::{DISK_BYTES, Workload};
use onode::{Class, Error, Result};
use onode_media::BlockDev as _;
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_object::{Acknowledge, ObjectDevice};
use onode_tier::fast::options::{FastOptions, SectionOptions};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};
use std::sync::Arc;

/// The big disk beside a fast one of [`DISK_BYTES`].
const BIG_BYTES: u64 = 2 * DISK_BYTES;
/// Extents unless something else is asked for.
const EXTENT_BYTES: u64 = 64 << 10;

/// Ours, on which disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// The big disk without a fast one.
    Alone(Disk),
    /// A fast disk of that kind beside a hard disk: when changes are durable, and bytes of an
    /// extent.
    Both(Disk, Acknowledge, u64),
}

/// Ours, the disk of the peers that it is held against, and how many times faster it is to be.
pub(super) type Against = (Ours, Disk, Option<f64>);

impl Ours {
    const fn either(fast: Disk) -> Self {
        Self::Both(fast, Acknowledge::Either, EXTENT_BYTES)
    }

    const fn safe(fast: Disk) -> Self {
        Self::Both(fast, Acknowledge::Safe, EXTENT_BYTES)
    }

    /// With every change durable.
    pub(super) fn durable() -> Vec<Against> {
        vec![
            (Self::either(Disk::PageMapped), Disk::PageMapped, Some(3.0)),
            (Self::either(Disk::LogBlock), Disk::LogBlock, Some(3.0)),
            (Self::safe(Disk::PageMapped), Disk::Hdd, Some(10.0)),
            (Self::Alone(Disk::Hdd), Disk::Hdd, None),
            (Self::Alone(Disk::PageMapped), Disk::PageMapped, None),
        ]
    }

    /// With a sync for each MiB.
    pub(super) fn natural() -> Vec<Against> {
        let both = Disk::FLASH.into_iter().flat_map(|fast| [(Self::either(fast), fast), (Self::safe(fast), fast)]);
        both.map(|(ours, fast)| (ours, fast, Some(1.0))).collect()
    }

    /// With a large file.
    pub(super) fn sequential() -> Vec<Against> {
        vec![
            (Self::either(Disk::PageMapped), Disk::PageMapped, Some(0.95)),
            (Self::safe(Disk::PageMapped), Disk::PageMapped, None),
            (Self::safe(Disk::PageMapped), Disk::Hdd, None),
            (Self::Alone(Disk::Hdd), Disk::Hdd, None),
            (Self::Alone(Disk::PageMapped), Disk::PageMapped, None),
        ]
    }

    /// Those that write at random, the flash among their disks, and its write amplification at
    /// most.
    pub(super) fn random() -> Vec<(Self, Option<Disk>, Option<f64>)> {
        vec![
            (Self::safe(Disk::LogBlock), Some(Disk::LogBlock), Some(1.1)),
            (Self::either(Disk::LogBlock), Some(Disk::LogBlock), None),
            (Self::safe(Disk::PageMapped), Some(Disk::PageMapped), None),
            (Self::Alone(Disk::Hdd), None, None),
            (Self::Alone(Disk::LogBlock), Some(Disk::LogBlock), None),
        ]
    }

    /// Those of the paper's figures that vary the extent.
    pub(super) fn of_extents() -> Vec<(u64, Self)> {
        let extents = [16 << 10, 64 << 10, 256 << 10, 512 << 10];
        extents.map(|extent| (extent, Self::Both(Disk::LogBlock, Acknowledge::Either, extent))).to_vec()
    }

    /// Its name in rows.
    pub(super) fn name(self) -> String {
        match self {
            Self::Alone(disk) => format!("onode, {} alone", disk.name()),
            Self::Both(fast, acknowledge, _) => {
                let class = if acknowledge == Acknowledge::Either { "either" } else { "safe" };
                format!("onode, {class}, {} and HDD", fast.name())
            }
        }
    }

    fn build(self) -> Result<Own> {
        match self {
            Self::Alone(disk) => alone(disk, DISK_BYTES),
            Self::Both(fast, acknowledge, extent) => both(fast, DISK_BYTES, BIG_BYTES, acknowledge, extent),
        }
    }

    /// What the phases of a workload take.
    pub(super) fn run(self, workload: &Workload) -> Result<Vec<Phase>> {
        let mut own = self.build()?;
        (workload.run)(&mut own)?;
        Ok(own.take_phases())
    }
}

/// A big disk of that kind by itself.
pub(super) fn alone(disk: Disk, bytes: u64) -> Result<Own> {
    let clock = HostClock::default();
    let big = SimDisk::with_model("big", bytes, disk.model(bytes), &clock);
    let open = |disks: &[SimDisk], is_new| match disks {
        [big] => open_alone(big, is_new),
        _ => Err(not_these()),
    };
    Own::new(vec![big], &clock, Box::new(open) as Box<Open>)
}

/// A fast disk and a hard disk.
pub(super) fn both(fast: Disk, fast_bytes: u64, big_bytes: u64, acknowledge: Acknowledge, extent: u64) -> Result<Own> {
    let clock = HostClock::default();
    let fast = SimDisk::with_model("fast", fast_bytes, fast.model(fast_bytes), &clock);
    let big = SimDisk::with_model("big", big_bytes, Disk::Hdd.model(big_bytes), &clock);
    let open = move |disks: &[SimDisk], is_new| match disks {
        [fast, big] => open_both(fast, big, is_new, acknowledge, extent),
        _ => Err(not_these()),
    };
    Own::new(vec![fast, big], &clock, Box::new(open) as Box<Open>)
}

fn not_these() -> Error {
    super::failed("cannot open the device of the experiment", "it has other disks")
}

fn opened(device: onode_object::Result<TierDevice>) -> Result<Arc<dyn ObjectDevice>> {
    let device = device.map_err(|error| {
        Error::new(Class::of_device(&error), "cannot open the device of the experiment", error.to_string())
    })?;
    Ok(Arc::new(device))
}

fn open_alone(big: &SimDisk, is_new: bool) -> Result<Arc<dyn ObjectDevice>> {
    let (big, mount) = (Box::new(big.clone()), MountOptions::default());
    opened(if is_new {
        TierDevice::format(big, None, &FormatOptions::default(), &mount)
    } else {
        TierDevice::mount(big, None, &mount)
    })
}

fn open_both(
    fast: &SimDisk,
    big: &SimDisk,
    is_new: bool,
    acknowledge: Acknowledge,
    extent: u64,
) -> Result<Arc<dyn ObjectDevice>> {
    let (fast, big, mount) = (Box::new(fast.clone()), Box::new(big.clone()), MountOptions::default());
    if !is_new {
        return opened(TierDevice::mount(big, Some(fast), &mount));
    }
    let sections = vec![SectionOptions::new("default", 1, extent)];
    let usual = match acknowledge {
        Acknowledge::Either => FastOptions::for_first_home(fast.bytes()),
        _ => FastOptions::for_disk(fast.bytes()),
    };
    let options = FastOptions { sections, ..usual };
    let fast = NewFast { disk: fast, uuid: *b"onode lab fast  ", options };
    let format = FormatOptions { acknowledge, ..FormatOptions::default() };
    opened(TierDevice::format(big, Some(fast), &format, &mount))
}

//! The devices of the experiments: which disks there are, and what is opened on them.

use super::model::{Disk, Phase};
use super::own::{Open, Own};
use super::workload::{DISK_BYTES, Workload};
use onode::{Class, Error, Result};
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_object::ObjectDevice;
use onode_tier::{FormatOptions, MountOptions, TierDevice};
use std::sync::Arc;

/// Ours, on which disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// The big disk without a fast one.
    Alone(Disk),
}

impl Ours {
    /// Those that make every change durable, the disk of the peers that each is held against, and how many times faster
    /// it is to be.
    pub(super) fn durable() -> Vec<(Self, Disk, Option<f64>)> {
        vec![(Self::Alone(Disk::Hdd), Disk::Hdd, None), (Self::Alone(Disk::PageMapped), Disk::PageMapped, None)]
    }

    /// The same where a sync comes for each MiB.
    pub(super) fn natural() -> Vec<(Self, Disk, Option<f64>)> {
        Self::durable()
    }

    /// The same for a large file.
    pub(super) fn sequential() -> Vec<(Self, Disk, Option<f64>)> {
        Self::durable()
    }

    /// Those that write at random, the flash among their disks, and its write amplification at most.
    pub(super) fn random() -> Vec<(Self, Option<Disk>, Option<f64>)> {
        vec![(Self::Alone(Disk::Hdd), None, None), (Self::Alone(Disk::LogBlock), Some(Disk::LogBlock), None)]
    }

    /// Its name in rows.
    pub(super) fn name(self) -> String {
        match self {
            Self::Alone(disk) => format!("onode, {} alone", disk.name()),
        }
    }

    fn build(self) -> Result<Own> {
        let clock = HostClock::default();
        match self {
            Self::Alone(disk) => {
                let big = SimDisk::with_model("big", DISK_BYTES, disk.model(DISK_BYTES), &clock);
                Own::new(vec![big], &clock, Box::new(open_alone) as Box<Open>)
            }
        }
    }

    /// What the phases of a workload take.
    pub(super) fn run(self, workload: &Workload) -> Result<Vec<Phase>> {
        let mut own = self.build()?;
        (workload.run)(&mut own)?;
        Ok(own.take_phases())
    }
}

fn open_alone(disks: &[SimDisk], is_new: bool) -> Result<Arc<dyn ObjectDevice>> {
    let [big] = disks else {
        return Err(super::failed("cannot open the device of the experiment", "it is on one disk"));
    };
    let (big, mount) = (Box::new(big.clone()), MountOptions::default());
    let device = if is_new {
        TierDevice::format_alone(big, &FormatOptions::default(), &mount)
    } else {
        TierDevice::mount_alone(big, &mount)
    };
    let device = device.map_err(|error| {
        Error::new(Class::of_device(&error), "cannot open the device of the experiment", error.to_string())
    })?;
    Ok(Arc::new(device))
}

//! The device of a fast and a big disk.

use crate::geometry::DisksShape;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::medium::disks::{Disks, DisksImage};
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_object::ObjectDevice;
use onode_tier::{FormatOptions, MountOptions, TierDevice};

/// The device on one shape.
#[derive(Clone, Copy, Debug)]
pub struct Tier {
    shape: DisksShape,
    inodes: Inodes,
}

impl Tier {
    /// As runs with `seed` use it: every second file system on it keeps its inodes apart.
    #[must_use]
    pub const fn new(shape: DisksShape, seed: u64) -> Self {
        Self { shape, inodes: if seed.is_multiple_of(2) { Inodes::Embedded } else { Inodes::Separate } }
    }

    fn mount_options(&self, read_only: bool) -> MountOptions {
        MountOptions {
            read_only,
            // What a cache remembers proves nothing.
            node_cache_bytes: 0,
            pending_bytes: self.shape.log_bytes / 2,
            place_above_bytes: 16 << 10,
            ..MountOptions::default()
        }
    }
}

impl Kind for Tier {
    type Medium = Disks;
    type Device = TierDevice;

    fn format(&self, _failures: Failures) -> Result<DisksImage, Violation> {
        let medium = Disks::new(DisksImage::blank(self.shape.big_bytes, self.shape.fast_bytes, true), false);
        let format = FormatOptions {
            uuid: *b"crash explorer  ",
            log_bytes: Some(self.shape.log_bytes),
            ..FormatOptions::default()
        };
        let device = TierDevice::format_alone(medium.big(), &format, &self.mount_options(false));
        let device = device.map_err(unexpected("format"))?;
        device.close().map_err(unexpected("close after format"))?;
        drop(device);
        Ok(medium.image())
    }

    fn mount(&self, medium: &Disks, read_only: bool) -> onode_object::Result<TierDevice> {
        TierDevice::mount_alone(medium.big(), &self.mount_options(read_only))
    }

    fn verify(&self, device: &TierDevice) -> Result<(), Violation> {
        device.verify().map_err(|error| Violation::new("N5", format!("verify: {error}")))
    }

    fn note(&self, _device: &TierDevice, _medium: &Disks) -> Result<(), Violation> {
        Ok(())
    }

    /// The nodes that a checkpoint may need.
    fn slack_bytes(&self) -> u64 {
        512 << 10
    }

    fn inodes(&self) -> Inodes {
        self.inodes
    }
}

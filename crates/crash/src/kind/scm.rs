//! The device of storage-class memory on simulated memory.

use crate::geometry::MemoryShape;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::medium::memory::{Memory, MemoryImage};
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_object::ObjectDevice;
use onode_scm::{FormatOptions, MountOptions, ScmDevice};

/// The device on one shape.
#[derive(Clone, Copy, Debug)]
pub struct Scm {
    shape: MemoryShape,
    inodes: Inodes,
}

impl Scm {
    /// As runs with `seed` use it: every second file system on it keeps its inodes apart.
    #[must_use]
    pub const fn new(shape: MemoryShape, seed: u64) -> Self {
        Self { shape, inodes: if seed.is_multiple_of(2) { Inodes::Embedded } else { Inodes::Separate } }
    }
}

impl Kind for Scm {
    type Medium = Memory;
    type Device = ScmDevice<Memory>;

    fn format(&self, _failures: Failures) -> Result<MemoryImage, Violation> {
        // What was there before is anything.
        let mut bytes = vec![0; self.shape.bytes as usize];
        onode_base::Prng::new(self.shape.bytes).fill(&mut bytes);
        let medium = Memory::new(MemoryImage { bytes, domain: self.shape.domain }, false);
        let options = FormatOptions { uuid: *b"crash explorer  ", chunk_bytes: Some(self.shape.chunk_bytes) };
        let device = ScmDevice::format(medium.clone(), &options).map_err(unexpected("format"))?;
        device.close().map_err(unexpected("close after format"))?;
        Ok(medium.image())
    }

    fn mount(&self, medium: &Memory, read_only: bool) -> onode_object::Result<Self::Device> {
        ScmDevice::mount(medium.clone(), &MountOptions { read_only })
    }

    fn verify(&self, device: &Self::Device) -> Result<(), Violation> {
        device.verify().map_err(|text| Violation::new("N5", format!("verify: {text}")))
    }

    fn note(&self, device: &Self::Device, medium: &Memory) -> Result<(), Violation> {
        let ranges = device.ranges().map_err(unexpected("ranges"))?;
        medium.note(ranges.volatile, ranges.durable);
        Ok(())
    }

    /// Some chunks: each size of blocks has one that may be hardly used.
    fn slack_bytes(&self) -> u64 {
        6 * u64::from(self.shape.chunk_bytes)
    }

    fn inodes(&self) -> Inodes {
        self.inodes
    }
}

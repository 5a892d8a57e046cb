//! A pool of flash and storage-class memory, cut together: every operation of either member is a
//! place for a cut, and each member may lose what it had not made durable.

use crate::files::worth::Worth;
use crate::kind::flash::Flash;
use crate::kind::geometry::{MemoryShape, Shape};
use crate::kind::scm::Scm;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::medium::beside::{BesideImage, BesideMedium};
use crate::medium::memory::Memory;
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_flash::FlashDevice;
use onode_fs::Inodes;
use onode_media::Domain;
use onode_object::powers::Scrub;
use onode_object::{ObjectDevice, ObjectId, Result as ObjectResult, forward_device};
use onode_scm::{Mode, ScmDevice};
use onode_services::{Pool, PoolMember, PoolMemberState};

/// Names of shapes begin with this.
pub const PREFIX: &str = "pool-";

/// The pool over one shape of flash, and a memory that suits it.
#[derive(Clone, Copy, Debug)]
pub struct FlashAndMemory {
    flash: Flash,
    memory: Scm,
    /// The memory is the first member.
    is_turned: bool,
}

/// A device of either member.
pub enum PairedDevice {
    /// On the flash.
    Flash(Box<FlashDevice>),
    /// On the memory.
    Memory(Box<ScmDevice<Memory>>),
}

impl FlashAndMemory {
    /// As runs of `workload` on `shape` with `seed` use it.
    #[must_use]
    pub fn new(shape: Shape, workload: &str, seed: u64) -> Self {
        // Which member is the fuller one changes, and some are full at about the same moment.
        let bytes = match seed % 6 {
            1 | 4 => 256 << 10,
            2 => 288 << 10,
            5 => (308 + 4 * (seed / 6 % 4)) << 10,
            _ => 512 << 10,
        };
        let memory = MemoryShape { name: "", bytes, chunk_bytes: 4 << 10, domain: Domain::Flush, mode: Mode::Atomic };
        Self { flash: Flash::new(shape, workload, seed), memory: Scm::new(memory, seed), is_turned: seed % 2 == 1 }
    }

    fn members(&self, flash: FlashDevice, memory: ScmDevice<Memory>) -> Vec<PoolMember<PairedDevice>> {
        let flash = PoolMember { name: "flash".to_owned(), device: PairedDevice::Flash(Box::new(flash)) };
        let memory = PoolMember { name: "memory".to_owned(), device: PairedDevice::Memory(Box::new(memory)) };
        if self.is_turned { vec![memory, flash] } else { vec![flash, memory] }
    }
}

impl Kind for FlashAndMemory {
    type Medium = BesideMedium;
    type Device = Pool<PairedDevice>;

    fn format(&self, failures: Failures) -> Result<BesideImage, Violation> {
        let image = BesideImage { nand: self.flash.format(failures)?, memory: self.memory.format(failures)? };
        let medium = BesideMedium::new(image, false);
        let (options, memory) = (self.flash.mount_options(false), medium.memory.clone());
        let flash = FlashDevice::mount(medium.clone(), &options).map_err(unexpected("mount"))?;
        let memory = self.memory.mount(&memory, false).map_err(unexpected("mount"))?;
        let pool = Pool::create(*b"crash explorer  ", self.members(flash, memory)).map_err(unexpected("pool"))?;
        pool.close().map_err(unexpected("close after format"))?;
        drop(pool);
        Ok(medium.image())
    }

    fn mount(&self, medium: &BesideMedium, read_only: bool) -> ObjectResult<Self::Device> {
        let flash = FlashDevice::mount(medium.clone(), &self.flash.mount_options(read_only))?;
        Pool::open(self.members(flash, self.memory.mount(&medium.memory, read_only)?), read_only)
    }

    /// Each member agrees with itself and with the other one.
    fn verify(&self, device: &Self::Device) -> Result<(), Violation> {
        for member in device.devices() {
            match member {
                PairedDevice::Flash(flash) => self.flash.verify(flash)?,
                PairedDevice::Memory(memory) => self.memory.verify(memory)?,
            }
        }
        if let Some(away) = device.status().iter().find(|one| matches!(one.state, PoolMemberState::Away { .. })) {
            return Err(Violation::new("N6", format!("a member that works is left out: {away:?}")));
        }
        let report = Scrub::scrub(device, ObjectId(0), usize::MAX / 2).map_err(unexpected("scrub"))?;
        match report.damaged.first() {
            Some(damaged) => Err(Violation::new("N5", format!("members: {damaged}"))),
            None => Ok(()),
        }
    }

    fn note(&self, device: &Self::Device, medium: &BesideMedium) -> Result<(), Violation> {
        device.devices().try_for_each(|member| match member {
            PairedDevice::Flash(_) => Ok(()),
            PairedDevice::Memory(memory) => self.memory.note(memory, &medium.memory),
        })
    }

    fn slack_bytes(&self) -> u64 {
        self.flash.slack_bytes().max(self.memory.slack_bytes())
    }

    fn inodes(&self) -> Inodes {
        self.flash.inodes()
    }

    fn worth(&self) -> Worth {
        self.flash.worth()
    }
}

impl PairedDevice {
    fn device(&self) -> &dyn ObjectDevice {
        match self {
            Self::Flash(flash) => &**flash,
            Self::Memory(memory) => &**memory,
        }
    }
}

impl ObjectDevice for PairedDevice {
    forward_device! {
        self => self.device();
        info, reserve_ids, commit, check_commit, sync, read, attribute, attributes, stat, list,
        extents, extents_are_exact, space, space_for, space_to_replace, promisable, parity,
        rearrange, rearranging_bytes, maintain, close
    }
}

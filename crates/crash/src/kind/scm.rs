//! The device of storage-class memory on simulated memory.

use crate::files::program::Program;
use crate::files::worth::Worth;
use crate::kind::geometry::MemoryShape;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::medium::memory::{Memory, MemoryImage};
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_base::sync::{Mutex, rank};
use onode_fs::Inodes;
use onode_media::Pmem;
use onode_object::ObjectDevice;
use onode_scm::allocator::Allocator;
use onode_scm::{FormatOptions, Mode, MountOptions, ScmDevice};
use std::sync::Arc;

/// The device on one shape.
#[derive(Clone, Copy, Debug)]
pub struct Scm {
    shape: MemoryShape,
    inodes: Inodes,
    is_exclusive: bool,
}

impl Scm {
    /// As runs with `seed` use it: every second file system on it keeps its inodes apart.
    #[must_use]
    pub const fn new(shape: MemoryShape, seed: u64) -> Self {
        let inodes = if seed.is_multiple_of(2) { Inodes::Embedded } else { Inodes::Separate };
        Self { shape, inodes, is_exclusive: false }
    }

    /// The same for one process at a time.
    #[must_use]
    pub const fn exclusive(self) -> Self {
        Self { is_exclusive: true, ..self }
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
        let options = FormatOptions {
            uuid: *b"crash explorer  ",
            chunk_bytes: Some(self.shape.chunk_bytes),
            mode: self.shape.mode,
            exclusive: self.is_exclusive,
        };
        let device = ScmDevice::format(medium.clone(), &options).map_err(unexpected("format"))?;
        device.close().map_err(unexpected("close after format"))?;
        Ok(medium.image())
    }

    fn mount(&self, medium: &Memory, read_only: bool) -> onode_object::Result<Self::Device> {
        ScmDevice::mount(medium.clone(), &MountOptions { read_only, mode: self.shape.mode, ..MountOptions::default() })
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

    fn worth(&self) -> Worth {
        match self.shape.mode {
            Mode::Atomic => Worth::Whole,
            Mode::Mem | Mode::Sync => Worth::InPlace,
            Mode::Meta => Worth::Late,
        }
    }

    fn has_memory(&self) -> bool {
        true
    }

    fn program(&self, device: &Arc<Self::Device>) -> Option<Box<dyn Program>> {
        let (memory, device) = (device.memory(), Arc::clone(device));
        let blocks = Process::join(&device, 1)?;
        Some(Box::new(ScmProgram { memory, device, process: Mutex::new(Process { number: 1, blocks }) }))
    }
}

/// A program with blocks of the device, one process after another.
struct ScmProgram {
    memory: Arc<Memory>,
    device: Arc<ScmDevice<Memory>>,
    process: Mutex<Process, rank::Free>,
}

struct Process {
    number: u64,
    blocks: Allocator<Arc<Memory>>,
}

impl Process {
    fn join(device: &ScmDevice<Memory>, number: u64) -> Option<Allocator<Arc<Memory>>> {
        let mut blocks = device.blocks().ok()?;
        let process = onode_scm::allocator::Process { id: number, started: 1 };
        blocks.join(process, move |other| other.id < number)?;
        Some(blocks)
    }
}

impl Program for ScmProgram {
    fn allocate(&self, bytes: u64) -> Option<u64> {
        self.process.lock().blocks.allocate(bytes)
    }

    fn adopt(&self, address: u64) {
        // The device has done what it can; this may move the block from its care to the process's.
        let _ = self.process.lock().blocks.unpublish(address);
    }

    fn release(&self, address: u64) -> Result<(), String> {
        self.process.lock().blocks.try_release(address).map_err(|misuse| format!("{misuse:?}"))
    }

    fn store(&self, address: u64, bytes: &[u8]) {
        self.memory.write(address, bytes);
    }

    fn save(&self, address: u64, bytes: &[u8]) {
        self.memory.write_through(address, bytes);
        // A memory that fails says so at the next fence of the device.
        let _ = self.memory.fence();
    }

    fn load(&self, address: u64, bytes: u64) -> Vec<u8> {
        let mut content = vec![0; bytes as usize];
        self.memory.read(address, &mut content);
        content
    }

    fn die(&self) -> Result<(), String> {
        let mut process = self.process.lock();
        let number = process.number + 1;
        let blocks = Process::join(&self.device, number).ok_or("there is no lease for the next process")?;
        if blocks.sweep_dead() != 1 {
            return Err("the lease of a dead process was not swept".into());
        }
        *process = Process { number, blocks };
        Ok(())
    }
}

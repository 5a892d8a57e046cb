//! A device on simulated memory that the conformance suite can close, cut and open again.

use onode_media::sim::PmemOptions;
use onode_media::sim::{PmemLatency, SimPmem, Survival};
use onode_object::ObjectDevice;
use onode_object::conformance::Harness;
use onode_scm::{FormatOptions, Mode, MountOptions, ScmDevice};
use std::sync::Arc;

/// The device and what it stands on.
pub struct Scm {
    pub memory: Arc<SimPmem>,
    pub device: ScmDevice<Arc<SimPmem>>,
    chunk_bytes: u32,
    mode: Mode,
    cuts: u64,
}

pub fn sim(length: u64) -> SimPmem {
    SimPmem::new(length, PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() })
}

impl Scm {
    /// A fresh device for at least so many bytes of content.
    pub fn holding(chunk_bytes: u32, bytes: u64) -> Self {
        Self::holding_in_mode(chunk_bytes, bytes, Mode::default())
    }

    pub fn holding_in_mode(chunk_bytes: u32, bytes: u64, mode: Mode) -> Self {
        let length = (bytes + bytes / 16 + 24 * u64::from(chunk_bytes) + (256 << 10)).next_multiple_of(64);
        Self::in_mode(chunk_bytes, length, mode)
    }

    pub fn with_length(chunk_bytes: u32, length: u64) -> Self {
        Self::in_mode(chunk_bytes, length, Mode::default())
    }

    pub fn in_mode(chunk_bytes: u32, length: u64, mode: Mode) -> Self {
        let memory = Arc::new(sim(length));
        let uuid = *b"a device in test";
        let options = FormatOptions { uuid, chunk_bytes: Some(chunk_bytes), mode, exclusive: false };
        let device = ScmDevice::format(Arc::clone(&memory), &options).expect("the memory is large enough");
        Self { memory, device, chunk_bytes, mode, cuts: 0 }
    }

    fn mount_image(&mut self, image: Vec<u8>) {
        let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
        self.memory = Arc::new(SimPmem::from_image(image, options));
        self.device =
            ScmDevice::mount(Arc::clone(&self.memory), &MountOptions { mode: self.mode, ..MountOptions::default() })
                .expect("it can be opened again");
        self.device.verify().unwrap_or_else(|what| panic!("chunks of {}: {what}", self.chunk_bytes));
    }
}

impl Harness for Scm {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.device.verify().unwrap_or_else(|what| panic!("{what}"));
        self.device.close().expect("it can be closed");
        // Whatever is not durable after a close is lost.
        self.mount_image(match self.mode {
            Mode::Mem => self.memory.crash_image(Survival::Everything),
            Mode::Meta | Mode::Sync | Mode::Atomic => self.memory.durable_image(),
        });
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.cuts += 1;
        // Two modes promise nothing of content for the loss of power, and everything for the end of
        // a process.
        self.mount_image(self.memory.crash_image(match self.mode {
            Mode::Mem | Mode::Meta => Survival::Everything,
            Mode::Sync | Mode::Atomic => Survival::Words(self.cuts),
        }));
    }
}

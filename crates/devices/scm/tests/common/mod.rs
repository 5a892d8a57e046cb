//! A device on simulated memory that the conformance suite can close, cut and open again.

#![allow(dead_code, reason = "every test file uses its own part of it")]

use onode_media::sim::PmemOptions;
use onode_media::sim::{PmemLatency, SimPmem, Survival};
use onode_object::ObjectDevice;
use onode_object::conformance::Harness;
use onode_scm::{FormatOptions, MountOptions, ScmDevice};
use std::sync::Arc;

/// The device and what it stands on.
pub struct Scm {
    pub memory: Arc<SimPmem>,
    pub device: ScmDevice<Arc<SimPmem>>,
    chunk_bytes: u32,
    cuts: u64,
}

pub fn sim(length: u64) -> SimPmem {
    SimPmem::new(length, PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() })
}

impl Scm {
    /// A fresh device for at least so many bytes of content.
    pub fn holding(chunk_bytes: u32, bytes: u64) -> Self {
        let length = (bytes + bytes / 16 + 24 * u64::from(chunk_bytes) + (256 << 10)).next_multiple_of(64);
        Self::with_length(chunk_bytes, length)
    }

    pub fn with_length(chunk_bytes: u32, length: u64) -> Self {
        let memory = Arc::new(sim(length));
        let options = FormatOptions { uuid: *b"a device in test", chunk_bytes: Some(chunk_bytes) };
        let device = ScmDevice::format(Arc::clone(&memory), &options).expect("the memory is large enough");
        Self { memory, device, chunk_bytes, cuts: 0 }
    }

    fn mount_image(&mut self, image: Vec<u8>) {
        let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
        self.memory = Arc::new(SimPmem::from_image(image, options));
        self.device =
            ScmDevice::mount(Arc::clone(&self.memory), &MountOptions::default()).expect("it can be opened again");
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
        self.mount_image(self.memory.durable_image());
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.cuts += 1;
        self.mount_image(self.memory.crash_image(Survival::Words(self.cuts)));
    }
}

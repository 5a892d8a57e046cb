//! Devices on simulated disks, and what a power cut leaves of them.

pub mod gate;
pub mod held;
pub mod patience;

use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_object::ObjectDevice;
use onode_object::conformance::Harness;
use onode_tier::fast::{FastOptions, SectionOptions};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};

/// The big disk alone, with power cuts.
pub struct Alone {
    pub big: SimDisk,
    pub device: Option<TierDevice>,
    pub options: MountOptions,
    pub prng: Prng,
}

impl Alone {
    /// A volume that holds `bytes` of content and not much more.
    pub fn holding(bytes: u64, log_bytes: u64) -> Self {
        Self::with(bytes, log_bytes, MountOptions::default())
    }

    /// The same, mounted in some way.
    pub fn with(bytes: u64, log_bytes: u64, options: MountOptions) -> Self {
        // At most half of a disk is log.
        let least = 2 * log_bytes + (2 << 12);
        let big = SimDisk::new("big", (bytes + bytes / 32 + log_bytes + (90 << 12)).max(least));
        let format = FormatOptions { log_bytes: Some(log_bytes), ..FormatOptions::default() };
        let device = TierDevice::format(Box::new(big.clone()), None, &format, &options).unwrap();
        Self { big, device: Some(device), options, prng: Prng::new(bytes) }
    }

    fn mount(&mut self) {
        self.device = None;
        self.device = Some(TierDevice::mount(Box::new(self.big.clone()), None, &self.options).unwrap());
    }
}

/// The disk after a power cut that spares each 512 bytes not flushed by chance.
pub fn cut(disk: &SimDisk, prng: &mut Prng) -> SimDisk {
    use onode_media::BlockDev;
    // All, nothing, or any part of what was pending.
    let share = [0, 1, 4, 7, 8][prng.below(5) as usize];
    let left = disk.content().after_cut(|_, _| prng.chance(share, 8));
    SimDisk::from_content(disk.name(), disk.bytes(), left)
}

impl Harness for Alone {
    fn device(&self) -> &dyn ObjectDevice {
        self.device.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.device().close().unwrap();
        self.mount();
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.big = cut(&self.big, &mut self.prng);
        self.mount();
    }
}

/// Both disks, with power cuts.
pub struct Pair {
    pub fast: SimDisk,
    pub big: SimDisk,
    pub device: Option<TierDevice>,
    pub options: MountOptions,
    pub prng: Prng,
}

/// A division for a fast disk of a few MiB.
pub fn small_division() -> FastOptions {
    FastOptions {
        ring_bytes: 256 << 10,
        stripe_bytes: 16 << 10,
        sections: vec![SectionOptions::new("small", 1, 16 << 10), SectionOptions::new("large", 1, 64 << 10)],
    }
}

/// A disk to be attached.
pub fn new_fast(disk: &SimDisk) -> NewFast {
    NewFast { disk: Box::new(disk.clone()), uuid: [3; 16], options: small_division() }
}

impl Pair {
    /// A volume that holds `bytes` of content and not much more, with a fast disk of `fast` bytes.
    pub fn with(bytes: u64, fast: u64, options: MountOptions) -> Self {
        let log_bytes = 256 << 10;
        let big = SimDisk::new("big", bytes + bytes / 32 + log_bytes + (90 << 12));
        let fast = SimDisk::new("fast", fast);
        let format = FormatOptions { log_bytes: Some(log_bytes), ..FormatOptions::default() };
        let device = TierDevice::format(Box::new(big.clone()), Some(new_fast(&fast)), &format, &options).unwrap();
        Self { fast, big, device: Some(device), options, prng: Prng::new(bytes) }
    }

    pub fn mount(&mut self) {
        self.device = None;
        let (fast, big) = (Box::new(self.fast.clone()), Box::new(self.big.clone()));
        let device = TierDevice::mount(big, Some(fast), &self.options).unwrap();
        assert_eq!(device.reports(), Vec::<String>::new());
        device.verify().unwrap();
        self.device = Some(device);
    }
}

impl Harness for Pair {
    fn device(&self) -> &dyn ObjectDevice {
        self.device.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.device().close().unwrap();
        self.mount();
    }

    fn can_crash(&self) -> bool {
        true
    }

    fn crash(&mut self) {
        self.fast = cut(&self.fast, &mut self.prng);
        self.big = cut(&self.big, &mut self.prng);
        self.mount();
    }
}

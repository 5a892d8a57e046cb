//! A simulated NAND that outlives the device on it, and a conformance harness over it.

pub mod held;
pub mod hostile;
pub mod pair;
pub mod pairwise;
pub mod patched;

use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{
    BlockAddress, Counters, Geometry, IoTag, Nand, PageAddress, PageRun, Result, SharedNand, SimNand, SimOptions,
};
use onode_object::ObjectDevice;
use onode_object::conformance::Harness;
use std::sync::{Arc, Mutex};

/// A NAND in the hands of both the test and the device.
pub struct Shared<N = SimNand>(Arc<Mutex<N>>);

impl<N> Clone for Shared<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Shared {
    /// A blank chip.
    pub fn new(geometry: Geometry) -> Self {
        Self::with_options(geometry, SimOptions::default())
    }

    /// A chip with faults.
    pub fn with_options(geometry: Geometry, options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(SimNand::new(geometry, options).unwrap())))
    }
}

impl<N> Shared<N> {
    /// A chip that is there already.
    pub fn holding(nand: N) -> Self {
        Self(Arc::new(Mutex::new(nand)))
    }

    /// Looks at or changes the chip.
    pub fn with<T>(&self, with: impl FnOnce(&mut N) -> T) -> T {
        with(&mut self.0.lock().unwrap())
    }
}

impl<N: Nand + 'static> Nand for Shared<N> {
    fn geometry(&self) -> Geometry {
        self.with(|nand| nand.geometry())
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.with(|nand| nand.read(page, data, spare, tag))
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.with(|nand| nand.program(page, data, spare, tag))
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.with(|nand| nand.erase(block, tag))
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.with(|nand| nand.is_bad(block))
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.with(|nand| nand.mark_bad(block))
    }
    fn flush(&mut self) -> Result<()> {
        self.with(|nand| nand.flush())
    }
    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.with(|nand| nand.take_bitflips())
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        self.with(|nand| nand.read_runs(runs, tag));
    }
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        Some(Arc::new(self.clone()))
    }
}

/// One request at a time, but each without the device's lock.
impl<N: Nand + 'static> SharedNand for Shared<N> {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.with(|nand| nand.read_run(first, data, spare, tag))
    }
    fn read_runs(&self, runs: &mut [PageRun<'_>], tag: IoTag) {
        self.with(|nand| nand.read_runs(runs, tag));
    }
    fn finish_flush(&self) -> Result<()> {
        self.with(|nand| nand.flush())
    }
}

/// The geometries that the suite runs on.
pub const TINY: Geometry = Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 16, blocks: 0, chips: 1 };
pub const SMALL: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 0, chips: 1 };
pub const LARGE: Geometry = Geometry { page_bytes: 4096, spare_bytes: 32, pages_per_block: 64, blocks: 0, chips: 1 };
pub const STRIPED: Geometry = Geometry { page_bytes: 2048, spare_bytes: 16, pages_per_block: 32, blocks: 0, chips: 4 };

/// A flash volume under test.
pub struct Flash {
    pub nand: Shared,
    pub device: Option<FlashDevice>,
    pub options: MountOptions,
}

impl Flash {
    /// A volume that holds at least `bytes` on a chip like `shape`.
    pub fn holding(shape: Geometry, bytes: u64) -> Self {
        Self::with(shape, bytes, MountOptions::default())
    }

    /// The same with pages of parity in segments of so many blocks.
    pub fn with_parity(shape: Geometry, bytes: u64, blocks_per_segment: u16, parity_pages: u8) -> Self {
        let format =
            FormatOptions { blocks_per_segment: Some(blocks_per_segment), parity_pages, ..FormatOptions::default() };
        Self::made(shape, bytes, &format, MountOptions::default())
    }

    /// The same with other options.
    pub fn with(shape: Geometry, bytes: u64, options: MountOptions) -> Self {
        Self::made(shape, bytes, &FormatOptions::default(), options)
    }

    /// The same, formatted like that.
    pub fn made(shape: Geometry, bytes: u64, format: &FormatOptions, options: MountOptions) -> Self {
        let block = u64::from(shape.page_bytes * shape.pages_per_block);
        let mut blocks = (bytes / block + 24) as u32;
        loop {
            let geometry = Geometry { blocks: blocks.next_multiple_of(shape.chips), ..shape };
            let nand = Shared::new(geometry);
            if let Ok(device) = FlashDevice::format(nand.clone(), format, &options)
                && device.space().available >= bytes
            {
                return Self { nand, device: Some(device), options };
            }
            blocks += blocks / 8 + 1;
        }
    }

    /// A new volume on a chip.
    pub fn on(nand: Shared) -> Self {
        let options = MountOptions::default();
        let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &options).unwrap();
        Self { nand, device: Some(device), options }
    }

    /// Mounts what is on the chip.
    pub fn mount(&mut self) {
        self.device = None;
        self.device = Some(FlashDevice::mount(self.nand.clone(), &self.options).unwrap());
    }
}

impl Harness for Flash {
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
        self.mount();
    }
    fn extent_bytes(&self) -> u64 {
        4096
    }
}

/// What a device counts under this name.
pub fn counter(device: &dyn ObjectDevice, name: &str) -> u64 {
    device.inspect().unwrap().counters().iter().find(|(one, _)| one == name).unwrap().1
}

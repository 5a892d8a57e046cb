//! A volume on a chip and a memory beside it, and what a host sees of it.

use super::{SMALL, Shared};
use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions, MountPath};
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{Geometry, Nand as _, Pmem as _, SimPmem};
use onode_object::conformance::Harness;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use std::sync::Arc;

pub fn memory(bytes: u64) -> Arc<SimPmem> {
    Arc::new(SimPmem::new(bytes, PmemOptions::default()))
}

/// A volume on a chip and a memory.
pub struct Pair {
    pub nand: Shared,
    pub memory: Arc<SimPmem>,
    pub device: Option<FlashDevice>,
    pub beside: MemoryOptions,
    pub crashes: u64,
}

impl Pair {
    pub fn on(geometry: Geometry, memory_bytes: u64, beside: MemoryOptions) -> Self {
        let (nand, memory) = (Shared::new(geometry), memory(memory_bytes));
        let (format, mount) = Default::default();
        let device = FlashDevice::format_beside(nand.clone(), memory.clone(), &format, &mount, &beside).unwrap();
        Self { nand, memory, device: Some(device), beside, crashes: 0 }
    }

    pub fn holding(shape: Geometry, bytes: u64, beside: MemoryOptions) -> Self {
        let block = u64::from(shape.page_bytes * shape.pages_per_block);
        let mut blocks = (bytes / block + 24) as u32;
        loop {
            let nand = Shared::new(Geometry { blocks, ..shape });
            let (options, mount) = (FormatOptions::default(), MountOptions::default());
            if let Ok(device) = FlashDevice::format(nand, &options, &mount)
                && device.space().available >= bytes
            {
                return Self::on(Geometry { blocks, ..shape }, 1 << 20, beside);
            }
            blocks += blocks / 8 + 1;
        }
    }

    pub fn device(&self) -> &FlashDevice {
        self.device.as_ref().unwrap()
    }

    pub fn mount(&mut self) -> MountPath {
        self.try_mount(&MountOptions::default()).unwrap()
    }

    pub fn try_mount(&mut self, options: &MountOptions) -> onode_object::Result<MountPath> {
        self.device = None;
        let (nand, memory) = (self.nand.clone(), self.memory.clone());
        let (device, path) = FlashDevice::mount_beside(nand, memory, options, &self.beside, &mut |_| {})?;
        self.device = Some(device);
        Ok(path)
    }

    /// The power goes; `survival` says what the memory keeps of what it need not.
    pub fn cut(&mut self, survival: Survival) {
        self.device = None;
        let image = self.memory.crash_image(survival);
        self.memory = Arc::new(SimPmem::from_image(image, PmemOptions::default()));
    }

    pub fn reads(&self) -> u64 {
        self.nand.with(|nand| nand.counters().unwrap().total().reads)
    }

    pub fn agrees(&self) {
        assert_eq!(self.device().compare_memory().unwrap(), Vec::<String>::new());
    }
}

impl Harness for Pair {
    fn device(&self) -> &dyn ObjectDevice {
        self.device()
    }
    fn reopen(&mut self) {
        self.device().close().unwrap();
        assert_eq!(self.mount(), MountPath::Memory);
        self.agrees();
    }
    fn can_crash(&self) -> bool {
        true
    }
    fn crash(&mut self) {
        self.crashes += 1;
        self.cut(match self.crashes % 3 {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Words(self.crashes),
        });
        // What only the write buffer has is gone without the memory, as its option says.
        if self.crashes.is_multiple_of(4) && !self.beside.buffer {
            self.memory = memory(self.memory.length());
        }
        self.mount();
        self.agrees();
    }
    fn extent_bytes(&self) -> u64 {
        4096
    }
}

pub fn key(index: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::INODE, index)
}

pub fn put(device: &FlashDevice, object: Option<ObjectId>, offset: u64, bytes: usize) -> ObjectId {
    let mut transaction = Transaction::new();
    let id = object.unwrap_or_else(|| device.reserve_ids(1).unwrap());
    if object.is_none() {
        transaction.create(id, Hints::default());
    }
    transaction.write(id, offset, vec![id.0 as u8; bytes]);
    transaction.set_attribute(id, key(0), vec![7; 20]);
    device.commit(transaction, Durability::Durable).unwrap();
    id
}

/// What a host sees of an object.
pub type Look = (ObjectId, u64, Vec<u8>, Vec<(AttributeKey, Vec<u8>)>);

/// Everything that a host sees of the volume.
pub fn look(device: &FlashDevice) -> Vec<Look> {
    let mut all = Vec::new();
    for object in device.list(ObjectId(0), usize::MAX).unwrap() {
        let stat = device.stat(object).unwrap();
        let mut bytes = vec![0; stat.size as usize];
        let read = device.read(object, 0, &mut bytes).unwrap();
        assert_eq!(read, bytes.len());
        all.push((object, stat.allocated, bytes, device.attributes(object, key(0), 100).unwrap()));
    }
    all
}

/// A volume with some history.
pub fn used(blocks: u32, memory_bytes: u64, steps: u64, beside: MemoryOptions) -> Pair {
    let pair = Pair::on(Geometry { blocks, ..SMALL }, memory_bytes, beside);
    let (mut prng, mut objects) = (Prng::new(3), Vec::new());
    for _ in 0..steps {
        let device = pair.device();
        match prng.below(10) {
            0 if objects.len() > 5 => {
                let mut transaction = Transaction::new();
                transaction.remove(objects.swap_remove(prng.below(objects.len() as u64) as usize));
                device.commit(transaction, Durability::Durable).unwrap();
            }
            1..=3 if !objects.is_empty() => {
                let object = objects[prng.below(objects.len() as u64) as usize];
                put(device, Some(object), prng.below(20_000), prng.below(9000) as usize + 1);
            }
            _ => objects.push(put(device, None, 0, prng.below(9000) as usize + 1)),
        }
    }
    pair
}

//! Volumes with their index in a memory beside the flash: the conformance suite, and the ways of a mount.

mod common;

use common::{SMALL, Shared};
use onode_base::{ErrorKind, Prng};
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions, MountPath};
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{Geometry, Nand as _, Pmem as _, SimPmem};
use onode_object::conformance::Harness;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use std::sync::Arc;

fn memory(bytes: u64) -> Arc<SimPmem> {
    Arc::new(SimPmem::new(bytes, PmemOptions::default()))
}

/// A volume on a chip and a memory.
struct Pair {
    nand: Shared,
    memory: Arc<SimPmem>,
    device: Option<FlashDevice>,
    beside: MemoryOptions,
    crashes: u64,
}

impl Pair {
    fn on(geometry: Geometry, memory_bytes: u64) -> Self {
        let (nand, memory) = (Shared::new(geometry), memory(memory_bytes));
        let (format, mount, beside) = Default::default();
        let device = FlashDevice::format_beside(nand.clone(), memory.clone(), &format, &mount, &beside).unwrap();
        Self { nand, memory, device: Some(device), beside, crashes: 0 }
    }

    fn holding(shape: Geometry, bytes: u64) -> Self {
        let block = u64::from(shape.page_bytes * shape.pages_per_block);
        let mut blocks = (bytes / block + 24) as u32;
        loop {
            let nand = Shared::new(Geometry { blocks, ..shape });
            let (options, mount) = (FormatOptions::default(), MountOptions::default());
            if let Ok(device) = FlashDevice::format(nand, &options, &mount)
                && device.space().available >= bytes
            {
                return Self::on(Geometry { blocks, ..shape }, 1 << 20);
            }
            blocks += blocks / 8 + 1;
        }
    }

    fn device(&self) -> &FlashDevice {
        self.device.as_ref().unwrap()
    }

    fn mount(&mut self) -> MountPath {
        self.device = None;
        let mounted = FlashDevice::mount_beside(
            self.nand.clone(),
            self.memory.clone(),
            &MountOptions::default(),
            &self.beside,
            &mut |_| {},
        );
        let (device, path) = mounted.unwrap();
        self.device = Some(device);
        path
    }

    /// The power goes; `survival` says what the memory keeps of what it need not.
    fn cut(&mut self, survival: Survival) {
        self.device = None;
        let image = self.memory.crash_image(survival);
        self.memory = Arc::new(SimPmem::from_image(image, PmemOptions::default()));
    }

    fn reads(&self) -> u64 {
        self.nand.with(|nand| nand.counters().unwrap().total().reads)
    }

    fn agrees(&self) {
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
        if self.crashes.is_multiple_of(4) {
            self.memory = memory(self.memory.length());
        }
        self.mount();
        self.agrees();
    }
    fn extent_bytes(&self) -> u64 {
        4096
    }
}

onode_object::conformance!(pages_of_2_kib, |bytes| Pair::holding(SMALL, bytes));

fn key(index: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::INODE, index)
}

fn put(device: &FlashDevice, object: Option<ObjectId>, offset: u64, bytes: usize) -> ObjectId {
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
type Look = (ObjectId, u64, Vec<u8>, Vec<(AttributeKey, Vec<u8>)>);

/// Everything that a host sees of the volume.
fn look(device: &FlashDevice) -> Vec<Look> {
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
fn used(blocks: u32, memory_bytes: u64, steps: u64) -> Pair {
    let pair = Pair::on(Geometry { blocks, ..SMALL }, memory_bytes);
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

#[test]
fn a_clean_mount_reads_no_page_of_flash_however_full() {
    for (blocks, steps) in [(64, 30), (64, 400), (256, 2000)] {
        let mut pair = used(blocks, 256 << 10, steps);
        let seen = look(pair.device());
        pair.device().close().unwrap();
        let before = pair.reads();
        assert_eq!(pair.mount(), MountPath::Memory);
        assert_eq!(pair.reads() - before, 0, "{blocks} blocks, {steps} steps");
        assert_eq!(look(pair.device()), seen);
        // Nor does finding out where the bytes of an object lie, once the two are known to belong together.
        let before = pair.reads();
        for (object, ..) in &seen {
            pair.device().stat(*object).unwrap();
            pair.device().extents(*object, 0, 100).unwrap();
        }
        assert_eq!(pair.reads() - before, 0, "{blocks} blocks, {steps} steps");
    }
}

#[test]
fn all_ways_of_a_mount_show_the_same() {
    for steps in [1, 7, 60, 300, 900] {
        let mut pair = used(128, 128 << 10, steps);
        let seen = look(pair.device());
        pair.cut(Survival::Nothing);
        let (nand, image) = (pair.nand.with(|nand| nand.clone()), pair.memory.image());
        assert_eq!(pair.mount(), MountPath::Behind);
        assert_eq!(look(pair.device()), seen, "behind, {steps} steps");
        pair.agrees();
        let mut torn = image.clone();
        for blob in (128..torn.len()).step_by(32) {
            // Some of them may be given up already.
            torn[blob + 17] ^= u8::from(torn[blob] != 0 && torn[blob + 1] == 0xb7);
        }
        let mut anchorless = image.clone();
        anchorless[..128].fill(0xff);
        for (image, what) in [(vec![0; image.len()], "wiped"), (torn, "torn"), (anchorless, "without anchor")] {
            pair.nand = Shared::holding(nand.clone());
            pair.memory = Arc::new(SimPmem::from_image(image, PmemOptions::default()));
            assert!(matches!(pair.mount(), MountPath::Rebuilt(_)), "{what}");
            assert_eq!(look(pair.device()), seen, "{what}, {steps} steps");
            pair.agrees();
            pair.device().close().unwrap();
            assert_eq!(pair.mount(), MountPath::Memory);
            pair.agrees();
        }
    }
}

#[test]
fn flash_and_memory_that_do_not_belong_together_are_told_apart() {
    let mut pair = used(64, 64 << 10, 100);
    let seen = look(pair.device());
    pair.device().close().unwrap();
    let old = pair.memory.image();
    // The memory of before, after the volume was used with another.
    pair.memory = memory(64 << 10);
    assert!(matches!(pair.mount(), MountPath::Rebuilt(_)));
    pair.device().close().unwrap();
    let other = used(64, 64 << 10, 10);
    drop(other.device);
    let mount = |image: Vec<u8>, rebuild: bool| {
        let memory = SimPmem::from_image(image, PmemOptions::default());
        let beside = MemoryOptions { rebuild, ..Default::default() };
        let mounted =
            FlashDevice::mount_beside(pair.nand.clone(), memory, &MountOptions::default(), &beside, &mut |_| {});
        mounted.and_then(|(device, _)| device.confirm().map(|()| device))
    };
    assert_eq!(mount(old.clone(), false).err().map(|error| error.kind), Some(ErrorKind::Stale));
    let foreign = {
        let nand = Shared::new(Geometry { blocks: 64, ..SMALL });
        let (options, other) = (FormatOptions { uuid: [9; 16], ..Default::default() }, memory(64 << 10));
        let (mount, beside) = Default::default();
        let device = FlashDevice::format_beside(nand, other.clone(), &options, &mount, &beside).unwrap();
        device.close().unwrap();
        other.image()
    };
    assert_eq!(mount(foreign.clone(), false).err().map(|error| error.kind), Some(ErrorKind::Invalid));
    for image in [old, foreign] {
        assert_eq!(look(&mount(image, true).unwrap()), seen);
    }
    // Without its memory the volume is none of plain flash.
    let plain = FlashDevice::mount(pair.nand.clone(), &MountOptions::default());
    assert_eq!(plain.err().map(|error| error.kind), Some(ErrorKind::Invalid));
}

#[test]
fn a_full_memory_refuses_what_is_new_and_loses_nothing() {
    for spill in [false, true] {
        let mut pair = Pair::on(Geometry { blocks: 128, ..SMALL }, 16 << 10);
        pair.beside.spill = spill;
        pair.mount();
        let mut objects = Vec::new();
        let refused = loop {
            let device = pair.device();
            let object = device.reserve_ids(1).unwrap();
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default());
            transaction.write(object, 0, vec![object.0 as u8; 700]);
            match device.commit(transaction, Durability::Durable) {
                Ok(()) => objects.push(object),
                Err(error) => break error,
            }
            if objects.len() == 4000 {
                assert!(spill, "a small memory is never full: {:?}", device.memory_use());
                break onode_object::Error::new(ErrorKind::NoSpace, "enough");
            }
        };
        assert_eq!(refused.kind, ErrorKind::NoSpace);
        assert!(objects.len() > 500, "{} objects in {:?}", objects.len(), pair.device().memory_use());
        let seen = look(pair.device());
        assert_eq!(seen.len(), objects.len());
        pair.agrees();
        pair.cut(Survival::Nothing);
        pair.mount();
        assert_eq!(look(pair.device()), seen);
        pair.agrees();
        // Removing always works, and makes room.
        for object in objects.drain(..300) {
            let mut transaction = Transaction::new();
            transaction.remove(object);
            pair.device().commit(transaction, Durability::Durable).unwrap();
        }
        put(pair.device(), None, 0, 700);
        pair.agrees();
    }
}

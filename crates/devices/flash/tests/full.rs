//! Full volumes: what replaces content is taken at 100 %, what frees is never refused, and a memory
//! beside the flash that is full refuses objects and never the content of one.

use crate::common::pair::{Pair, memory};
use crate::common::{LARGE, SMALL, Shared};
use onode_base::{ErrorKind, Prng};
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions};
use onode_media::Geometry;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Result, SyncScope, Transaction};
use std::collections::BTreeMap;

/// What each object must hold: a byte, so many times.
type Held = BTreeMap<ObjectId, Vec<u8>>;

fn make(device: &FlashDevice, bytes: usize, fill: u8) -> Result<ObjectId> {
    let object = device.reserve_ids(1)?;
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    if bytes > 0 {
        transaction.write(object, 0, vec![fill; bytes]);
    }
    device.commit(transaction, Durability::Buffered)?;
    Ok(object)
}

fn write(device: &FlashDevice, object: ObjectId, offset: usize, bytes: Vec<u8>, held: &mut Held) -> Result<()> {
    let content = held.entry(object).or_default();
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(&bytes);
    let mut transaction = Transaction::new();
    transaction.write(object, offset as u64, bytes);
    device.commit(transaction, Durability::Buffered)
}

fn fill(device: &FlashDevice, sizes: &[usize]) -> Held {
    let mut held = Held::new();
    loop {
        let bytes = sizes[held.len() % sizes.len()];
        match make(device, bytes, held.len() as u8) {
            Ok(object) => held.insert(object, vec![held.len() as u8; bytes]),
            Err(error) if error.kind == ErrorKind::NoSpace => return held,
            Err(error) => panic!("{error}"),
        };
    }
}

fn verify(device: &FlashDevice, held: &Held) {
    for (&object, content) in held {
        let mut bytes = vec![0; content.len() + 1];
        assert_eq!(device.read(object, 0, &mut bytes), Ok(content.len()), "{object}");
        assert!(bytes[..content.len()] == content[..], "{object}");
    }
}

fn remove(device: &FlashDevice, mut objects: Vec<ObjectId>, prng: &mut Prng) {
    while !objects.is_empty() {
        let object = objects.swap_remove(prng.below(objects.len() as u64) as usize);
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Buffered).unwrap_or_else(|error| panic!("remove {object}: {error}"));
    }
}

#[test]
fn overwriting_works_on_a_full_volume() {
    for (geometry, sizes) in [
        (Geometry { blocks: 64, ..SMALL }, &[4096][..]),
        (Geometry { blocks: 64, ..SMALL }, &[300, 900]),
        (Geometry { blocks: 64, ..LARGE }, &[2_000_000]),
        (Geometry { blocks: 64, ..LARGE }, &[0, 100, 900, 4096, 70_000]),
    ] {
        let nand = Shared::new(geometry);
        let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
        let mut prng = Prng::new(3);
        let mut held = fill(&device, sizes);
        let objects: Vec<ObjectId> = held.keys().copied().collect();
        for step in 0..600 {
            let object = objects[prng.below(objects.len() as u64) as usize];
            let length = held[&object].len();
            if length == 0 {
                continue;
            }
            let bytes = length.min(4096);
            let offset = prng.below((length - bytes) as u64 / 4096 + 1) as usize * 4096;
            let replaced = write(&device, object, offset, vec![step as u8; bytes], &mut held);
            replaced.unwrap_or_else(|error| panic!("overwrite {step} of {sizes:?}: {error}"));
            if step % 10 == 0 {
                device.sync(SyncScope::All).unwrap();
            }
        }
        verify(&device, &held);
        // What is new still finds no room.
        assert_eq!(make(&device, 2_000_000, 1).err().map(|error| error.kind), Some(ErrorKind::NoSpace));
        device.close().unwrap();
        drop(device);
        let device = FlashDevice::mount(nand, &MountOptions::default()).unwrap();
        verify(&device, &held);
        remove(&device, objects, &mut prng);
        assert_eq!(fill(&device, sizes).len().abs_diff(held.len()) * 50 / held.len(), 0, "as much fits again");
    }
}

#[test]
fn a_full_memory_takes_the_content_of_every_object_there_is() {
    for buffer in [false, true] {
        let beside = MemoryOptions { buffer, ..MemoryOptions::default() };
        let bytes = if buffer { 40 << 10 } else { 16 << 10 };
        let mut pair = Pair::on(Geometry { blocks: 256, ..SMALL }, bytes, beside);
        // Places of contents of all sizes fill it soon, and long before the flash is full.
        let mut held = fill(pair.device(), &[0, 40, 7, 700]);
        assert!(held.len() > 500, "{} objects", held.len());
        assert!(pair.device().space().available < 1 << 20, "{:?}", pair.device().space());
        for object in held.clone().into_keys().take(10_000) {
            let written = write(pair.device(), object, 0, vec![object.0 as u8; 100], &mut held);
            written.unwrap_or_else(|error| panic!("content of {object}: {error}"));
        }
        pair.device().sync(SyncScope::All).unwrap();
        pair.agrees();
        pair.device().close().unwrap();
        if pair.device().health().conditions.iter().any(|one| one.code == "memory-given-up") {
            pair.memory = memory(bytes);
        }
        pair.mount();
        verify(pair.device(), &held);
        pair.agrees();
    }
}

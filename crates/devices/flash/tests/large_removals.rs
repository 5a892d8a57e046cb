//! Transactions of very many removals on a full volume: what frees is never refused (N7), however
//! much one transaction frees, and it happens wholly or not at all, wherever the power goes.

use crate::common::{Flash, SMALL, Shared, TINY};
use onode_base::ErrorKind;
use onode_flash::check::{CheckOptions, check};
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{BlockAddress, Counters, Geometry, IoTag, Nand, PageAddress, Result, SimNand};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};

/// Objects of `bytes` each, made until there is no room.
fn fill(device: &FlashDevice, bytes: usize) {
    loop {
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        if bytes > 0 {
            transaction.write(object, 0, vec![object.0 as u8; bytes]);
        }
        match device.commit(transaction, Durability::Buffered) {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NoSpace => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn listed(device: &FlashDevice) -> Vec<ObjectId> {
    device.list(ObjectId(0), usize::MAX).unwrap()
}

/// `count` of the objects, as far apart as they can be, so that each changes a node of its own if
/// there are so many; and those that are left.
fn spread(objects: &[ObjectId], count: usize) -> (Transaction, Vec<ObjectId>) {
    let step = objects.len() / count;
    let mut transaction = Transaction::new();
    let mut left = Vec::new();
    for (at, &object) in objects.iter().enumerate() {
        if at % step == 0 && transaction.mutations.len() < count {
            transaction.remove(object);
        } else {
            left.push(object);
        }
    }
    (transaction, left)
}

fn holds(device: &FlashDevice, left: &[ObjectId]) {
    assert!(listed(device) == left, "other objects are there than should be");
    assert_eq!(device.space().objects, left.len() as u64);
}

fn is_sound(nand: &Shared) {
    let report = check(&mut nand.clone(), &CheckOptions::default(), &mut |_, _| {});
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn any_number_of_objects_is_removed_from_a_full_volume() {
    let with_parity = FormatOptions { blocks_per_segment: Some(4), parity_pages: 1, ..FormatOptions::default() };
    for (format, bytes) in [(FormatOptions::default(), 0), (with_parity, 0), (with_parity, 900)] {
        let mut flash = Flash::made(SMALL, 6 << 20, &format, MountOptions::default());
        for count in [5_000, 300, 65] {
            let device = flash.device.take().unwrap();
            fill(&device, bytes);
            let (transaction, left) = spread(&listed(&device), count);
            let removed = device.commit(transaction, Durability::Durable);
            removed.unwrap_or_else(|error| panic!("{count} of {bytes} bytes: {error}"));
            holds(&device, &left);
            // As after a cut, and in order.
            drop(device);
            flash.mount();
            let device = flash.device.take().unwrap();
            holds(&device, &left);
            device.close().unwrap();
            is_sound(&flash.nand);
            flash.mount();
            holds(flash.device.as_ref().unwrap(), &left);
        }
    }
}

/// What is too much for a small volume says so, changes nothing, and goes in parts.
#[test]
fn a_small_volume_says_what_it_removes_at_once() {
    let flash = Flash::with(TINY, 1 << 20, MountOptions::default());
    let device = flash.device.as_ref().unwrap();
    fill(device, 0);
    let before = listed(device);
    let (transaction, left) = spread(&before, 20_000);
    let refused = device.commit(transaction.clone(), Durability::Durable).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NoSpace);
    assert!(refused.detail.contains("free less at a time"), "{refused}");
    holds(device, &before);
    for part in transaction.mutations.chunks(200) {
        device.commit(Transaction { mutations: part.to_vec() }, Durability::Buffered).unwrap();
    }
    holds(device, &left);
    device.close().unwrap();
}

/// A chip that keeps what it would be after a cut at every so many programs.
struct Kept {
    nand: SimNand,
    every: u32,
    programs: u32,
    states: Vec<SimNand>,
}

impl Nand for Kept {
    fn geometry(&self) -> Geometry {
        self.nand.geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.nand.read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.programs += 1;
        if self.every > 0 && self.programs.is_multiple_of(self.every) {
            self.states.push(self.nand.clone());
        }
        self.nand.program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.nand.erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.nand.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.nand.mark_bad(block)
    }
    fn flush(&mut self) -> Result<()> {
        self.nand.flush()
    }
    fn counters(&self) -> Option<Counters> {
        self.nand.counters()
    }
}

/// So many of the cuts are looked at.
const CUTS: usize = 10;

/// A mount after a cut has all objects or those that are left, and once they were gone they stay
/// away; then it can be filled and emptied again.
#[test]
fn a_cut_leaves_all_of_a_large_removal_or_nothing() {
    let flash = Flash::with(SMALL, 1 << 20, MountOptions::default());
    let device = flash.device.as_ref().unwrap();
    fill(device, 0);
    device.close().unwrap();
    let chip = Kept { nand: flash.nand.with(|nand| nand.clone()), every: 0, programs: 0, states: Vec::new() };
    let chip = Shared::holding(chip);
    let device = FlashDevice::mount(chip.clone(), &MountOptions::default()).unwrap();
    let before = listed(&device);
    let (transaction, left) = spread(&before, 2_000);
    chip.with(|chip| chip.every = 7);
    device.commit(transaction, Durability::Durable).unwrap();
    holds(&device, &left);
    drop(device);
    let states = chip.with(|chip| std::mem::take(&mut chip.states));
    assert!(states.len() > 2 * CUTS, "{} cuts", states.len());
    let mut gone = 0;
    let every = states.len().div_ceil(CUTS);
    for (number, nand) in states.into_iter().enumerate().step_by(every) {
        let nand = Shared::holding(nand);
        is_sound(&nand);
        let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
        assert_eq!(device.info().read_only, None, "cut {number}");
        let found = listed(&device);
        assert!(found == before || found == left, "cut {number}: {} objects", found.len());
        assert!(found == left || gone == 0, "cut {number}: what was removed is back");
        gone += usize::from(found == left);
        let (transaction, left) = spread(&found, 1_500);
        device.commit(transaction, Durability::Durable).unwrap();
        device.close().unwrap();
        drop(device);
        is_sound(&nand);
        let device = FlashDevice::mount(nand, &MountOptions::default()).unwrap();
        holds(&device, &left);
    }
    assert!(gone > 2, "{gone} cuts behind the record");
}

//! Many syncs at once over a medium whose flushes take as long as the test wants.

use crate::device::FlashDevice;
use crate::medium::layout::SegmentPage;
use crate::options::{FormatOptions, MountOptions};
use crate::tools::check::{CheckOptions, JournalEnd, check};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_media::{
    BlockAddress, Error, Geometry, IoTag, MediaErrorKind, Nand, PageAddress, Result, SharedNand, SimNand, SimOptions,
};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::sync::{Condvar, Mutex};
use std::thread;

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks: 96, chips: 1 };

#[derive(Default)]
struct Gate {
    is_shut: bool,
    begun: u32,
    /// The flush with this number and those after it fail.
    fails_from: Option<u32>,
    /// What was noted as durable, in order.
    noted: Vec<u64>,
    /// A page that reads other than it was programmed.
    damaged: Option<PageAddress>,
}

/// A chip whose flushes wait at a gate.
#[derive(Clone)]
struct Gated {
    chip: Arc<Mutex<SimNand>>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
    /// It may lose what was not flushed in any order, like a disk.
    is_disk: bool,
}

impl Gated {
    fn device(&self) -> FlashDevice {
        FlashDevice::format(self.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap()
    }

    fn set(&self, set: impl FnOnce(&mut Gate)) {
        set(&mut self.gate.0.lock().unwrap());
        self.gate.1.notify_all();
    }

    fn flushes(&self) -> u32 {
        self.gate.0.lock().unwrap().begun
    }

    fn wait_for_flushes(&self, begun: u32) {
        let gate = self.gate.0.lock().unwrap();
        drop(self.gate.1.wait_while(gate, |gate| gate.begun < begun).unwrap());
    }
}

impl Nand for Gated {
    fn geometry(&self) -> Geometry {
        self.chip.lock().unwrap().geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.chip.lock().unwrap().read(page, data, spare, tag)?;
        if self.gate.0.lock().unwrap().damaged == Some(page) {
            data[100] ^= 1;
        }
        Ok(())
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.chip.lock().unwrap().program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.chip.lock().unwrap().erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.chip.lock().unwrap().is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.chip.lock().unwrap().mark_bad(block)
    }
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        Some(Arc::new(self.clone()))
    }
    fn keeps_order(&self) -> bool {
        !self.is_disk
    }
    fn set_watermark(&mut self, number: u64) -> Result<()> {
        self.set(|gate| gate.noted.push(number));
        Ok(())
    }
}

impl SharedNand for Gated {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.chip.lock().unwrap().read_run(first, data, spare, tag)
    }
    fn finish_flush(&self) -> Result<()> {
        let mut number = 0;
        self.set(|gate| {
            gate.begun += 1;
            number = gate.begun;
        });
        let gate = self.gate.0.lock().unwrap();
        let gate = self.gate.1.wait_while(gate, |gate| gate.is_shut).unwrap();
        match gate.fails_from {
            Some(from) if number >= from => Err(Error::new(MediaErrorKind::Host, "the host lost it")),
            _ => Ok(()),
        }
    }
}

fn gated() -> Gated {
    let chip = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    Gated { chip: Arc::new(Mutex::new(chip)), gate: Arc::default(), is_disk: false }
}

/// What a block device looks like: pages without a spare area.
fn gated_disk() -> Gated {
    let shape = Geometry { page_bytes: 4096, spare_bytes: 0, ..SHAPE };
    let chip = SimNand::new(shape, SimOptions::default()).unwrap();
    Gated { chip: Arc::new(Mutex::new(chip)), gate: Arc::default(), is_disk: true }
}

fn change(object: ObjectId, byte: u8) -> Transaction {
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![byte; 300]);
    transaction
}

fn made(device: &FlashDevice) -> ObjectId {
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    object
}

/// Waits until so many syncs were asked for.
fn wait_for_tickets(device: &FlashDevice, count: u64) {
    while device.core.lock().tickets().number() < count {
        thread::yield_now();
    }
}

/// One thread syncs, and while its flush goes on seven others commit and sync. Returns what each of
/// those got.
fn one_and_seven(nand: &Gated, device: &FlashDevice) -> Vec<onode_object::Result<()>> {
    let object = made(device);
    let (tickets, flushes) = (device.core.lock().tickets().number(), nand.flushes());
    nand.set(|gate| gate.is_shut = true);
    thread::scope(|scope| {
        let first = scope.spawn(|| device.commit(change(object, 0), Durability::Durable));
        nand.wait_for_flushes(flushes + 1);
        let others: Vec<_> = (1..8)
            .map(|byte: u8| {
                scope.spawn(move || {
                    if byte.is_multiple_of(2) {
                        return device.commit(change(object, byte), Durability::Durable);
                    }
                    device.commit(change(object, byte), Durability::Buffered)?;
                    device.sync(SyncScope::All)
                })
            })
            .collect();
        wait_for_tickets(device, tickets + 8);
        // Whoever reads is not held up either.
        assert_eq!(device.read(object, 0, &mut [0; 300]).unwrap(), 300);
        assert!(!first.is_finished() && others.iter().all(|other| !other.is_finished()));
        nand.set(|gate| gate.is_shut = false);
        assert!(first.join().unwrap().is_ok());
        others.into_iter().map(|other| other.join().unwrap()).collect()
    })
}

#[test]
fn all_who_wait_share_one_flush() {
    let nand = gated();
    let device = nand.device();
    let flushes = nand.flushes();
    let outcomes = one_and_seven(&nand, &device);
    assert!(outcomes.iter().all(|outcome| outcome.is_ok()));
    // One of the object that was made, one of the first, one of all the others.
    assert_eq!(nand.flushes(), flushes + 3);
    let gate = nand.gate.0.lock().unwrap();
    assert!(gate.noted.is_sorted(), "{:?}", gate.noted);
    assert_eq!(gate.noted.last(), Some(&device.core.lock().volume().log.transaction()));
    drop(gate);
    // A mount of what is on the chip now has everything.
    let copy = Gated { gate: Arc::default(), ..nand.clone() };
    let again = FlashDevice::mount(copy, &MountOptions::default()).unwrap();
    let object = ObjectId(device.core.lock().index().counts().next_object - 1);
    let (mut there, mut here) = ([0; 300], [0; 300]);
    assert_eq!(again.read(object, 0, &mut there).unwrap(), device.read(object, 0, &mut here).unwrap());
    assert_eq!(there, here);
}

#[test]
fn all_who_wait_hear_of_a_flush_that_failed() {
    let nand = gated();
    let device = nand.device();
    // The one of the object that was made and that of the first succeed.
    let fails_from = nand.flushes() + 3;
    nand.set(|gate| gate.fails_from = Some(fails_from));
    for outcome in one_and_seven(&nand, &device) {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Media, "{error}");
        assert!(error.detail.contains("the host lost it"), "{error}");
    }
    assert_eq!(nand.flushes(), fails_from, "nobody tried again");
    assert!(device.info().read_only.is_some());
    assert_eq!(device.sync(SyncScope::All).unwrap_err().kind, ErrorKind::ReadOnly);
}

#[test]
fn what_a_flush_did_not_cover_is_not_noted_as_flushed() {
    let nand = gated();
    let device = nand.device();
    let object = made(&device);
    let begun = nand.flushes();
    nand.set(|gate| gate.is_shut = true);
    thread::scope(|scope| {
        let first = scope.spawn(|| device.commit(change(object, 1), Durability::Durable));
        nand.wait_for_flushes(begun + 1);
        let covered = device.core.lock().volume().log.transaction();
        for byte in 2..12 {
            let mut transaction = Transaction::new();
            transaction.write(object, 0, vec![byte; 1500]);
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        nand.set(|gate| gate.is_shut = false);
        first.join().unwrap().unwrap();
        assert_eq!(nand.gate.0.lock().unwrap().noted.last(), Some(&covered));
        // Journal pages were programmed since the flush began.
        assert!(!device.core.lock().volume().log.medium().take_flushed());
    });
}

/// What a mount says after the power went and a page was damaged, and what it finds in `object`. A
/// check has to judge the same.
fn mount_with_damage(nand: &Gated, damaged: PageAddress, object: ObjectId) -> onode_object::Result<u8> {
    let chip = Arc::new(Mutex::new(nand.chip.lock().unwrap().clone()));
    let gate = Gate { damaged: Some(damaged), ..Gate::default() };
    let mut copy = Gated { chip, gate: Arc::new((Mutex::new(gate), Condvar::new())), is_disk: true };
    let report = check(&mut copy, &CheckOptions::default(), &mut |_, _| ());
    let mounted = FlashDevice::mount(copy, &MountOptions::default());
    assert_eq!(report.journal_end == JournalEnd::Damaged, mounted.is_err(), "{:?}", report.findings);
    let device = mounted?;
    let mut bytes = [0];
    device.read(object, 0, &mut bytes)?;
    Ok(bytes[0])
}

#[test]
fn damage_of_what_a_flush_covered_while_pages_were_programmed_is_told() {
    let nand = gated_disk();
    let device = nand.device();
    let object = made(&device);
    let next_page = || device.core.lock().volume().log.journal_position().0;
    let address = |at| device.core.lock().volume().log.layout().address(at);
    let fill = |byte: u8| {
        let before = next_page();
        while next_page() == before {
            device.commit(change(object, byte), Durability::Buffered).unwrap();
        }
        before
    };
    let mut last_page = 0;
    for crosses_segments in [false, true] {
        if crosses_segments {
            // The flush covers the last page of a journal segment.
            let segment = next_page().segment;
            while next_page().segment == segment {
                last_page = fill(9).page;
            }
            while next_page().page != last_page {
                fill(9);
            }
        }
        let begun = nand.flushes();
        nand.set(|gate| gate.is_shut = true);
        let (covered, beside) = thread::scope(|scope| {
            let first = scope.spawn(|| device.commit(change(object, 1), Durability::Durable));
            nand.wait_for_flushes(begun + 1);
            let end = next_page();
            let beside = fill(2);
            nand.set(|gate| gate.is_shut = false);
            first.join().unwrap().unwrap();
            (SegmentPage { page: end.page - 1, ..end }, beside)
        });
        // The next page says how far the flush reached.
        fill(3);
        let error = mount_with_damage(&nand, address(covered), object).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Loss, "{error}");
        assert!(error.detail.contains("the journal is damaged"), "{error}");
        if crosses_segments {
            assert!(covered.page == last_page && next_page().segment != covered.segment);
        } else {
            // It says no more: a page that was programmed meanwhile may be torn.
            assert_eq!(mount_with_damage(&nand, address(beside), object).unwrap(), 1);
        }
    }
}

//! Durable commits stay durable, whatever is done next to bytes that a recovery would check
//! (`src/persist/unverified.rs`).

use crate::common::Scm;
use onode_media::sim::{SimPmem, Survival};
use onode_object::conformance::Harness;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::{MountOptions, ScmDevice};
use std::sync::Arc;

fn scm() -> Scm {
    Scm::holding(4096, 200 << 10)
}

fn create(device: &dyn ObjectDevice, content: &[u8], durability: Durability) -> ObjectId {
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    transaction.write(object, 0, content.to_vec());
    device.commit(transaction, durability).unwrap();
    object
}

/// Looks at the device after many ways in which the power can go now.
fn after_cuts(scm: &Scm, look: impl Fn(&ScmDevice<SimPmem>)) {
    for seed in 0..200 {
        let image = scm.memory.crash_image(Survival::Words(seed));
        let device = ScmDevice::mount(SimPmem::from_image(image, Default::default()), &MountOptions::default());
        let device = device.unwrap_or_else(|error| panic!("cut {seed}: {error}"));
        device.verify().unwrap_or_else(|what| panic!("cut {seed}: {what}"));
        look(&device);
    }
}

fn content(device: &ScmDevice<SimPmem>, object: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0; device.stat(object).unwrap().size as usize];
    device.read(object, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_durable_truncation_survives_a_write_behind_the_new_end() {
    let scm = scm();
    let device = scm.device();
    let object = create(device, &[1; 900], Durability::Buffered);
    let mut shorter = Transaction::new();
    shorter.truncate(object, 100);
    device.commit(shorter, Durability::Durable).unwrap();
    let mut longer = Transaction::new();
    longer.write(object, 100, vec![2; 700]);
    device.commit(longer, Durability::Buffered).unwrap();
    let longer = [vec![1; 100], vec![2; 700]].concat();
    after_cuts(&scm, |device| {
        let found = content(device, object);
        assert!(found == [1; 100] || found == longer, "{} bytes", found.len());
    });
}

#[test]
fn a_durable_removal_survives_the_next_use_of_the_block() {
    let scm = scm();
    let device = scm.device();
    // The first would come back if the log ended before one of the others.
    let durability = |number| if number == 0 { Durability::Durable } else { Durability::Buffered };
    let objects: Vec<ObjectId> = (0..100).map(|number| create(device, &[1; 900], durability(number))).collect();
    let mut gone = Transaction::new();
    objects.iter().for_each(|object| {
        gone.remove(*object);
    });
    device.commit(gone, Durability::Durable).unwrap();
    let others: Vec<ObjectId> = (0..8).map(|byte| create(device, &[byte; 900], Durability::Buffered)).collect();
    after_cuts(&scm, |device| {
        let found = device.list(ObjectId(0), 100).unwrap();
        assert!(found.iter().all(|one| others.contains(one)), "{found:?}");
    });
    // Nor does the index take it after a mount that says nothing else.
    let image = scm.memory.durable_image();
    let memory = Arc::new(SimPmem::from_image(image, Default::default()));
    let again = ScmDevice::mount(Arc::clone(&memory), &MountOptions::default()).unwrap();
    // Enough for some of the same blocks.
    for byte in 2..180 {
        create(&again, &[byte; 900], Durability::Buffered);
    }
    for survival in (0..100).map(Survival::Words).chain([Survival::Everything, Survival::Nothing]) {
        let image = memory.crash_image(survival);
        let device =
            ScmDevice::mount(SimPmem::from_image(image, Default::default()), &MountOptions::default()).unwrap();
        let found = device.list(ObjectId(0), 500).unwrap();
        assert!(objects.iter().all(|object| !found.contains(object)), "{survival:?}");
    }
}

#[test]
fn a_durable_overwrite_survives_being_put_in_place() {
    let scm = scm();
    let device = scm.device();
    let object = create(device, &[1; 900], Durability::Buffered);
    let mut over = Transaction::new();
    over.write(object, 0, vec![2; 900]);
    device.commit(over, Durability::Durable).unwrap();
    after_cuts(&scm, |device| assert_eq!(content(device, object), [2; 900]));
}

#[test]
fn what_a_transaction_put_in_place_and_cut_off_is_not_put_there_again() {
    let scm = scm();
    let device = scm.device();
    let object = create(device, &[1; 1000], Durability::Durable);
    let mut cut_off = Transaction::new();
    cut_off.write(object, 500, vec![2; 100]);
    cut_off.truncate(object, 400);
    device.commit(cut_off, Durability::Durable).unwrap();
    let mut longer = Transaction::new();
    longer.write(object, 400, vec![3; 500]);
    device.commit(longer, Durability::Durable).unwrap();
    let expected = [vec![1; 400], vec![3; 500]].concat();
    after_cuts(&scm, |device| assert_eq!(content(device, object), expected));
}

/// A program goes on storing through the pointer of a block that it made a file, or of a file that
/// it looks at where it lies: the content may be either, but the file is there.
#[test]
fn stores_through_a_kept_pointer_do_not_cost_the_file() {
    use onode_media::Pmem;
    use onode_object::powers::Content;
    for publishes in [true, false] {
        let mut scm = Scm::holding(4 << 10, 1 << 20);
        let object = scm.device.reserve_ids(1).expect("ids");
        let power = scm.device.map_objects().expect("objects are memory");
        let mut making = Transaction::new();
        making.create(object, Hints::default());
        let address = if publishes {
            let block = scm.device.blocks().expect("blocks").allocate(2048).expect("room");
            scm.memory.write(block, &[1; 2048]);
            let content = Content { object, address: block, bytes: 2048, is_durable: false };
            // The device's own blocks count as published from the first.
            scm.device.blocks().expect("blocks").unpublish(block).expect("a block");
            power.publish(making, &[content], Durability::Durable).expect("room");
            block
        } else {
            making.write(object, 0, vec![1; 2048]);
            scm.device.commit(making, Durability::Durable).expect("room");
            power.placement(object).expect("placed")[0].address
        };
        scm.memory.write_through(address, &[2; 1000]);
        scm.crash();
        assert_eq!(scm.device.stat(object).map(|stat| stat.size), Ok(2048), "publishes: {publishes}");
    }
}

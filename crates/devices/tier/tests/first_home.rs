//! Content that the fast disk alone acknowledges has its first home in the log there: memory lets
//! go of it, the log of the big disk falls behind, and nothing is lost that should not be.

use crate::common::{Pair, cut, new_fast};
use onode_media::BlockDev as _;
use onode_media::sim::disk::SimDisk;
use onode_object::{
    Acknowledge, Durability, ErrorKind, Hints, Mutation, ObjectDevice as _, ObjectId, Placement, SyncScope, Transaction,
};
use onode_tier::fast::FastOptions;
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};

const PIECE: usize = 40_000;
const MEMORY: u64 = 256 << 10;

fn options() -> MountOptions {
    MountOptions { pending_bytes: MEMORY, either_bytes: MEMORY, ..MountOptions::default() }
}

/// A volume of the class `either` with a log of 8 MiB on the fast disk and of 512 KiB on the big
/// one.
fn pair() -> Pair {
    let (big, fast) = (SimDisk::new("big", 48 << 20), SimDisk::new("fast", 16 << 20));
    let options = options();
    let mut new = new_fast(&fast);
    new.options = FastOptions { ring_bytes: 8 << 20, ..new.options };
    let format =
        FormatOptions { log_bytes: Some(512 << 10), acknowledge: Acknowledge::Either, ..FormatOptions::default() };
    let new = NewFast { disk: Box::new(fast.clone()), ..new };
    let device = TierDevice::format(Box::new(big.clone()), Some(new), &format, &options).unwrap();
    Pair { fast, big, device: Some(device), options, prng: onode_base::Prng::new(3) }
}

fn content(object: ObjectId, round: u64) -> Vec<u8> {
    (0..PIECE).map(|at| ((at as u64 / 7) ^ object.0.wrapping_mul(77) ^ round) as u8).collect()
}

fn store(device: &TierDevice, object: ObjectId, round: u64, acknowledge: Acknowledge) {
    let placement = Placement { acknowledge, ..Placement::default() };
    let hints = Hints { placement_class: placement.to_class(), ..Hints::default() };
    let create = (round == 0).then_some(Mutation::Create { object, hints });
    // Not at the border of a block: a part of one is changed each time.
    let write = Mutation::Write { object, offset: round * 1000, data: content(object, round) };
    let transaction = Transaction { mutations: create.into_iter().chain([write]).collect() };
    device.commit(transaction, Durability::Durable).unwrap();
}

fn check(device: &TierDevice, object: ObjectId, round: u64) {
    let mut out = vec![0; PIECE];
    assert_eq!(device.read(object, round * 1000, &mut out).unwrap(), PIECE);
    assert!(out == content(object, round), "{object} in round {round}");
}

fn new_objects(device: &TierDevice, count: u64) -> Vec<ObjectId> {
    let first = device.reserve_ids(count).unwrap();
    (0..count).map(|number| ObjectId(first.0 + number)).collect()
}

fn ram(device: &TierDevice, name: &str) -> u64 {
    let inspection = device.inspect().unwrap().inspection();
    inspection.ram.iter().find(|(of, _)| of == name).unwrap().1
}

fn counter(device: &TierDevice, name: &str) -> u64 {
    device.inspect().unwrap().counters().iter().find(|(of, _)| of == name).unwrap().1
}

/// Three MiB, more than memory, the log of the big disk, or what that may lack.
fn fill(pair: &Pair) -> Vec<ObjectId> {
    let device = pair.device.as_ref().unwrap();
    let objects = new_objects(device, 60);
    let before = pair.big.counters().unwrap();
    for object in &objects {
        store(device, *object, 0, Acknowledge::Volume);
        assert!(ram(device, "pending_content") <= MEMORY, "{}", ram(device, "pending content"));
    }
    let after = pair.big.counters().unwrap();
    assert_eq!((after.total().writes, after.flushes), (before.total().writes, before.flushes), "the big disk was used");
    assert!(counter(device, "big.blocks_pending") * 4096 > 4 * MEMORY);
    objects
}

#[test]
fn what_memory_let_go_of_is_read_changed_and_brought_home() {
    let mut pair = pair();
    let objects = fill(&pair);
    let device = pair.device.as_ref().unwrap();
    objects.iter().for_each(|object| check(device, *object, 0));
    // Parts of blocks that only the log has are changed.
    for object in objects.iter().step_by(7) {
        store(device, *object, 1, Acknowledge::Volume);
    }
    let round = |number: usize| u64::from(number.is_multiple_of(7));
    let all = |device: &TierDevice| {
        objects.iter().enumerate().for_each(|(number, object)| check(device, *object, round(number)));
    };
    all(device);
    device.verify().unwrap();
    // Step by step, with reads between: what waits for the big disk is read from the log until it
    // is there.
    let mut steps = 0;
    while device.maintain(1).unwrap().more {
        all(device);
        steps += 1;
    }
    assert!(steps > 3, "{steps}");
    assert_eq!(counter(device, "big.blocks_pending"), 0);
    all(device);
    device.close().unwrap();
    pair.mount();
    all(pair.device.as_ref().unwrap());
}

#[test]
fn memory_keeps_the_last_blocks_of_files_the_longest() {
    let pair = pair();
    let objects = fill(&pair);
    let device = pair.device.as_ref().unwrap();
    let before = pair.fast.counters().unwrap().total().reads;
    for object in &objects {
        let append = Mutation::Write { object: *object, offset: PIECE as u64, data: vec![5; 300] };
        device.commit(Transaction { mutations: vec![append] }, Durability::Durable).unwrap();
    }
    assert_eq!(pair.fast.counters().unwrap().total().reads, before);
    let mut out = vec![0; 300];
    for object in &objects {
        check(device, *object, 0);
        device.read(*object, PIECE as u64, &mut out).unwrap();
        assert!(out.iter().all(|byte| *byte == 5), "{object}");
    }
}

#[test]
fn a_mount_holds_no_more_of_the_log_in_memory_than_it_should() {
    let mut pair = pair();
    let objects = fill(&pair);
    pair.device = None;
    let options = MountOptions { read_only: true, ..options() };
    let device = TierDevice::mount(Box::new(pair.big.clone()), Some(Box::new(pair.fast.clone())), &options).unwrap();
    assert!(counter(&device, "big.blocks_pending") * 4096 > 4 * MEMORY);
    assert!(ram(&device, "pending_content") <= MEMORY, "{}", ram(&device, "pending content"));
    objects.iter().for_each(|object| check(&device, *object, 0));
    drop(device);
    pair.mount();
    objects.iter().for_each(|object| check(pair.device.as_ref().unwrap(), *object, 0));
}

#[test]
fn a_cut_loses_nothing_of_it() {
    for round in 0..6 {
        let mut pair = pair();
        pair.prng = onode_base::Prng::new(round);
        let objects = fill(&pair);
        // At the third, somewhere in the middle of a checkpoint.
        for _ in 0..round {
            pair.device.as_ref().unwrap().maintain(1).unwrap();
        }
        pair.fast = cut(&pair.fast, &mut pair.prng);
        pair.big = cut(&pair.big, &mut pair.prng);
        pair.mount();
        objects.iter().for_each(|object| check(pair.device.as_ref().unwrap(), *object, 0));
    }
}

/// Who mounts without the fast disk cannot know what only that had.
fn consenting(pair: &Pair) -> MountOptions {
    MountOptions { accept_loss: true, ..pair.options.clone() }
}

#[test]
fn who_needs_the_big_disk_gets_all_of_it_there() {
    let mut pair = pair();
    let objects = fill(&pair);
    let device = pair.device.as_ref().unwrap();
    let [safe] = new_objects(device, 1)[..] else { panic!("one was asked for") };
    store(device, safe, 0, Acknowledge::Safe);
    // The fast disk is lost, and what the big one did not flush.
    pair.big = pair.big.content().after_cut(|_, _| false).into_disk(&pair.big);
    pair.device = Some(TierDevice::mount(Box::new(pair.big.clone()), None, &consenting(&pair)).unwrap());
    let device = pair.device.as_ref().unwrap();
    device.verify().unwrap();
    objects.iter().for_each(|object| check(device, *object, 0));
    check(device, safe, 0);
}

#[test]
fn a_fast_disk_that_dies_with_it_leaves_the_volume_of_before() {
    let pair = pair();
    let device = pair.device.as_ref().unwrap();
    let kept = new_objects(device, 5);
    kept.iter().for_each(|object| store(device, *object, 0, Acknowledge::Safe));
    device.sync(SyncScope::All).unwrap();
    fill(&pair);
    pair.fast.unplug();
    let [object] = new_objects(device, 1)[..] else { panic!("one was asked for") };
    let create = Transaction { mutations: vec![Mutation::Create { object, hints: Hints::default() }] };
    let error = device.commit(create, Durability::Durable).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Media);
    assert!(error.detail.contains("mount the volume again"), "{error}");
    device.sync(SyncScope::All).unwrap_err();
    // What the big disk has is read as before.
    kept.iter().for_each(|object| check(device, *object, 0));
    let device = TierDevice::mount(Box::new(pair.big.clone()), None, &consenting(&pair)).unwrap();
    device.verify().unwrap();
    kept.iter().for_each(|object| check(&device, *object, 0));
    let more = new_objects(&device, 3);
    more.iter().for_each(|object| store(&device, *object, 0, Acknowledge::Volume));
    more.iter().for_each(|object| check(&device, *object, 0));
}

#[test]
fn a_fast_disk_that_dies_with_no_more_than_memory_has_takes_nothing_along() {
    let pair = pair();
    let device = pair.device.as_ref().unwrap();
    let objects = new_objects(device, 4);
    objects.iter().for_each(|object| store(device, *object, 0, Acknowledge::Volume));
    pair.fast.unplug();
    let more = new_objects(device, 4);
    more.iter().for_each(|object| store(device, *object, 0, Acknowledge::Volume));
    let big = pair.big.content().after_cut(|_, _| false).into_disk(&pair.big);
    let device = TierDevice::mount(Box::new(big), None, &pair.options).unwrap();
    objects.iter().chain(&more).for_each(|object| check(&device, *object, 0));
}

trait IntoDisk {
    fn into_disk(self, like: &SimDisk) -> SimDisk;
}

impl IntoDisk for onode_media::sim::disk::cache::Cached {
    fn into_disk(self, like: &SimDisk) -> SimDisk {
        SimDisk::from_content(like.name(), like.bytes(), self)
    }
}

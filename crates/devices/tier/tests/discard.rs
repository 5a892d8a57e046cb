//! Disks are told of blocks that hold nothing of value: when that is durable, not of what was
//! handed out again, not if they are not to be told. What the disks discarded reads as anything
//! here.

use crate::common::{Pair, new_fast, small_division};
use onode_media::BlockDev as _;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_object::{Durability, Hints, Mutation, ObjectDevice as _, ObjectId, Transaction};
use onode_tier::fast::FastSettings;
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};

const OBJECT: usize = 300 << 10;

/// Both disks show anything where something was discarded.
fn pair(discard: bool) -> Pair {
    let disk = |name, bytes| SimDisk::from_content(name, bytes, Cached::default().with_arbitrary_discards());
    let (big, fast) = (disk("big", 24 << 20), disk("fast", 8 << 20));
    let settings = FastSettings { discard, ..FastSettings::default() };
    let options = MountOptions { discard, fast: settings, ..MountOptions::default() };
    let format = FormatOptions { log_bytes: Some(256 << 10), ..FormatOptions::default() };
    let new = NewFast { options: small_division(), ..new_fast(&fast) };
    let device = TierDevice::format(Box::new(big.clone()), Some(new), &format, &options).unwrap();
    Pair { fast, big, device: Some(device), options, prng: onode_base::Prng::new(1) }
}

fn content(number: u64, round: u64) -> Vec<u8> {
    (0..OBJECT).map(|at| ((at as u64 / 3) ^ number.wrapping_mul(131) ^ round) as u8).collect()
}

fn discarded(disk: &SimDisk) -> u64 {
    disk.counters().unwrap().bytes_discarded
}

fn store(device: &TierDevice, object: ObjectId, round: u64, is_new: bool) {
    let hints = Hints::default();
    let create = is_new.then_some(Mutation::Create { object, hints });
    let write = Mutation::Write { object, offset: 0, data: content(object.0, round) };
    let mutations = create.into_iter().chain([write]).collect();
    device.commit(Transaction { mutations }, Durability::Durable).unwrap();
}

fn check(device: &TierDevice, object: ObjectId, round: u64) {
    let mut out = vec![0; OBJECT];
    assert_eq!(device.read(object, 0, &mut out).unwrap(), OBJECT);
    assert!(out == content(object.0, round), "{object} in round {round}");
}

/// Writes objects, rewrites some and removes others for a while; returns those that are there and
/// their rounds.
fn work(pair: &mut Pair) -> Vec<(ObjectId, u64)> {
    let device = pair.device.as_ref().unwrap();
    let first = device.reserve_ids(20).unwrap();
    let mut there: Vec<(ObjectId, u64)> = (0..20).map(|number| (ObjectId(first.0 + number), 0)).collect();
    there.iter().for_each(|(object, round)| store(device, *object, *round, true));
    for round in 1..12_u64 {
        for (object, last) in &mut there {
            if (object.0 + round).is_multiple_of(3) {
                store(device, *object, round, false);
                *last = round;
            } else {
                check(device, *object, *last);
            }
        }
        if round.is_multiple_of(4) {
            let (object, _) = there.swap_remove(3);
            device.commit(Transaction { mutations: vec![Mutation::Remove { object }] }, Durability::Durable).unwrap();
        }
    }
    there
}

#[test]
fn nothing_that_is_needed_is_discarded() {
    let mut pair = pair(true);
    let there = work(&mut pair);
    assert!(discarded(&pair.big) > OBJECT as u64, "{}", discarded(&pair.big));
    let device = pair.device.as_ref().unwrap();
    device.close().unwrap();
    assert!(discarded(&pair.fast) > OBJECT as u64, "{}", discarded(&pair.fast));
    let counters = device.inspect().unwrap().counters();
    let count = |name: &str| counters.iter().find(|(of, _)| of == name).unwrap().1;
    assert_eq!(count("big.blocks_discarded") * 4096, discarded(&pair.big));
    assert_eq!(count("fast.blocks_discarded") * 4096, discarded(&pair.fast));
    assert!(count("big.discards") > 0 && count("fast.discards") > 0);
    pair.mount();
    there.iter().for_each(|(object, round)| check(pair.device.as_ref().unwrap(), *object, *round));
}

#[test]
fn a_disk_is_told_only_when_the_checkpoint_is_durable_and_of_the_rest_when_there_is_time() {
    let pair = pair(true);
    let device = pair.device.as_ref().unwrap();
    let first = device.reserve_ids(80).unwrap();
    let objects: Vec<ObjectId> = (0..80).map(|number| ObjectId(first.0 + number)).collect();
    // One after the other, so that what goes has neighbours that stay.
    let small = |object: ObjectId| {
        let hints = Hints::default();
        let write = Mutation::Write { object, offset: 0, data: vec![7; 8192] };
        Transaction { mutations: vec![Mutation::Create { object, hints }, write] }
    };
    objects.iter().for_each(|object| device.commit(small(*object), Durability::Buffered).unwrap());
    device.close().unwrap();
    let before = discarded(&pair.big);
    for object in objects.iter().step_by(8) {
        device
            .commit(Transaction { mutations: vec![Mutation::Remove { object: *object }] }, Durability::Durable)
            .unwrap();
    }
    assert_eq!(discarded(&pair.big), before, "no checkpoint since");
    let told = |budget| device.maintain(budget).unwrap();
    while told(3).more {}
    assert_eq!(discarded(&pair.big), before, "the log has it, and the old checkpoint counts");
    device.close().unwrap();
    assert!(discarded(&pair.big) >= before + 10 * 8192, "{} {before}", discarded(&pair.big));
}

#[test]
fn a_disk_that_is_not_to_be_told_is_not() {
    let mut pair = pair(false);
    work(&mut pair);
    pair.device.as_ref().unwrap().close().unwrap();
    assert_eq!((discarded(&pair.big), discarded(&pair.fast)), (0, 0));
}

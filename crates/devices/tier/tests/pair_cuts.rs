//! Power cuts of two disks at every request of a random history, each losing any part of what it
//! had not flushed; the fast one also vanishing or coming back as it was earlier.

use crate::common::new_fast;
use onode_base::Prng;
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_media::sim::disk::log::{DiskEvent, DiskLog, DiskOperation};
use onode_object::conformance::{Generator, Oracle, dump};
use onode_object::{Acknowledge, Durability, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};

const BIG_BYTES: u64 = 24 << 20;
const FAST_BYTES: u64 = 6 << 20;

enum Step {
    Commit(Transaction, Durability),
    Sync,
    Close,
}

struct History {
    fast: Cached,
    big: Cached,
    events: Vec<DiskEvent>,
    steps: Vec<(Step, usize)>,
    options: MountOptions,
}

fn record(seed: u64, operations: u32, acknowledge: Acknowledge) -> History {
    let options = MountOptions {
        acknowledge,
        node_cache_bytes: 40 << 10,
        pending_bytes: 200 << 10,
        place_above_bytes: 12 << 10,
        either_bytes: 20 << 10,
        ..MountOptions::default()
    };
    let (fast, big) = (SimDisk::new("fast", FAST_BYTES), SimDisk::new("big", BIG_BYTES));
    let format = FormatOptions { log_bytes: Some(96 << 10), ..FormatOptions::default() };
    let device = TierDevice::format(Box::new(big.clone()), Some(new_fast(&fast)), &format, &options).unwrap();
    device.close().unwrap();
    let before = (fast.content().settled(), big.content().settled());
    let log = DiskLog::default();
    fast.record(&log, 0);
    big.record(&log, 1);
    let mut generator = Generator::new(seed);
    let mut steps = Vec::new();
    for _ in 0..operations {
        let step = match generator.prng.below(30) {
            0 => Step::Sync,
            1 => Step::Close,
            2 => {
                move_something(&device, &mut generator);
                continue;
            }
            number => {
                let durable = if number < 18 { Durability::Durable } else { Durability::Buffered };
                Step::Commit(generator.transaction(&device), durable)
            }
        };
        match &step {
            Step::Commit(transaction, durability) => device.commit(transaction.clone(), *durability).unwrap(),
            Step::Sync => device.sync(SyncScope::All).unwrap(),
            Step::Close => device.close().unwrap(),
        }
        steps.push((step, log.mark()));
    }
    device.verify().unwrap();
    assert_eq!(device.reports(), Vec::<String>::new());
    History { fast: before.0, big: before.1, events: log.events(), steps, options }
}

/// Copies made, given up and used; no result of anything may depend on them.
fn move_something(device: &TierDevice, generator: &mut Generator) {
    let place = device.place().unwrap();
    let objects = device.list(ObjectId(0), 50).unwrap();
    for object in objects {
        match generator.prng.below(4) {
            0 => _ = place.promote(object, true),
            1 => _ = place.demote(object).unwrap(),
            2 => _ = place.promote(object, false),
            _ => _ = device.read(object, 0, &mut vec![0; 100_000]).unwrap(),
        }
    }
    device.maintain(3).unwrap();
}

/// What becomes of the fast disk in a state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Cut,
    Gone,
    Earlier,
}

/// Returns how many records were taken over from the fast disk, and how many lies were found.
fn cuts(seed: u64, operations: u32, acknowledge: Acknowledge) -> [u64; 2] {
    let mut sums = [0; 2];
    let history = record(seed, operations, acknowledge);
    let mut prng = Prng::new(seed ^ 0xfa57);
    let (mut fast, mut big) = (history.fast.clone(), history.big.clone());
    let mut earlier = fast.clone();
    for at in 0..=history.events.len() {
        let fate = [Fate::Cut, Fate::Cut, Fate::Gone, Fate::Earlier][prng.below(4) as usize];
        let mut cut = |content: &Cached| {
            let share = [0, 1, 4, 7, 8][prng.below(5) as usize];
            content.after_cut(|_, _| prng.chance(share, 8))
        };
        let big_left = SimDisk::from_content("big", BIG_BYTES, cut(&big));
        let fast_left = match fate {
            Fate::Cut => Some(cut(&fast)),
            Fate::Earlier => Some(cut(&earlier)),
            Fate::Gone => None,
        };
        let fast_left = fast_left.map(|content| SimDisk::from_content("fast", FAST_BYTES, content));
        let what = format!("{acknowledge:?}, seed {seed}, {fate:?} before request {at}");
        let device = mount(fast_left.as_ref(), &big_left, &history.options);
        device.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        if fate == Fate::Cut {
            assert_eq!(device.reports(), Vec::<String>::new(), "{what}");
        }
        let counters = device.inspect().unwrap().counters();
        for (sum, name) in sums.iter_mut().zip(["log.recovered_from_fast", "disks_lying"]) {
            *sum += counters.iter().find(|(known, _)| known == name).unwrap().1;
        }
        // Only what one disk alone had acknowledged may go with that disk.
        let may_lose = acknowledge == Acknowledge::Either && fate != Fate::Cut;
        check(&history, at, &device, may_lose, &what);
        drop(device);
        // Again, and the other way round, shows the same.
        if prng.chance(1, 8) {
            let device = mount(None, &big_left, &history.options);
            check(&history, at, &device, may_lose, &format!("{what}, then alone"));
            drop(device);
            if let Some(fast_left) = fast_left {
                let device = mount(Some(&fast_left), &big_left, &history.options);
                check(&history, at, &device, may_lose, &format!("{what}, then alone, then both"));
            }
        }
        let Some(event) = history.events.get(at) else { break };
        event.operation.apply(if event.disk == 0 { &mut fast } else { &mut big });
        if event.disk == 0 && matches!(event.operation, DiskOperation::Flush) && prng.chance(1, 20) {
            earlier = fast.settled();
        }
    }
    assert!(history.events.len() > 100, "only {} requests", history.events.len());
    sums
}

fn mount(fast: Option<&SimDisk>, big: &SimDisk, options: &MountOptions) -> TierDevice {
    let big: Box<dyn BlockDev> = Box::new(big.clone());
    match fast {
        Some(fast) => TierDevice::mount(big, Some(Box::new(fast.clone())), options).unwrap(),
        // Where changes wait for the fast disk alone, who leaves it away consents to their loss.
        None => {
            let accept_loss = options.acknowledge == Acknowledge::Either;
            TierDevice::mount(big, None, &MountOptions { accept_loss, ..options.clone() }).unwrap()
        }
    }
}

fn check(history: &History, at: usize, device: &TierDevice, may_lose: bool, what: &str) {
    let returned = history.steps.iter().take_while(|(_, mark)| *mark <= at).count();
    let found = dump(device).unwrap();
    let mut oracle = Oracle::default();
    for (number, (step, _)) in history.steps.iter().enumerate().take(returned + 1) {
        let is_done = number < returned;
        match step {
            Step::Commit(transaction, durability) => {
                let durability = if is_done && !may_lose { *durability } else { Durability::Buffered };
                oracle.commit(transaction, durability).unwrap();
            }
            // What is synced is where its rule wants it; closing brings it to both.
            Step::Sync if is_done && !may_lose => oracle.sync(SyncScope::All).unwrap(),
            Step::Close if is_done => oracle.sync(SyncScope::All).unwrap(),
            Step::Sync | Step::Close => {}
        }
    }
    if let Err(difference) = oracle.crash(&found) {
        panic!("{what}, {returned} steps returned: {difference}");
    }
}

#[test]
fn safe_loses_nothing_with_either_disk_state() {
    let [_, lies] = [1, 2].map(|seed| cuts(seed, 70, Acknowledge::Safe)).into_iter().fold([0, 0], add);
    assert!(lies > 0, "no disk that came back as it was earlier was noticed");
}

#[test]
fn either_loses_nothing_while_both_are_there() {
    let [recovered, _] = [11, 12].map(|seed| cuts(seed, 70, Acknowledge::Either)).into_iter().fold([0, 0], add);
    assert!(recovered > 0, "nothing was ever on the fast disk alone");
}

#[test]
fn big_needs_no_fast_disk() {
    cuts(21, 70, Acknowledge::Big);
}

fn add(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

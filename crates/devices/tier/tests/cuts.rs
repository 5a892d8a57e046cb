//! Power cuts at every request of a random history, with any part of what was not flushed, and a
//! second cut in recovery.

use onode_base::Prng;
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_media::sim::disk::log::DiskLog;
use onode_object::conformance::{Generator, Oracle, dump};
use onode_object::{Durability, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};

const BIG_BYTES: u64 = 24 << 20;

/// What was done between two requests of the disk.
enum Step {
    Commit(Transaction, Durability),
    Sync(SyncScope),
    Close,
}

/// A history: the requests that the disk saw, and which of them each step had behind it when it
/// returned.
struct History {
    format: Cached,
    log: DiskLog,
    steps: Vec<(Step, usize)>,
}

fn options() -> MountOptions {
    // Little of everything, so that a short history sees all of it.
    MountOptions {
        node_cache_bytes: 40 << 10,
        pending_bytes: 200 << 10,
        place_above_bytes: 12 << 10,
        ..Default::default()
    }
}

fn record(seed: u64, operations: u32) -> History {
    let big = SimDisk::new("big", BIG_BYTES);
    let format = FormatOptions { log_bytes: Some(96 << 10), ..FormatOptions::default() };
    let device = TierDevice::format(Box::new(big.clone()), None, &format, &options()).unwrap();
    device.close().unwrap();
    let before = big.content().settled();
    let log = DiskLog::default();
    big.record(&log, 0);
    let mut generator = Generator::new(seed);
    let mut steps = Vec::new();
    for _ in 0..operations {
        let step = match generator.prng.below(30) {
            0 => Step::Sync(SyncScope::All),
            1 => Step::Sync(SyncScope::Object(ObjectId(generator.prng.below(80)))),
            2 => {
                device.maintain(4).unwrap();
                Step::Close
            }
            number => {
                let durable = if number < 15 { Durability::Durable } else { Durability::Buffered };
                Step::Commit(generator.transaction(&device), durable)
            }
        };
        match &step {
            Step::Commit(transaction, durability) => device.commit(transaction.clone(), *durability).unwrap(),
            Step::Sync(scope) => device.sync(*scope).unwrap(),
            Step::Close => device.close().unwrap(),
        }
        steps.push((step, log.mark()));
    }
    device.verify().unwrap();
    History { format: before, log, steps }
}

/// Mounts what a cut left, and cuts some of those mounts, too.
fn recover(left: SimDisk, prng: &mut Prng) -> TierDevice {
    if prng.chance(1, 4) {
        let log = DiskLog::default();
        left.record(&log, 0);
        let content = left.content();
        drop(TierDevice::mount(Box::new(left.clone()), None, &options()).unwrap());
        let mut again = content.settled();
        let events = log.events();
        for event in &events[..prng.below(events.len() as u64 + 1) as usize] {
            event.operation.apply(&mut again);
        }
        let survives = [0, 1, 4, 7, 8][prng.below(5) as usize];
        let second = again.after_cut(|_, _| prng.chance(survives, 8));
        let second = SimDisk::from_content("big", left.bytes(), second);
        return TierDevice::mount(Box::new(second), None, &options()).unwrap();
    }
    TierDevice::mount(Box::new(left), None, &options()).unwrap()
}

fn cuts(seed: u64, operations: u32, every: usize) {
    let history = record(seed, operations);
    let events = history.log.events();
    let mut prng = Prng::new(seed ^ 0xc07);
    let mut content = history.format.clone();
    let mut states = 0;
    for at in 0..=events.len() {
        if at % every == 0 {
            let survives = [0, 1, 4, 7, 8][prng.below(5) as usize];
            let left = SimDisk::from_content("big", BIG_BYTES, content.after_cut(|_, _| prng.chance(survives, 8)));
            let device = recover(left, &mut prng);
            device.verify().unwrap_or_else(|error| panic!("seed {seed}, cut before request {at}: {error}"));
            check(&history, at, &device, &format!("seed {seed}, cut before request {at}"));
            states += 1;
        }
        if let Some(event) = events.get(at) {
            event.operation.apply(&mut content);
        }
    }
    println!("seed {seed}: {states} states of {} requests", events.len());
    assert!(states > 50, "only {states} states");
}

/// What the device shows must be allowed after the steps that had returned, with or without the one
/// being done.
fn check(history: &History, at: usize, device: &TierDevice, what: &str) {
    let returned = history.steps.iter().take_while(|(_, mark)| *mark <= at).count();
    let found = dump(device).unwrap();
    // The step in progress may have happened wholly: then it is as one that was only buffered.
    let mut oracle = Oracle::default();
    for (number, (step, _)) in history.steps.iter().enumerate().take(returned + 1) {
        match step {
            Step::Commit(transaction, durability) => {
                let durability = if number < returned { *durability } else { Durability::Buffered };
                oracle.commit(transaction, durability).unwrap();
            }
            Step::Sync(scope) if number < returned => oracle.sync(*scope).unwrap(),
            Step::Close if number < returned => oracle.sync(SyncScope::All).unwrap(),
            Step::Sync(_) | Step::Close => {}
        }
    }
    if let Err(difference) = oracle.crash(&found) {
        panic!("{what}, {returned} steps returned: {difference}");
    }
}

#[test]
fn every_cut_leaves_what_was_acknowledged() {
    for seed in 1..=4 {
        cuts(seed, 120, 1);
    }
}

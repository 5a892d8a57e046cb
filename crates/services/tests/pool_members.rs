//! Members of a pool that fail, lie, are full, go and come back: nothing is lost, the program hears
//! of nothing, and members are equal afterwards.

use crate::common;
use crate::common::faulty::{Fault, Faulty};
use crate::common::losses::{differ, ram, run, seen, tend};
use crate::common::pool::{Device, members};
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice, Result, SyncScope, Transaction};
use onode_services::{Pool, PoolMember, PoolMemberState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Fails at every call of either member in turn.
fn at_every_call(fault: Fault) {
    for place in 0..2 {
        let calls = run(fault, place, u64::MAX - 1, 25).expect("without a fault").calls;
        assert!(calls > 40, "{calls} calls");
        for from in 0..calls {
            let ran = run(fault, place, from, 25).unwrap_or_else(|why| panic!("member {place}, call {from}: {why}"));
            assert!(ran.has_begun, "member {place}, call {from}");
        }
    }
}

#[test]
fn a_member_dies_at_every_call() {
    at_every_call(Fault::Dead);
}

#[test]
fn a_member_is_damaged_from_every_call_on() {
    at_every_call(Fault::Damaged);
}

#[test]
fn a_member_is_full_from_every_call_on() {
    at_every_call(Fault::Full);
}

#[test]
fn members_that_are_full_at_the_same_moment_stay_equal() {
    let refused = common::filled::run().expect("each has everything");
    assert!(refused.iter().all(|count| *count > 100), "{refused:?}");
}

#[test]
fn a_cut_leaves_members_at_different_changes() {
    common::absences::cuts().expect("equal, and nothing that was synced is gone");
}

#[test]
fn a_member_that_lags_by_more_than_is_recorded_is_compared_as_a_whole() {
    common::absences::lags().expect("equal");
}

#[test]
fn what_changed_while_a_member_was_away_is_not_read_from_it() {
    common::absences::returns().expect("equal");
}

#[test]
fn a_member_that_failed_and_went_on_alone_is_refused() {
    common::absences::split_by_a_failure().expect("refused");
}

#[test]
fn two_members_that_both_went_on_alone_are_refused() {
    common::absences::splits().expect("refused");
}

/// A pool of devices in memory, which stay when it is closed.
fn made(count: usize) -> (Vec<Arc<RamDevice>>, Pool<Device>) {
    let rams: Vec<_> = (0..count).map(|_| ram()).collect();
    let pool = Pool::create([1; 16], members(&devices(&rams, &(0..count).collect::<Vec<_>>())));
    (rams, pool.expect("a pool can be made"))
}

fn devices(rams: &[Arc<RamDevice>], places: &[usize]) -> Vec<Device> {
    places.iter().map(|place| rams[*place].clone() as Device).collect()
}

fn open(rams: &[Arc<RamDevice>], places: &[usize]) -> Result<Pool<Device>> {
    Pool::open(members(&devices(rams, places)), false)
}

/// Writes an object of so many bytes, which it makes first if it is new.
fn put(pool: &Pool<Device>, object: ObjectId, offset: u64, bytes: usize, seed: u8) {
    let mut transaction = Transaction::new();
    if pool.stat(object).is_err() {
        transaction.create(object, Hints::default());
    }
    transaction.write(object, offset, vec![seed; bytes]);
    pool.commit(transaction, Durability::Durable).expect("it has room");
}

fn is_whole(pool: &Pool<Device>) -> bool {
    pool.status().iter().all(|member| member.state == PoolMemberState::Whole)
}

#[test]
fn a_member_that_returns_gets_what_changed_and_nothing_else() {
    let (rams, pool) = made(2);
    let objects = pool.reserve_ids(100).expect("ids");
    for number in 0..100 {
        put(&pool, ObjectId(objects.0 + number), 0, 100_000, 1);
    }
    drop(pool);
    // Two objects change while it is away, one of them in one block, one is made and one goes.
    let pool = open(&rams, &[0]).expect("one member is enough");
    let made = pool.reserve_ids(1).expect("an id");
    assert_eq!(pool.health().conditions[0].code, "pool-member-away");
    put(&pool, ObjectId(objects.0 + 5), 0, 100_000, 2);
    put(&pool, ObjectId(objects.0 + 6), 40_000, 10, 3);
    put(&pool, made, 0, 5000, 4);
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId(objects.0 + 7));
    pool.commit(transaction, Durability::Durable).expect("it goes");
    drop(pool);
    let returned = Faulty::sound(&rams[1]);
    let pool = Pool::open(members(&[rams[0].clone() as Device, returned.clone()]), false).expect("both");
    tend(&pool).expect("rebuilt");
    assert!(is_whole(&pool), "{:?}", pool.status());
    let written = returned.written.load(Ordering::Relaxed);
    let changed = 100_000 + 4096 + 5000;
    // The ring and the set of what changed come besides.
    assert!((changed..changed + 12_000).contains(&written), "{written} bytes were written for {changed}");
    drop(pool);
    differ(&*rams[0], &*rams[1]).expect("equal");
}

/// Many objects were made in one transaction before the pool was closed. A member that is away
/// then, while nothing or little changes, lacks no more than that: what it has is used.
#[test]
fn a_member_that_was_away_for_a_moment_lacks_only_what_changed() {
    for changes in [false, true] {
        let (rams, pool) = made(2);
        let first = pool.reserve_ids(200).expect("ids");
        let mut transaction = Transaction::new();
        (0..200).for_each(|number| _ = transaction.create(ObjectId(first.0 + number), Hints::default()));
        pool.commit(transaction, Durability::Buffered).expect("room");
        pool.close().expect("closed");
        drop(pool);
        let pool = open(&rams, &[0]).expect("one member is enough");
        if changes {
            put(&pool, ObjectId(first.0 + 7), 0, 5000, 1);
        }
        pool.close().expect("closed");
        drop(pool);
        let pool = Pool::open(members(&devices(&rams, &[0, 1])), true).expect("both, to look");
        match &pool.status()[1].state {
            PoolMemberState::Behind { objects, compares_all: false, .. } => assert_eq!(*objects, u64::from(changes)),
            other => panic!("changes: {changes}: {other:?}"),
        }
    }
}

#[test]
fn members_that_went_on_without_each_other_are_refused() {
    let (rams, pool) = made(2);
    put(&pool, ObjectId(1), 0, 100, 1);
    drop(pool);
    for (place, seed) in [(0, 2), (1, 3)] {
        let pool = open(&rams, &[place]).expect("one member is enough");
        put(&pool, ObjectId(1), 0, 100, seed);
    }
    let before = [seen(&*rams[0]), seen(&*rams[1])];
    let error = open(&rams, &[0, 1]).map(|_| ()).expect_err("two histories");
    assert_eq!(error.kind, ErrorKind::WrongPart);
    assert!(error.detail.contains("device 0") && error.detail.contains("device 1"), "{error}");
    assert!(before == [seen(&*rams[0]), seen(&*rams[1])], "a refusal changed something");
    // One is chosen: the other one is made anew.
    let pool = open(&rams, &[0]).expect("one");
    pool.expel(2).expect("taken out");
    let label = pool.admit().expect("expected");
    let anew = ram();
    Pool::<Device>::join(&(anew.clone() as Device), label).expect("joined");
    drop(pool);
    assert_eq!(open(&rams, &[0, 1]).map(|_| ()).expect_err("it was taken out").kind, ErrorKind::WrongPart);
    let rams = vec![rams[0].clone(), anew];
    let pool = open(&rams, &[0, 1]).expect("both");
    tend(&pool).expect("rebuilt");
    assert!(is_whole(&pool));
    let mut bytes = [0; 100];
    pool.read(ObjectId(1), 0, &mut bytes).expect("readable");
    assert_eq!(bytes, [2; 100]);
    drop(pool);
    differ(&*rams[0], &*rams[1]).expect("equal");
}

#[test]
fn the_one_that_lacks_changes_is_not_opened_alone() {
    let (rams, pool) = made(2);
    put(&pool, ObjectId(1), 0, 300_000_000, 1);
    drop(pool);
    put(&open(&rams, &[0]).expect("one"), ObjectId(1), 0, 300_000_000, 2);
    // Opening compares a part of it; then the whole one goes.
    drop(open(&rams, &[0, 1]).expect("both"));
    assert_eq!(open(&rams, &[1]).map(|_| ()).expect_err("it lacks changes").kind, ErrorKind::Loss);
    let pool = open(&rams, &[1, 0]).expect("both");
    assert!(!is_whole(&pool), "it was to be rebuilt later");
    let mut bytes = [0; 9];
    pool.read(ObjectId(1), 299_000_000, &mut bytes).expect("readable");
    assert_eq!(bytes, [2; 9]);
    tend(&pool).expect("rebuilt");
    assert!(is_whole(&pool));
}

/// The record names 64 changes on a small volume, and objects one by one as far as there is room.
#[test]
fn more_changes_than_are_recorded_have_all_objects_compared() {
    let (rams, pool) = made(2);
    let first = pool.reserve_ids(3_000_000).expect("ids").0;
    put(&pool, ObjectId(first), 0, 10, 1);
    drop(pool);
    let pool = open(&rams, &[0]).expect("one");
    // Each in a part of its own of the set of what changed.
    for number in 0..4200 {
        put(&pool, ObjectId(first + 600 * number), 0, 10, 2);
    }
    drop(pool);
    let pool = open(&rams, &[0, 1]).expect("both");
    tend(&pool).expect("rebuilt");
    assert!(is_whole(&pool));
    drop(pool);
    differ(&*rams[0], &*rams[1]).expect("equal");
}

#[test]
fn a_smaller_member_says_how_much_there_is() {
    let rams = [Arc::new(RamDevice::new(3 << 20)), Arc::new(RamDevice::new(1 << 20))];
    let pool = Pool::create([1; 16], members(&devices(&rams, &[0, 1]))).expect("a pool can be made");
    assert!(pool.space().total <= 1 << 20 && pool.space().available < 1 << 20);
    let mut transaction = Transaction::new();
    transaction.create(ObjectId(1), Hints::default());
    pool.commit(transaction, Durability::Buffered).expect("room");
    let mut fitted = 0;
    loop {
        let mut transaction = Transaction::new();
        transaction.write(ObjectId(1), fitted, vec![7; 4096]);
        match pool.commit(transaction, Durability::Buffered) {
            Ok(()) => fitted += 4096,
            Err(error) => break assert_eq!(error.kind, ErrorKind::NoSpace),
        }
    }
    assert!(fitted > 900_000, "{fitted} bytes fitted");
    assert!(is_whole(&pool), "a refusal is no failure: {:?}", pool.status());
    differ(&*rams[0], &*rams[1]).expect("equal");
}

#[test]
fn one_of_three_is_replaced() {
    let (rams, pool) = made(3);
    put(&pool, ObjectId(1), 0, 50_000, 1);
    put(&pool, ObjectId(2), 0, 50_000, 2);
    drop(pool);
    // The second one is gone for good.
    let pool = open(&rams, &[0, 2]).expect("two of three");
    put(&pool, ObjectId(1), 0, 10_000, 3);
    pool.expel(2).expect("taken out");
    assert_eq!(pool.expel(2).expect_err("it is gone").kind, ErrorKind::NotFound);
    let label = pool.admit().expect("expected");
    assert_eq!(label.number, 4, "a number is never used again");
    drop(pool);
    let anew = ram();
    Pool::<Device>::join(&(anew.clone() as Device), label).expect("joined");
    assert!(Pool::<Device>::join(&(anew.clone() as Device), label).is_err(), "it is a member already");
    let rams = vec![rams[0].clone(), anew, rams[2].clone()];
    let pool = open(&rams, &[0, 1, 2]).expect("three");
    tend(&pool).expect("rebuilt");
    assert!(is_whole(&pool), "{:?}", pool.status());
    drop(pool);
    differ(&*rams[0], &*rams[1]).expect("equal");
    differ(&*rams[0], &*rams[2]).expect("equal");
    // The new one alone has everything.
    let pool = open(&rams, &[1]).expect("one of three");
    assert_eq!(pool.stat(ObjectId(2)).expect("there").size, 50_000);
}

#[test]
fn what_is_no_member_is_refused() {
    let (rams, pool) = made(2);
    drop(pool);
    let other = made(2).0;
    let mixed = Pool::create([2; 16], members(&devices(&other, &[0])));
    assert_eq!(mixed.map(|_| ()).expect_err("it is a member").kind, ErrorKind::Exists);
    let twice = open(&[rams[0].clone(), rams[0].clone()], &[0, 1]);
    assert_eq!(twice.map(|_| ()).expect_err("one twice").kind, ErrorKind::WrongPart);
    let blank = open(&[rams[0].clone(), ram()], &[0, 1]);
    assert_eq!(blank.map(|_| ()).expect_err("no member").kind, ErrorKind::WrongPart);
    assert!(Pool::create([1; 16], Vec::<PoolMember<Device>>::new()).is_err(), "nobody");
    let last = open(&rams, &[0, 1]).expect("both");
    last.expel(1).expect("one is left");
    assert_eq!(last.expel(2).expect_err("the last one").kind, ErrorKind::Invalid);
    last.sync(SyncScope::All).expect("synced");
}

#[test]
fn a_pool_opened_to_look_changes_nothing() {
    let (rams, pool) = made(2);
    put(&pool, ObjectId(1), 0, 100, 1);
    drop(pool);
    put(&open(&rams, &[0]).expect("one"), ObjectId(1), 0, 100, 2);
    let pool = Pool::open(members(&devices(&rams, &[1, 0])), true).expect("both, to look");
    let mut bytes = [0; 100];
    pool.read(ObjectId(1), 0, &mut bytes).expect("readable");
    assert_eq!(bytes, [2; 100], "what the returned one lacks is not read from it");
    assert!(pool.info().read_only.is_some());
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId(1));
    assert_eq!(pool.commit(transaction, Durability::Durable).expect_err("read-only").kind, ErrorKind::ReadOnly);
    tend(&pool).expect("nothing to do");
    drop(pool);
    assert_eq!(rams[1].read(ObjectId(1), 0, &mut bytes), Ok(100));
    assert_eq!(bytes, [1; 100]);
}

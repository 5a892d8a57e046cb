//! The test of the tests: each bug planted in the wrapper is found by one of them.

#[allow(dead_code, reason = "not all of it is about planted bugs")]
mod common;

use common::faulty::Fault;
use common::history::{History, Wrap};
use common::spy::Spy;
use common::vault::Vault;
use onode_base::planted::{Bug, plant};
use onode_object::{AttributeKey, AttributeKind, Compression, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_services::Compressed;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;

/// A test that can fail.
type Look = fn() -> Result<(), String>;

/// What is wrong with the wrapper now; nothing if no test finds anything.
fn wrong(look: impl FnOnce() -> Result<(), String>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(look)) {
        Ok(found) => found.err(),
        Err(_) => Some("a check failed".to_string()),
    }
}

fn history() -> Result<(), String> {
    for seed in 1..4 {
        let wrap: Wrap = Box::new(|inner| Box::new(Compressed::new(Arc::clone(inner), Compression::Fast)));
        History::new(seed, wrap).run(300);
    }
    Ok(())
}

fn cuts() -> Result<(), String> {
    (1..4).try_for_each(|seed| {
        common::cuts::run(&|flash| Box::new(Compressed::new(flash, Compression::Fast)), seed, 30).map(|_| ())
    })
}

fn readers() -> Result<(), String> {
    common::readers::run(|ram| Box::new(Compressed::new(ram, Compression::Fast)), 3000)
}

fn encrypted_history() -> Result<(), String> {
    for seed in 1..4 {
        let vault = Vault::new();
        History::new(seed, Box::new(move |inner| Box::new(vault.open(inner)))).run(300);
    }
    Ok(())
}

fn encrypted_cuts() -> Result<(), String> {
    let vault = Vault::new();
    (1..4).try_for_each(|seed| common::cuts::run(&|flash| Box::new(vault.open(&flash)), seed, 30).map(|_| ()))
}

fn authenticated_cuts() -> Result<(), String> {
    let vault = Vault::new();
    let wrap: common::cuts::Wrap<'_> = &|flash| Box::new(vault.open_authenticated(&flash));
    (1..4).try_for_each(|seed| common::cuts::run(wrap, seed, 30).map(|_| ()))
}

fn encrypted_readers() -> Result<(), String> {
    common::readers::run(|ram| Box::new(Vault::new().open(&ram)), 2000)
}

fn encrypted_nonces() -> Result<(), String> {
    (1..4).try_for_each(|seed| common::secrecy::nonces(seed).map(|_| ()))
}

/// A full device lets an attribute take the place of another.
fn encrypted_and_full() -> Result<(), String> {
    let spy = Arc::new(Spy::new(false));
    let device = Vault::new().open(&spy);
    let object = ObjectId(9);
    let key = |index| AttributeKey::new(AttributeKind::ENTRY, index);
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).set_attribute(object, key(1), vec![1; 50]);
    device.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())?;
    spy.is_full.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut transaction = Transaction::new();
    transaction.remove_attribute(object, key(1));
    transaction.set_attribute(object, key(2), vec![1; 10]).set_attribute(object, key(3), vec![1; 8]);
    device.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())
}

/// A member of a pool fails, is damaged or full at some of its calls.
fn pool_losses(fault: Fault) -> Result<(), String> {
    (0..40).step_by(3).try_for_each(|from| common::losses::run(fault, (from / 3 % 2) as usize, from, 25).map(|_| ()))
}

fn pool_is_damaged() -> Result<(), String> {
    pool_losses(Fault::Damaged)
}

fn pool_is_full() -> Result<(), String> {
    pool_losses(Fault::Full)
}

fn pool_is_filled() -> Result<(), String> {
    common::filled::run().map(|_| ())
}

fn staged_history() -> Result<(), String> {
    common::staged_history::run(8 << 20);
    Ok(())
}

fn staged_gate() -> Result<(), String> {
    common::staged_gate::run(60)
}

fn staged_cuts() -> Result<(), String> {
    let wrap: common::cuts::Wrap<'_> =
        &|flash| Box::new(common::transacting::Transacting::open(flash, 1 << 10).unwrap());
    (1..4).try_for_each(|seed| common::cuts::run(wrap, seed, 40).map(|_| ()))
}

fn streams() -> Result<(), String> {
    (1..=6).for_each(|seed| common::streams::follow(seed, [false, false]));
    Ok(())
}

fn stream_holes() -> Result<(), String> {
    common::streams::holes()
}

/// One test: a bug is planted in the whole process.
#[test]
fn every_planted_bug_is_found() {
    let all: [(Bug, Look); 39] = [
        (Bug::StreamTailForgotten, streams),
        (Bug::StreamAbsenceForgotten, streams),
        (Bug::StreamServiceForgotten, stream_holes),
        (Bug::StagedGateOpen, staged_gate),
        (Bug::StagedConflictIgnored, staged_history),
        (Bug::StagedInParts, staged_cuts),
        (Bug::StagedPointFirst, staged_cuts),
        (Bug::StagedProgressAhead, staged_cuts),
        (Bug::ServicesChecksumIgnored, common::damage::run),
        (Bug::ServicesCutForgotten, history),
        (Bug::ServicesMapInTwo, cuts),
        (Bug::ServicesRestForgotten, history),
        (Bug::ServicesHoleForgotten, history),
        (Bug::ServicesReadBeside, readers),
        (Bug::EncryptedTagIgnored, common::secrecy::damage),
        (Bug::EncryptedPlaceIgnored, common::secrecy::damage),
        (Bug::EncryptedCutForgotten, encrypted_history),
        (Bug::EncryptedHoleForgotten, encrypted_history),
        (Bug::EncryptedRestForgotten, encrypted_history),
        (Bug::EncryptedPartStays, common::secrecy::long_attributes),
        (Bug::EncryptedMapInTwo, encrypted_cuts),
        (Bug::EncryptedEpochLate, encrypted_nonces),
        (Bug::EncryptedNonceTwice, encrypted_nonces),
        (Bug::EncryptedReadBeside, encrypted_readers),
        (Bug::EncryptedDebtForgotten, encrypted_and_full),
        (Bug::DirectoryNamesOpen, common::directories::lock_and_look),
        (Bug::DirectoryKeyRemembered, common::directories::lock_and_look),
        (Bug::DirectoryKeyUnwrapped, common::directories::lock_and_look),
        (Bug::AuthenticatedInTwo, authenticated_cuts),
        (Bug::AuthenticatedOldTaken, common::attacks::run),
        (Bug::PoolSyncOfOne, common::absences::cuts),
        (Bug::PoolRecordTooShort, common::absences::lags),
        (Bug::PoolLagBelieved, common::absences::returns),
        (Bug::PoolChangesForgotten, common::absences::returns),
        (Bug::PoolSplitMerged, common::absences::splits),
        (Bug::PoolDamageTold, pool_is_damaged),
        (Bug::PoolFailureUnrecorded, common::absences::split_by_a_failure),
        (Bug::PoolRefusalForgotten, pool_is_full),
        (Bug::PoolFullNotAsked, pool_is_filled),
    ];
    for (bug, look) in all {
        plant(None);
        assert_eq!(wrong(look), None, "without {bug:?}");
        // What fails now is meant to.
        let told = take_hook();
        set_hook(Box::new(|_| {}));
        plant(Some(bug));
        let found = wrong(look);
        plant(None);
        set_hook(told);
        println!("{bug:?}: {}", found.as_deref().unwrap_or("SURVIVED"));
        assert!(found.is_some(), "{bug:?} survived");
    }
}

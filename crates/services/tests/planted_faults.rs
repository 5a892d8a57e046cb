//! The test of the tests: each bug planted in the wrapper is found by one of them.

mod common;

use common::history::{History, Wrap};
use onode_base::planted::{Bug, plant};
use onode_object::Compression;
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
    (1..4).try_for_each(|seed| common::cuts::run(seed, 30).map(|_| ()))
}

/// One test: a bug is planted in the whole process.
#[test]
fn every_planted_bug_is_found() {
    let all: [(Bug, Look); 6] = [
        (Bug::ServicesChecksumIgnored, common::damage::run),
        (Bug::ServicesCutForgotten, history),
        (Bug::ServicesMapInTwo, cuts),
        (Bug::ServicesRestForgotten, history),
        (Bug::ServicesHoleForgotten, history),
        (Bug::ServicesReadBeside, || common::readers::run(3000)),
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

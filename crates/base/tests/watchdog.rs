//! Two threads that wait for one another are found, and what they have is told.
#![cfg(all(debug_assertions, feature = "std"))]

use onode_base::sync::{Mutex, rank::Free, watchdog};
use std::process::{Command, exit};
use std::sync::Barrier;
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

/// What the threads run into, in a process that ends without them.
#[test]
#[ignore = "it is a deadlock: the test below runs it in a process of its own"]
fn deadlock() {
    watchdog::set_patience(Duration::from_millis(200));
    let (left, right) = (Mutex::<u8, Free>::new(0), Mutex::<u8, Free>::new(0));
    let both_hold = Barrier::new(2);
    let take = |first: &Mutex<u8, Free>, then: &Mutex<u8, Free>| {
        let _first = first.lock();
        both_hold.wait();
        let _then = then.lock();
        unreachable!("it is no deadlock");
    };
    scope(|scope| {
        let named = |name: &str| Builder::new().name(name.to_owned());
        named("left-handed").spawn_scoped(scope, || take(&left, &right)).unwrap();
        named("right-handed").spawn_scoped(scope, || take(&right, &left)).unwrap();
        sleep(Duration::from_secs(2));
        exit(0);
    });
}

#[test]
fn a_deadlock_is_told_once_with_both_threads_and_what_they_hold() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "deadlock", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let told = String::from_utf8(child.stderr).unwrap();
    assert_eq!(told.matches("has been waited for longer than 0.2 s").count(), 1, "{told}");
    let place = "at crates/base/tests/watchdog.rs:";
    for (thread, other) in [("left-handed", "right-handed"), ("right-handed", "left-handed")] {
        let own = told.split(&format!(") {thread}\n  has free (")).nth(1).unwrap_or_else(|| panic!("{told}"));
        let (held, waits) = own.split_once("\n  waits for the lock free (").unwrap();
        let (awaited, holder) = waits.split_once("\n    which ").unwrap();
        assert!(held.contains(place) && awaited.contains(place) && held.ends_with(" s"), "{told}");
        assert!(holder.lines().next().unwrap().ends_with(&format!(") {other} has")), "{told}");
    }
}

#[test]
fn what_threads_hold_can_be_asked_for() {
    let own = Mutex::<u8, Free>::new(0);
    let held = own.lock();
    let address = format!("{:#x}", std::ptr::from_ref(&own).addr());
    assert!(watchdog::report().contains(&address));
    drop(held);
    assert!(!watchdog::report().contains(&address));
    assert_eq!(watchdog::patience(), Duration::from_secs(30));
}

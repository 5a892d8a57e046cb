//! Debug builds find a lock that is taken out of order, wherever threads come to wait for one
//! another or not.
#![cfg(all(debug_assertions, feature = "std"))]

use onode_base::sync::rank::{Clock, FlashPins, FlashState, FlashSyncs, Free, ServiceContent};
use onode_base::sync::{Condvar, Mutex, RwLock, as_another_thread, watchdog};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What `act` says in its panic.
fn complaint(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("nobody complained");
    *panic.downcast::<String>().expect("a text")
}

#[test]
fn a_lock_out_of_order_names_both_and_where_they_were_taken() {
    let (syncs, state) = (Mutex::<u8, FlashSyncs>::new(0), Mutex::<u8, FlashState>::new(0));
    drop((syncs.lock(), state.lock()));
    let _state = state.lock();
    let held = line!() - 1;
    let (told, taken) = (complaint(|| drop(syncs.lock())), line!());
    let (wanted, had) = told.split_once(" is taken by a thread that has ").unwrap();
    assert!(wanted.starts_with("the lock flash-syncs (") && had.starts_with("flash-state ("), "{told}");
    assert!(wanted.contains(&format!("lock_order.rs:{taken}:")), "{told}");
    assert!(had.contains(&format!("lock_order.rs:{held}:")), "{told}");
}

#[test]
fn what_was_let_go_counts_no_more() {
    let (syncs, state) = (Mutex::<u8, FlashSyncs>::new(0), Mutex::<u8, FlashState>::new(0));
    let (first, later) = (syncs.lock(), state.lock());
    drop(first);
    complaint(|| drop(syncs.lock()));
    drop(later);
    drop((syncs.lock(), state.lock()));
    // A thread that unwinds lets go, too, and what failed was never held.
    complaint(|| drop((state.lock(), syncs.lock())));
    drop((syncs.lock(), state.lock()));
}

#[test]
fn locks_of_one_rank_need_a_number_that_grows() {
    let shards: Vec<Mutex<u8, FlashState>> = (0..3).map(Mutex::new).collect();
    let (zero, two) = (shards[0].lock_at(0), shards[2].lock_at(2));
    complaint(|| drop(shards[1].lock_at(1)));
    complaint(|| drop(shards[1].lock()));
    drop(two);
    drop(shards[1].lock_at(1));
    drop(zero);
    let _one = shards[1].lock();
    complaint(|| drop(shards[2].lock_at(2)));
}

#[test]
fn a_lock_that_is_tried_has_no_order_and_is_held() {
    let (syncs, state) = (Mutex::<u8, FlashSyncs>::new(0), Mutex::<u8, FlashState>::new(0));
    let pins = Mutex::<u8, FlashPins>::new(0);
    let held = pins.lock();
    let tried = state.try_lock().unwrap();
    drop(held);
    complaint(|| drop(syncs.lock()));
    drop(pins.lock());
    drop(tried);
    drop(syncs.lock());
    assert!(state.try_lock().is_some());
}

#[test]
fn a_lock_that_the_thread_has_is_not_waited_for() {
    let own = Mutex::<u8, Free>::new(0);
    let _held = own.lock();
    assert!(own.try_lock().is_none());
    let told = complaint(|| drop(own.lock()));
    assert!(told.contains("is taken by the thread that has it"), "{told}");
    // Even in the name of another thread: there it would be waited for without an end.
    complaint(|| as_another_thread(|| drop(own.lock())));
}

#[test]
fn a_shared_lock_has_a_place_in_the_order_whoever_holds_it() {
    let shards: Vec<RwLock<u8, ServiceContent>> = (0..2).map(RwLock::new).collect();
    let state = Mutex::<u8, FlashState>::new(0);
    drop((shards[0].write_at(0), shards[1].write_at(1), state.lock()));
    let looks = shards[0].read();
    drop(state.lock());
    complaint(|| drop(shards[0].read()));
    complaint(|| drop(shards[1].write()));
    drop(looks);
    let _state = state.lock();
    complaint(|| drop(shards[0].read()));
}

#[test]
fn a_free_lock_stands_outside() {
    let (free, other) = (Mutex::<u8, Free>::new(0), Mutex::<u8, Free>::new(0));
    let (clock, state) = (Mutex::<u8, Clock>::new(0), Mutex::<u8, FlashState>::new(0));
    drop((clock.lock(), free.lock(), other.lock()));
    drop((free.lock(), state.lock(), clock.lock()));
}

#[test]
fn calls_of_another_client_have_an_order_of_their_own() {
    let (syncs, state) = (Mutex::<u8, FlashSyncs>::new(0), Mutex::<u8, FlashState>::new(0));
    let _state = state.lock();
    as_another_thread(|| {
        let pins = Mutex::<u8, FlashPins>::new(0);
        drop((syncs.lock(), pins.lock()));
        let _pins = pins.lock();
        complaint(|| drop(syncs.lock()));
    });
    complaint(|| drop(syncs.lock()));
}

#[test]
fn who_waits_for_a_change_has_let_go_of_the_lock() {
    let (syncs, state) = (Mutex::<bool, FlashSyncs>::new(false), Mutex::<u8, FlashState>::new(0));
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        let waits = std::thread::Builder::new().name("waits for true".to_owned());
        let waits = waits.spawn_scoped(scope, || {
            let mut value = syncs.lock();
            while !*value {
                changed.wait(&mut value);
            }
            // It is held again.
            drop(state.lock());
            let later = state.lock();
            complaint(|| drop(syncs.lock()));
            drop(later);
        });
        while !watchdog::report().contains("waits for true\n  waits for a change under flash-syncs") {
            std::thread::yield_now();
        }
        *syncs.lock() = true;
        changed.notify_all();
        waits.unwrap().join().unwrap();
    });
    let mut value = syncs.lock();
    assert!(!changed.wait_for(&mut value, Duration::from_millis(1)));
    // Taking it back would be out of order.
    let _later = state.lock();
    complaint(|| assert!(!changed.wait_for(&mut value, Duration::from_millis(1))));
    changed.notify_one();
}

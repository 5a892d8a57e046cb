//! Tests of threads: they fail with words instead of waiting forever.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// More than any test takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a test in a thread of its own. One whose threads wait for each other fails with words, and
/// leaves them behind.
pub fn ends_in_time(patience: Duration, test: fn()) {
    let (done, is_done) = mpsc::channel();
    let runs = thread::spawn(move || {
        let _done = done;
        test();
    });
    // Nothing is ever sent: the wait ends because the sender is gone.
    if is_done.recv_timeout(patience) == Err::<(), _>(mpsc::RecvTimeoutError::Timeout) {
        panic!("after {patience:?} threads still wait: for each other, or for one that failed");
    }
    if let Err(failed) = runs.join() {
        resume_unwind(failed);
    }
}

#[test]
#[should_panic(expected = "threads still wait")]
fn a_test_that_waits_forever_fails() {
    ends_in_time(Duration::from_millis(50), || {
        loop {
            thread::park();
        }
    });
}

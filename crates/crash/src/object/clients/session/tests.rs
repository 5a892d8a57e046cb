//! A call that would wait for one below it, and one that waits later.

use super::*;
use crate::kind::Failures;
use crate::kind::flash::Flash;
use crate::kind::geometry::by_name;
use onode_media::sim::RecordedNand;
use onode_object::Hints;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn session() -> Session<Flash> {
    let kind = Flash::new(by_name("tiny").expect("a shape"), "many-2", 1);
    let medium = RecordedNand::new(kind.format(Failures::default()).expect("a volume"), true);
    let device = Arc::new(kind.mount(&medium, false).expect("a mount"));
    Session::new(kind, &device, 2, Run::new(medium, 1, ObjectState::default(), true))
}

fn created(session: &Session<Flash>) -> (Transaction, How) {
    let mut transaction = Transaction::new();
    transaction.create(session.device.reserve_ids(1).expect("an id"), Hints::default());
    (transaction, How { durable: true, apart: false })
}

#[test]
fn a_change_that_would_wait_for_ever_may_be_there_and_never_returns() {
    let session = session();
    let (transaction, how) = created(&session);
    let waiting = Some(Waiting { transaction, how, begin: 0 });
    session.inner.lock().frames.push(Frame { client: 1, reads: None, waiting, index: None });
    let told = catch_unwind(AssertUnwindSafe(|| session.at(Gap::Waits)));
    assert!(told.is_err_and(|panic| panic.is::<WouldWait>()));
    let run = session.take_run(true).expect("a change that can be made");
    assert_eq!((run.history.calls.len(), run.interleaving.stuck, run.state.objects.len()), (1, 1, 1));
    assert_eq!(run.history.calls[0].end, usize::MAX);
    let promise = run.history.promise(usize::MAX - 1);
    assert_eq!((promise.floor, promise.ceiling), (0, 1));
}

#[test]
fn who_waits_later_is_under_way_until_then() {
    let session = session();
    let (transaction, how) = created(&session);
    session.inner.lock().frames.push(Frame { client: 1, reads: None, waiting: None, index: None });
    session.change(transaction, How { apart: true, ..how }).expect("a change");
    session.inner.lock().end(Ok(()));
    {
        let inner = session.inner.lock();
        assert!(inner.is_idle(0) && !inner.is_idle(1));
        assert_eq!(inner.run.history.promise(usize::MAX - 1).floor, 0);
    }
    assert!(session.end_follower() && !session.end_follower());
    let inner = session.inner.lock();
    assert!(inner.is_idle(1));
    assert_eq!(inner.run.history.promise(usize::MAX - 1).floor, 1);
}

//! Transactions of users over any kind of device.
//!
//! Most commits of a run are transactions of users: begun, changed and committed. The device's own
//! are taken for small ones, so that many need an intent record and hidden objects. Now and then
//! another transaction is open meanwhile that is never committed: nothing of it may be found.
//! Devices beside each other are in [`crate::task::Media::Transacted`].

use crate::kind::service::Service;
use onode_base::sync::{Mutex, rank};
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, Result, Transaction, forward_device};
use onode_services::{Staged, View};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of shapes begin with this.
pub const PREFIX: &str = "tx-";

/// What a transaction of the device is taken to carry.
const TRANSACTION_BYTES: usize = 2 << 10;
/// Of so many commits one is a plain one, and one finds another transaction open.
const PLAIN_EVERY: u64 = 4;
const BESIDE_EVERY: u64 = 7;
/// What the other transaction holds.
const BESIDE_BYTES: usize = 5 << 10;

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Transacting;

/// A device on which commits are transactions of users.
pub struct TransactedDevice<D: ObjectDevice> {
    staged: Arc<Staged<D>>,
    /// What is shown of a device that does not change.
    shown: Option<View<D>>,
    commits: AtomicU64,
    beside: Mutex<Option<View<D>>, rank::Free>,
}

impl Service for Transacting {
    type Over<D: ObjectDevice + 'static> = TransactedDevice<D>;
    /// A large one needs its record, and its content twice.
    const SLACK: u64 = 4;

    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> Result<TransactedDevice<D>> {
        let (staged, shown) = Staged::open_limited(device, Arc::new(()), TRANSACTION_BYTES)?;
        Ok(TransactedDevice { staged, shown, commits: AtomicU64::new(0), beside: Mutex::new(None) })
    }

    fn inner<D: ObjectDevice + 'static>(over: &TransactedDevice<D>) -> &D {
        over.staged.inner()
    }
}

impl<D: ObjectDevice> TransactedDevice<D> {
    fn seen(&self) -> &dyn ObjectDevice {
        match &self.shown {
            Some(shown) => shown,
            None => self.staged.as_ref(),
        }
    }

    /// Begins another transaction that holds something, if there is room for it, or gives the one
    /// up that there is.
    fn change_beside(&self) -> Result<()> {
        let mut beside = self.beside.lock();
        if beside.take().is_some() {
            return Ok(());
        }
        let space = self.staged.space();
        if space.available < space.total / 2 {
            return Ok(());
        }
        let view = self.staged.begin()?;
        let object = view.reserve_ids(1)?;
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![0xbe; BESIDE_BYTES]);
        view.commit(transaction, Durability::Buffered)?;
        *beside = Some(view);
        Ok(())
    }
}

impl<D: ObjectDevice> ObjectDevice for TransactedDevice<D> {
    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let number = self.commits.fetch_add(1, Ordering::Relaxed);
        if number % BESIDE_EVERY == BESIDE_EVERY - 1 {
            self.change_beside()?;
        }
        if number % PLAIN_EVERY == PLAIN_EVERY - 1 {
            return self.staged.commit(transaction, durability);
        }
        let view = self.staged.begin()?;
        let done = view.commit(transaction.clone(), durability).and_then(|()| view.make_true(durability));
        match done {
            // A large one needs more room than a plain one, to which more is promised. Nothing of
            // it may have happened.
            Err(error) if error.kind == ErrorKind::NoSpace => {
                drop(view);
                self.staged.commit(transaction, durability)
            }
            done => done.map(drop),
        }
    }

    fn close(&self) -> Result<()> {
        drop(self.beside.lock().take());
        self.staged.close()
    }

    forward_device!(self => self.seen(); info, read, attribute, attributes, stat, list, extents, space);

    forward_device! {
        self => self.staged;
        reserve_ids, sync, space_for, space_to_replace, promisable, maintain, has_directory_keys,
        health, compression, parity, rearrange, rearranging_bytes, decisions, map_objects, share,
        place, attachment, resizing, scrub, inspect, erase
    }
}

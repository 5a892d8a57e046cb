//! Transactions of users: many changes, of any objects, that happen wholly or not at all.
//!
//! [`Staged`] wraps a device and makes [`View`]s of it. A view is a device, too: it shows the
//! wrapped one with its own changes over it, which nobody else sees before they are committed. So
//! a file system on a view has all of names and files within a transaction. While no view is open
//! everything is handed on.

mod apply;
mod check;
mod commit;
mod content;
mod hide;
mod pieces;
mod plan;
mod powers;
mod record;
mod recover;
mod shadow;
mod touched;
mod view;
mod watch;

use crate::staged::hide::Listed;
use crate::staged::watch::Watch;
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, RwLock, rank};
use onode_object::powers::{Decision, Erase, MapObjects};
use onode_object::validate::refuse_moves;
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, ObjectStat, Result,
    Space, Transaction, forward_device,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub use check::{MergeOf, Rules};
pub use commit::{ChangedEntry, ChangedObject};
pub use view::View;

/// What the device says once the second half of a transaction could not be put in place.
const HALF: &str = "a committed transaction is only half in place; the next mount completes it";

/// A device of which views can be made.
pub struct Staged<D: ?Sized> {
    inner: Arc<D>,
    rules: Arc<dyn Rules>,
    /// More does not go into one transaction of the wrapped device.
    transaction_bytes: usize,
    /// Views that are open.
    views: AtomicUsize,
    /// Memory that their changes take: the device needs as much space for them.
    held: AtomicU64,
    /// Odd while a transaction is put in place in parts.
    applied: AtomicU64,
    /// A transaction could not be put in place.
    is_half: AtomicBool,
    /// What transactions left on the wrapped device cannot be read.
    is_unreadable: AtomicBool,
    /// Some objects of the wrapped device are not to be seen.
    has_hidden: AtomicBool,
    /// Held by who changes the wrapped device, alone by who begins or commits a view.
    changing: RwLock<(), rank::StagedChanging>,
    listed: Mutex<Listed, rank::StagedListed>,
    watch: Mutex<Watch, rank::StagedWatch>,
}

impl<D: ObjectDevice + ?Sized> Staged<D> {
    fn new(inner: Arc<D>, rules: Arc<dyn Rules>, transaction_bytes: usize) -> Self {
        Self {
            inner,
            rules,
            transaction_bytes,
            views: AtomicUsize::new(0),
            held: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            is_half: AtomicBool::new(false),
            is_unreadable: AtomicBool::new(false),
            has_hidden: AtomicBool::new(false),
            changing: RwLock::new(()),
            listed: Mutex::new(Listed::default()),
            watch: Mutex::new(Watch::default()),
        }
    }

    /// The wrapped device.
    #[must_use]
    pub const fn inner(&self) -> &Arc<D> {
        &self.inner
    }

    /// Views that are open.
    #[must_use]
    pub fn open_views(&self) -> usize {
        self.views.load(Ordering::Acquire)
    }

    /// What transactions left on the wrapped device cannot be read, as far as there is anything:
    /// its damage hides that. No view can be begun.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.is_unreadable.load(Ordering::Relaxed)
    }

    /// Looks at the wrapped device when no transaction is half in place: again, if one came
    /// meanwhile.
    fn look<T>(&self, mut look: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            let before = self.applied.load(Ordering::Acquire);
            if is_planted(Bug::StagedGateOpen) {
                return look();
            }
            if before.is_multiple_of(2) {
                let seen = look();
                std::sync::atomic::fence(Ordering::Acquire);
                if self.applied.load(Ordering::Relaxed) == before {
                    return seen;
                }
            } else {
                self.check_whole()?;
                drop(self.changing.read());
            }
        }
    }

    /// Whether an object is not to be seen.
    fn is_hidden(&self, object: ObjectId) -> bool {
        self.has_hidden.load(Ordering::Acquire) && self.listed.lock().hides(object)
    }

    /// Looks at an object that is to be seen.
    fn look_at<T>(&self, object: ObjectId, look: impl FnMut() -> Result<T>) -> Result<T> {
        if self.is_hidden(object) { Err(missing(object)) } else { self.look(look) }
    }

    fn check_whole(&self) -> Result<()> {
        if self.is_half.load(Ordering::Acquire) { Err(Error::new(ErrorKind::Media, HALF)) } else { Ok(()) }
    }

    /// Changes the wrapped device from outside of views, which hear of it.
    fn change<T>(&self, marks: impl FnOnce() -> Vec<Mutation>, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let _turn = Turn::take(self.inner.as_ref());
        let _changing = self.changing.read();
        self.check_whole()?;
        if self.views.load(Ordering::Acquire) == 0 {
            return change();
        }
        let marks = marks();
        let changed = change()?;
        self.watch.lock().note(marks.iter());
        Ok(changed)
    }
}

fn missing(object: ObjectId) -> Error {
    Error::of(ErrorKind::NotFound, object, "there is no such object")
}

/// The mutations without what they carry.
fn marks(transaction: &Transaction) -> Vec<Mutation> {
    let mark = |mutation: &Mutation| match mutation {
        Mutation::Write { object, offset, .. } => {
            Mutation::Write { object: *object, offset: *offset, data: Vec::new() }
        }
        Mutation::SetAttribute { object, key, .. } => Mutation::RemoveAttribute { object: *object, key: *key },
        other => other.clone(),
    };
    transaction.mutations.iter().map(mark).collect()
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Staged<D> {
    fn info(&self) -> DeviceInfo {
        let mut info = self.inner.info();
        if self.is_half.load(Ordering::Acquire) {
            info.read_only.get_or_insert_with(|| HALF.to_owned());
        }
        info
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let _turn = Turn::take(self.inner.as_ref());
        let _changing = self.changing.read();
        self.check_whole()?;
        refuse_moves(&transaction)?;
        if self.views.load(Ordering::Acquire) == 0 {
            return self.inner.commit(transaction, durability);
        }
        self.refuse_keys(&transaction)?;
        let marks = marks(&transaction);
        self.inner.commit(transaction, durability)?;
        self.watch.lock().note(marks.iter());
        Ok(())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.look_at(object, || self.inner.read(object, offset, buffer))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.look_at(object, || self.inner.attribute(object, key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.look_at(object, || self.inner.attributes(object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.look_at(object, || self.inner.stat(object))
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        if !self.has_hidden.load(Ordering::Acquire) {
            return self.look(|| self.inner.list(from, limit));
        }
        let mut from = from;
        loop {
            let found = self.look(|| self.inner.list(from, limit))?;
            let Some(last) = found.last().copied() else { return Ok(found) };
            let listed = self.listed.lock();
            let seen: Vec<_> = found.into_iter().filter(|object| !listed.hides(*object)).collect();
            // None means that there are no more: it must not be said of hidden ones.
            if !seen.is_empty() {
                return Ok(seen);
            }
            from = ObjectId(last.0.saturating_add(1));
        }
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.look_at(object, || self.inner.extents(object, offset, limit))
    }

    fn space(&self) -> Space {
        let space = self.inner.space();
        if !self.has_hidden.load(Ordering::Acquire) {
            return space;
        }
        Space { objects: space.objects.saturating_sub(self.listed.lock().count()), ..space }
    }

    fn promisable(&self) -> u64 {
        self.inner.promisable().saturating_sub(self.held.load(Ordering::Relaxed))
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
        self.look_at(object, || self.inner.decisions(object))
    }

    /// While views are open content is not changed where it lies: nobody would hear of it.
    fn map_objects(&self) -> Option<&dyn MapObjects> {
        let has_views = self.views.load(Ordering::Acquire) > 0;
        self.inner.map_objects().filter(|_| !has_views)
    }

    fn erase(&self) -> Option<&dyn Erase> {
        self.inner.erase().map(|_| self as &dyn Erase)
    }

    forward_device! {
        self => self.inner;
        reserve_ids, sync, space_for, space_to_replace, maintain, has_directory_keys, directory_key,
        close, health, compression, parity, rearrange, rearranging_bytes, share, place, attachment,
        resizing, scrub, inspect
    }
}

//! Transactions of users: a second file system on a view of the device of the first one.
//!
//! A view shows the device with changes that nobody else sees, so a file system on it has all of
//! names and files within a transaction. What both must agree on is here: what the first one has
//! not written yet when a transaction begins and when it is committed, what it remembers of files
//! that a committed transaction changed, and space that both set aside.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::names::entry::Entry;
use crate::names::slots::Slot;
use crate::options::Options;
use crate::state::State;
use crate::types::InodeNumber;
use crate::volume::VolumeInfo;
use onode_base::{Clock, ErrorKind};
use onode_object::{ObjectDevice, ObjectId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How the first file system stood when a transaction began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewStart {
    /// Renames of directories so far: two of them can make a circle that neither makes alone, so a
    /// transaction with some is refused if others were made meanwhile.
    directory_moves: u64,
    /// Sets of limits so far: what a transaction changes is counted for those that it began with.
    quota_changes: u64,
    /// Changes of other processes so far: of those nobody tells which files they concern.
    seen: u64,
}

/// A name that a stored entry is for.
#[must_use]
pub fn name_of_entry(stored: &[u8]) -> Option<Vec<u8>> {
    let slot = Slot::from_bytes(0, stored.to_vec());
    Entry::decode(&slot.payload).map(|entry| entry.name.to_vec())
}

impl FileSystem {
    /// Mounts the volume on a view of the device of another file system. That one's open files
    /// without a name are left alone. `changes` tells a number that is another one than the time
    /// before if others have changed something that the view shows.
    ///
    /// # Errors
    /// As [`mount`](Self::mount).
    pub fn mount_view(
        view: Arc<dyn ObjectDevice>,
        clock: Arc<dyn Clock>,
        options: Options,
        changes: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Self> {
        let hash = crate::names::slots::NameHash::new(VolumeInfo::load(view.as_ref())?.hash_key);
        let mut files = Self::assemble(view, clock, options, hash)?;
        files.changes_below = Some(Box::new(changes));
        files.lock().quotas.is_view = true;
        Ok(files)
    }

    /// Gives the device all that is dirty, so that a view which is begun now shows it, and tells
    /// how it stands. From now on, until [`views_ended`](Self::views_ended), others use the
    /// device's space, too.
    ///
    /// # Errors
    /// `ReadOnly`; the device's errors.
    pub fn begin_view(&self) -> Result<ViewStart> {
        self.check_writable()?;
        let state = &mut *self.lock();
        self.write_back_all(state)?;
        state.has_views = true;
        let quota_changes = state.quotas.changes;
        Ok(ViewStart { directory_moves: state.directory_moves, quota_changes, seen: state.seen })
    }

    /// No view is open any more.
    pub fn views_ended(&self) {
        let state = &mut *self.lock();
        (state.has_views, state.space) = (false, 0);
    }

    /// What is set aside for files that are not written yet, as it is at any moment, with what
    /// others set aside for whom it is the ledger of [`SharedSpace`](crate::SharedSpace).
    #[must_use]
    pub fn set_aside(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lock().set_aside)
    }

    /// In a file system on a view: gives it all that is dirty and removes files without a name,
    /// which nobody will use any more. Returns how many directories were renamed in it.
    ///
    /// # Errors
    /// The first failure to write something.
    pub fn settle_view(&self) -> Result<u64> {
        let state = &mut *self.lock();
        self.write_back_all(state)?;
        let orphans = state.nodes.iter().filter(|(_, node)| node.is_orphan && !node.removed);
        let orphans: Vec<u64> = orphans.map(|(number, _)| *number).collect();
        for number in orphans {
            if let Some(node) = state.nodes.get_mut(&number) {
                node.opens = 0;
            }
            state.lookups.take(number, u64::MAX);
            self.let_go(state, InodeNumber(number));
        }
        Ok(state.directory_moves)
    }

    /// Has a view's changes take effect, by `commit`, which changes `objects`. Nothing of this file
    /// system changes meanwhile; what it knows of these objects is looked up again. `moves` are the
    /// directories that were renamed in the view.
    ///
    /// # Errors
    /// `Conflict` if directories were renamed here and in the view, a file that the view changed
    /// has lost its last name here, or another process changed something; `ReadOnly`; those of
    /// `commit`.
    pub fn take_over<T>(
        &self,
        start: ViewStart,
        moves: u64,
        objects: &[ObjectId],
        commit: impl FnOnce() -> onode_object::Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        let state = &mut *self.lock();
        self.write_back_all(state)?;
        if start.seen != state.seen {
            let why = "another process has changed files on the memory";
            return Err(Error::new(ErrorKind::Conflict, why));
        }
        if moves > 0 && start.directory_moves != state.directory_moves {
            let why = "directories were renamed in the transaction and by somebody else";
            return Err(Error::new(ErrorKind::Conflict, why));
        }
        if start.quota_changes != state.quotas.changes || state.quotas.forming.is_some() {
            let why = "limits were set or removed while the transaction was open";
            return Err(Error::new(ErrorKind::Conflict, why));
        }
        // Of a file that is in use without a name the device has the inode as it was before.
        let is_orphan = |number: &InodeNumber| state.nodes.get(&number.0).is_some_and(|node| node.is_orphan);
        let mut files = objects.iter().map(|object| self.file_of_object(*object));
        if let Some(number) = files.find(is_orphan) {
            let why = "somebody else has removed a file that the transaction changed";
            return Err(Error::of(ErrorKind::Conflict, number, why));
        }
        let told = self.heard(commit())?;
        state.directory_moves += moves;
        state.space = 0;
        state.names.clear();
        let is_counted = state.quotas.is_on();
        for object in objects {
            self.look_again_at(state, *object);
        }
        if is_counted {
            self.reread_quotas(state)?;
        }
        Ok(told)
    }

    /// The file of an object that changed.
    #[must_use]
    pub fn file_of_object(&self, object: ObjectId) -> InodeNumber {
        InodeNumber(self.inodes.file_of(object).unwrap_or(object).0)
    }

    fn look_again_at(&self, state: &mut State, object: ObjectId) {
        let number = self.file_of_object(object);
        let seen = state.seen;
        if let Some(node) = state.nodes.get_mut(&number.0) {
            node.seen = seen.wrapping_add(1);
            // What cannot be read now is asked for again when it is used.
            let _ = self.refresh(state, number);
        }
    }
}

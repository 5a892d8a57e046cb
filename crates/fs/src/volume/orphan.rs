//! The end of a file: its last name goes, and later, with its last use, its object.
//!
//! A file that is still open when its last name goes is listed as an orphan on the volume object in
//! the same transaction; whatever happens, the next mount removes it.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::inode::Inode;
use crate::inodes::xattr;
use crate::state::State;
use crate::types::InodeNumber;
use crate::volume::VOLUME;
use onode_base::{ErrorKind, Timestamp};
use onode_object::{AttributeKey, AttributeKind, Durability, Mutation, ObjectDevice, ObjectId, SyncScope, Transaction};

const ORPHANS_AT_ONCE: usize = 64;
/// How long it is likely that a file without a name is about to go.
const EXPECTED_SECONDS: i64 = 1;

/// What became of a file that lost a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It has other names.
    No,
    /// It has none but is in use: it became an orphan.
    Orphan,
    /// Its object is gone.
    Removed,
}

const fn orphan_key(number: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::ORPHAN, number)
}

/// Up to `limit` orphans from `from` on.
pub(crate) fn list_orphans(device: &dyn ObjectDevice, from: u64, limit: usize) -> Result<Vec<u64>> {
    let found = device.attributes(VOLUME, orphan_key(from), limit)?;
    Ok(found.iter().filter(|(key, _)| key.kind == AttributeKind::ORPHAN).map(|(key, _)| key.index).collect())
}

impl FileSystem {
    pub(crate) fn add_orphan(transaction: &mut Transaction, number: InodeNumber) {
        transaction.set_attribute(VOLUME, orphan_key(number.0), Vec::new());
    }

    pub(crate) fn remove_orphan_mark(transaction: &mut Transaction, number: InodeNumber) {
        transaction.remove_attribute(VOLUME, orphan_key(number.0));
    }

    /// Notes that a file has no name and stays for those who use it.
    pub(crate) fn note_orphan(state: &mut State, number: InodeNumber) {
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        node.inode.links = 0;
        node.is_orphan = true;
        state.orphans += 1;
    }

    /// Notes that a file that had no name has one, or is gone.
    pub(crate) fn forget_orphan(state: &mut State, number: InodeNumber) {
        if let Some(node) = state.nodes.get_mut(&number.0) {
            node.is_orphan = false;
        }
        state.unlisted.remove(&number.0);
        state.orphans = state.orphans.saturating_sub(1);
    }

    /// Refuses a new name for a file without one that another process removes with its last use
    /// there.
    pub(crate) fn refuse_orphan_of_others(&self, number: InodeNumber) -> Result<()> {
        if self.device.share().is_some() && self.device.attribute(VOLUME, orphan_key(number.0))?.is_some() {
            return Err(Error::of(ErrorKind::NotFound, number, "another process has removed the file"));
        }
        Ok(())
    }

    /// Whether the object of a file without a name must stay for those who use it.
    fn is_in_use(&self, state: &State, number: InodeNumber) -> bool {
        let Some(node) = state.nodes.get(&number.0) else { return false };
        // Nobody reads a removed directory's object: it was empty.
        let is_known = || !self.options.opens_are_counted && state.lookups.of(number.0) > 0;
        !node.inode.is_directory() && (node.opens > 0 || is_known())
    }

    /// Whether a file that has lost its name lately is still in use: the kernel says some time
    /// after the call that took the name that it has forgotten the file, and only then there is
    /// space.
    #[must_use]
    pub fn is_space_expected(&self) -> bool {
        let state = self.state.lock();
        let since = |at: Timestamp| self.now().seconds.saturating_sub(at.seconds);
        state.orphans > 0 && state.last_orphan.is_some_and(|at| (0..=EXPECTED_SECONDS).contains(&since(at)))
    }

    /// Adds to the transaction what it means that the file loses one name. A directory must be
    /// empty.
    pub(crate) fn take_link(
        &self,
        state: &mut State,
        number: InodeNumber,
        now: Timestamp,
        transaction: &mut Transaction,
    ) -> Result<Ended> {
        let inode = self.node(state, number)?.inode;
        if inode.is_directory() {
            if inode.entries > 0 {
                return Err(Error::of(ErrorKind::NotEmpty, number, ""));
            }
        } else if inode.links > 1 {
            let mut inode = inode;
            inode.links -= 1;
            inode.changed = now;
            self.inodes.store(transaction, number.object(), &inode);
            return Ok(Ended::No);
        } else if self.is_in_use(state, number) {
            Self::add_orphan(transaction, number);
            return Ok(Ended::Orphan);
        }
        self.remove_file(number.object(), inode.has_xattrs, transaction)?;
        Ok(Ended::Removed)
    }

    /// Commits an unlink. On a full device it must work (N7), but listing an orphan takes a few
    /// bytes, and devices may keep more for that alone: then it is listed afterwards, as soon as
    /// there is room, and only a crash before that and before its last use ends would leave it to
    /// fsck. Where something is kept of the file its removal might never have room, so one that
    /// cannot be listed keeps its name.
    pub(crate) fn commit_removal(
        &self,
        state: &mut State,
        number: InodeNumber,
        transaction: Transaction,
        ended: Ended,
    ) -> Result<()> {
        if ended != Ended::Orphan {
            return self.commit(state, transaction);
        }
        let key = orphan_key(number.0);
        let is_mark = |mutation: &Mutation| matches!(mutation, Mutation::SetAttribute { key: set, .. } if *set == key);
        let mut unlisted = transaction.clone();
        unlisted.mutations.retain(|mutation| !is_mark(mutation));
        match self.commit(state, transaction) {
            Err(error) if error.kind == ErrorKind::NoSpace && self.device.space_to_replace(0) == 0 => {
                self.commit(state, unlisted)?;
                if self.list_orphan(state, number).is_err() {
                    state.unlisted.insert(number.0);
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Lists what has lost its name already. It takes so little that nothing is left out for it of
    /// what files were promised.
    fn list_orphan(&self, state: &mut State, number: InodeNumber) -> Result<()> {
        let mut transaction = Transaction::new();
        Self::add_orphan(&mut transaction, number);
        self.commit_promised(state, transaction)
    }

    /// Lists what there was no room to list, until there is none again.
    pub(crate) fn list_unlisted(&self) {
        let state = &mut *self.lock();
        while let Some(number) = state.unlisted.first().copied() {
            if self.list_orphan(state, InodeNumber(number)).is_err() {
                return;
            }
            state.unlisted.pop_first();
        }
    }

    /// Takes into memory what [`take_link`](Self::take_link) committed.
    pub(crate) fn link_taken(&self, state: &mut State, number: InodeNumber, now: Timestamp, ended: Ended) {
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        node.inode.changed = now;
        match ended {
            Ended::No => node.inode.links = node.inode.links.saturating_sub(1),
            Ended::Orphan => {
                Self::note_orphan(state, number);
                state.last_orphan = Some(now);
            }
            Ended::Removed => {
                node.inode.links = 0;
                self.object_gone(state, number);
            }
        }
    }

    /// The object was removed: what was dirty is dropped, and the node stays only as long as
    /// somebody knows it.
    fn object_gone(&self, state: &mut State, number: InodeNumber) {
        let Some(node) = state.nodes.get_mut(&number.0) else { return };
        node.removed = true;
        state.statistics.dropped_bytes += node.dirty.bytes() as u64;
        state.clean(number.0);
        if !state.is_referenced(number.0) {
            state.drop_node(number.0);
        }
    }

    /// Called when a use or handle was given back.
    pub(crate) fn let_go(&self, state: &mut State, number: InodeNumber) {
        let Some(node) = state.nodes.get(&number.0) else { return };
        let (removed, is_orphan, inode) = (node.removed, node.is_orphan, node.inode);
        if removed {
            if !state.is_referenced(number.0) {
                state.drop_node(number.0);
            }
            return;
        }
        // One that another process or a transaction has left without a name is for them to remove.
        if !is_orphan || self.is_in_use(state, number) {
            return;
        }
        let has_xattrs = inode.has_xattrs;
        let mut transaction = Transaction::new();
        let prepared = self.remove_file(number.object(), has_xattrs, &mut transaction);
        Self::remove_orphan_mark(&mut transaction, number);
        state.unlisted.remove(&number.0);
        if prepared.is_ok() && self.commit(state, transaction).is_ok() {
            Self::forget_orphan(state, number);
            self.object_gone(state, number);
        } else {
            // What snapshots keep of it may need room that there is not.
            state.unremoved.insert(number.0);
        }
    }

    /// Asks the device again to remove what nobody uses any more and it refused to remove, until it
    /// refuses once more.
    pub(crate) fn remove_refused(&self) {
        let state = &mut *self.lock();
        while let Some(number) = state.unremoved.first().copied() {
            let mut transaction = Transaction::new();
            let prepared = self.remove_orphan(ObjectId(number), &mut transaction);
            Self::remove_orphan_mark(&mut transaction, InodeNumber(number));
            if prepared.is_err() || self.commit(state, transaction).is_err() {
                return;
            }
            state.unremoved.pop_first();
            Self::forget_orphan(state, InodeNumber(number));
            self.object_gone(state, InodeNumber(number));
        }
    }

    /// The same before the volume is closed, with what is still in use and not listed: nobody
    /// uses it after that. What is refused even then is listed, for the next mount.
    pub(crate) fn leave_refused(&self) {
        {
            let State { unremoved, unlisted, .. } = &mut *self.lock();
            unremoved.append(unlisted);
        }
        self.remove_refused();
        let state = &mut *self.lock();
        while let Some(number) = state.unremoved.pop_first() {
            if self.list_orphan(state, InodeNumber(number)).is_err() {
                return;
            }
        }
    }

    /// Removes the files that had no name when the volume was last used. Those that the device has
    /// no room to remove stay for later, and the volume can be used.
    pub(crate) fn remove_orphans(&self) -> Result<()> {
        let mut from = 0;
        let mut any = false;
        loop {
            let orphans = list_orphans(self.device.as_ref(), from, ORPHANS_AT_ONCE)?;
            let Some(last) = orphans.last() else { break };
            from = last.saturating_add(1);
            for number in orphans {
                let mut transaction = Transaction::new();
                self.remove_orphan(ObjectId(number), &mut transaction)?;
                Self::remove_orphan_mark(&mut transaction, InodeNumber(number));
                let state = &mut *self.lock();
                let charges = self.charge(state, &mut transaction)?;
                match self.device.commit(transaction, Durability::Buffered) {
                    Err(error) if error.kind == ErrorKind::NoSpace => {
                        state.unremoved.insert(number);
                        continue;
                    }
                    done => done?,
                }
                Self::charged(state, &charges);
                any = true;
            }
        }
        if any {
            self.device.sync(SyncScope::All)?;
        }
        Ok(())
    }

    /// Adds the removal of what there is of a listed orphan; the list may be wrong. An orphan has
    /// no link, or the one that it had when it was listed: more are names that it was given later,
    /// and what has a name stays.
    fn remove_orphan(&self, object: ObjectId, transaction: &mut Transaction) -> Result<()> {
        if self.inodes.file_of(object).is_some() {
            return Ok(());
        }
        let has_names = |inode: Inode| !inode.is_directory() && inode.links > 1;
        if self.inodes.load(self.device.as_ref(), object)?.sound().is_some_and(has_names) {
            return Ok(());
        }
        let inode = self.inodes.object(object);
        match (self.exists(object)?, inode == object || self.exists(inode)?) {
            (true, true) => self.remove_file(object, true, transaction)?,
            (true, false) => _ = transaction.remove(object),
            (false, true) if inode != object => _ = transaction.remove(inode),
            (false, _) => {}
        }
        Ok(())
    }

    fn exists(&self, object: ObjectId) -> Result<bool> {
        match self.device.stat(object) {
            Ok(_) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the removal of a file's object, of its inode, and of the objects that hold its large
    /// extended attributes.
    fn remove_file(&self, object: ObjectId, has_xattrs: bool, transaction: &mut Transaction) -> Result<()> {
        if has_xattrs {
            for value in xattr::value_objects(self.device.as_ref(), object)? {
                transaction.remove(value);
            }
        }
        self.inodes.remove(transaction, object);
        Ok(())
    }
}

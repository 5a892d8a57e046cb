//! A new limit: all that exists already is counted, in steps between which files may change, and
//! then the limit comes with what is used, in one commit. Until then it does not hold; a crash, or
//! whoever stops, leaves no limit.
//!
//! Of a user or a group all objects are looked at by their numbers. A change of one that was looked
//! at counts when it is made, the others are counted when their turn comes.
//!
//! Of a tree the topmost directory gets the tree's number first, then what is in it, level by
//! level. What has the number is counted by whatever changes it, and leaves the tree no more; a
//! directory whose names were all looked at has only files of the tree, for what is made in it
//! inherits the number and what comes from outside is refused. The number is never used again: what
//! a crash leaves of it means nothing.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::inode::Inode;
use crate::names::entry::Entry;
use crate::quota::charge::Counted;
use crate::quota::record::{Charged, QuotaRecord};
use crate::quota::table::{Forming, Progress, QuotaEntry, TreePlace};
use crate::quota::{QuotaLimits, QuotaSubject, QuotaUse};
use crate::state::State;
use crate::types::InodeNumber;
use crate::volume::VOLUME;
use onode_base::ErrorKind;
use onode_object::{Durability, ObjectId, SyncScope, Transaction};

/// Objects, and names, that are looked at while others wait.
const AT_ONCE: usize = 64;
/// Seconds after which whoever makes no step is taken for gone.
const GONE_SECONDS: i64 = 30;

/// How far the counting of a new limit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaCount {
    /// The limit holds, durably.
    Done,
    /// So much was counted up to now.
    Counting(QuotaUse),
}

impl Forming {
    /// Whether a step was made lately.
    fn is_alive(&self, now: i64) -> bool {
        (0..GONE_SECONDS).contains(&now.saturating_sub(self.touched))
    }
}

impl FileSystem {
    /// Begins to set a limit; one that there is already is changed at once. `owner` is any number
    /// but 0 by which whoever makes the steps is known again.
    ///
    /// # Errors
    /// `Busy` if another one is being counted; `Exists` for a directory in a tree that has a limit;
    /// `Invalid` for the super-user; `NotDirectory`, `NotFound`; `NotSupported` on storage-class
    /// memory; `ReadOnly`, `NoSpace`; the device's errors.
    pub fn begin_quota(&self, owner: u64, subject: QuotaSubject, limits: QuotaLimits) -> Result<QuotaCount> {
        self.check_offers_quotas()?;
        if subject == QuotaSubject::User(0) {
            return Err(Error::new(ErrorKind::Invalid, "no limit holds the super-user"));
        }
        if self.change_quota(subject, limits)? {
            return Ok(QuotaCount::Done);
        }
        let now = self.now().seconds;
        let state = &mut *self.lock();
        if state.quotas.forming.as_ref().is_some_and(|forming| forming.owner != owner && forming.is_alive(now)) {
            return Err(Error::new(ErrorKind::Busy, "another limit is being set"));
        }
        state.quotas.forming = None;
        // What waits belongs to nobody yet.
        self.write_back_all(state)?;
        self.admit_quotas()?;
        let (charged, directory, progress) = match subject {
            QuotaSubject::User(uid) => (Charged::User(uid), 0, Progress::Objects(1)),
            QuotaSubject::Group(gid) => (Charged::Group(gid), 0, Progress::Objects(1)),
            QuotaSubject::Directory(number) => {
                let inode = self.live_directory(state, number)?;
                if state.quotas.tree_of(&inode) != 0 {
                    return Err(Error::of(ErrorKind::Exists, number, "it lies in a directory tree with a limit"));
                }
                let tree = self.new_number(state)?.0;
                (Charged::Tree(tree), number.0, Progress::Tree(Vec::new()))
            }
        };
        let record = QuotaRecord { limits, used: QuotaUse::default(), directory };
        let entry = QuotaEntry { record, pending: 0 };
        state.quotas.changes += 1;
        state.quotas.forming = Some(Box::new(Forming { charged, entry, progress, owner, touched: now }));
        state.recount_pending();
        if let Charged::Tree(tree) = charged {
            let top = self.node(state, InodeNumber(directory))?.inode;
            if let Err(error) = self.take_into_tree(state, tree, &[(InodeNumber(directory), top)]) {
                state.quotas.forming = None;
                return Err(error);
            }
        }
        Ok(QuotaCount::Counting(QuotaUse::default()))
    }

    /// Goes on for about so many files.
    ///
    /// # Errors
    /// `Busy` if nobody of that number sets a limit, or somebody else has taken over; `Exists` if
    /// there is a limit for a directory in the tree; `Corrupt`, `NoSpace`; the device's errors.
    /// After an error there is no limit.
    pub fn step_quota(&self, owner: u64, files: usize) -> Result<QuotaCount> {
        let mut left = files;
        loop {
            let state = &mut *self.lock();
            let forming = state.quotas.forming.as_mut().filter(|forming| forming.owner == owner);
            let Some(forming) = forming else {
                return Err(Error::new(ErrorKind::Busy, "no limit is being set, or another program has taken over"));
            };
            forming.touched = self.now().seconds;
            let used = forming.entry.record.used;
            if left == 0 {
                return Ok(QuotaCount::Counting(used));
            }
            left = left.saturating_sub(AT_ONCE);
            let (charged, progress) = (forming.charged, forming.progress.clone());
            let is_over = match (&progress, charged) {
                (Progress::Objects(next), _) => self.count_objects(state, charged, *next),
                (Progress::Tree(places), Charged::Tree(tree)) => self.count_names(state, tree, places.last().copied()),
                (Progress::Tree(_), Charged::User(_) | Charged::Group(_)) => Ok(true),
            };
            match is_over.and_then(|is_over| if is_over { self.finish_quota(state).map(|()| true) } else { Ok(false) })
            {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    state.quotas.forming = None;
                    return Err(error);
                }
            }
        }
        self.heard(self.device.sync(SyncScope::Object(VOLUME)))?;
        Ok(QuotaCount::Done)
    }

    /// Gives the setting of a limit up if whoever made the steps is gone: names would not leave
    /// what was counted of a tree for ever.
    pub(crate) fn give_up_quota(&self, now: i64) {
        let quotas = &mut self.state.lock().quotas;
        if quotas.forming.as_ref().is_some_and(|forming| !forming.is_alive(now)) {
            quotas.forming = None;
        }
    }

    /// Gives the setting of a limit up, if it is that of `owner`.
    pub fn stop_quota(&self, owner: u64) {
        let state = &mut *self.lock();
        if state.quotas.forming.as_ref().is_some_and(|forming| forming.owner == owner) {
            state.quotas.forming = None;
        }
    }

    /// Sets a limit, counting all that there is; returns when it holds.
    ///
    /// # Errors
    /// As [`begin_quota`](Self::begin_quota) and [`step_quota`](Self::step_quota).
    pub fn set_quota(&self, subject: QuotaSubject, limits: QuotaLimits) -> Result<()> {
        let owner = u64::MAX;
        let mut count = self.begin_quota(owner, subject, limits)?;
        while count != QuotaCount::Done {
            count = self.step_quota(owner, usize::MAX)?;
        }
        Ok(())
    }

    /// Looks at the next objects; true if there are no more.
    fn count_objects(&self, state: &mut State, charged: Charged, next: u64) -> Result<bool> {
        let objects = self.device.list(ObjectId(next), AT_ONCE)?;
        let Some(last) = objects.last() else { return Ok(true) };
        let mut found = QuotaUse::default();
        for object in objects.iter().filter(|object| self.inodes.file_of(**object).is_none() && **object != VOLUME) {
            let Some(Counted { holder, bytes }) = self.counted(state, *object)? else { continue };
            if holder.charged().contains(&charged) {
                found.bytes += bytes;
                found.files += 1;
            }
        }
        if let Some(forming) = state.quotas.forming.as_mut() {
            forming.entry.record.used.bytes += found.bytes;
            forming.entry.record.used.files += found.files;
            forming.progress = Progress::Objects(last.0.saturating_add(1));
        }
        Ok(last.0 == u64::MAX)
    }

    /// Takes the next names of a directory into the tree; true if there is no directory left.
    fn count_names(&self, state: &mut State, tree: u64, place: Option<TreePlace>) -> Result<bool> {
        let Some(TreePlace { directory, cursor }) = place else { return Ok(true) };
        let slots = match self.names(InodeNumber(directory)).list(cursor, AT_ONCE) {
            Ok(slots) => slots,
            // Removed meanwhile: it has no names.
            Err(error) if error.kind == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if let Some(Progress::Tree(places)) = state.quotas.forming.as_mut().map(|forming| &mut forming.progress) {
            match (slots.last(), places.last_mut()) {
                (Some(last), Some(place)) => place.cursor = last.index + 1,
                _ => _ = places.pop(),
            }
        }
        let mut taken: Vec<(InodeNumber, Inode)> = Vec::new();
        for entry in slots.iter().filter_map(|slot| Entry::decode(&slot.payload)) {
            let number = InodeNumber(entry.inode);
            self.write_back_file(state, number)?;
            let inode = self.node(state, number)?.inode;
            match state.quotas.tree_of(&inode) {
                // Another name of a file may have led to it before.
                0 if taken.iter().all(|(other, _)| *other != number) => taken.push((number, inode)),
                other if other != 0 && other != tree && inode.is_directory() => {
                    return Err(Error::of(ErrorKind::Exists, number, "a directory in the tree has a limit"));
                }
                // A file with a name in another tree stays there.
                _ => {}
            }
        }
        self.take_into_tree(state, tree, &taken)?;
        Ok(false)
    }

    /// Gives files the number of the tree. Nothing of them may be dirty.
    fn take_into_tree(&self, state: &mut State, tree: u64, files: &[(InodeNumber, Inode)]) -> Result<()> {
        let mut transaction = Transaction::new();
        for (number, inode) in files {
            self.inodes.store(&mut transaction, number.object(), &Inode { tree, ..*inode });
        }
        self.commit(state, transaction)?;
        for (number, inode) in files {
            self.set_inode(state, *number, Inode { tree, ..*inode });
            if inode.is_directory() {
                state.quotas.look_into(number.0);
            }
        }
        Ok(())
    }

    /// All was counted: from now on the limit holds.
    fn finish_quota(&self, state: &mut State) -> Result<()> {
        let Some(forming) = state.quotas.forming.as_deref() else { return Ok(()) };
        let (charged, entry) = (forming.charged, forming.entry);
        let mut transaction = Transaction::new();
        entry.record.store(&mut transaction, charged);
        self.heard(self.device.commit(transaction, Durability::Buffered))?;
        state.quotas.forming = None;
        state.quotas.admit(charged, entry);
        Ok(())
    }
}

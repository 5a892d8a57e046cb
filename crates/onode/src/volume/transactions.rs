//! Transactions of users: changes of any files that happen together, and that nobody else sees
//! before.
//!
//! A transaction is a volume of its own for whoever is in it ([`UserTransaction::volume`]). Here is
//! which there are, whose they are, and when they are over: committed, aborted, left alone for too
//! long, or with the end of the mount.

mod held;
mod staged;

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use crate::volume::Volume;
use held::Held;
use onode_base::sync::{Mutex, rank};
use onode_base::{Clock, ErrorKind};
use onode_fs::{Attributes, FileSystem, InodeNumber, name_of_entry};
use onode_object::{Durability, ObjectDevice};
use onode_services::{ChangedObject, Staged};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) use staged::staged;

/// Transactions that may be open at a time.
pub const TRANSACTIONS_MAX: usize = 32;
/// After how many seconds without use a transaction is aborted, unless something else is said.
pub const EXPIRY_SECONDS: u64 = 600;
/// Of how many transactions that are over is known how they ended.
const REMEMBERED: usize = 256;

/// How to begin a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Whose it is: only this user and the super-user may use it.
    pub uid: u32,
    /// After how many seconds without use it is aborted; 0 for never.
    pub expiry_seconds: u64,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self { uid: 0, expiry_seconds: EXPIRY_SECONDS }
    }
}

/// A transaction that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionInfo {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub uid: u32,
    /// Seconds since it was begun.
    pub age_seconds: u64,
    /// Seconds since it was last used.
    pub idle_seconds: u64,
    /// After how many seconds without use it is aborted; 0 for never.
    pub expiry_seconds: u64,
    /// Memory that its changes take.
    pub bytes: u64,
}

/// A file that a committed transaction changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// It.
    pub inode: InodeNumber,
    /// Names in it that lead somewhere else now, if it is a directory.
    pub names: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Open {
    last: u64,
    all: BTreeMap<u64, Arc<Held>>,
    /// How others ended, the newest last.
    ended: VecDeque<(u64, String)>,
}

impl Open {
    fn end(&mut self, id: u64, how: String) -> Option<Arc<Held>> {
        let held = self.all.remove(&id)?;
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, how));
        Some(held)
    }
}

/// All transactions of a volume.
pub struct Transactions {
    spec: Spec,
    staged: Arc<Staged<dyn ObjectDevice>>,
    files: Arc<FileSystem>,
    clock: Arc<dyn Clock>,
    open: Mutex<Open, rank::TransactionsOpen>,
}

impl std::fmt::Debug for Transactions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transactions").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// A transaction that is being used: it is not over before this is dropped.
#[derive(Debug)]
pub struct TransactionInUse(Arc<Held>);

impl TransactionInUse {
    /// The volume as the transaction sees it.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        self.0.volume()
    }
}

impl Drop for TransactionInUse {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Transactions {
    pub(super) fn new(
        spec: &Spec,
        staged: Arc<Staged<dyn ObjectDevice>>,
        files: &Arc<FileSystem>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let (spec, files) = (spec.clone(), Arc::clone(files));
        Arc::new(Self { spec, staged, files, clock, open: Mutex::default() })
    }

    /// Begins a transaction and returns its number.
    ///
    /// # Errors
    /// `ReadOnly`; `InUse` if [`TRANSACTIONS_MAX`] are open, or other processes use the memory that
    /// the volume lies on.
    pub fn begin(&self, options: TransactionOptions) -> Result<u64> {
        let what = || format!("cannot begin a transaction on {}", self.spec);
        self.sweep();
        let mut open = self.open.lock();
        if open.all.len() >= TRANSACTIONS_MAX {
            let why = format!("{TRANSACTIONS_MAX} are open, which is the most there may be");
            return Err(Error::new(Class::InUse, what(), why).hint("`onode tx list MOUNT` shows them"));
        }
        let id = open.last + 1;
        let held = self.make(id, options).map_err(|error| {
            if open.all.is_empty() {
                self.files.views_ended();
            }
            let told = Volume::error(what(), &error);
            if told.class == Class::InUse { told.hint("try again when they have ended") } else { told }
        })?;
        open.last = id;
        open.all.insert(id, Arc::new(held));
        Ok(id)
    }

    fn make(&self, id: u64, options: TransactionOptions) -> onode_fs::Result<Held> {
        let start = self.files.begin_view()?;
        let view = Arc::new(self.staged.begin_beside(self.files.set_aside())?);
        let mount = held::options(self.files.options());
        let device: Arc<dyn ObjectDevice> = view.clone();
        let below = Arc::clone(&view);
        let changes = move || below.changes_of_others();
        let files = FileSystem::mount_view(device, Arc::clone(&self.clock), mount, changes)?;
        let volume = Volume::of_files(&self.spec, Arc::new(files));
        Ok(Held::new(id, options, self.clock.now(), held::Viewed { view, volume, start }))
    }

    /// Those that are open.
    #[must_use]
    pub fn list(&self) -> Vec<TransactionInfo> {
        self.sweep();
        let now = self.clock.now();
        self.open.lock().all.values().map(|held| held.info(now)).collect()
    }

    /// The root directory as others see it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn root(&self) -> onode_fs::Result<Attributes> {
        self.files.attributes(InodeNumber::ROOT)
    }

    /// The numbers of those that are open.
    #[must_use]
    pub fn open_ids(&self) -> Vec<u64> {
        self.open.lock().all.keys().copied().collect()
    }

    fn find(&self, what: &str, id: u64, uid: u32) -> Result<Arc<Held>> {
        let open = self.open.lock();
        let Some(held) = open.all.get(&id) else {
            let why = match open.ended.iter().rev().find(|(ended, _)| *ended == id) {
                Some((_, how)) => how.clone(),
                None => "there is none of that number".to_owned(),
            };
            let error = Error::new(Class::NotFound, format!("cannot {what} transaction {id}"), why);
            return Err(error.hint("`onode tx list MOUNT` shows those that are open"));
        };
        if uid != 0 && uid != held.uid() {
            let why = "it belongs to somebody else";
            return Err(Error::new(Class::Permission, format!("cannot {what} transaction {id}"), why));
        }
        Ok(Arc::clone(held))
    }

    /// Uses a transaction; `uid` is who wants to.
    ///
    /// # Errors
    /// `NotFound` if it is over or never was, and how it ended; `Permission`.
    pub fn enter(&self, id: u64, uid: u32) -> Result<TransactionInUse> {
        self.sweep();
        let held = self.find("use", id, uid)?;
        if held.enter(self.clock.now()) {
            return Ok(TransactionInUse(held));
        }
        Err(Error::new(Class::InUse, format!("cannot use transaction {id}"), "it is about to end"))
    }

    /// Commits a transaction: all that was done in it is there for everybody, and durable, or
    /// nothing is. Returns what changed. After an error it is still open, with all its changes.
    ///
    /// # Errors
    /// `Conflict` if somebody else changed what it changed or whose content it read; `VolumeFull`;
    /// as [`enter`](Self::enter).
    pub fn commit(&self, id: u64, uid: u32) -> Result<Vec<ChangedFile>> {
        self.sweep();
        let held = self.find("commit", id, uid)?;
        let what = || format!("cannot commit transaction {id}");
        if !held.close() {
            return Err(Error::new(Class::InUse, what(), "it is about to end"));
        }
        let done = self.make_true(&held);
        match done {
            Ok(changed) => {
                self.over(id, "it was committed".to_owned());
                Ok(changed)
            }
            Err(error) => {
                held.reopen(self.clock.now());
                let told = Volume::error(what(), &error);
                match error.kind {
                    ErrorKind::Conflict => Err(Error::new(told.class, what(), self.name_conflict(&held, &error))),
                    ErrorKind::NotSupported => {
                        Err(Error::new(Class::Usage, what(), error.detail).hint("do it in several, or outside of one"))
                    }
                    _ => Err(told),
                }
            }
        }
    }

    fn make_true(&self, held: &Held) -> onode_fs::Result<Vec<ChangedFile>> {
        let own = held.volume().files().settle_view().map_err(|error| Self::told_by_others(held, error))?;
        let objects = held.view().changed_objects();
        let make_true = || held.view().make_true(Durability::Durable);
        let changed = self.files.take_over(held.start(), own, &objects, make_true)?;
        Ok(changed.iter().map(|one| self.changed_file(one)).collect())
    }

    /// That a file is gone to which something was still to be written is a conflict if others have
    /// removed it.
    fn told_by_others(held: &Held, error: onode_fs::Error) -> onode_fs::Error {
        let is_gone = matches!(error.kind, ErrorKind::NotFound | ErrorKind::Stale);
        match error.inode.filter(|inode| is_gone && held.view().is_changed_by_others(inode.object())) {
            Some(inode) => {
                let why = "somebody else has removed it since the transaction began";
                onode_fs::Error::of(ErrorKind::Conflict, inode, why)
            }
            None => error,
        }
    }

    fn changed_file(&self, changed: &ChangedObject) -> ChangedFile {
        let entries = changed.entries.iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|stored| name_of_entry(stored)).collect();
        names.sort_unstable();
        names.dedup();
        ChangedFile { inode: self.files.file_of_object(changed.object), names }
    }

    /// What a conflict is about, with a path if one is found.
    fn name_conflict(&self, held: &Held, error: &onode_fs::Error) -> String {
        let path = error.inode.and_then(|inode| {
            let inode = self.files.file_of_object(inode.object());
            held.path_of(inode).or_else(|| held::path_in(&self.files, inode))
        });
        let number = error.inode.map_or_else(String::new, |inode| format!("file {}: ", inode.0));
        format!("{}a conflict: {}", path.map_or(number, |path| format!("{path}: ")), error.detail)
    }

    /// Aborts a transaction: nothing that was done in it happens.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn abort(&self, id: u64, uid: u32) -> Result<()> {
        let held = self.find("abort", id, uid)?;
        if self.give_up(&held, "it was aborted") {
            return Ok(());
        }
        Err(Error::new(Class::InUse, format!("cannot abort transaction {id}"), "it is about to end"))
    }

    /// Aborts one, unless somebody else is about to end it.
    fn give_up(&self, held: &Held, how: &str) -> bool {
        if !held.close() {
            return false;
        }
        // What stays on the device is removed by the next mount.
        let _ = held.view().abort_because(how);
        self.over(held.id(), how.to_owned());
        true
    }

    fn over(&self, id: u64, how: String) {
        let mut open = self.open.lock();
        let ended = open.end(id, how);
        if open.all.is_empty() {
            self.files.views_ended();
        }
        drop(open);
        drop(ended);
    }

    /// Aborts what was not used for too long. To be called now and then.
    pub fn sweep(&self) {
        let now = self.clock.now();
        let expired: Vec<_> = {
            let open = self.open.lock();
            open.all.values().filter(|held| held.is_expired(now)).cloned().collect()
        };
        for held in expired {
            let how = format!("it was aborted because nobody used it for {} s", held.expiry_seconds());
            self.give_up(&held, &how);
        }
    }

    /// Aborts all: the volume is about to be closed.
    pub(super) fn abort_all(&self) {
        let all: Vec<_> = self.open.lock().all.values().cloned().collect();
        all.iter().for_each(|held| _ = self.give_up(held, "it was aborted because the volume was unmounted"));
    }
}

/// A transaction of a program that has the volume open itself. When it is dropped without having
/// been committed, it is aborted.
#[derive(Debug)]
pub struct UserTransaction {
    all: Arc<Transactions>,
    held: Arc<Held>,
}

impl UserTransaction {
    pub(super) fn begin(all: &Arc<Transactions>, options: TransactionOptions) -> Result<Self> {
        let id = all.begin(options)?;
        Ok(Self { all: Arc::clone(all), held: all.find("use", id, 0)? })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.held.id()
    }

    /// The volume as the transaction sees it. It does not expire while this is called now and then.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        self.held.touch(self.all.clock.now());
        self.held.volume()
    }

    /// Its files.
    #[must_use]
    pub fn files(&self) -> &Arc<FileSystem> {
        self.volume().files()
    }

    /// Has all that was done in it happen, durably, or nothing of it; returns what changed.
    ///
    /// # Errors
    /// As [`Transactions::commit`]; then the transaction is aborted.
    pub fn commit(self) -> Result<Vec<ChangedFile>> {
        self.all.commit(self.id(), 0)
    }

    /// Has nothing of what was done in it happen.
    pub fn abort(self) {
        drop(self);
    }
}

impl Drop for UserTransaction {
    fn drop(&mut self) {
        // One that was committed, or has expired, is over already.
        let _ = self.all.abort(self.id(), 0);
    }
}

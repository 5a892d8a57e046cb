//! Keys of directories of an open volume: who has such a key can use what was made in a directory
//! with it, while it is unlocked.

mod given;

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::Volume;
use crate::volume::keys::{AGENT, NewKey, salt};
use crate::volume::snapshots::Snapshots;
use crate::volume::snapshots::clones::Clones;
use onode_base::ErrorKind;
use onode_fs::{FileSystem, InodeNumber};
use onode_services::{DirectoryKey, DirectoryKeys, MasterKey, NewSlot, Secret};
use std::sync::Arc;

pub use given::KeysOfFiles;

/// The keys of directories of an open volume.
pub struct DirectoryKeyring {
    spec: Spec,
    keys: Arc<dyn DirectoryKeys>,
    files: Arc<FileSystem>,
    snapshots: Option<Arc<Snapshots>>,
    clones: Option<Arc<Clones>>,
    #[cfg(feature = "transactions")]
    transactions: Option<Arc<crate::volume::transactions::Transactions>>,
}

/// Files that need a key which was locked, of those that somebody has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedFiles {
    /// The snapshot or clone that they are in; `None` for the volume itself.
    pub generation: Option<u32>,
    /// They.
    pub files: Vec<InodeNumber>,
    /// Names that lead to the topmost directories with the key: where they are, and what they are.
    pub names: Vec<(InodeNumber, Vec<u8>)>,
}

impl std::fmt::Debug for DirectoryKeyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryKeyring").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Unlocks what the secrets of the agent open when a volume is opened.
pub(super) fn unlock(spec: &Spec, keys: &dyn DirectoryKeys) -> Result<()> {
    let Some(agent) = AGENT.get() else { return Ok(()) };
    for alternatives in agent.directory_secrets(spec)? {
        let mut refused = None;
        for secret in &alternatives {
            match keys.unlock(None, secret) {
                Ok(_) => {
                    refused = None;
                    break;
                }
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused {
            return Err(told(format!("cannot open {spec}"), &error));
        }
    }
    Ok(())
}

impl DirectoryKeyring {
    pub(in crate::volume) fn new(keys: Arc<dyn DirectoryKeys>, volume: &Volume) -> Arc<Self> {
        Arc::new(Self {
            spec: volume.spec.clone(),
            keys,
            files: Arc::clone(&volume.files),
            snapshots: volume.snapshots.clone(),
            clones: volume.clones.clone(),
            #[cfg(feature = "transactions")]
            transactions: volume.transactions.clone(),
        })
    }

    /// The same keys for a snapshot or a clone that is used instead of the volume.
    pub(in crate::volume) fn of_state(&self, state: &Volume) -> Arc<Self> {
        Self::new(Arc::clone(&self.keys), state)
    }

    /// All keys in the order of their numbers.
    ///
    /// # Errors
    /// Those of the device.
    pub fn list(&self) -> Result<Vec<DirectoryKey>> {
        self.keys.keys().map_err(|error| told(format!("cannot read the keys of {}", self.spec), &error))
    }

    /// Makes a key, durably, and unlocks it; returns its number. Directories can be given it then
    /// ([`give`](Self::give)).
    ///
    /// # Errors
    /// `Usage` for a key that cannot be one; `VolumeFull`, `ReadOnly`.
    pub fn create(&self, key: &NewKey<'_>) -> Result<u32> {
        let what = || format!("cannot make a key on {}", self.spec);
        let of_directory = MasterKey::new(random_bytes()?);
        let slot = slot(key).map_err(|error| told(what(), &error))?;
        self.keys.create(of_directory, &slot).map_err(|error| told(what(), &error))
    }

    /// The keys as directories of these files can have them: of the volume, or of a snapshot or a
    /// clone of it.
    #[must_use]
    pub const fn of_files<'a>(&'a self, files: &'a FileSystem) -> KeysOfFiles<'a> {
        KeysOfFiles { ring: self, files }
    }

    /// Gives a directory of the volume a key ([`KeysOfFiles::give`]).
    ///
    /// # Errors
    /// Those of that.
    pub fn give(&self, directory: InodeNumber, number: u32) -> Result<()> {
        self.of_files(&self.files).give(directory, number)
    }

    /// Makes a key for a directory of the volume ([`KeysOfFiles::create_for`]).
    ///
    /// # Errors
    /// Those of that.
    pub fn create_for(&self, directory: InodeNumber, key: &NewKey<'_>) -> Result<u32> {
        self.of_files(&self.files).create_for(directory, key)
    }

    /// The number of the key that a file or directory of the volume needs; 0 for none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn number_of(&self, file: InodeNumber) -> Result<u32> {
        self.of_files(&self.files).number_of(file)
    }

    /// Refuses what must not happen to the files of the volume while a transaction is open.
    fn refuse_beside_transactions(&self, what: &dyn Fn() -> String, why: &str) -> Result<()> {
        #[cfg(feature = "transactions")]
        if self.transactions.as_ref().is_some_and(|all| !all.open_ids().is_empty()) {
            return Err(Error::new(Class::InUse, what(), why).hint("commit it, or abort it: onode tx abort"));
        }
        let _ = (what, why);
        Ok(())
    }

    /// Unlocks the key of that number, or all that the secret opens; returns their numbers.
    ///
    /// # Errors
    /// `Key` if it opens none; `NotFound` if there is no such key.
    pub fn unlock(&self, number: Option<u32>, secret: &Secret) -> Result<Vec<u32>> {
        let what = || match number {
            Some(number) => format!("cannot unlock key {number} of {}", self.spec),
            None => format!("cannot unlock a key of {}", self.spec),
        };
        self.keys.unlock(number, secret).map_err(|error| told(what(), &error))
    }

    /// That a secret opens the key of that number; nothing is unlocked.
    ///
    /// # Errors
    /// `Key` if it does not.
    pub fn proves(&self, number: u32, secret: &Secret) -> Result<()> {
        let what = || format!("cannot change key {number} of {}", self.spec);
        self.keys.slot_of(number, secret).map(drop).map_err(|error| told(what(), &error))
    }

    /// Forgets a key. Tells what the kernel, or whoever else remembers names and content, has to
    /// forget then; nothing if it was locked.
    ///
    /// # Errors
    /// `InUse` if files are open that need it, or a transaction is open; those of writing what was
    /// not written yet.
    pub fn lock(&self, number: u32) -> Result<Vec<LockedFiles>> {
        let what = || format!("cannot lock key {number} of {}", self.spec);
        if !self.list()?.iter().any(|key| key.number == number) {
            return Err(Error::new(Class::NotFound, what(), "there is no such key").hint("onode key list MOUNT"));
        }
        self.refuse_beside_transactions(
            &what,
            "a transaction is open, which may have read what it keeps: end it first",
        )?;
        let failed = |error: onode_fs::Error| {
            let told = Volume::error(what(), &error);
            if error.kind == ErrorKind::Busy {
                Error::new(Class::InUse, told.what, error.detail)
                    .hint("close them first: fuser -vm MOUNT shows who has")
            } else {
                told
            }
        };
        let others: Vec<(u32, Arc<FileSystem>)> = self.open_states();
        // Whether files are open there is asked before anything is locked.
        for (_, files) in &others {
            files.forget_key(number, || ()).map_err(failed)?;
        }
        let mut was_unlocked = false;
        let kept = self.files.forget_key(number, || was_unlocked = self.keys.lock(number)).map_err(failed)?;
        if !was_unlocked {
            return Ok(Vec::new());
        }
        let mut locked = vec![locked_files(None, &self.files, kept)];
        for (generation, files) in others {
            let kept = files.forget_key(number, || ()).map_err(failed)?;
            locked.push(locked_files(Some(generation), &files, kept));
        }
        Ok(locked)
    }

    /// Adds what opens a key that is unlocked; returns the number of its slot.
    ///
    /// # Errors
    /// `Key` if it is locked; `NotFound`; `Usage` for a key that cannot be one.
    pub fn add(&self, number: u32, key: &NewKey<'_>) -> Result<u32> {
        let what = || format!("cannot add to key {number} of {}", self.spec);
        let slot = slot(key).map_err(|error| told(what(), &error))?;
        let added = self.keys.change(number, Some(&slot), &[], false).map_err(|error| told(what(), &error))?;
        Ok(added.unwrap_or_default())
    }

    /// Removes slots of a key. Without its last slot nobody can read any more what it keeps: that
    /// is refused unless `destroys`.
    ///
    /// # Errors
    /// `NotFound`; `Usage` for the last slot.
    pub fn remove(&self, number: u32, slots: &[u32], destroys: bool) -> Result<()> {
        let what = || format!("cannot remove slots of key {number} of {}", self.spec);
        self.keys.change(number, None, slots, destroys).map(drop).map_err(|error| told(what(), &error))
    }

    /// The snapshots and clones that somebody looks at.
    fn open_states(&self) -> Vec<(u32, Arc<FileSystem>)> {
        let of_snapshots = self.snapshots.as_ref().map_or_else(Vec::new, |all| all.all_open());
        let of_clones = self.clones.as_ref().map_or_else(Vec::new, |all| all.all_numbered());
        of_snapshots.into_iter().chain(of_clones).collect()
    }
}

fn slot<'a>(key: &NewKey<'a>) -> onode_object::Result<NewSlot<'a>> {
    Ok(NewSlot { secret: key.secret, label: key.label, cost: key.cost, salt: salt()? })
}

fn locked_files(generation: Option<u32>, files: &FileSystem, kept: Vec<InodeNumber>) -> LockedFiles {
    let names = files.topmost_names(&kept);
    LockedFiles { generation, files: kept, names }
}

fn told(what: String, error: &onode_object::Error) -> Error {
    match error.kind {
        ErrorKind::Invalid => {
            Error::new(Class::Usage, what, error.detail.clone()).hint("`onode key --help` says what keys can be")
        }
        ErrorKind::KeyNeeded => Error::new(Class::Key, what, error.detail.clone())
            .hint("`onode key list` shows the keys; `onode key unlock` unlocks one"),
        ErrorKind::NotFound => Error::new(Class::NotFound, what, error.detail.clone())
            .hint("`onode key list` shows the keys that there are"),
        _ => volume_error(what, error),
    }
}

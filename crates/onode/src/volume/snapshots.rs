//! Snapshots of a volume: its files as they were at one moment, to be read.
//!
//! A volume can have snapshots unless others may use its device at the same time, or programs work
//! on a part of it: then it has none ([`Volume::snapshots`](crate::Volume::snapshots)).

pub mod clones;
pub mod lost;

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::spec::Spec;
use crate::volume::Volume;
use crate::volume::layers::States;
use crate::volume::transfer::send::SendStream;
use crate::volume::versioned::told;
use onode_base::Clock;
use onode_base::sync::{Mutex, rank};
use onode_fs::{AccessTimes, FileSystem, Options};
use onode_services::{NewSnapshot, Snapshot, SnapshotId};
use std::collections::VecDeque;
use std::sync::Arc;

/// File systems of snapshots that stay open after their last use; each takes a few MiB at most.
const OPEN_MAX: usize = 8;
const CACHED_INODES: usize = 2_000;
const NAME_CACHE_BYTES: usize = 1 << 20;

/// The snapshots of an open volume.
pub struct Snapshots {
    spec: Spec,
    states: States,
    files: Arc<FileSystem>,
    clock: Arc<dyn Clock>,
    /// The one to which the volume has yet to go back.
    returns_to: Option<Snapshot>,
    /// Those that are looked at, the one that was used last at the end.
    open: Mutex<VecDeque<(u32, Arc<FileSystem>)>, rank::SnapshotsOpen>,
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshots").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Snapshots {
    pub(super) fn new(
        spec: &Spec,
        states: States,
        files: &Arc<FileSystem>,
        clock: Arc<dyn Clock>,
        returns_to: Option<Snapshot>,
    ) -> Arc<Self> {
        let (spec, files) = (spec.clone(), Arc::clone(files));
        Arc::new(Self { spec, states, files, clock, returns_to, open: Mutex::default() })
    }

    /// Why a volume can have none.
    #[must_use]
    pub fn lacking(spec: &Spec, what: String) -> Error {
        if !spec.is_memory() {
            return Error::new(
                Class::Usage,
                what,
                "it is a snapshot, a clone or seen in a transaction, and has none of its own",
            );
        }
        let exclusive = match spec.image_path() {
            Some(path) => format!("`onode tune {} exclusive=on`", path.display()),
            None => "`exclusive=on` in its spec".to_owned(),
        };
        Error::new(Class::Usage, what, "a volume on storage-class memory that processes share has none").hint(format!(
            "programs may change its content without a call; {exclusive} gives it to one process at a time, and then \
             it can have snapshots, clones and limits"
        ))
    }

    /// Those that there are, in the order in which they were taken.
    #[must_use]
    pub fn list(&self) -> Vec<Snapshot> {
        self.states.all()
    }

    /// The snapshot of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Snapshot> {
        self.states.named(name)
    }

    /// The snapshot of a number, which it may have on several volumes.
    #[must_use]
    pub fn identified(&self, id: SnapshotId) -> Option<Snapshot> {
        self.states.identified(id)
    }

    /// Keeps all files as they are now, under a name. What programs have written is in it, synced
    /// or not; durable on return. It takes no longer for a large volume than for an empty one.
    ///
    /// # Errors
    /// `Usage` for a name that cannot be one of a directory; `Exists`; `VolumeFull`, `ReadOnly`.
    pub fn take(&self, name: &str) -> Result<Snapshot> {
        let what = || format!("cannot take the snapshot `{name}` of {}", self.spec);
        let new = self.new_one(name).map_err(|error| Error { what: what(), ..error })?;
        let taken = self.files.with_all_written(|| self.states.versioned.take_with(&new, Vec::new()));
        taken.map_err(|error| Volume::error(what(), &error))?.map_err(|error| told(what(), &error))
    }

    /// A snapshot that is to be taken now.
    fn new_one(&self, name: &str) -> Result<NewSnapshot> {
        Ok(NewSnapshot { name: name.to_owned(), created: self.clock.now(), id: Some(SnapshotId(random_bytes()?)) })
    }

    /// Deletes a snapshot. What only it kept is removed by and by
    /// ([`is_cleaning`](Self::is_cleaning)).
    ///
    /// # Errors
    /// `NotFound`; `ReadOnly`; `InUse` if it has clones, or the volume has yet to go back to it.
    pub fn delete(&self, name: &str) -> Result<()> {
        let what = || format!("cannot delete the snapshot `{name}` of {}", self.spec);
        let generation = self.named(name).map(|one| one.generation);
        if generation.is_some() && self.returns_to.as_ref().map(|one| one.generation) == generation {
            let why = "the volume has the files of this snapshot in part, and has yet to go back to it";
            return Err(Error::new(Class::InUse, what(), why)
                .hint(format!("end that first: onode snapshot rollback {} {name}", self.spec)));
        }
        self.states.versioned.delete(name).map_err(|error| told(what(), &error))?;
        self.open.lock().retain(|(open, _)| Some(*open) != generation);
        Ok(())
    }

    /// Whether what deleted snapshots kept is still being removed.
    #[must_use]
    pub fn is_cleaning(&self) -> bool {
        self.states.versioned.is_cleaning()
    }

    /// Removes some of what deleted snapshots kept; whether there is more.
    ///
    /// # Errors
    /// `VolumeFull`, `ReadOnly`; those of the device.
    pub fn clean(&self, budget: u32) -> Result<bool> {
        let done = self.states.versioned.clean(budget);
        Ok(done.map_err(|error| told(format!("cannot remove deleted snapshots of {}", self.spec), &error))?.more)
    }

    /// What a snapshot keeps of content that has changed since, up to the next one, in bytes of the
    /// medium.
    ///
    /// # Errors
    /// Those of the device.
    pub fn kept_bytes(&self, generation: u32) -> Result<u64> {
        let found = self.states.versioned.kept_bytes(generation);
        found.map_err(|error| told(format!("cannot look at the snapshots of {}", self.spec), &error))
    }

    /// A stream from which another volume gets the state of a snapshot: all its files, or what has
    /// changed since an earlier one.
    ///
    /// # Errors
    /// `NotFound`; `Usage` if that is no earlier one; those of the device.
    pub fn send(&self, name: &str, from: Option<&str>) -> Result<SendStream> {
        SendStream::of_snapshot(&self.spec, &self.states, name, from)
    }

    /// The files of a snapshot.
    ///
    /// # Errors
    /// `NotFound`; as [`Volume::open`] for reading.
    pub fn files(&self, generation: u32) -> Result<Arc<FileSystem>> {
        if let Some(open) = self.opened(generation) {
            return Ok(open);
        }
        let what = || format!("cannot open a snapshot of {}", self.spec);
        let found = self.list().into_iter().find(|one| one.generation == generation);
        let snapshot = found.ok_or_else(|| Error::new(Class::NotFound, what(), "it was deleted"))?;
        let files = Arc::new(self.mount(&snapshot)?);
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.pop_front();
        }
        open.push_back((generation, Arc::clone(&files)));
        Ok(files)
    }

    /// The same, if they are open already.
    #[must_use]
    pub fn opened(&self, generation: u32) -> Option<Arc<FileSystem>> {
        let mut open = self.open.lock();
        let position = open.iter().position(|(one, _)| *one == generation)?;
        let used = open.remove(position)?;
        let files = Arc::clone(&used.1);
        open.push_back(used);
        Some(files)
    }

    /// Those that somebody looks at.
    #[cfg(feature = "encryption")]
    pub(super) fn all_open(&self) -> Vec<(u32, Arc<FileSystem>)> {
        self.open.lock().iter().cloned().collect()
    }

    fn mount(&self, snapshot: &Snapshot) -> Result<FileSystem> {
        let what = || format!("cannot open the snapshot `{}` of {}", snapshot.name, self.spec);
        let device = self.states.shown(snapshot)?;
        let mount = Options {
            read_only: true,
            access_times: AccessTimes::Never,
            cached_inodes: CACHED_INODES.min(self.files.options().cached_inodes),
            name_cache_bytes: NAME_CACHE_BYTES.min(self.files.options().name_cache_bytes),
            ..self.files.options().clone()
        };
        FileSystem::mount(device, Arc::clone(&self.clock), mount).map_err(|error| Volume::error(what(), &error))
    }
}

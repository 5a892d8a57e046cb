//! Snapshots of a volume: its files as they were at one moment, to be read.
//!
//! A volume has snapshots unless others may use its device at the same time, or programs work on a
//! part of it: then it can have none ([`Volume::snapshots`](crate::Volume::snapshots)).

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::{Volume, wrapped};
use onode_base::sync::{Mutex, rank};
use onode_base::{Clock, ErrorKind};
use onode_fs::{AccessTimes, FileSystem, Options};
use onode_object::{Compression, ObjectDevice};
use onode_services::{Snapshot, Versioned};
use std::collections::VecDeque;
use std::sync::Arc;

/// File systems of snapshots that stay open after their last use; each takes a few MiB at most.
const OPEN_MAX: usize = 8;
const CACHED_INODES: usize = 2_000;
const NAME_CACHE_BYTES: usize = 1 << 20;

/// What stands on a device, on one that shows how it was once.
pub(super) type OfSnapshot = dyn Fn(Arc<dyn ObjectDevice>) -> Arc<dyn ObjectDevice> + Send + Sync;

/// The device of a volume that may be encrypted.
pub(super) struct Unlocked {
    pub(super) device: Arc<dyn ObjectDevice>,
    pub(super) of_snapshot: Arc<OfSnapshot>,
}

impl Unlocked {
    /// That of one that is not.
    pub(super) fn plain(device: Arc<dyn ObjectDevice>) -> Self {
        Self { device, of_snapshot: Arc::new(|snapshot| snapshot) }
    }
}

/// A device of which there can be snapshots, if there can be some.
pub(super) struct VersionedDevice {
    pub(super) device: Arc<dyn ObjectDevice>,
    pub(super) versioned: Option<Arc<Versioned<dyn ObjectDevice>>>,
}

/// The device with its snapshots. What it says of them may be unreadable: then it can be looked at,
/// and with consent to loss it is used without them.
pub(super) fn versioned(
    spec: &Spec,
    device: Arc<dyn ObjectDevice>,
    may_lose: bool,
    notes: &mut Vec<String>,
) -> Result<VersionedDevice> {
    let opened = match Versioned::open(Arc::clone(&device)) {
        Err(error) if error.kind == ErrorKind::Corrupt && may_lose => {
            notes
                .push(format!("what the volume says of its snapshots cannot be read, and they are not shown: {error}"));
            Some(Versioned::open_giving_up(Arc::clone(&device)))
        }
        opened => opened.map_err(|error| {
            // It is left as it was found.
            let _ = device.close();
            let told = volume_error(format!("cannot open {spec}"), &error);
            match error.kind {
                ErrorKind::Corrupt => Error { class: Class::Loss, ..told }.hint(
                    "restore the image from a copy, or read it with `-o ro`; --accept-loss gives up its snapshots",
                ),
                _ => told,
            }
        })?,
    };
    Ok(match opened {
        Some(versioned) => {
            let versioned = Arc::new(versioned);
            VersionedDevice {
                device: Arc::<Versioned<dyn ObjectDevice>>::clone(&versioned),
                versioned: Some(versioned),
            }
        }
        None => VersionedDevice { device, versioned: None },
    })
}

/// The snapshots of an open volume.
pub struct Snapshots {
    spec: Spec,
    versioned: Arc<Versioned<dyn ObjectDevice>>,
    of_snapshot: Arc<OfSnapshot>,
    files: Arc<FileSystem>,
    clock: Arc<dyn Clock>,
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
        versioned: Arc<Versioned<dyn ObjectDevice>>,
        of_snapshot: Arc<OfSnapshot>,
        files: &Arc<FileSystem>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let (spec, files) = (spec.clone(), Arc::clone(files));
        Arc::new(Self { spec, versioned, of_snapshot, files, clock, open: Mutex::default() })
    }

    /// Those that there are, in the order in which they were taken.
    #[must_use]
    pub fn list(&self) -> Vec<Snapshot> {
        self.versioned.snapshots()
    }

    /// The snapshot of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Snapshot> {
        self.list().into_iter().find(|one| one.name == name)
    }

    /// Keeps all files as they are now, under a name. What programs have written is in it, synced
    /// or not; durable on return. It takes no longer for a large volume than for an empty one.
    ///
    /// # Errors
    /// `Usage` for a name that cannot be one of a directory; `Exists`; `VolumeFull`, `ReadOnly`.
    pub fn take(&self, name: &str) -> Result<Snapshot> {
        let what = || format!("cannot take the snapshot `{name}` of {}", self.spec);
        self.files.prepare_snapshot().map_err(|error| Volume::error(what(), &error))?;
        self.versioned.take(name, self.clock.now()).map_err(|error| told(what(), &error))
    }

    /// Deletes a snapshot. What only it kept is removed by and by
    /// ([`is_cleaning`](Self::is_cleaning)).
    ///
    /// # Errors
    /// `NotFound`; `ReadOnly`.
    pub fn delete(&self, name: &str) -> Result<()> {
        let what = || format!("cannot delete the snapshot `{name}` of {}", self.spec);
        let generation = self.named(name).map(|one| one.generation);
        self.versioned.delete(name).map_err(|error| told(what(), &error))?;
        self.open.lock().retain(|(open, _)| Some(*open) != generation);
        Ok(())
    }

    /// Whether what deleted snapshots kept is still being removed.
    #[must_use]
    pub fn is_cleaning(&self) -> bool {
        self.versioned.is_cleaning()
    }

    /// Removes some of what deleted snapshots kept; whether there is more.
    ///
    /// # Errors
    /// `VolumeFull`, `ReadOnly`; those of the device.
    pub fn clean(&self, budget: u32) -> Result<bool> {
        let done = self.versioned.clean(budget);
        Ok(done.map_err(|error| told(format!("cannot remove deleted snapshots of {}", self.spec), &error))?.more)
    }

    /// What a snapshot keeps of content that has changed since, up to the next one, in bytes of the
    /// medium.
    ///
    /// # Errors
    /// Those of the device.
    pub fn kept_bytes(&self, generation: u32) -> Result<u64> {
        let found = self.versioned.kept_bytes(generation);
        found.map_err(|error| told(format!("cannot look at the snapshots of {}", self.spec), &error))
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

    fn mount(&self, snapshot: &Snapshot) -> Result<FileSystem> {
        let what = || format!("cannot open the snapshot `{}` of {}", snapshot.name, self.spec);
        let view = self.versioned.view(&snapshot.name).map_err(|error| told(what(), &error))?;
        let device = (self.of_snapshot)(Arc::new(view));
        let mut notes = Vec::new();
        let device = wrapped(&self.spec, device, Compression::Never, &mut notes)?;
        // What was committed and not yet in place is shown as if it were.
        #[cfg(feature = "transactions")]
        let device = super::transactions::staged(&self.spec, device, false, &mut notes)?.into_device();
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

fn told(what: String, error: &onode_object::Error) -> Error {
    match error.kind {
        ErrorKind::Invalid => Error::new(Class::Usage, what, error.detail.clone()),
        ErrorKind::Exists => Error::new(Class::Exists, what, error.detail.clone())
            .hint("choose another name, or delete that one first: onode snapshot delete"),
        ErrorKind::NotFound => Error::new(Class::NotFound, what, error.detail.clone())
            .hint("`onode snapshot list` shows those that there are"),
        _ => volume_error(what, error),
    }
}

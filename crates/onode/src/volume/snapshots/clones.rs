//! Clones of snapshots: file systems of their own that share with a snapshot what neither changes.
//!
//! A clone that is used stays open until it is deleted or the volume is closed: programs may have
//! its files open. All file systems on the device share its space, and each knows what the others
//! have set aside.

use crate::error::{Class, Error, Result};
use crate::open::access::Opened;
use crate::spec::Spec;
use crate::volume::Volume;
use crate::volume::layers::States;
use crate::volume::snapshots::{CACHED_INODES, NAME_CACHE_BYTES, Snapshots};
use crate::volume::versioned::told_of_clone;
use onode_base::Clock;
use onode_base::sync::{Mutex, rank};
use onode_fs::{FileSystem, Options, SharedSpace};
use onode_services::CloneInfo;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// What is appended to the name of a clone for that of the snapshot that is taken for it.
const BASE_SUFFIX: &str = ".base";

/// The clones of an open volume.
pub struct Clones {
    spec: Spec,
    states: States,
    snapshots: Arc<Snapshots>,
    /// Those of the volume itself.
    files: Arc<FileSystem>,
    clock: Arc<dyn Clock>,
    /// Those that are used, by their numbers.
    open: Mutex<BTreeMap<u32, Volume>, rank::ClonesOpen>,
    /// The space of the device; what is set aside of it is that of the volume, which transactions
    /// leave alone.
    shared: SharedSpace,
}

impl std::fmt::Debug for Clones {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clones").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Clones {
    pub(crate) fn new(states: States, snapshots: &Arc<Snapshots>) -> Arc<Self> {
        let (spec, clock) = (snapshots.spec.clone(), Arc::clone(&snapshots.clock));
        let (snapshots, files) = (Arc::clone(snapshots), Arc::clone(&snapshots.files));
        Arc::new_cyclic(|all: &Weak<Self>| {
            let all = all.clone();
            let write_all = Arc::new(move || all.upgrade().iter().for_each(|all| all.write_all()));
            let shared = SharedSpace { ledger: files.set_aside(), write_all };
            Self { spec, states, snapshots, files, clock, open: Mutex::default(), shared }
        })
    }

    /// Has the volume and its clones write what waits. What the device cannot take is told by its
    /// file.
    fn write_all(&self) {
        for files in std::iter::once(&self.files).chain(&self.all_open()) {
            let _ = files.write_back();
        }
    }

    /// Those that there are, in the order in which they were made.
    #[must_use]
    pub fn list(&self) -> Vec<CloneInfo> {
        self.states.versioned.clones()
    }

    /// The clone of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<CloneInfo> {
        self.list().into_iter().find(|one| one.name == name)
    }

    /// Makes a clone of a snapshot, or of all files as they are now: then a snapshot is taken for
    /// it, which has the name of the clone with `.base` behind. Durable on return. It takes no
    /// longer for a large volume than for an empty one.
    ///
    /// # Errors
    /// `Usage` for a name that cannot be one of a directory; `NotFound` if there is no such
    /// snapshot; `Exists`, `VolumeFull`, `ReadOnly`.
    pub fn make(&self, name: &str, snapshot: Option<&str>) -> Result<CloneInfo> {
        let what = || format!("cannot make the clone `{name}` of {}", self.spec);
        if self.named(name).is_some() || self.snapshots.named(name).is_some() {
            return Err(Error::new(Class::Exists, what(), "there is a clone or a snapshot of that name")
                .hint("choose another name"));
        }
        let made = match snapshot {
            Some(snapshot) => {
                let mut created = self.clock.now();
                // Only one that was taken for a clone is as old as that, whatever the clock says.
                if self.snapshots.named(snapshot).is_some_and(|base| base.created == created) {
                    created.nanoseconds ^= 1;
                }
                self.states.versioned.make_clone(name, snapshot, created)
            }
            None => {
                let base = self.snapshots.new_one(&format!("{name}{BASE_SUFFIX}"));
                let base = base.map_err(|error| Error { what: what(), ..error })?;
                let make = || self.states.versioned.make_clone_of_now(name, &base);
                self.files.with_all_written(make).map_err(|error| Volume::error(what(), &error))?
            }
        };
        made.map_err(|error| told_of_clone(what(), &error))
    }

    /// Deletes a clone, and the snapshot that was taken for it if no other clone was made of that.
    /// What only they kept is removed by and by.
    ///
    /// # Errors
    /// `NotFound`; `ReadOnly`.
    pub fn delete(&self, name: &str) -> Result<()> {
        let what = || format!("cannot delete the clone `{name}` of {}", self.spec);
        let own_base = format!("{name}{BASE_SUFFIX}");
        let clone = self.named(name);
        // One that was taken for the clone was taken with it; others may have such a name, too.
        let is_own = |clone: &&CloneInfo| {
            let base = self.snapshots.named(&clone.base);
            clone.base == own_base && base.is_some_and(|base| base.created == clone.created)
        };
        let base = clone.as_ref().filter(is_own).map(|clone| clone.base.as_str());
        self.states.versioned.delete_clone(name, base).map_err(|error| told_of_clone(what(), &error))?;
        let Some(clone) = clone else { return Ok(()) };
        let mut open = self.open.lock();
        if let Some(volume) = open.remove(&clone.generation) {
            volume.files().share_space(None);
        }
        if open.is_empty() {
            self.files.share_space(None);
        }
        Ok(())
    }

    /// What a clone has of its own, in bytes of the medium.
    ///
    /// # Errors
    /// Those of the device.
    pub fn own_bytes(&self, generation: u32) -> Result<u64> {
        if let Some(files) = self.opened(generation) {
            // What the device cannot take counts for nothing, and is told by its file.
            let _ = files.write_back();
        }
        let found = self.states.versioned.cloned_bytes(generation);
        found.map_err(|error| told_of_clone(format!("cannot look at the clones of {}", self.spec), &error))
    }

    /// The files of a clone.
    ///
    /// # Errors
    /// `NotFound`; as [`Volume::open`].
    pub fn files(&self, generation: u32) -> Result<Arc<FileSystem>> {
        // Held so that nobody else opens it, too: two file systems would not know of each other.
        let mut open = self.open.lock();
        if let Some(volume) = open.get(&generation) {
            return Ok(Arc::clone(volume.files()));
        }
        let what = || format!("cannot open a clone of {}", self.spec);
        let found = self.list().into_iter().find(|one| one.generation == generation);
        let clone = found.ok_or_else(|| Error::new(Class::NotFound, what(), "it was deleted"))?;
        let options = self.files.options();
        let volume = self.volume(
            &clone,
            Options {
                cached_inodes: CACHED_INODES.min(options.cached_inodes),
                name_cache_bytes: NAME_CACHE_BYTES.min(options.name_cache_bytes),
                ..options.clone()
            },
        )?;
        let files = Arc::clone(volume.files());
        if open.is_empty() {
            self.files.share_space(Some(&self.shared));
        }
        files.share_space(Some(&self.shared));
        open.insert(generation, volume);
        Ok(files)
    }

    /// The same, if they are open already.
    #[must_use]
    pub fn opened(&self, generation: u32) -> Option<Arc<FileSystem>> {
        self.open.lock().get(&generation).map(|volume| Arc::clone(volume.files()))
    }

    /// Those that are used, by their numbers.
    #[cfg(feature = "encryption")]
    pub(in crate::volume) fn all_numbered(&self) -> Vec<(u32, Arc<FileSystem>)> {
        self.open.lock().iter().map(|(generation, volume)| (*generation, Arc::clone(volume.files()))).collect()
    }

    fn all_open(&self) -> Vec<Arc<FileSystem>> {
        self.open.lock().values().map(|volume| Arc::clone(volume.files())).collect()
    }

    /// What the owner calls about once a second ([`FileSystem::tick`]).
    pub fn tick(&self) {
        self.all_open().iter().for_each(|files| files.tick());
    }

    /// Gives the device all that was written to clones.
    ///
    /// # Errors
    /// The first failure to write something.
    pub fn close(&self) -> Result<()> {
        let closed = std::mem::take(&mut *self.open.lock());
        let mut result = Ok(());
        for volume in closed.values() {
            result = result.and(volume.close());
        }
        self.files.share_space(None);
        result
    }

    /// A clone as a volume, mounted as the volume itself is.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub(crate) fn alone(&self, clone: &CloneInfo) -> Result<Volume> {
        self.volume(clone, self.files.options().clone())
    }

    /// A clone as a volume, which nobody else may use at the same time.
    fn volume(&self, clone: &CloneInfo, options: Options) -> Result<Volume> {
        let device = self.states.cloned(clone, options.compression)?;
        Volume::of_device(&self.spec, Opened { device, faces: Vec::new(), notes: Vec::new() }, options)
    }
}

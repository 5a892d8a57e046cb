//! A volume: a device and the file system on it, opened and closed together.

mod absent;
pub mod face;
pub mod file;
pub mod health;
mod hints;
#[cfg(feature = "encryption")]
pub mod keys;
pub(crate) mod layers;
#[cfg(feature = "scm")]
mod memory;
#[cfg(feature = "compression")]
mod services;
pub mod snapshots;
#[cfg(feature = "transactions")]
pub mod transactions;
pub mod transfer;
pub mod upkeep;
mod versioned;

use crate::error::{Class, Error, Result};
use crate::host::clock::{FixedClock, SystemClock, clock_for};
use crate::host::{derived, random_bytes};
use crate::open::access::{Access, Fill, NewVolume, Opened, Users};
use crate::open::device;
use crate::spec::Spec;
use crate::volume::face::BlockFace;
use layers::{Layers, Opening};
use onode_base::{Clock, ErrorKind, Timestamp};
use onode_fs::FileSystem;
use onode_object::{Compression, ObjectDevice};
use snapshots::Snapshots;
use snapshots::clones::Clones;
use std::sync::Arc;
#[cfg(feature = "transactions")]
use transactions::{TransactionOptions, Transactions, UserTransaction};
use transfer::received;

pub use onode_fs::{Inodes, Options as MountOptions};

/// Opens only the device of a volume, for checks and repairs below its files, and tells what people
/// should hear of how it was opened. With `accept_loss` also one that holds less than it promised.
///
/// # Errors
/// As [`Volume::open`].
pub fn open_device(spec: &Spec, read_only: bool, accept_loss: bool) -> Result<(Arc<dyn ObjectDevice>, Vec<String>)> {
    let access = Access { read_only, accept_loss, ..Access::CHANGE };
    let may_lose = read_only || accept_loss;
    let opening = Opening { access, users: Users::Alone, compression: Compression::Never, may_lose };
    let mut layers = Layers::open(spec, opening)?;
    received::refuse_part(spec, &layers)?;
    let device = layers.settled(spec, accept_loss)?;
    Ok((device, layers.notes))
}

/// The key of a volume's names as a number that follows from another.
const HASH_KEY: u8 = 0xff;

/// How to make a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// A name for people.
    pub label: String,
    /// Owner of the root directory.
    pub uid: u32,
    /// Group of the root directory.
    pub gid: u32,
    /// Replace an image that is there already.
    pub replace: bool,
    /// Where inodes are kept.
    pub inodes: Inodes,
    /// Its unique number, from which all others follow that a volume has: two that are made alike
    /// are the same bytes. Who chooses names in it can know where in a directory they come, which
    /// a number that nobody knows prevents. `None`: all are drawn.
    pub uuid: Option<[u8; 16]>,
    /// The moment at which it is made, and all in it that has no time of its own. `None`: now.
    pub time: Option<Timestamp>,
}

/// Puts the first files into a volume.
pub type FirstFiles<'a> = dyn Fn(&FileSystem) -> Result<()> + 'a;

/// Ends what was received in part, or has its files only be read.
type Settle = fn(&Spec, &mut Layers, &mut MountOptions) -> Result<()>;

/// An open volume.
#[derive(Debug)]
pub struct Volume {
    spec: Spec,
    files: Arc<FileSystem>,
    /// What is closed behind the files of a snapshot or a clone: the volume that it is of.
    base: Option<Arc<FileSystem>>,
    faces: Vec<BlockFace>,
    notes: Vec<String>,
    /// Of a volume that can have some.
    snapshots: Option<Arc<Snapshots>>,
    clones: Option<Arc<Clones>>,
    /// Of an authenticated volume.
    #[cfg(feature = "encryption")]
    sums: Option<Arc<keys::authenticated::Sums>>,
    /// Of an encrypted volume, and of a snapshot or clone instead of it; none within a transaction.
    #[cfg(feature = "encryption")]
    directories: Option<Arc<keys::directories::DirectoryKeyring>>,
    /// Of a volume that can have some: none within a transaction.
    #[cfg(feature = "transactions")]
    transactions: Option<Arc<Transactions>>,
}

impl Volume {
    /// Makes an empty volume. An image file is made with it; if anything fails it is gone again.
    ///
    /// # Errors
    /// `Exists` if there is something already, `BadSize`, `HostFull`, ...
    pub fn create(spec: &Spec, options: &CreateOptions) -> Result<()> {
        created_and_mapped(spec, options, &|device| format(spec, device.as_ref(), options))
    }

    /// Makes a volume with files in it. If anything fails, also in `fill`, an image file is gone
    /// again.
    ///
    /// # Errors
    /// As [`create`](Self::create); those of `fill`.
    pub fn create_filled(spec: &Spec, options: &CreateOptions, fill: &FirstFiles<'_>) -> Result<()> {
        created_and_mapped(spec, options, &|device| filled(spec, device, options, fill))
    }

    /// Makes an empty volume that is encrypted: content, names and sizes. From then on whoever
    /// opens it needs a key ([`set_key_agent`](keys::set_key_agent)), unless only its directories
    /// are to have some.
    ///
    /// # Errors
    /// As [`create`](Self::create); `Usage` for a key that cannot be one.
    #[cfg(feature = "encryption")]
    pub fn create_encrypted(spec: &Spec, options: &CreateOptions, how: &keys::Encryption<'_>) -> Result<()> {
        created(spec, options, &|device| format(spec, keys::created(spec, device, how)?.as_ref(), options))
    }

    /// Makes a volume that is encrypted, with files in it. Its keys are drawn: no two are the same
    /// bytes.
    ///
    /// # Errors
    /// As [`create_encrypted`](Self::create_encrypted) and [`create_filled`](Self::create_filled).
    #[cfg(feature = "encryption")]
    pub fn create_encrypted_filled(
        spec: &Spec,
        options: &CreateOptions,
        how: &keys::Encryption<'_>,
        fill: &FirstFiles<'_>,
    ) -> Result<()> {
        created(spec, options, &|device| filled(spec, &keys::created(spec, device, how)?, options, fill))
    }

    /// Opens a volume. One in memory is made on the spot.
    ///
    /// # Errors
    /// One of every class that concerns images; the image is then as it was.
    pub fn open(spec: &Spec, options: MountOptions) -> Result<Self> {
        Self::opened(spec, options, received::settle)
    }

    fn opened(spec: &Spec, mut options: MountOptions, settle: Settle) -> Result<Self> {
        let mut layers = Layers::open(spec, Opening::of(&options))?;
        if spec.image_path().is_none() {
            format(spec, layers.device.as_ref(), &CreateOptions::default())?;
        }
        settle(spec, &mut layers, &mut options)?;
        let returns_to = received::returns_to(&layers);
        #[cfg(feature = "encryption")]
        let (sums, directories) = (layers.sums.clone(), layers.directories.clone());
        let Layers { device, faces, notes, states, .. } = layers;
        let mut volume = Self::mounted(spec, Opened { device, faces, notes }, options)?;
        #[cfg(feature = "encryption")]
        {
            volume.sums = sums;
        }
        let clock = clock_for(volume.device());
        if let Some(states) = states {
            let snapshots = Snapshots::new(spec, states.clone(), &volume.files, clock, returns_to);
            volume.clones = Some(Clones::new(states, &snapshots));
            volume.snapshots = Some(snapshots);
        }
        #[cfg(feature = "encryption")]
        {
            volume.directories = directories.map(|keys| keys::directories::DirectoryKeyring::new(keys, &volume));
        }
        Ok(volume)
    }

    /// Opens a snapshot of a volume, whose files can be read, or a clone, which is a volume like
    /// others.
    ///
    /// # Errors
    /// `NotFound` if there is none of that name; `Usage` for a snapshot that is not opened for
    /// reading only; as [`open`](Self::open).
    pub fn open_state(spec: &Spec, name: &str, options: MountOptions) -> Result<Self> {
        // What was received in part changes neither snapshots nor clones.
        let unsettled: Settle = |_, _, _| Ok(());
        let is_for_changes = !options.read_only;
        let reading = MountOptions { read_only: true, ..options.clone() };
        let found = Self::opened(spec, reading, unsettled)?.state(name, is_for_changes)?;
        if !is_for_changes {
            return Ok(found);
        }
        // Until now nothing was changed, as there might have been no clone of that name.
        found.close()?;
        drop(found);
        Self::opened(spec, options, received::settle)?.state(name, is_for_changes)
    }

    /// A snapshot or clone of this volume instead of it.
    fn state(self, name: &str, is_for_changes: bool) -> Result<Self> {
        match self.find_state(name, is_for_changes) {
            Ok(state) => {
                #[cfg(feature = "encryption")]
                let directories = self.directories.as_ref().map(|keys| keys.of_state(&state));
                Ok(Self {
                    base: Some(self.files),
                    notes: self.notes,
                    #[cfg(feature = "encryption")]
                    directories,
                    ..state
                })
            }
            Err(error) => {
                let _ = self.close();
                Err(error)
            }
        }
    }

    fn find_state(&self, name: &str, is_for_changes: bool) -> Result<Self> {
        if let Some(all) = &self.snapshots
            && let Some(snapshot) = all.named(name)
        {
            if !is_for_changes {
                return Ok(Self::of_files(&self.spec, all.files(snapshot.generation)?));
            }
            let what = format!("cannot change the snapshot `{name}` of {}", self.spec);
            return Err(Error::new(Class::Usage, what, "a snapshot does not change").hint(
                "copy files out of it with `onode get`, or make a clone of it: onode clone create IMAGE NAME --from SNAPSHOT",
            ));
        }
        match self.clones.as_ref().and_then(|all| Some((all, all.named(name)?))) {
            Some((all, clone)) => all.alone(&clone),
            None => {
                let what = format!("cannot open `{name}` of {}", self.spec);
                let hint = "`onode snapshot list` and `onode clone list` show what there is";
                Err(Error::new(Class::NotFound, what, "there is no snapshot and no clone of that name").hint(hint))
            }
        }
    }

    /// The volume on a device that has all services but transactions.
    fn mounted(spec: &Spec, opened: Opened, options: MountOptions) -> Result<Self> {
        let volume = Self::of_device(spec, opened, options)?;
        #[cfg(feature = "tier")]
        if !volume.files.options().read_only {
            volume.map_directories()?;
        }
        Ok(volume)
    }

    /// The same, without a look at which directories are mapped to a fast disk.
    fn of_device(spec: &Spec, opened: Opened, options: MountOptions) -> Result<Self> {
        let Opened { device, faces, notes } = opened;
        let clock = clock_for(device.as_ref());
        #[cfg(feature = "transactions")]
        let (staged, device, notes) = {
            let mut notes = notes;
            let staged = transactions::staged(spec, device, options.accept_loss, &mut notes)?;
            (Arc::clone(&staged.staged), staged.into_device(), notes)
        };
        #[cfg(not(feature = "transactions"))]
        absent::transactions::refuse_unsettled(spec, device.as_ref())?;
        let files = FileSystem::mount(device, Arc::clone(&clock), options);
        let files = files.map_err(|error| {
            let error = Self::error(format!("cannot open {spec}"), &error);
            match error.class {
                // It is not the host that refuses.
                Class::ReadOnly => error.hint("-o ro shows what is there; `onode repair` mends what can be mended"),
                _ => error,
            }
        });
        let files = Arc::new(files?);
        Ok(Self {
            spec: spec.clone(),
            #[cfg(feature = "transactions")]
            transactions: Some(Transactions::new(spec, staged, &files, clock)),
            files,
            base: None,
            faces,
            notes,
            snapshots: None,
            clones: None,
            #[cfg(feature = "encryption")]
            sums: None,
            #[cfg(feature = "encryption")]
            directories: None,
        })
    }

    /// A volume of which there is nothing but files: as a transaction sees it, or a snapshot.
    fn of_files(spec: &Spec, files: Arc<FileSystem>) -> Self {
        Self {
            spec: spec.clone(),
            files,
            base: None,
            faces: Vec::new(),
            notes: Vec::new(),
            snapshots: None,
            clones: None,
            #[cfg(feature = "encryption")]
            sums: None,
            #[cfg(feature = "encryption")]
            directories: None,
            #[cfg(feature = "transactions")]
            transactions: None,
        }
    }

    /// Its transactions; a volume within one has none.
    #[cfg(feature = "transactions")]
    #[must_use]
    pub const fn transactions(&self) -> Option<&Arc<Transactions>> {
        self.transactions.as_ref()
    }

    /// Its snapshots; none if it can have none, within a transaction and in a snapshot.
    #[must_use]
    pub const fn snapshots(&self) -> Option<&Arc<Snapshots>> {
        self.snapshots.as_ref()
    }

    /// Its clones; none where there are no snapshots.
    #[must_use]
    pub const fn clones(&self) -> Option<&Arc<Clones>> {
        self.clones.as_ref()
    }

    /// What an owner may note of the state of an authenticated volume, so that an older copy in its
    /// place is found out ([`KeyAgent::anchor`](keys::KeyAgent::anchor)); `None` of others, and of
    /// a snapshot or a clone. Changes that are not durable yet count, too.
    #[cfg(feature = "encryption")]
    #[must_use]
    pub fn anchor(&self) -> Option<keys::Anchor> {
        self.sums.as_ref().map(|sums| sums.anchor())
    }

    /// The same of all that was written up to now, which is durable then: so that no cut of power
    /// leaves an older state than the one that is noted.
    ///
    /// # Errors
    /// Those of a sync.
    #[cfg(feature = "encryption")]
    pub fn note_anchor(&self) -> Result<Option<keys::Anchor>> {
        let sync = || {
            let synced = self.files.sync();
            synced.map_err(|error| Self::error(format!("cannot note the state of {}", self.spec), &error))
        };
        // What waits for write-back is a change when it is written out.
        sync()?;
        let anchor = self.anchor();
        // Others may have changed something in between, which counts.
        sync()?;
        Ok(anchor)
    }

    /// The keys of its directories; `None` of a volume that is not encrypted, within a transaction,
    /// and in a snapshot or clone, which show what is unlocked in the volume.
    #[cfg(feature = "encryption")]
    #[must_use]
    pub const fn directory_keys(&self) -> Option<&Arc<keys::directories::DirectoryKeyring>> {
        self.directories.as_ref()
    }

    /// Begins a transaction: what is done in it happens when it is committed, all of it or nothing.
    ///
    /// # Errors
    /// As [`Transactions::begin`]; `Usage` within a transaction and in a snapshot.
    #[cfg(feature = "transactions")]
    pub fn begin(&self, options: TransactionOptions) -> Result<UserTransaction> {
        let Some(transactions) = &self.transactions else {
            let what = format!("cannot begin a transaction on {}", self.spec);
            return Err(Error::new(Class::Usage, what, "it is a transaction or a snapshot itself"));
        };
        UserTransaction::begin(transactions, options)
    }

    /// What it lies on.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What people should hear of how it was opened: a memory that was filled anew, for example.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its files.
    #[must_use]
    pub const fn files(&self) -> &Arc<FileSystem> {
        &self.files
    }

    /// The spaces beside it on the same medium, each like a block device.
    #[must_use]
    pub fn block_faces(&self) -> &[BlockFace] {
        &self.faces
    }

    /// Its objects.
    #[must_use]
    pub fn device(&self) -> &dyn ObjectDevice {
        self.files.device().as_ref()
    }

    /// Aborts transactions that are open, saves everything else and closes the device.
    ///
    /// # Errors
    /// The device's errors; what was synced before is safe.
    pub fn close(&self) -> Result<()> {
        #[cfg(feature = "transactions")]
        if let Some(transactions) = &self.transactions {
            transactions.abort_all();
        }
        let failed = |error: onode_fs::Error| Self::error(format!("cannot close {}", self.spec), &error);
        let clones = self.clones.as_ref().map_or(Ok(()), |clones| clones.close());
        self.files.unmount().map_err(failed)?;
        clones?;
        self.base.as_ref().map_or(Ok(()), |base| base.unmount().map_err(failed))
    }

    /// The error for people of a failed call of the file system.
    #[must_use]
    pub fn error(what: impl Into<String>, error: &onode_fs::Error) -> Error {
        let told = Error::new(Class::of_files(error), what, error.to_string());
        match error.kind {
            ErrorKind::KeyNeeded => told.hint(
                "`onode key unlock DIRECTORY` unlocks the key of one on a mount, --unlock FILE those of an image",
            ),
            _ => told,
        }
    }
}

/// Checks and repairs the names and inodes on a device that nobody has mounted.
///
/// # Errors
/// `Damaged` if it cannot go on, `Full` if there is no room for a repair, and those of the device.
pub fn repair_files(spec: &Spec, device: &dyn ObjectDevice) -> Result<onode_fs::check::Repaired> {
    let repaired = onode_fs::check::repair(device, SystemClock.now(), random_bytes()?);
    repaired.map_err(|error| Volume::error(format!("cannot repair {spec}"), &error))
}

/// Makes the devices of a volume and has its first content put on them.
fn created(spec: &Spec, options: &CreateOptions, fill: &Fill<'_>) -> Result<()> {
    let is_fixed = options.uuid.is_some();
    let uuid = options.uuid.map_or_else(random_bytes, Ok)?;
    device::create(spec, NewVolume { replace: options.replace, uuid, is_fixed, fill })
}

/// The same, and has directories mapped to the fast disk as the spec says.
fn created_and_mapped(spec: &Spec, options: &CreateOptions, fill: &Fill<'_>) -> Result<()> {
    #[cfg(feature = "tier")]
    hints::mapped::check_new(spec)?;
    created(spec, options, fill)?;
    #[cfg(feature = "tier")]
    hints::mapped::map_new(spec)?;
    Ok(())
}

/// Puts an empty volume on a device, and files into it.
fn filled(spec: &Spec, device: &Arc<dyn ObjectDevice>, options: &CreateOptions, fill: &FirstFiles<'_>) -> Result<()> {
    format(spec, device.as_ref(), options)?;
    let clock: Arc<dyn Clock> = match options.time {
        Some(time) => Arc::new(FixedClock(time)),
        None => clock_for(device.as_ref()),
    };
    let failed = |error: onode_fs::Error| Volume::error(format!("cannot fill {spec}"), &error);
    let files = FileSystem::mount(Arc::clone(device), clock, MountOptions::default()).map_err(failed)?;
    fill(&files)?;
    // Whoever made the device closes it.
    files.sync().map_err(failed)
}

fn format(spec: &Spec, device: &dyn ObjectDevice, options: &CreateOptions) -> Result<()> {
    let settings = onode_fs::FormatOptions {
        uuid: device.info().uuid,
        hash_key: options.uuid.map_or_else(random_bytes, |uuid| Ok(derived(uuid, HASH_KEY)))?,
        label: options.label.clone(),
        uid: options.uid,
        gid: options.gid,
        inodes: options.inodes,
    };
    let now = options.time.unwrap_or_else(|| SystemClock.now());
    onode_fs::format(device, &settings, now).map_err(|error| {
        let made = Volume::error(format!("cannot make {spec}"), &error);
        if error.kind == ErrorKind::Invalid { Error { class: Class::Usage, ..made } } else { made }
    })
}

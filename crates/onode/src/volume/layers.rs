//! The device of a volume with all services that stand on it, and the same of its snapshots.
//!
//! From below: authentication, snapshots, encryption, compression, transactions.

#[cfg(not(feature = "compression"))]
use super::absent::compression::wrapped;
#[cfg(not(feature = "encryption"))]
use super::absent::encryption::{Sums, key_of, sums_of, unlocked};
#[cfg(not(feature = "transactions"))]
use super::absent::transactions::refuse_unsettled;
#[cfg(feature = "encryption")]
use super::keys::authenticated::{Sums, sums_of};
#[cfg(feature = "encryption")]
use super::keys::{key_of, unlocked};
#[cfg(feature = "compression")]
use super::services::wrapped;
#[cfg(feature = "transactions")]
use super::transactions;
use super::versioned::{OfSnapshot, Unlocked, VersionedDevice, told, told_of_clone, versioned};
use crate::error::Result;
use crate::host::random_bytes;
use crate::open::access::{Access, Opened, Users};
use crate::open::device;
use crate::spec::Spec;
use crate::volume::face::BlockFace;
use onode_fs::Options as MountOptions;
use onode_object::{Compression, ObjectDevice};
use onode_services::{CloneInfo, Snapshot, SnapshotId, Versioned};
use std::sync::Arc;

/// How a volume's device is opened.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) access: Access,
    pub(crate) users: Users,
    /// What is compressed from now on.
    pub(crate) compression: Compression,
    /// What cannot be read of snapshots is given up, or not shown.
    pub(crate) may_lose: bool,
}

impl Opening {
    /// As these options of a mount say.
    pub(crate) const fn of(options: &MountOptions) -> Self {
        // What a mount that changes nothing compresses.
        let compression = if options.read_only { Compression::Never } else { options.compression };
        let may_lose = options.read_only || options.accept_loss;
        Self { access: Access::of(options), users: Users::Sharing, compression, may_lose }
    }
}

/// An open device with its services, but for transactions.
pub(crate) struct Layers {
    /// The device itself, through its sums if it has some.
    pub(crate) bare: Arc<dyn ObjectDevice>,
    /// Those of an authenticated volume.
    #[cfg(feature = "encryption")]
    pub(crate) sums: Option<Arc<Sums>>,
    /// Of an encrypted volume.
    #[cfg(feature = "encryption")]
    pub(crate) directories: Option<Arc<dyn onode_services::DirectoryKeys>>,
    /// Its snapshots and clones, if it can have some.
    pub(crate) states: Option<States>,
    /// What stands on top.
    pub(crate) device: Arc<dyn ObjectDevice>,
    pub(crate) faces: Vec<BlockFace>,
    pub(crate) notes: Vec<String>,
}

impl Layers {
    /// Opens the device of a volume.
    ///
    /// # Errors
    /// As [`Volume::open`](crate::Volume::open).
    pub(crate) fn open(spec: &Spec, how: Opening) -> Result<Self> {
        Self::over(spec, device::open(spec, how.access, how.users, random_bytes()?)?, how)
    }

    /// The same for a device that is open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn over(spec: &Spec, opened: Opened, how: Opening) -> Result<Self> {
        let Opened { device: bare, faces, mut notes } = opened;
        let key = key_of(spec, bare.as_ref())?;
        let sums = sums_of(spec, &bare, key.as_ref(), how, &mut notes)?;
        let bare = sums.as_ref().map_or(bare, |sums| Arc::<Sums>::clone(sums));
        let VersionedDevice { device, versioned } = versioned(spec, Arc::clone(&bare), how.may_lose, &mut notes)?;
        let unlocked = unlocked(spec, device, key)?;
        let Unlocked { device, of_snapshot, .. } = unlocked;
        let states = versioned.map(|versioned| States { spec: spec.clone(), versioned, of_snapshot });
        let device = wrapped(spec, device, how.compression, &mut notes)?;
        Ok(Self {
            bare,
            #[cfg(feature = "encryption")]
            sums,
            #[cfg(feature = "encryption")]
            directories: unlocked.directories,
            states,
            device,
            faces,
            notes,
        })
    }

    /// What stands on a device that has no snapshots and is not encrypted.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "scm")]
    pub(crate) fn without_snapshots(spec: &Spec, opened: Opened, compression: Compression) -> Result<Self> {
        let Opened { device: bare, faces, mut notes } = opened;
        let device = wrapped(spec, Arc::clone(&bare), compression, &mut notes)?;
        Ok(Self {
            bare,
            #[cfg(feature = "encryption")]
            sums: None,
            #[cfg(feature = "encryption")]
            directories: None,
            states: None,
            device,
            faces,
            notes,
        })
    }

    /// What stands on top, with everything in place that was committed.
    ///
    /// # Errors
    /// As [`Volume::open`](crate::Volume::open).
    pub(crate) fn settled(&mut self, spec: &Spec, accept_loss: bool) -> Result<Arc<dyn ObjectDevice>> {
        settled(spec, Arc::clone(&self.device), accept_loss, &mut self.notes)
    }
}

/// A device that is open through its sums, if it has some, without anything that stands on it.
///
/// # Errors
/// As [`Volume::open`](crate::Volume::open).
pub(crate) fn through_sums(spec: &Spec, bare: Arc<dyn ObjectDevice>, how: Opening) -> Result<Arc<dyn ObjectDevice>> {
    let key = key_of(spec, bare.as_ref())?;
    let sums = sums_of(spec, &bare, key.as_ref(), how, &mut Vec::new())?;
    Ok(sums.map_or(bare, |sums| Arc::<Sums>::clone(&sums)))
}

/// The states of all objects that a device has kept: its snapshots.
#[derive(Clone)]
pub(crate) struct States {
    spec: Spec,
    pub(crate) versioned: Arc<Versioned<dyn ObjectDevice>>,
    of_snapshot: Arc<OfSnapshot>,
}

impl States {
    /// All of them, in the order in which they were taken.
    pub(crate) fn all(&self) -> Vec<Snapshot> {
        self.versioned.snapshots()
    }

    /// The one of a name.
    pub(crate) fn named(&self, name: &str) -> Option<Snapshot> {
        self.all().into_iter().find(|one| one.name == name)
    }

    /// The one of a number, which it may have on several volumes.
    pub(crate) fn identified(&self, id: SnapshotId) -> Option<Snapshot> {
        self.all().into_iter().find(|one| one.id == Some(id))
    }

    /// A clone as a device with all services that stand on the device but transactions; this is
    /// what is compressed there from now on.
    ///
    /// # Errors
    /// `NotFound`; those of the device.
    pub(crate) fn cloned(&self, clone: &CloneInfo, compression: Compression) -> Result<Arc<dyn ObjectDevice>> {
        let what = || format!("cannot open the clone `{}` of {}", clone.name, self.spec);
        let device = self.versioned.open_clone(&clone.name).map_err(|error| told_of_clone(what(), &error))?;
        wrapped(&self.spec, (self.of_snapshot)(Arc::new(device)), compression, &mut Vec::new())
    }

    /// A device that shows a snapshot with all services that stand on the device.
    ///
    /// # Errors
    /// `NotFound`; those of the device.
    pub(crate) fn shown(&self, snapshot: &Snapshot) -> Result<Arc<dyn ObjectDevice>> {
        let what = || format!("cannot open the snapshot `{}` of {}", snapshot.name, self.spec);
        let view = self.versioned.view(&snapshot.name).map_err(|error| told(what(), &error))?;
        let mut notes = Vec::new();
        let device = wrapped(&self.spec, (self.of_snapshot)(Arc::new(view)), Compression::Never, &mut notes)?;
        // What was committed and not yet in place is shown as if it were.
        settled(&self.spec, device, false, &mut notes)
    }
}

/// A device with everything in place that was committed.
#[cfg(feature = "transactions")]
fn settled(
    spec: &Spec,
    device: Arc<dyn ObjectDevice>,
    accept_loss: bool,
    notes: &mut Vec<String>,
) -> Result<Arc<dyn ObjectDevice>> {
    Ok(transactions::staged(spec, device, accept_loss, notes)?.into_device())
}

#[cfg(not(feature = "transactions"))]
fn settled(spec: &Spec, device: Arc<dyn ObjectDevice>, _: bool, _: &mut Vec<String>) -> Result<Arc<dyn ObjectDevice>> {
    refuse_unsettled(spec, device.as_ref())?;
    Ok(device)
}

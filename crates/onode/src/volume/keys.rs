//! Keys of encrypted volumes: where they come from, and the slots of a volume that they open.
//!
//! A volume is encrypted when it is made ([`Volume::create_encrypted`](crate::Volume)). A program
//! that opens such volumes says once where keys come from ([`set_key_agent`]); then everything
//! that opens a volume can open those, too.

pub(super) mod authenticated;
pub(super) mod directories;

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::{Access, Users, volume_error};
use crate::open::device;
use crate::spec::Spec;
use crate::volume::versioned::Unlocked;
use onode_base::ErrorKind;
use onode_fs::InodeNumber;
use onode_fs::volume::VOLUME;
use onode_object::{ObjectDevice, ObjectId};
use onode_services::{Encrypted, KeyHeader, MasterKey, Session, SlotSettings};
use std::sync::{Arc, OnceLock};

pub use directories::{DirectoryKeyring, KeysOfFiles, LockedFiles};
pub use onode_services::{
    Anchor, Cost as KeyCost, DirectoryKey, KEY_FILE_BYTES_MIN, KeySlot, LABEL_BYTES_MAX, NOT_AUTHENTIC, SLOTS_MAX,
    Secret, SlotKind,
};

/// The objects that say how a volume is encrypted: those that each has.
const HOLDERS: [ObjectId; 2] = [VOLUME, ObjectId(InodeNumber::ROOT.0)];

/// Where the keys of volumes come from.
pub trait KeyAgent: Send + Sync {
    /// What may open the volume; `None` if there is nothing (more) to try. `attempt` counts from 0.
    ///
    /// # Errors
    /// If a key file cannot be read, for example; the volume stays closed then.
    fn secret(&self, spec: &Spec, attempt: u32) -> Result<Option<Secret>>;

    /// What opens keys of its directories when a volume is opened: for each thing that somebody has
    /// what it may be, of which one has to open some.
    ///
    /// # Errors
    /// As [`secret`](Self::secret).
    fn directory_secrets(&self, _spec: &Spec) -> Result<Vec<Vec<Secret>>> {
        Ok(Vec::new())
    }

    /// A secret opened a volume: a command may open the same one again.
    fn opened(&self, _secret: &Secret) {}

    /// The state that the owner of a volume has noted, if it is to be compared with what is found.
    fn anchor(&self, _spec: &Spec) -> Option<Anchor> {
        None
    }
}

static AGENT: OnceLock<Box<dyn KeyAgent>> = OnceLock::new();

/// Says where this process has the keys of encrypted volumes from. Only the first one counts; tells
/// whether this was it.
pub fn set_key_agent(agent: Box<dyn KeyAgent>) -> bool {
    AGENT.set(agent).is_ok()
}

/// Whether the owner of a volume has noted a state with which it is to be compared.
pub(super) fn expects_anchor(spec: &Spec) -> bool {
    AGENT.get().is_some_and(|agent| agent.anchor(spec).is_some())
}

/// How a volume is encrypted that is to be made.
#[derive(Debug)]
pub enum Encryption<'a> {
    /// All of it, with this as its first key.
    All(NewKey<'a>),
    /// All of it, and authenticated, too.
    Authenticated(NewKey<'a>),
    /// Only directories that get a key of their own: that of the volume is no secret.
    Directories,
}

/// A key for a volume or a directory.
#[derive(Debug)]
pub struct NewKey<'a> {
    /// What opens it from then on.
    pub secret: &'a Secret,
    /// What people call it, at most [`LABEL_BYTES_MAX`] bytes.
    pub label: &'a str,
    /// What it costs to try a passphrase.
    pub cost: KeyCost,
}

impl NewKey<'_> {
    fn slot(&self, id: u32, master: &MasterKey) -> onode_object::Result<KeySlot> {
        let salt = salt()?;
        KeySlot::new(master, self.secret, SlotSettings { id, label: self.label, cost: self.cost, salt })
    }
}

/// Random bytes for a slot.
fn salt<const BYTES: usize>() -> onode_object::Result<[u8; BYTES]> {
    random_bytes().map_err(|error| onode_object::Error::new(ErrorKind::Media, error.to_string()))
}

/// What is wrong with a key that somebody gave, or wants to give.
fn key_error(what: String, error: &onode_object::Error) -> Error {
    match error.kind {
        ErrorKind::Invalid => {
            Error::new(Class::Usage, what, error.detail.clone()).hint("`onode key --help` says what keys can be")
        }
        ErrorKind::KeyNeeded => Error::new(Class::Key, what, error.detail.clone()),
        ErrorKind::NotFound => Error::new(Class::NotFound, what, error.detail.clone())
            .hint("`onode key list IMAGE` shows the slots that there are"),
        _ => volume_error(what, error),
    }
}

/// The encrypted device of a volume that is to be made on this one.
pub(super) fn created(
    spec: &Spec,
    device: &Arc<dyn ObjectDevice>,
    how: &Encryption<'_>,
) -> Result<Arc<dyn ObjectDevice>> {
    let failed = |error: onode_object::Error| key_error(format!("cannot make {spec}"), &error);
    let master = MasterKey::new(random_bytes()?);
    let slot = match how {
        Encryption::All(key) | Encryption::Authenticated(key) => key.slot(0, &master),
        Encryption::Directories => NewKey { secret: &Secret::open(), label: "", cost: KeyCost::LEAST }.slot(0, &master),
    };
    let header = KeyHeader::new(&HOLDERS, &master, slot.map_err(failed)?);
    let session = Session::new(random_bytes()?);
    let (device, header): (Arc<dyn ObjectDevice>, _) = match how {
        Encryption::Authenticated(_) => (authenticated::created(spec, device, &master)?, header.authenticated(&master)),
        Encryption::All(_) | Encryption::Directories => (Arc::clone(device), header),
    };
    let encrypted = Encrypted::create(device, header, &master, session).map_err(failed)?;
    Ok(Arc::new(encrypted))
}

/// What opens an encrypted volume.
pub(super) struct VolumeKey {
    header: KeyHeader,
    master: MasterKey,
}

/// What opens the volume on a device; `None` if it is not encrypted.
pub(super) fn key_of(spec: &Spec, device: &dyn ObjectDevice) -> Result<Option<VolumeKey>> {
    // A volume in memory is made when it is opened, and holds nothing before.
    if spec.image_path().is_none() {
        return Ok(None);
    }
    let found = KeyHeader::load(device, &HOLDERS).map_err(|error| lost(format!("cannot open {spec}"), &error));
    let Some(header) = found? else { return Ok(None) };
    let (master, _) = unlock(spec, &header).inspect_err(|_| {
        // Nothing was changed: it is left as it was found.
        let _ = device.close();
    })?;
    Ok(Some(VolumeKey { header, master }))
}

/// The device as its volume is: encrypted, if there is a key.
pub(super) fn unlocked(spec: &Spec, device: Arc<dyn ObjectDevice>, key: Option<VolumeKey>) -> Result<Unlocked> {
    let Some(VolumeKey { header, master }) = key else { return Ok(Unlocked::plain(device)) };
    let opened = Encrypted::open(device, header, &master, Session::new(random_bytes()?));
    let encrypted = Arc::new(opened.map_err(|error| volume_error(format!("cannot open {spec}"), &error))?);
    directories::unlock(spec, encrypted.as_ref())?;
    let keys = Arc::clone(&encrypted);
    Ok(Unlocked {
        directories: Some(Arc::<Encrypted<dyn ObjectDevice>>::clone(&encrypted)),
        device: encrypted,
        of_snapshot: Arc::new(move |snapshot| Arc::new(keys.of_snapshot(snapshot))),
    })
}

/// What could not be learned of the key slots of a volume.
fn lost(what: String, error: &onode_object::Error) -> Error {
    let told = volume_error(what, error);
    if error.kind == ErrorKind::Corrupt { told.hint("restore the image from a copy") } else { told }
}

/// Asks for keys until one opens the volume.
fn unlock(spec: &Spec, header: &KeyHeader) -> Result<(MasterKey, u32)> {
    let what = || format!("cannot open {spec}");
    if header.is_open() {
        return header.unlock(&Secret::open()).map_err(|error| lost(what(), &error));
    }
    let mut why = "it is encrypted, and no key was given".to_owned();
    if let Some(agent) = AGENT.get() {
        let mut attempt = 0;
        while let Some(secret) = agent.secret(spec, attempt)? {
            match header.unlock(&secret) {
                Ok(opened) => {
                    agent.opened(&secret);
                    return Ok(opened);
                }
                Err(error) if error.kind == ErrorKind::KeyNeeded => why = error.detail,
                Err(error) if error.kind == ErrorKind::Corrupt => return Err(lost(what(), &error)),
                Err(error) => return Err(key_error(what(), &error)),
            }
            attempt += 1;
        }
    }
    Err(Error::new(Class::Key, what(), why))
}

/// The key slots of a volume that nobody has mounted.
pub struct VolumeKeys {
    spec: Spec,
    device: Arc<dyn ObjectDevice>,
    header: KeyHeader,
    /// The master key and the slot that a key opened, once one was asked for.
    opened: Option<(MasterKey, u32)>,
}

impl VolumeKeys {
    /// Opens a volume for its key slots alone; no key is asked for.
    ///
    /// # Errors
    /// `Usage` if it is not encrypted; as [`Volume::open`](crate::Volume::open).
    pub fn open(spec: &Spec, read_only: bool) -> Result<Self> {
        let access = Access { read_only, ..Access::CHANGE };
        let device = device::open(spec, access, Users::Alone, random_bytes()?)?.device;
        let what = || format!("cannot use the key slots of {spec}");
        match KeyHeader::load(device.as_ref(), &HOLDERS) {
            Ok(Some(header)) => Ok(Self { spec: spec.clone(), device, header, opened: None }),
            Ok(None) => Err(Error::new(Class::Usage, what(), "it is not encrypted")
                .hint("a volume is encrypted when it is made: onode mkfs --encrypt IMAGE")),
            Err(error) => Err(lost(what(), &error)),
        }
    }

    /// Those that open keys of its directories; no key is needed to see them.
    ///
    /// # Errors
    /// Those of the device.
    pub fn directory_slots(&self) -> Result<Vec<KeySlot>> {
        let what = || format!("cannot read the key slots of {}", self.spec);
        self.header.directory_slots(self.device.as_ref()).map_err(|error| volume_error(what(), &error))
    }

    /// The slots in order of their numbers.
    #[must_use]
    pub fn slots(&self) -> &[KeySlot] {
        self.header.slots()
    }

    /// Numbers of slots that are damaged, or that a newer version made.
    #[must_use]
    pub fn unknown(&self) -> &[u32] {
        self.header.unknown()
    }

    /// Whether the volume is authenticated, too.
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        self.header.is_authenticated()
    }

    /// Whether the key of the volume is no secret: only directories have keys.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.header.is_open()
    }

    /// How often the volume was opened for writing.
    #[must_use]
    pub const fn mounts(&self) -> u64 {
        self.header.epoch()
    }

    /// Asks for a key until one opens the volume, if none did yet; returns the number of its slot.
    ///
    /// # Errors
    /// `Key` if none does.
    pub fn test(&mut self) -> Result<u32> {
        self.opened().map(|(_, id)| id)
    }

    /// Adds a slot, after a key was asked for; returns its number.
    ///
    /// # Errors
    /// `Key`; `Usage` for a key that cannot be one; `VolumeFull` if there are [`SLOTS_MAX`] slots.
    pub fn add(&mut self, key: &NewKey<'_>) -> Result<u32> {
        let (master, _) = self.opened()?;
        self.put(&master, key, &[])
    }

    /// Puts a slot in the place of the one that the asked key opens, at once; returns the numbers
    /// of the new one and of the old one. It needs no slot more than there are.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn change(&mut self, key: &NewKey<'_>) -> Result<(u32, u32)> {
        let (master, old) = self.opened()?;
        let new = self.put(&master, key, &[old])?;
        self.opened = Some((master, new));
        Ok((new, old))
    }

    /// Removes slots, after a key was asked for that opens one of those that stay.
    ///
    /// # Errors
    /// `Key`; `NotFound` if there is no such slot; `Usage` if the key opens one of those that go.
    pub fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let what = format!("cannot remove a key slot of {}", self.spec);
        let (master, id) = self.opened()?;
        if ids.contains(&id) {
            let why = format!("the key that was given opens slot {id}, which is to go");
            return Err(Error::new(Class::Usage, what, why)
                .hint("give a key whose slot stays, so that somebody can open the volume afterwards"));
        }
        let device = self.as_changed(&master)?;
        self.header.change(device.as_ref(), None, ids).map_err(|error| key_error(what, &error))
    }

    /// The device through which slots change.
    fn as_changed(&self, master: &MasterKey) -> Result<Arc<dyn ObjectDevice>> {
        if !self.header.is_authenticated() {
            return Ok(Arc::clone(&self.device));
        }
        Ok(authenticated::opened(&self.spec, Arc::clone(&self.device), master)?)
    }

    /// What a key opened; asks for one if none did yet.
    fn opened(&mut self) -> Result<(MasterKey, u32)> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => unlock(&self.spec, &self.header)?,
        };
        self.opened = Some(opened.clone());
        Ok(opened)
    }

    fn put(&mut self, master: &MasterKey, key: &NewKey<'_>, removed: &[u32]) -> Result<u32> {
        let what = format!("cannot add a key to {}", self.spec);
        let device = self.as_changed(master)?;
        let mut put = || {
            let id = self.header.free_id(removed)?;
            self.header.change(device.as_ref(), Some(key.slot(id, master)?), removed)?;
            Ok(id)
        };
        put().map_err(|error: onode_object::Error| key_error(what, &error))
    }

    /// Closes the volume.
    ///
    /// # Errors
    /// Those of the device.
    pub fn close(self) -> Result<()> {
        let what = format!("cannot close {}", self.spec);
        self.device.close().map_err(|error| volume_error(what, &error))
    }
}

//! What the volume itself says of its encryption, in attributes of objects that every volume has:
//! that it is encrypted and how, the epoch of the last mount, and the key slots.
//!
//! None of it is secret. Each of these objects, the holders, says it all: without it nobody can
//! open the volume any more, so it must not be lost with one object. A slot is added or removed by
//! one transaction, so that at every cut of power the one that opened the volume before does so
//! after it, or the new one does.

use crate::encrypted::directories::stored;
use crate::encrypted::keys::{MasterKey, derive, next_epoch};
use crate::encrypted::map::{is_ours, volume_key};
use crate::encrypted::slot::{KeySlot, Secret, SlotKind};
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction};

/// What this version makes.
const VERSION: u8 = 1;
/// AES-256-GCM-SIV.
const CIPHER: u8 = 1;
/// The same on a device that is [`Authenticated`](crate::Authenticated).
const AUTHENTICATED_CIPHER: u8 = 2;
/// Added to either: directories may have keys of their own.
const HAS_DIRECTORIES: u8 = 4;
const CHECK_BYTES: usize = 16;
const DESCRIPTOR: AttributeKey = AttributeKey::VOLUME_ENCRYPTED;
const EPOCH: AttributeKey = volume_key(1);
/// Slots have their numbers from here on.
const SLOTS: u64 = 16;
/// The most slots of a volume.
pub const SLOTS_MAX: usize = 32;

/// What a volume says of its encryption.
#[derive(Clone, Debug)]
pub struct KeyHeader {
    /// The objects that say it, the first one first.
    holders: Vec<ObjectId>,
    check: [u8; CHECK_BYTES],
    is_authenticated: bool,
    has_directories: bool,
    epoch: u64,
    slots: Vec<KeySlot>,
    /// Numbers of slots that this version cannot read.
    unknown: Vec<u32>,
}

impl KeyHeader {
    /// Of a volume that is to be made, with a first slot. The objects that say it are made later.
    #[must_use]
    pub fn new(holders: &[ObjectId], master: &MasterKey, first: KeySlot) -> Self {
        let (check, slots) = (check(master, false), vec![first]);
        Self { slots, ..Self::of(holders, check, false) }
    }

    fn of(holders: &[ObjectId], check: [u8; CHECK_BYTES], is_authenticated: bool) -> Self {
        let (holders, has_directories) = (holders.to_vec(), false);
        Self { holders, check, is_authenticated, has_directories, epoch: 0, slots: Vec::new(), unknown: Vec::new() }
    }

    /// The same of a volume that is authenticated, too.
    #[must_use]
    pub fn authenticated(self, master: &MasterKey) -> Self {
        Self { check: check(master, true), is_authenticated: true, ..self }
    }

    /// Whether the device is [`Authenticated`](crate::Authenticated) that it says this of. A key
    /// that unlocks it shows that nobody else said so.
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// Of the volume on a device, as its objects `holders` say; `None` if it is not encrypted, or
    /// if there is none. A later one is asked only if those before are lost or damaged.
    ///
    /// # Errors
    /// `NotSupported` if a newer version encrypted it; `Corrupt`; those of the device.
    pub fn load<D: ObjectDevice + ?Sized>(device: &D, holders: &[ObjectId]) -> Result<Option<Self>> {
        let mut damaged = None;
        for holder in holders {
            let descriptor = match device.attribute(*holder, DESCRIPTOR) {
                Ok(Some(descriptor)) => descriptor,
                Ok(None) => return Ok(None),
                Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => continue,
                Err(error) => return Err(error),
            };
            match Self::load_from(device, holders, *holder, &descriptor) {
                Err(error) if error.kind == ErrorKind::Corrupt => damaged = Some(error),
                found => return found.map(Some),
            }
        }
        if let Some(damaged) = damaged {
            return Err(damaged);
        }
        // What nobody can open must not be taken for a damaged volume that is not encrypted.
        if is_any_encrypted(device)? {
            return Err(Error::new(ErrorKind::Corrupt, "its objects are encrypted, and its key slots are lost"));
        }
        Ok(None)
    }

    fn load_from<D: ObjectDevice + ?Sized>(
        device: &D,
        holders: &[ObjectId],
        holder: ObjectId,
        descriptor: &[u8],
    ) -> Result<Self> {
        let corrupt = |what: &str| Error::of(ErrorKind::Corrupt, holder, format!("the key slots are damaged: {what}"));
        let (cipher, check) = match descriptor {
            [VERSION, cipher, check @ ..] => (*cipher, check),
            _ => (0, descriptor),
        };
        let is_authenticated = match cipher & !HAS_DIRECTORIES {
            CIPHER => false,
            AUTHENTICATED_CIPHER => true,
            _ => {
                let why = "it is encrypted in a way that only a newer version knows";
                return Err(Error::of(ErrorKind::NotSupported, holder, why));
            }
        };
        let check = check.try_into().map_err(|_| corrupt("what checks a key is cut"))?;
        let mut header = Self::of(holders, check, is_authenticated);
        header.has_directories = cipher & HAS_DIRECTORIES != 0;
        let mut epoch = None;
        let mut from = Some(EPOCH);
        while let Some(start) = from {
            let some = device.attributes(holder, start, SLOTS_MAX)?;
            from = some.last().and_then(|(key, _)| key.next());
            for (key, value) in some {
                let number = key.index.wrapping_sub(volume_key(0).index);
                if !is_ours(key) {
                    from = None;
                } else if key == EPOCH {
                    epoch = value.as_slice().try_into().ok().map(u64::from_le_bytes);
                } else if let Some(id) = number.checked_sub(SLOTS).and_then(|id| u32::try_from(id).ok()) {
                    match KeySlot::parse(id, &value) {
                        Ok(slot) if slot.directory_key() == 0 => header.slots.push(slot),
                        _ => header.unknown.push(id),
                    }
                }
            }
        }
        header.epoch = epoch.ok_or_else(|| corrupt("the number of mounts is lost"))?;
        Ok(header)
    }

    /// The objects that say it.
    pub(super) fn holders(&self) -> &[ObjectId] {
        &self.holders
    }

    /// Whether directories may have keys of their own.
    pub(super) const fn has_directories(&self) -> bool {
        self.has_directories
    }

    /// Whether the key of the volume is no secret, and only directories keep something.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.slots.iter().any(|slot| slot.kind() == SlotKind::Open)
    }

    /// What says that the volume is encrypted, and how.
    pub(super) fn descriptor(&self, has_directories: bool) -> (AttributeKey, Vec<u8>) {
        let cipher = if self.is_authenticated { AUTHENTICATED_CIPHER } else { CIPHER };
        let directories = if has_directories { HAS_DIRECTORIES } else { 0 };
        (DESCRIPTOR, [&[VERSION, cipher | directories][..], &self.check].concat())
    }

    /// The slots that this version can read, in order of their numbers.
    #[must_use]
    pub fn slots(&self) -> &[KeySlot] {
        &self.slots
    }

    /// The slots that open keys of directories, in order of the numbers of these.
    ///
    /// # Errors
    /// Those of the device.
    pub fn directory_slots<D: ObjectDevice + ?Sized>(&self, device: &D) -> Result<Vec<KeySlot>> {
        let mut slots = if self.has_directories { stored::load(device, &self.holders)?.slots } else { Vec::new() };
        slots.sort_by_key(|slot| (slot.directory_key(), slot.id()));
        Ok(slots)
    }

    /// Numbers of slots that this version cannot read: damaged ones, and those of newer versions.
    #[must_use]
    pub fn unknown(&self) -> &[u32] {
        &self.unknown
    }

    /// How often the volume was opened for writing.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The master key, and the number of the slot that a secret opened.
    ///
    /// # Errors
    /// `KeyNeeded` if the secret opens none; `Invalid` if a slot asks for a cost that is not
    /// possible, and no other opens; `Corrupt` if somebody changed whether it is authenticated.
    pub fn unlock(&self, secret: &Secret) -> Result<(MasterKey, u32)> {
        let mut refused = None;
        for slot in &self.slots {
            match slot.open(secret) {
                Ok(Some(master)) if self.is_of(&master) => return Ok((master, slot.id())),
                Ok(Some(master)) if check(&master, !self.is_authenticated) == self.check => {
                    let why = "somebody changed what it says of whether it is authenticated";
                    return Err(Error::new(ErrorKind::Corrupt, why));
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        let fitting = self.slots.iter().filter(|slot| slot.kind() == secret.kind()).count();
        let why = match fitting {
            0 => format!("no key slot of the volume is opened by a {}", secret.kind().name()),
            _ => format!("this {} opens no key slot of the volume", secret.kind().name()),
        };
        Err(refused.unwrap_or_else(|| Error::new(ErrorKind::KeyNeeded, why)))
    }

    /// Refuses a key that is not the master key of this volume.
    pub(super) fn verify(&self, master: &MasterKey) -> Result<()> {
        if self.is_of(master) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::KeyNeeded, "this is not the master key of the volume"))
    }

    fn is_of(&self, master: &MasterKey) -> bool {
        check(master, self.is_authenticated) == self.check
    }

    /// A number that no slot has, for one that comes when those of `removed` go.
    ///
    /// # Errors
    /// `NoSpace` if there are [`SLOTS_MAX`] others.
    pub fn free_id(&self, removed: &[u32]) -> Result<u32> {
        let all = self.slots.iter().map(KeySlot::id).chain(self.unknown.iter().copied());
        if all.filter(|id| !removed.contains(id)).count() >= SLOTS_MAX {
            let why = format!("a volume has at most {SLOTS_MAX} key slots: remove one first");
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        let ids = self.slots.iter().map(KeySlot::id).chain(self.unknown.iter().copied());
        Ok(ids.max().map_or(0, |last| last.saturating_add(1)))
    }

    /// Puts a slot on the device of the volume, and takes others off it, durably and at once.
    ///
    /// # Errors
    /// `NotFound` if one that is to go is not there; `Invalid` if no slot would be left that
    /// somebody can open; those of the device, which then has the slots of before.
    pub fn change<D: ObjectDevice + ?Sized>(
        &mut self,
        device: &D,
        added: Option<KeySlot>,
        removed: &[u32],
    ) -> Result<()> {
        if self.is_open() {
            let why = "the key of this volume is no secret, and stays that way: only directories have keys";
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        let known = |id: &u32| self.unknown.contains(id) || self.slots.iter().any(|slot| slot.id() == *id);
        if let Some(id) = removed.iter().find(|id| !known(id)) {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no key slot {id}")));
        }
        let mut after = self.clone();
        after.slots.retain(|slot| !removed.contains(&slot.id()));
        after.unknown.retain(|id| !removed.contains(id));
        after.slots.extend(added.clone());
        if after.slots.is_empty() {
            let why = "nobody could open the volume without its last key slot: add another one first";
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        let mut transaction = Transaction::new();
        for holder in present(device, &self.holders)? {
            for id in removed {
                transaction.remove_attribute(holder, slot_key(*id));
            }
            if let Some(slot) = &added {
                transaction.set_attribute(holder, slot_key(slot.id()), slot.value());
            }
        }
        device.commit(transaction, Durability::Durable)?;
        *self = after;
        Ok(())
    }

    /// Begins the next epoch on the device, durably.
    pub(super) fn begin<D: ObjectDevice + ?Sized>(&mut self, device: &D) -> Result<u64> {
        let holders = present(device, &self.holders)?;
        // Another host may have begun one since this was read.
        for holder in &holders {
            let stored = device.attribute(*holder, EPOCH)?.unwrap_or_default();
            let stored = stored.as_slice().try_into().ok().map(u64::from_le_bytes);
            self.epoch = self.epoch.max(stored.unwrap_or_default());
        }
        self.epoch = next_epoch(self.epoch)?;
        let mut transaction = Transaction::new();
        for holder in holders {
            transaction.set_attribute(holder, EPOCH, self.epoch.to_le_bytes().to_vec());
        }
        if !is_planted(Bug::EncryptedEpochLate) {
            device.commit(transaction, Durability::Durable)?;
        }
        Ok(self.epoch)
    }

    /// Begins the next epoch of a volume that is to be made.
    pub(super) fn begin_new(&mut self) -> Result<u64> {
        self.epoch = next_epoch(self.epoch)?;
        Ok(self.epoch)
    }

    /// What an object that is just made says: all, if it is one of those that do.
    pub(super) fn of_made(&self, made: ObjectId, has_directories: bool) -> Vec<Mutation> {
        if !self.holders.contains(&made) {
            return Vec::new();
        }
        let set = |key, value| Mutation::SetAttribute { object: made, key, value };
        let (key, descriptor) = self.descriptor(has_directories);
        let mut all = vec![set(key, descriptor), set(EPOCH, self.epoch.to_le_bytes().to_vec())];
        all.extend(self.slots.iter().map(|slot| set(slot_key(slot.id()), slot.value())));
        all
    }
}

/// Whether any object of a device has encrypted content.
fn is_any_encrypted<D: ObjectDevice + ?Sized>(device: &D) -> Result<bool> {
    const AT_ONCE: usize = 256;
    let mut from = Some(ObjectId(0));
    while let Some(start) = from {
        let some = device.list(start, AT_ONCE)?;
        from = some.last().and_then(|last| last.0.checked_add(1)).map(ObjectId);
        for object in some {
            if matches!(device.attribute(object, AttributeKey::ENCRYPTED), Ok(Some(_))) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Those of some objects that are there.
pub(super) fn present<D: ObjectDevice + ?Sized>(device: &D, objects: &[ObjectId]) -> Result<Vec<ObjectId>> {
    let mut found = Vec::with_capacity(objects.len());
    for object in objects {
        match device.stat(*object) {
            Ok(_) => found.push(*object),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

const fn slot_key(id: u32) -> AttributeKey {
    volume_key(SLOTS + id as u64)
}

/// What tells the master key of a volume from others, and says nothing of it. It differs for a
/// volume that is authenticated, so that nobody else can say that it is none.
fn check(master: &MasterKey, is_authenticated: bool) -> [u8; CHECK_BYTES] {
    let purpose: &[u8] = if is_authenticated { b"onode 1 check of sums" } else { b"onode 1 check" };
    derive(master.bytes(), purpose)[..CHECK_BYTES].try_into().unwrap_or_default()
}

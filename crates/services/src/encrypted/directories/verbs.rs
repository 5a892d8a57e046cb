//! What can be done with the keys of directories of an open volume.

use crate::encrypted::Encrypted;
use crate::encrypted::directories::power::{DirectoryKey, DirectoryKeys, NewSlot};
use crate::encrypted::directories::stored::{self, LAST, StoredSlots, slot_key};
use crate::encrypted::header::present;
use crate::encrypted::keys::MasterKey;
use crate::encrypted::slot::{KeySlot, Secret};
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Durability, Error, ErrorKind, ObjectDevice, Result, Transaction};

/// The most slots of all keys of directories of a volume.
const SLOTS_MAX: usize = 1024;

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    fn stored(&self) -> Result<StoredSlots> {
        let _turn = Turn::take(self.inner().as_ref());
        stored::load(self.inner().as_ref(), self.header().holders())
    }

    /// A number that no slot has.
    fn free_slot(stored: &StoredSlots, removed: usize) -> Result<u32> {
        let all = || stored.slots.iter().map(KeySlot::id).chain(stored.unknown.iter().copied());
        if all().count() - removed >= SLOTS_MAX {
            let why = format!("a volume has at most {SLOTS_MAX} slots of keys of directories: remove one first");
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        // The greatest number may come from damage.
        Ok((0..).find(|id| all().all(|other| other != *id)).unwrap_or(u32::MAX))
    }

    /// Has every holder say something, durably.
    fn say(&self, say: impl Fn(&mut Transaction, onode_object::ObjectId)) -> Result<()> {
        let _turn = Turn::take(self.inner().as_ref());
        let mut transaction = Transaction::new();
        for holder in present(self.inner().as_ref(), self.header().holders())? {
            say(&mut transaction, holder);
        }
        if transaction.is_empty() {
            return Err(Error::new(ErrorKind::Corrupt, "nothing is left on the volume that could hold a key"));
        }
        self.inner().commit(transaction, Durability::Durable)
    }
}

impl<D: ObjectDevice + ?Sized> DirectoryKeys for Encrypted<D> {
    fn keys(&self) -> Result<Vec<DirectoryKey>> {
        let mut all: Vec<DirectoryKey> = Vec::new();
        let mut slots = self.stored()?.slots;
        slots.sort_by_key(|slot| (slot.directory_key(), slot.id()));
        for slot in slots {
            let number = slot.directory_key();
            match all.last_mut().filter(|last| last.number == number) {
                Some(key) => key.slots.push(slot),
                None => {
                    let is_unlocked = self.keys().directories().cipher(number).is_some();
                    all.push(DirectoryKey { number, is_unlocked, slots: vec![slot] });
                }
            }
        }
        Ok(all)
    }

    fn create(&self, key: MasterKey, slot: &NewSlot<'_>) -> Result<u32> {
        let directories = self.keys().directories();
        let _changing = directories.changing.lock();
        let stored = self.stored()?;
        let number = stored.last.checked_add(1).ok_or_else(|| {
            Error::new(ErrorKind::NoSpace, "the volume has used up all numbers of keys of directories")
        })?;
        let slot = KeySlot::of_directory(number, &key, slot.secret, slot.settings(Self::free_slot(&stored, 0)?))?;
        let (last, value) = (number.to_le_bytes().to_vec(), slot.value());
        let (descriptor_key, descriptor) = self.header().descriptor(true);
        self.say(|transaction, holder| {
            // From now on programs that know nothing of such keys refuse the volume.
            transaction.set_attribute(holder, descriptor_key, descriptor.clone());
            transaction.set_attribute(holder, LAST, last.clone());
            transaction.set_attribute(holder, slot_key(slot.id()), value.clone());
        })?;
        directories.put(number, key);
        Ok(number)
    }

    fn change(&self, number: u32, added: Option<&NewSlot<'_>>, removed: &[u32], destroys: bool) -> Result<Option<u32>> {
        let directories = self.keys().directories();
        let _changing = directories.changing.lock();
        let stored = self.stored()?;
        let ours: Vec<u32> =
            stored.slots.iter().filter(|slot| slot.directory_key() == number).map(KeySlot::id).collect();
        if ours.is_empty() {
            return Err(none(number));
        }
        if let Some(id) = removed.iter().find(|id| !ours.contains(id)) {
            let why = format!("key {number} of a directory has no slot {id}");
            return Err(Error::new(ErrorKind::NotFound, why));
        }
        if added.is_none() && !destroys && ours.iter().all(|id| removed.contains(id)) {
            let why = "without its last slot nobody could ever read what is in the directory: add another one first";
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        let slot = match added {
            None => None,
            Some(slot) => {
                let key = directories.key(number).ok_or_else(|| {
                    Error::new(ErrorKind::KeyNeeded, format!("key {number} of a directory is locked"))
                })?;
                let settings = slot.settings(Self::free_slot(&stored, removed.len())?);
                Some(KeySlot::of_directory(number, &key, slot.secret, settings)?)
            }
        };
        self.say(|transaction, holder| {
            for id in removed {
                transaction.remove_attribute(holder, slot_key(*id));
            }
            if let Some(slot) = &slot {
                transaction.set_attribute(holder, slot_key(slot.id()), slot.value());
            }
        })?;
        Ok(slot.map(|slot| slot.id()))
    }

    fn unlock(&self, number: Option<u32>, secret: &Secret) -> Result<Vec<u32>> {
        let directories = self.keys().directories();
        let slots: Vec<KeySlot> = self.stored()?.slots;
        let asked: Vec<&KeySlot> =
            slots.iter().filter(|slot| number.is_none_or(|number| slot.directory_key() == number)).collect();
        if let Some(number) = number.filter(|_| asked.is_empty()) {
            return Err(none(number));
        }
        let (mut opened, mut refused) = (Vec::new(), None);
        for slot in asked {
            match slot.open(secret) {
                Ok(Some(key)) if !opened.contains(&slot.directory_key()) => {
                    directories.put(slot.directory_key(), key);
                    opened.push(slot.directory_key());
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        if opened.is_empty() {
            let why = match number {
                Some(number) => format!("this {} does not open key {number} of a directory", secret.kind().name()),
                None => format!("this {} opens no key of a directory", secret.kind().name()),
            };
            return Err(refused.unwrap_or_else(|| Error::new(ErrorKind::KeyNeeded, why)));
        }
        opened.sort_unstable();
        Ok(opened)
    }

    fn slot_of(&self, number: u32, secret: &Secret) -> Result<u32> {
        for slot in self.stored()?.slots.iter().filter(|slot| slot.directory_key() == number) {
            if slot.open(secret)?.is_some() {
                return Ok(slot.id());
            }
        }
        let why = format!("this {} does not open key {number} of a directory", secret.kind().name());
        Err(Error::new(ErrorKind::KeyNeeded, why))
    }

    fn unlock_with(&self, number: u32, key: MasterKey) {
        self.keys().directories().put(number, key);
    }

    fn lock(&self, number: u32) -> bool {
        let was_unlocked = self.keys().directories().take(number);
        if !is_planted(Bug::DirectoryKeyRemembered) {
            self.shards().forget_all();
        }
        was_unlocked
    }
}

fn none(number: u32) -> Error {
    Error::new(ErrorKind::NotFound, format!("the volume has no key {number} of a directory"))
}

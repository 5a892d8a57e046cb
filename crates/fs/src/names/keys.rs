//! Directories with a key of their own, on an encrypted volume: what is made in one needs that key
//! beside the one of the volume.
//!
//! The key is one of the hints of an object, which go from a directory to what is made in it
//! ([advice](crate::volume::advice)), and the device sees to it. Here is what the files have to do
//! with it: which directory may get a key, which names may lead from where to what, and what must
//! be forgotten when a key is locked.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::names::entry::Entry;
use crate::state::State;
use crate::state::advice::Advice;
use crate::types::InodeNumber;
use onode_base::ErrorKind;
use onode_object::{AttributeKey, AttributeKind, Transaction};
use std::collections::BTreeSet;

/// Attributes that one transaction removes.
const SLOTS_AT_ONCE: usize = 256;

impl FileSystem {
    /// That directories can have keys.
    pub(crate) fn check_has_keys(&self) -> Result<()> {
        if self.device.has_directory_keys() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotSupported, "the volume has no keys of directories"))
    }

    /// Gives a directory without files a key, which all that is made in it needs from then on. 0 is
    /// none, which only a directory without a key has.
    ///
    /// # Errors
    /// `NotDirectory`; `NotEmpty`; `Invalid` for the topmost directory and for one with another
    /// key; `KeyNeeded` if the key is locked or there is none of that number; `NotSupported` if the
    /// volume has no such keys; `Stale`; `ReadOnly`; the device's errors.
    pub fn set_directory_key(&self, directory: InodeNumber, key: u32) -> Result<()> {
        self.check_writable()?;
        self.check_has_keys()?;
        // Nobody makes a name in it meanwhile: that would be sealed without the key.
        let state = &mut *self.lock();
        let advice = self.advice(state, directory)?;
        if advice.encryption_key == key {
            return Ok(());
        }
        self.check_key_possible_locked(state, directory)?;
        self.remove_free_slots(state, directory)?;
        let object = directory.object();
        let advice = Advice { encryption_key: key, ..advice };
        let mut transaction = Transaction::new();
        transaction.set_hints(object, advice.add_to(self.device.stat(object)?.hints));
        self.commit(state, transaction)?;
        self.node(state, directory)?.advice = Some(advice);
        state.statistics.changes += 1;
        Ok(())
    }

    /// That a directory can be given a key.
    ///
    /// # Errors
    /// `NotDirectory`; `NotEmpty`; `Invalid` for the topmost directory and for one that has a key;
    /// `Stale`; the device's errors.
    pub fn check_key_possible(&self, directory: InodeNumber) -> Result<()> {
        self.check_key_possible_locked(&mut self.lock(), directory)
    }

    fn check_key_possible_locked(&self, state: &mut State, directory: InodeNumber) -> Result<()> {
        let node = self.node(state, directory)?;
        if node.removed {
            return Err(Error::of(ErrorKind::Stale, directory, "the directory is gone"));
        }
        let inode = node.inode;
        let key = self.advice(state, directory)?.encryption_key;
        let refused = |kind, why: &str| Err(Error::of(kind, directory, why));
        if key != 0 {
            return refused(ErrorKind::Invalid, &format!("it has key {key}, and keeps it as long as it is there"));
        }
        if !inode.is_directory() {
            let why = "only a directory can be given a key: files get that of the one they are made in";
            return refused(ErrorKind::NotDirectory, why);
        }
        if directory == InodeNumber::ROOT {
            let why = "the topmost directory has no key but that of the volume: give one to a directory in it";
            return refused(ErrorKind::Invalid, why);
        }
        if inode.entries > 0 {
            let why = "it has files, which are stored without the key: make a new directory and copy them there";
            return refused(ErrorKind::NotEmpty, why);
        }
        Ok(())
    }

    /// The directory that a directory is in; the topmost one is in itself.
    ///
    /// # Errors
    /// `NotDirectory`, `Stale`; the device's errors.
    pub fn parent(&self, directory: InodeNumber) -> Result<InodeNumber> {
        let state = &mut *self.lock();
        self.directory(state, directory).map(|inode| InodeNumber(inode.parent))
    }

    /// The key that a file or directory needs beside that of the volume; 0 for none.
    ///
    /// # Errors
    /// `Stale`; the device's errors.
    pub fn directory_key(&self, number: InodeNumber) -> Result<u32> {
        Ok(self.advice(&mut self.lock(), number)?.encryption_key)
    }

    /// Removes what names that are gone have left in a directory that is empty: it is sealed
    /// without the key that the directory is to get.
    fn remove_free_slots(&self, state: &mut State, directory: InodeNumber) -> Result<()> {
        let object = directory.object();
        loop {
            let found = self.device.attributes(object, AttributeKey::new(AttributeKind::ENTRY, 0), SLOTS_AT_ONCE)?;
            let mut transaction = Transaction::new();
            for (key, _) in found.into_iter().filter(|(key, _)| key.kind == AttributeKind::ENTRY) {
                transaction.remove_attribute(object, key);
            }
            if transaction.mutations.is_empty() {
                return Ok(());
            }
            self.commit(state, transaction)?;
        }
    }

    /// That a file may have a name in a directory: if that has a key, the file needs the same one.
    /// What leaves a directory with a key takes its key along.
    pub(crate) fn check_keys(&self, state: &mut State, number: InodeNumber, into: InodeNumber) -> Result<()> {
        if !self.device.has_directory_keys() {
            return Ok(());
        }
        let key = self.advice(state, into)?.encryption_key;
        if key == 0 || self.advice(state, number)?.encryption_key == key {
            return Ok(());
        }
        let why = format!("it is stored without key {key} of that directory: copy it there");
        Err(Error::of(ErrorKind::CrossDevice, number, why))
    }

    /// That the key which a file needs is unlocked: else what it is given now could not be written
    /// out later.
    pub(crate) fn check_unlocked(&self, state: &mut State, number: InodeNumber) -> Result<()> {
        // What waits was taken while it was, and is written out before it is locked.
        if !self.device.has_directory_keys() || !self.node(state, number)?.dirty.is_empty() {
            return Ok(());
        }
        if self.advice(state, number)?.encryption_key == 0 {
            return Ok(());
        }
        // There are no names in a file, and without the key not even that is told.
        let asked = AttributeKey::new(AttributeKind::ENTRY, 0);
        Ok(self.device.attribute(number.object(), asked).map(drop)?)
    }

    /// Forgets what is known of names and content that a key keeps, by locking it in `lock`. Tells
    /// the files that need it, of those that somebody has used, so that others can forget them,
    /// too.
    ///
    /// # Errors
    /// `Busy` if some are open; the first failure to write something that was not written yet, and
    /// then the key is not locked.
    pub fn forget_key(&self, key: u32, lock: impl FnOnce()) -> Result<Vec<InodeNumber>> {
        let state = &mut *self.lock();
        let mut kept = Vec::new();
        for number in state.nodes.keys().copied().collect::<Vec<_>>() {
            // One that is gone needs nothing.
            let Ok(advice) = self.advice(state, InodeNumber(number)) else { continue };
            if advice.encryption_key == key {
                kept.push(InodeNumber(number));
            }
        }
        let opens = |number: &&InodeNumber| state.nodes.get(&number.0).is_some_and(|node| node.opens > 0);
        let open = kept.iter().filter(opens).count();
        if open > 0 {
            let why = format!("programs have {open} files open that need key {key}");
            return Err(Error::new(ErrorKind::Busy, why));
        }
        self.write_back_all(state)?;
        lock();
        state.names.clear();
        Ok(kept)
    }

    /// Names that lead to those of some directories that are in none of them, as far as they can be
    /// read: where each is, and what it is.
    #[must_use]
    pub fn topmost_names(&self, directories: &[InodeNumber]) -> Vec<(InodeNumber, Vec<u8>)> {
        let state = &mut *self.lock();
        let directories: BTreeSet<InodeNumber> = directories.iter().copied().collect();
        let mut names = Vec::new();
        for number in &directories {
            let Ok(inode) = self.node(state, *number).map(|node| node.inode) else { continue };
            let parent = InodeNumber(inode.parent);
            if !inode.is_directory() || directories.contains(&parent) {
                continue;
            }
            let mut from = Some(0);
            while let Some(start) = from {
                // What cannot be read has names that nobody could have read either.
                let Ok(found) = self.names(parent).list(start, SLOTS_AT_ONCE) else { break };
                from = found.last().and_then(|slot| slot.index.checked_add(1));
                let named = found.iter().filter_map(|slot| Entry::decode(&slot.payload));
                let named = named.filter(|entry| entry.inode == number.0).map(|entry| (parent, entry.name.to_vec()));
                names.extend(named);
            }
        }
        names
    }
}

//! Giving directories their keys: those of a volume, of its clones, and what snapshots show.
//!
//! All of them have the same keys, whose slots are kept with the volume.

use crate::error::{Class, Error, Result};
use crate::volume::Volume;
use crate::volume::keys::NewKey;
use crate::volume::keys::directories::DirectoryKeyring;
use onode_base::ErrorKind;
use onode_fs::{FileSystem, InodeNumber};

/// The keys of a volume as directories of some of its files can have them.
#[derive(Clone, Copy, Debug)]
pub struct KeysOfFiles<'a> {
    pub(super) ring: &'a DirectoryKeyring,
    pub(super) files: &'a FileSystem,
}

impl KeysOfFiles<'_> {
    /// Gives a directory without files a key that is unlocked. What is made in it from then on
    /// needs that, and so do directories that are made in it.
    ///
    /// # Errors
    /// `Usage` for what is no such directory, or has another key; `Key` if the key is locked;
    /// `InUse` while a transaction of these files is open.
    pub fn give(&self, directory: InodeNumber, number: u32) -> Result<()> {
        self.refuse_beside_transactions(&format!("key {number}"))?;
        let given = self.files.set_directory_key(directory, number);
        given.map_err(|error| self.not_given(&error, &format!("key {number}")))
    }

    /// Makes a key for a directory without files, and gives it that; returns its number. If it
    /// cannot have one there is none.
    ///
    /// # Errors
    /// As [`DirectoryKeyring::create`] and [`give`](Self::give); `ReadOnly` in a snapshot.
    pub fn create_for(&self, directory: InodeNumber, key: &NewKey<'_>) -> Result<u32> {
        // What would be refused is refused before there is a key.
        self.refuse_beside_transactions("a key")?;
        if self.files.options().read_only {
            return Err(Error::new(Class::ReadOnly, self.what("a key"), "its files are there to be read only"));
        }
        let possible = self.files.check_key_possible(directory);
        possible.map_err(|error| self.not_given(&error, "a key"))?;
        let number = self.ring.create(key)?;
        if let Err(error) = self.give(directory, number) {
            for slot in self.ring.list()?.iter().filter(|key| key.number == number).flat_map(|key| &key.slots) {
                self.ring.remove(number, &[slot.id()], true)?;
            }
            return Err(error);
        }
        Ok(number)
    }

    /// The number of the key that a file or directory needs; 0 for none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn number_of(&self, file: InodeNumber) -> Result<u32> {
        let what = || format!("cannot tell the key of a file of {}", self.ring.spec);
        self.files.directory_key(file).map_err(|error| Volume::error(what(), &error))
    }

    fn what(&self, key: &str) -> String {
        format!("cannot give a directory of {} {key}", self.ring.spec)
    }

    /// A name that a transaction has made is stored without a key that its directory gets
    /// meanwhile. Transactions are of the volume and not of its clones.
    fn refuse_beside_transactions(&self, key: &str) -> Result<()> {
        if !std::ptr::eq(self.files, self.ring.files.as_ref()) {
            return Ok(());
        }
        let why = "a transaction is open, which may have made a name in it: end it first";
        self.ring.refuse_beside_transactions(&|| self.what(key), why)
    }

    fn not_given(&self, error: &onode_fs::Error, key: &str) -> Error {
        let told = Volume::error(self.what(key), error);
        match error.kind {
            ErrorKind::Invalid | ErrorKind::NotEmpty | ErrorKind::NotDirectory => {
                Error::new(Class::Usage, told.what, error.detail.clone())
            }
            _ => told,
        }
    }
}

//! Keys of directories: of a mounted volume, whose server does the work, or of an image that this
//! process opens.

use crate::commands::state::ask;
use crate::commands::volumes::key::face::KeyFace;
use crate::commands::volumes::key::report::{DirectoryKeyReport, Done, MountedReport};
use crate::commands::volumes::key::{Added, Removed};
use crate::keys::KeyArguments;
use crate::location::{self, Consent};
use onode::keys::{DirectoryKeyring, Secret};
use onode::{Class, Error, Result, Volume};
use onode_console::{Output, quote};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// A directory that has a key, or is to get one.
pub enum Directory<'a> {
    /// Of a mounted volume.
    Mounted(&'a Path),
    /// Of one that this process opens.
    OfImage(Inside<'a>),
}

/// A directory in an image.
pub struct Inside<'a> {
    pub image: &'a OsStr,
    pub directory: &'a Path,
}

impl fmt::Display for Directory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted(directory) => f.write_str(&quote::message(&directory.to_string_lossy())),
            Self::OfImage(Inside { image, directory }) => {
                let (image, directory) = (image.to_string_lossy(), directory.to_string_lossy());
                write!(f, "{} in {}", quote::message(&directory), quote::message(&image))
            }
        }
    }
}

impl Directory<'_> {
    /// Makes a key, and gives it to the directory.
    pub fn create(&self, added: &Added, output: &Output) -> Result<()> {
        let number = match self {
            Self::Mounted(directory) => {
                let face = KeyFace::find(directory)?;
                added.with_new_key(|key| face.create(key))
            }
            Self::OfImage(inside) => inside.work(|volume, keyring| {
                let directory = inside.number(volume)?;
                // Who cannot have one is told before a new passphrase has been thought of.
                volume.files().check_key_possible(directory).map_err(|error| {
                    Error::new(Class::Usage, format!("cannot give {self} a key"), error.detail)
                        .hint("make a new directory: onode mkdir IMAGE DIRECTORY")
                })?;
                added.with_new_key(|key| keyring.create_for(directory, key))
            }),
        }?;
        let text = format!("{self} has key {number}: what is made in it needs it");
        let (spec, keys) = (self.to_string(), vec![number]);
        output.report(&Done { spec, slot: None, removed: Vec::new(), keys, text })
    }

    /// Adds what opens its key.
    pub fn add(&self, added: &Added, keys: &KeyArguments, output: &Output) -> Result<()> {
        let slot = match self {
            Self::Mounted(directory) => {
                let face = KeyFace::find(directory)?;
                let now = known(directory, keys)?;
                added.with_new_key(|key| face.add(now.as_ref(), key))
            }
            Self::OfImage(inside) => inside.work(|volume, keyring| {
                let number = keyring.number_of(inside.number(volume)?)?;
                if number == 0 {
                    return Err(Error::new(Class::Usage, format!("cannot add to the key of {self}"), "it has none")
                        .hint("onode key new IMAGE DIRECTORY makes one for a directory without files"));
                }
                added.with_new_key(|key| keyring.add(number, key))
            }),
        }?;
        let text = format!("added slot {slot}: it opens the key of {self}, too");
        output.report(&Done { spec: self.to_string(), slot: Some(slot), removed: Vec::new(), keys: Vec::new(), text })
    }
}

impl Inside<'_> {
    /// Opens the volume, and closes it whatever happens.
    fn work<T>(&self, work: impl FnOnce(&Volume, &DirectoryKeyring) -> Result<T>) -> Result<T> {
        location::change(self.image, Consent::default(), |volume| {
            let keyring = volume.directory_keys().ok_or_else(|| {
                let what = format!("cannot use keys of directories of {}", volume.spec());
                Error::new(Class::Usage, what, "the volume is not encrypted")
                    .hint("a volume is encrypted when it is made: onode mkfs --encrypt, or --encrypt-directories")
            })?;
            work(volume, keyring)
        })
    }

    fn number(&self, volume: &Volume) -> Result<onode::InodeNumber> {
        location::resolve(volume.files(), self.directory).map(|node| node.inode())
    }
}

/// Removes what opens the key of a directory of a mounted volume.
pub fn remove(removed: &Removed, keys: &KeyArguments, output: &Output) -> Result<()> {
    let (directory, slots) = (Path::new(&removed.image), &removed.slots);
    let face = KeyFace::find(directory)?;
    let now = known(directory, keys)?;
    for slot in slots {
        face.remove(now.as_ref(), *slot, removed.destroy)?;
    }
    let spec = Directory::Mounted(directory).to_string();
    let numbers: Vec<String> = slots.iter().map(u32::to_string).collect();
    let text = format!("removed slot {} of the key of {spec}", numbers.join(", "));
    output.report(&Done { spec, slot: None, removed: slots.clone(), keys: Vec::new(), text })
}

/// What opens the key of a directory now, which its server asks of all but root.
fn known(directory: &Path, keys: &KeyArguments) -> Result<Option<Secret>> {
    if rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let shown = Directory::Mounted(directory).to_string();
    let known = keys.asked(&shown, 0)?;
    known.map(Some).ok_or_else(|| {
        let what = format!("cannot change what opens the key of {shown}");
        Error::new(Class::Key, what, "what opens it now was not given")
            .hint("onode --key-file FILE key ...; --passphrase-file and --keyring do it, too")
    })
}

/// Unlocks the key of a directory of a mounted volume, or all keys that a secret opens.
pub fn unlock(directory: &Path, keys: &KeyArguments, output: &Output) -> Result<()> {
    let face = KeyFace::find(directory)?;
    let shown = Directory::Mounted(directory).to_string();
    let unlocked = |numbers: Vec<u32>| {
        let names: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let text = format!("unlocked key {} of {shown}", names.join(", "));
        output.report(&Done { spec: shown.clone(), slot: None, removed: Vec::new(), keys: numbers, text })
    };
    if !keys.unlock.is_empty() {
        return unlocked(unlocked_by_files(&face, keys)?);
    }
    let (mut attempt, mut refused) = (0, None);
    while let Some(secret) = keys.asked(&shown, attempt)? {
        match face.unlock(&secret) {
            Ok(numbers) => return unlocked(numbers),
            Err(error) if error.class == Class::Key => refused = Some(error),
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
    Err(refused.unwrap_or_else(|| {
        Error::new(Class::Key, format!("cannot unlock the key of {shown}"), "no key was given")
            .hint("onode --key-file FILE key unlock DIRECTORY; --passphrase-file and --keyring do it, too")
    }))
}

/// Unlocks what the files of `--unlock` open, each of which has to open something.
fn unlocked_by_files(face: &KeyFace<'_>, keys: &KeyArguments) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for alternatives in keys.of_directories()? {
        let mut outcome = Ok(Vec::new());
        for secret in &alternatives {
            outcome = face.unlock(secret);
            if outcome.is_ok() {
                break;
            }
        }
        numbers.extend(outcome?);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Locks the key of a directory of a mounted volume.
pub fn lock(directory: &Path, output: &Output) -> Result<()> {
    let (number, was_unlocked) = KeyFace::find(directory)?.lock()?;
    let shown = Directory::Mounted(directory).to_string();
    let text = match was_unlocked {
        true => format!("locked key {number} of {shown}"),
        false => format!("key {number} of {shown} was locked already"),
    };
    output.report(&Done { spec: shown, slot: None, removed: Vec::new(), keys: vec![number], text })
}

/// Shows the keys of a mounted volume.
pub fn list(directory: &Path, output: &Output) -> Result<()> {
    let face = KeyFace::find(directory)?;
    let directory_keys: Vec<DirectoryKeyReport> = ask::fetch(face.mount(), "keys")?;
    let report = MountedReport { directory: directory.display().to_string(), key: face.number(), directory_keys };
    output.report(&report)
}

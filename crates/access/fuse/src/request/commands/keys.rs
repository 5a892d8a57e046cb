//! Keys of directories of a mounted volume: the attribute `user.onode.keys` of a directory makes a
//! key for it, unlocks and locks its key, and changes what opens that.
//!
//! A value is a line of words, the last of which is chosen by whoever asks, then a secret or
//! nothing:
//!
//! - `create KIND MEMORY_KIB PASSES WORD`, a line with a label, the secret: a new key, and the
//!   directory has it;
//! - `unlock KIND WORD`, the secret: the key of the directory; of one without a key, all that the
//!   secret opens, of passphrases for the super-user alone, as trying one takes its time;
//! - `lock WORD`: the key of the directory;
//! - `add KIND MEMORY_KIB PASSES NOW LENGTH WORD`, a line with a label, what opens the key now (of
//!   the kind `NOW`, so many bytes) and the secret: something else opens it;
//! - `remove SLOT NOW WORD`, `destroy SLOT NOW WORD`, what opens the key now: the slot does not
//!   open it any more, the second time even if no other does. The super-user may name a slot of any
//!   key at a directory without one.
//!
//! The directory may be one of a snapshot or a clone: these have the keys of the volume. A key is
//! no part of a transaction.
//!
//! The kernel lets nobody set attributes of a directory who may not write to it. Who changes what
//! opens a key has to know what opens it: a directory with it may belong to somebody who was only
//! given a place in it. The super-user says `none`. Only he and the owner of the topmost directory
//! lock a key; only he makes trying a passphrase cost more than usual.

use super::answers::Answers;
use super::forgetting::{Forgotten, forget};
use crate::request::credentials::Who;
use crate::request::place::numbers::state;
use crate::request::place::{Place, errno_of};
use crate::transport::late::LateNotifier;
use fuser::{Errno, INodeNo};
use onode::keys::{DirectoryKeyring, KeyCost, KeysOfFiles, LockedFiles, NewKey, Secret, SlotKind};
use onode::{Class, Error, Result, Volume};
use onode_fs::InodeNumber;
use std::sync::Arc;

const COMMAND: &[u8] = b"user.onode.keys";

/// Whether an attribute is the one by which commands come.
pub(crate) fn is_command(name: &[u8]) -> bool {
    name == COMMAND
}

/// The word for which an attribute has an answer.
pub(crate) fn word_of(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(COMMAND)?.strip_prefix(b".")
}

/// The keys of directories of the mounted volume.
pub(crate) struct KeysOfMount {
    keyring: Option<Arc<DirectoryKeyring>>,
    notifier: LateNotifier,
    answers: Answers,
}

/// A command, with what it is about.
struct Command<'a> {
    who: Who,
    /// Where the directory is.
    place: &'a Place<'a>,
    directory: InodeNumber,
    words: Vec<&'a str>,
    /// What follows the line.
    rest: &'a [u8],
}

impl KeysOfMount {
    pub(crate) fn new(volume: &Volume, notifier: LateNotifier) -> Self {
        Self { keyring: volume.directory_keys().cloned(), notifier, answers: Answers::default() }
    }

    /// The answer for a word.
    pub(crate) fn told(&self, word: &[u8]) -> std::result::Result<Vec<u8>, Errno> {
        self.answers.of(word).ok_or(Errno::ENODATA)
    }

    /// Does what the value of the attribute asks for.
    pub(crate) fn command(
        &self,
        who: Who,
        place: &Place<'_>,
        directory: InodeNumber,
        value: &[u8],
    ) -> std::result::Result<(), Errno> {
        let end = value.iter().position(|byte| *byte == b'\n').unwrap_or(value.len());
        let (line, rest) = value.split_at(end);
        let mut words: Vec<&str> = std::str::from_utf8(line).map_err(|_| Errno::EINVAL)?.split(' ').collect();
        let word = words.pop().unwrap_or_default();
        let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        let done = self.done(&Command { who, place, directory, words, rest });
        self.answers.put(word, &done);
        done.map(drop).map_err(|error| match error.class {
            Class::InUse => Errno::EBUSY,
            _ => errno_of(&error),
        })
    }

    fn done(&self, command: &Command<'_>) -> Result<String> {
        let unknown = || Error::new(Class::Usage, "cannot do that with a key", "the server knows no such command");
        let keyring = self.keyring.as_ref().ok_or_else(|| {
            Error::new(Class::Usage, "cannot use keys of directories", "the volume is not encrypted")
                .hint("a volume is encrypted when it is made: onode mkfs --encrypt, or --encrypt-directories")
        })?;
        let (directory, rest) = (command.directory, command.rest);
        let keys = keyring.of_files(command.place);
        match *command.words.as_slice() {
            ["create", ..] if command.place.is_within() => {
                let why = "a key is no part of a transaction, which may be aborted";
                Err(Error::new(Class::Usage, "cannot make a key for a directory", why)
                    .hint("make it outside, while no transaction is open"))
            }
            ["create", kind, memory, passes] => {
                Self::check_owner(command, directory)?;
                let (label, bytes) = labelled(rest);
                let (secret, cost) = (secret(kind, bytes)?, cost(command.who, memory, passes)?);
                let key = NewKey { secret: &secret, label: &label, cost };
                Ok(keys.create_for(directory, &key)?.to_string())
            }
            ["unlock", kind] => {
                let number = Some(keys.number_of(directory)?).filter(|number| *number != 0);
                let secret = secret(kind, rest)?;
                if number.is_none() && secret.kind() == SlotKind::Passphrase && command.who.uid != 0 {
                    let why = "only root may try a passphrase with all keys";
                    return Err(Error::new(Class::Permission, "cannot unlock a key", why)
                        .hint("name a directory that has the key"));
                }
                let numbers = keyring.unlock(number, &secret)?;
                Ok(numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
            }
            ["lock"] => {
                let number = Self::key_of(command, &keys)?;
                if !command.place.is_main() && command.who.uid != 0 {
                    // Whose it was once, or is in a clone, is not whose it is now.
                    let why = "only root may lock it by a directory of a snapshot, a clone or a transaction";
                    return Err(Error::new(Class::Permission, "cannot lock a key", why));
                }
                Self::check_owner(command, Self::topmost(command, number, &keys)?)?;
                let locked = keyring.lock(number)?;
                let was_unlocked = !locked.is_empty();
                forget(&self.notifier, locked.into_iter().flat_map(forgotten).collect());
                Ok(format!("{number} {}", u8::from(was_unlocked)))
            }
            ["add", kind, memory, passes, now, length] => {
                let number = Self::key_of(command, &keys)?;
                let (label, bytes) = labelled(rest);
                let length = length.parse().map_err(|_| unknown())?;
                let (of_now, of_new) = bytes.split_at_checked(length).ok_or_else(unknown)?;
                check_knows(command.who, keyring, number, (now, of_now))?;
                let (secret, cost) = (secret(kind, of_new)?, cost(command.who, memory, passes)?);
                Ok(keyring.add(number, &NewKey { secret: &secret, label: &label, cost })?.to_string())
            }
            [verb @ ("remove" | "destroy"), slot, now] => {
                let slot = slot.parse().map_err(|_| unknown())?;
                let number = match keys.number_of(directory)? {
                    0 if command.who.uid == 0 => {
                        let all = keyring.list()?;
                        let found = all.iter().find(|key| key.slots.iter().any(|one| one.id() == slot));
                        found.map_or(0, |key| key.number)
                    }
                    _ => Self::key_of(command, &keys)?,
                };
                check_knows(command.who, keyring, number, (now, rest))?;
                keyring.remove(number, &[slot], verb == "destroy")?;
                Ok(number.to_string())
            }
            _ => Err(unknown()),
        }
    }

    /// The key of a directory.
    fn key_of(command: &Command<'_>, keys: &KeysOfFiles<'_>) -> Result<u32> {
        match keys.number_of(command.directory)? {
            0 => {
                let what = "cannot change the key of a directory";
                Err(Error::new(Class::Usage, what, "it has none of its own")
                    .hint("`onode key list` shows the keys that there are"))
            }
            number => Ok(number),
        }
    }

    /// The topmost directory with the same key.
    fn topmost(command: &Command<'_>, number: u32, keys: &KeysOfFiles<'_>) -> Result<InodeNumber> {
        let mut topmost = command.directory;
        loop {
            let parent = command.place.parent(topmost);
            let parent = parent.map_err(|error| Volume::error(format!("cannot use key {number}"), &error))?;
            if parent == topmost || keys.number_of(parent)? != number {
                return Ok(topmost);
            }
            topmost = parent;
        }
    }

    fn check_owner(command: &Command<'_>, directory: InodeNumber) -> Result<()> {
        let what = "cannot change the key of a directory";
        let owner = command.place.attributes(directory).map_err(|error| Volume::error(what, &error))?.uid;
        if command.who.uid == 0 || command.who.uid == owner {
            return Ok(());
        }
        Err(Error::new(Class::Permission, what, "only root and the owner of its topmost directory may"))
    }
}

/// What the kernel has to forget of a volume, a snapshot or a clone.
fn forgotten(locked: LockedFiles) -> Vec<Forgotten> {
    let LockedFiles { generation, files, names } = locked;
    let number = |file: InodeNumber| INodeNo(file.0 | generation.map_or(0, state::tag_of));
    let of_name = |(parent, name): (InodeNumber, Vec<u8>)| Forgotten { number: number(parent), names: vec![name] };
    let of_file = |file: InodeNumber| Forgotten { number: number(file), names: Vec::new() };
    names.into_iter().map(of_name).chain(files.into_iter().map(of_file)).collect()
}

fn secret(kind: &str, bytes: &[u8]) -> Result<Secret> {
    let secret = match kind {
        "passphrase" => Secret::passphrase(bytes.to_vec()),
        "key-file" => Secret::key_file(bytes.to_vec()),
        _ => return Err(Error::new(Class::Usage, "cannot use the key", "the server knows no such kind")),
    };
    secret.map_err(|error| Error::new(Class::Key, "cannot use the key", error.detail))
}

/// A line with a label, and what follows it.
fn labelled(rest: &[u8]) -> (String, &[u8]) {
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (label, bytes) = rest.split_at(end);
    (String::from_utf8_lossy(label).into_owned(), bytes.strip_prefix(b"\n").unwrap_or(bytes))
}

/// That whoever changes what opens a key knows what opens it now, `now`: a kind and bytes.
fn check_knows(who: Who, keyring: &DirectoryKeyring, number: u32, now: (&str, &[u8])) -> Result<()> {
    match now {
        ("none", _) if who.uid == 0 => Ok(()),
        (kind, bytes) => keyring.proves(number, &secret(kind, bytes)?),
    }
}

fn cost(who: Who, memory_kib: &str, passes: &str) -> Result<KeyCost> {
    let what = "cannot use the cost of a key";
    let number = |text: &str| text.parse().map_err(|_| Error::new(Class::Usage, what, "it is no number"));
    let cost = KeyCost { memory_kib: number(memory_kib)?, passes: number(passes)?, ..KeyCost::DEFAULT };
    let is_usual = cost.memory_kib <= KeyCost::DEFAULT.memory_kib && cost.passes <= KeyCost::DEFAULT.passes;
    if is_usual || who.uid == 0 {
        return Ok(cost);
    }
    Err(Error::new(Class::Permission, what, "only root may have the server take more memory or time than usual")
        .hint("leave out --kdf-memory and --kdf-passes"))
}

//! The attribute of a directory by which the server of a mount is told what to do with its key. The
//! secret goes in the value: no other program sees it.

use crate::commands::mounts::server;
use onode::keys::{NewKey, Secret};
use onode::{Class, Error, Result};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const COMMAND: &str = "user.onode.keys";
const NUMBER: &str = "user.onode.key";
/// The longest number.
const NUMBER_BYTES_MAX: usize = 16;

/// A directory of a mounted volume.
pub struct KeyFace<'a> {
    directory: &'a Path,
    mount: PathBuf,
}

impl<'a> KeyFace<'a> {
    /// That of a directory of a volume that this program mounted.
    pub fn find(directory: &'a Path) -> Result<Self> {
        let what = || format!("cannot use keys of {}", directory.display());
        if !directory.is_dir() {
            return Err(Error::new(Class::MountPoint, what(), "it is no directory of a mounted volume")
                .hint("mount the volume first: onode mount IMAGE DIR"));
        }
        let path = directory.canonicalize().map_err(|error| Error::host(what(), &error))?;
        Ok(Self { directory, mount: server::mount_above(&path, &what)? })
    }

    /// Where the volume is mounted.
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The number of its key, if it has one.
    pub fn number(&self) -> Option<u32> {
        let mut value = [0; NUMBER_BYTES_MAX];
        let length = rustix::fs::getxattr(self.directory, NUMBER, value.as_mut_slice()).ok()?;
        std::str::from_utf8(value.get(..length)?).ok()?.parse().ok()
    }

    /// Makes a key for it; returns its number.
    pub fn create(&self, key: &NewKey<'_>) -> Result<u32> {
        let answer = self.command(&new_words("create", key), &labelled(key), "make a key for")?;
        self.number_in(&answer)
    }

    /// Unlocks its key; returns the numbers of those that were.
    pub fn unlock(&self, secret: &Secret) -> Result<Vec<u32>> {
        let answer = self.command(&format!("unlock {}", secret.kind().name()), secret.expose(), "unlock the key of")?;
        answer.split(' ').map(|number| self.number_in(number)).collect()
    }

    /// Locks its key; returns its number, and whether it was unlocked.
    pub fn lock(&self) -> Result<(u32, bool)> {
        // What the kernel holds back itself, of mappings, could not be stored any more.
        server::flush(&self.mount).map_err(|errno| self.failed("lock the key of", errno))?;
        let answer = self.command("lock", &[], "lock the key of")?;
        let (number, was_unlocked) = answer.split_once(' ').unwrap_or((&answer, "0"));
        Ok((self.number_in(number)?, was_unlocked == "1"))
    }

    /// Adds what opens its key, beside what opens it `now`; returns the number of the slot.
    pub fn add(&self, now: Option<&Secret>, key: &NewKey<'_>) -> Result<u32> {
        let (kind, bytes) = of_now(now);
        let words = format!("{} {kind} {}", new_words("add", key), bytes.len());
        let rest = Zeroizing::new([key.label.as_bytes(), b"\n", bytes, key.secret.expose()].concat());
        let answer = self.command(&words, &rest, "add to the key of")?;
        self.number_in(&answer)
    }

    /// Removes a slot of its key, which that opens `now`; the last one only if that `destroys` it.
    pub fn remove(&self, now: Option<&Secret>, slot: u32, destroys: bool) -> Result<()> {
        let verb = if destroys { "destroy" } else { "remove" };
        let (kind, bytes) = of_now(now);
        self.command(&format!("{verb} {slot} {kind}"), bytes, "remove a slot of the key of").map(drop)
    }

    fn command(&self, words: &str, rest: &[u8], doing: &str) -> Result<String> {
        let word = server::own_word();
        let mut value = Zeroizing::new(Vec::with_capacity(words.len() + word.len() + rest.len() + 2));
        value.extend_from_slice(format!("{words} {word}\n").as_bytes());
        value.extend_from_slice(rest);
        server::answered(self.directory, COMMAND, &value, &word).map_err(|error| match error {
            // Hints of the server do not come along.
            server::Unanswered::Refused(error) if matches!(error.class, Class::Usage | Class::NotFound) => {
                let directory = self.directory.display();
                error.hint(format!("`onode key list {directory}` shows its key and what opens it"))
            }
            server::Unanswered::Refused(error) => error,
            server::Unanswered::Failed(errno) => self.failed(doing, errno),
        })
    }

    fn number_in(&self, answer: &str) -> Result<u32> {
        answer.parse().map_err(|_| self.failed("understand the server of", Errno::PROTO))
    }

    fn failed(&self, doing: &str, errno: Errno) -> Error {
        let what = format!("cannot {doing} {}", self.directory.display());
        match errno {
            Errno::OPNOTSUPP | Errno::NODATA | Errno::INVAL => {
                Error::new(Class::General, what, "its server is of another version, which knows no such keys")
                    .hint(format!("unmount it and mount it again: onode umount {}", self.mount.display()))
            }
            Errno::ACCESS | Errno::PERM => {
                Error::new(Class::Permission, what, "only who may write to the directory may")
            }
            errno => Error::host(what, &io::Error::from(errno)),
        }
    }
}

/// What opens a key now; root need not know it.
fn of_now(now: Option<&Secret>) -> (&'static str, &[u8]) {
    now.map_or(("none", &[]), |secret| (secret.kind().name(), secret.expose()))
}

fn new_words(verb: &str, key: &NewKey<'_>) -> String {
    format!("{verb} {} {} {}", key.secret.kind().name(), key.cost.memory_kib, key.cost.passes)
}

fn labelled(key: &NewKey<'_>) -> Zeroizing<Vec<u8>> {
    Zeroizing::new([key.label.as_bytes(), b"\n", key.secret.expose()].concat())
}

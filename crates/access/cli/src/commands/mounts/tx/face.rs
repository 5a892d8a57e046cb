//! The folder `.onode/tx` of a mount: how its server is told to begin, commit and abort.
//!
//! What is to be done is an attribute of the folder; what came of it is another one, named by a
//! word that this process chose. The errors of the host say less.

use crate::commands::mounts::server::{self, Unanswered};
use crate::commands::mounts::tx::Listed;
use crate::location;
use onode::{Class, Error, Result};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

const FOLDER: &str = ".onode/tx";
const COMMAND: &str = "user.onode.tx";
const VALUE_BYTES_MAX: usize = 64 << 10;

/// The folder of a mounted volume.
pub struct TransactionsFace {
    /// Where the volume is mounted.
    mount: PathBuf,
    /// What of it was named.
    below: PathBuf,
}

impl TransactionsFace {
    /// That of an argument: any directory of a mount, or an image that is mounted.
    pub fn find(target: &OsStr, doing: &str) -> Result<Self> {
        let path = Path::new(target);
        let what = || format!("cannot {doing} {}", path.display());
        if path.is_dir() || onode_fuse::is_dead(path) {
            let path = path.canonicalize().map_err(|error| Error::host(what(), &error))?;
            let mount = server::mount_above(&path, &what)?;
            let below = path.strip_prefix(&mount).map(Path::to_path_buf).unwrap_or_default();
            if below.starts_with(".onode") {
                return Err(Error::new(Class::Usage, what(), "it is within one already"));
            }
            return Ok(Self { mount, below });
        }
        let spec = location::spec(target)?;
        match onode_fuse::mount_of(&spec) {
            Some(mounted) => Ok(Self { mount: mounted.directory, below: PathBuf::new() }),
            None => Err(Error::new(Class::MountPoint, what(), "it is not mounted")
                .hint("mount it first: `onode mount IMAGE DIR`; its server keeps the transaction")),
        }
    }

    /// The tree as a transaction sees it.
    pub fn directory_of(&self, id: u64) -> PathBuf {
        self.mount.join(FOLDER).join(id.to_string())
    }

    /// What was named, as a transaction sees it.
    pub fn named_in(&self, id: u64) -> PathBuf {
        self.directory_of(id).join(&self.below)
    }

    pub fn begin(&self, expiry: u64) -> Result<u64> {
        self.flush("begin a transaction on")?;
        self.command("begin", expiry, "begin a transaction on")
    }

    pub fn commit(&self, id: u64) -> Result<()> {
        self.flush("commit a transaction on")?;
        self.command("commit", id, "commit a transaction on").map(drop)
    }

    pub fn abort(&self, id: u64) -> Result<()> {
        self.command("abort", id, "abort a transaction on").map(drop)
    }

    fn flush(&self, doing: &str) -> Result<()> {
        server::flush(&self.mount).map_err(|errno| self.failed(doing, errno))
    }

    /// Those that are open.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let text = self.value(COMMAND).map_err(|errno| self.failed("list transactions of", errno))?;
        let listed = text.lines().filter_map(|line| {
            let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
            let &[id, uid, age_seconds, idle_seconds, expiry_seconds, bytes] = numbers.as_slice() else { return None };
            let directory = self.directory_of(id).display().to_string();
            Some(Listed { id, uid, age_seconds, idle_seconds, expiry_seconds, bytes, directory })
        });
        Ok(listed.collect())
    }

    fn value(&self, name: &str) -> rustix::io::Result<String> {
        let mut value = vec![0; VALUE_BYTES_MAX];
        let length = rustix::fs::getxattr(self.mount.join(FOLDER), name, value.as_mut_slice())?;
        value.truncate(length);
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// Has the server do something; returns the number that it answers.
    fn command(&self, verb: &str, number: u64, doing: &str) -> Result<u64> {
        let word = server::own_word();
        let value = format!("{verb} {number} {word}");
        match server::answered(&self.mount.join(FOLDER), COMMAND, value.as_bytes(), &word) {
            Ok(id) => id.parse().map_err(|_| self.failed(doing, Errno::PROTO)),
            Err(Unanswered::Refused(error)) => Err(error),
            Err(Unanswered::Failed(errno)) => Err(self.failed(doing, errno)),
        }
    }

    fn failed(&self, doing: &str, errno: Errno) -> Error {
        let what = format!("cannot {doing} {}", self.mount.display());
        match errno {
            Errno::NOENT => {
                Error::new(Class::ReadOnly, what, "it is mounted with ro or writeback, or by an older version")
                    .hint("mount it with rw and without writeback")
            }
            errno => Error::host(what, &io::Error::from(errno)),
        }
    }
}

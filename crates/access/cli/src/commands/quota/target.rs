//! The volume whose limits are meant: a mounted one, whose server does the work, or one that this
//! process opens.

use super::whom::Whom;
use crate::commands::state::ask;
use crate::location::{self, Consent, resolve};
use onode::{Class, Error, Result, Volume};
use onode_fs::{Caller, ErrorKind, XattrFlags};
use onode_fs::{
    InodeNumber, QUOTA, QUOTA_COUNT, QUOTA_FROM, QuotaLimits, QuotaLine, QuotaRequest, QuotaSubject, QuotaUse,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const VALUE_BYTES_MAX: usize = 64 << 10;

/// A volume with what is to be done to it, for errors.
pub struct QuotaTarget {
    volume: QuotaVolume,
    what: String,
}

enum QuotaVolume {
    /// The directory on which it is mounted.
    Mounted(PathBuf),
    /// Opened by this process, perhaps only to be read.
    Opened { volume: Box<Volume>, read_only: bool },
}

/// Where a request goes to.
struct At {
    inode: InodeNumber,
    /// On a mount.
    path: PathBuf,
    subject: QuotaSubject,
}

impl QuotaTarget {
    /// The volume of an argument; `action` says for errors what cannot be done.
    pub fn find(target: &OsStr, read_only: bool, consent: Consent, action: &str) -> Result<Self> {
        let what = format!("cannot {action} {}", target.display());
        let volume = match location::mounted(target, action)? {
            Some(directory) => QuotaVolume::Mounted(directory),
            None => {
                let volume = Box::new(location::open(target, read_only, consent)?);
                QuotaVolume::Opened { volume, read_only }
            }
        };
        Ok(Self { volume, what })
    }

    /// What people call it.
    pub fn name(&self) -> String {
        match &self.volume {
            QuotaVolume::Mounted(directory) => directory.display().to_string(),
            QuotaVolume::Opened { volume, .. } => volume.spec().to_string(),
        }
    }

    /// Every limit.
    pub fn lines(&self) -> Result<Vec<QuotaLine>> {
        let mut lines = Vec::new();
        loop {
            let text = match lines.len() {
                0 => self.get(QUOTA)?,
                count => self.get(&format!("{QUOTA_FROM}{count}"))?,
            };
            let before = lines.len();
            // Of a newer version there may be some that this one does not know.
            lines.extend(text.unwrap_or_default().lines().filter_map(QuotaLine::parse));
            if lines.len() == before {
                return Ok(lines);
            }
        }
    }

    /// The limit of one, if there is one.
    pub fn line(&self, whom: &Whom) -> Result<Option<QuotaLine>> {
        let subject = self.at(whom)?.subject;
        Ok(self.lines()?.into_iter().find(|line| line.quota.subject == subject))
    }

    pub fn begin(&self, owner: u64, whom: &Whom, limits: QuotaLimits) -> Result<()> {
        let at = self.at(whom)?;
        self.request(&at, QuotaRequest::Begin { owner, subject: at.subject, limits })
    }

    pub fn step(&self, owner: u64, files: usize) -> Result<()> {
        self.request(&self.top(), QuotaRequest::Step { owner, files })
    }

    pub fn stop(&self, owner: u64) -> Result<()> {
        self.request(&self.top(), QuotaRequest::Stop { owner })
    }

    pub fn remove(&self, whom: &Whom) -> Result<()> {
        let at = self.at(whom)?;
        self.request(&at, QuotaRequest::Remove { subject: at.subject })
    }

    /// What was counted of a new limit; nothing if it holds.
    pub fn counted(&self, owner: u64) -> Result<Option<QuotaUse>> {
        let Some(text) = self.get(QUOTA_COUNT)? else { return Ok(None) };
        let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let (of, used) = (next(), QuotaUse { bytes: next(), files: next() });
        Ok((of == owner).then_some(used))
    }

    /// Saves everything of a volume that was opened for changes.
    pub fn close(self) -> Result<()> {
        match self.volume {
            QuotaVolume::Opened { volume, read_only: false } => volume.close(),
            QuotaVolume::Opened { .. } | QuotaVolume::Mounted(_) => Ok(()),
        }
    }

    /// The top of the volume, where all is done that concerns no directory.
    fn top(&self) -> At {
        let path = match &self.volume {
            QuotaVolume::Mounted(directory) => directory.clone(),
            QuotaVolume::Opened { .. } => PathBuf::new(),
        };
        At { inode: InodeNumber::ROOT, path, subject: QuotaSubject::Directory(InodeNumber::ROOT) }
    }

    fn at(&self, whom: &Whom) -> Result<At> {
        let top = self.top();
        let path = match whom {
            Whom::User(uid) => return Ok(At { subject: QuotaSubject::User(*uid), ..top }),
            Whom::Group(gid) => return Ok(At { subject: QuotaSubject::Group(*gid), ..top }),
            Whom::Directory(path) => path,
        };
        let (inode, path) = match &self.volume {
            QuotaVolume::Mounted(directory) => {
                let path = if path.as_os_str().is_empty() { directory.clone() } else { directory.join(path) };
                (InodeNumber(inode_of(directory, &path)?), path)
            }
            QuotaVolume::Opened { volume, .. } => (resolve(volume.files(), path)?.inode(), path.clone()),
        };
        Ok(At { inode, path, subject: QuotaSubject::Directory(inode) })
    }

    fn request(&self, at: &At, request: QuotaRequest) -> Result<()> {
        let text = request.to_text();
        match &self.volume {
            QuotaVolume::Mounted(_) => {
                let flags = rustix::fs::XattrFlags::empty();
                let set = rustix::fs::setxattr(&at.path, QUOTA, text.as_bytes(), flags);
                set.map_err(|errno| self.told(errno))
            }
            QuotaVolume::Opened { volume, .. } => {
                let (name, value) = (QUOTA.as_bytes(), text.as_bytes());
                let set = volume.files().set_xattr(&Caller::root(), at.inode, name, value, XattrFlags::Any);
                set.map_err(|error| self.said(&error))
            }
        }
    }

    /// An attribute of the top of the volume; nothing if it is not there.
    fn get(&self, name: &str) -> Result<Option<String>> {
        let value = match &self.volume {
            QuotaVolume::Mounted(directory) => {
                let mut value = vec![0; VALUE_BYTES_MAX];
                match rustix::fs::getxattr(directory, name, value.as_mut_slice()) {
                    Ok(length) => value.truncate(length),
                    Err(Errno::NODATA) => return Ok(None),
                    Err(errno) => return Err(self.told(errno)),
                }
                value
            }
            QuotaVolume::Opened { volume, .. } => match volume.files().get_xattr(InodeNumber::ROOT, name.as_bytes()) {
                Ok(value) => value,
                Err(error) if error.kind == ErrorKind::NoAttribute => return Ok(None),
                Err(error) => return Err(self.said(&error)),
            },
        };
        Ok(Some(String::from_utf8_lossy(&value).into_owned()))
    }

    fn said(&self, error: &onode_fs::Error) -> Error {
        match error.kind {
            ErrorKind::NotSupported => self.on_memory(),
            ErrorKind::Exists => self.nested(),
            ErrorKind::NotFound => self.without_limit(),
            ErrorKind::Invalid | ErrorKind::NotDirectory => Error::new(
                Class::Usage,
                &self.what,
                match error.kind {
                    ErrorKind::NotDirectory => "it is no directory",
                    _ => &error.detail,
                },
            ),
            _ => Volume::error(&self.what, error),
        }
    }

    /// What the server of a mount would say in words comes as a number.
    fn told(&self, errno: Errno) -> Error {
        let what = &self.what;
        if let QuotaVolume::Mounted(directory) = &self.volume
            && let Some(error) = ask::changeless(what, directory, errno)
        {
            return error;
        }
        match errno {
            Errno::OPNOTSUPP => self.on_memory(),
            Errno::EXIST => self.nested(),
            Errno::NOENT => self.without_limit(),
            Errno::BUSY => Error::new(Class::InUse, what, "another limit is just being set")
                .hint("try again; one whose command was killed is over after half a minute"),
            Errno::NOTDIR => Error::new(Class::Usage, what, "it is no directory"),
            Errno::INVAL => Error::new(Class::Usage, what, "no limit holds the super-user"),
            Errno::PERM | Errno::ACCESS => {
                Error::new(Class::Permission, what, "only root and the owner of the volume may")
            }
            Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only"),
            Errno::NOSPC => Error::new(Class::VolumeFull, what, "the volume is full").hint("remove something first"),
            errno => Error::host(what, &errno.into()),
        }
    }

    fn on_memory(&self) -> Error {
        let why =
            "a volume on storage-class memory that processes share, or the server of an older version, has no limits";
        Error::new(Class::Usage, &self.what, why).hint(
            "programs change files there without a call, so nothing counts; `onode tune IMAGE exclusive=on` gives it to \
             one process at a time, and then it can have limits",
        )
    }

    fn nested(&self) -> Error {
        let why = "a directory above it, or one in it, has a limit, and no limit is within another";
        Error::new(Class::Exists, &self.what, why).hint("`onode quota report` shows them all")
    }

    fn without_limit(&self) -> Error {
        Error::new(Class::NotFound, &self.what, "there is no such limit").hint("`onode quota report` shows them all")
    }
}

/// The number of a directory of the mounted volume.
fn inode_of(mount: &Path, path: &Path) -> Result<u64> {
    let look = |path: &Path| fs::symlink_metadata(path).map_err(|error| Error::host_file("find", path, &error));
    let (top, found) = (look(mount)?, look(path)?);
    if found.dev() != top.dev() {
        let what = format!("cannot use {}", path.display());
        return Err(Error::new(Class::Usage, what, "another file system is mounted there"));
    }
    Ok(found.ino())
}

//! What is scrubbed: a mounted volume, whose server does the work, or one that this process opens.
//!
//! Both go through the same attribute, so a scrub means the same either way.

use crate::commands::state::ask;
use crate::location::{self, Consent};
use onode::{Class, Error, Result, Volume};
use onode_fs::scrub::SCRUB;
use onode_fs::scrub::record::ScrubFindings;
use onode_fs::scrub::told::ScrubStatus;
use onode_fs::{Caller, ErrorKind, InodeNumber, XattrFlags};
use onode_object::ObjectId;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const VALUE_BYTES_MAX: usize = 64 << 10;
const OTHER: &str = "another `onode scrub` is at work on it, or has just taken this one over";
const OTHER_HINT: &str = "`onode scrub --status` tells how far it is; one that was killed is over after half a minute";

/// A volume to scrub.
pub enum Subject {
    /// The directory on which it is mounted.
    Mounted(PathBuf),
    /// Opened by this process.
    Opened(Box<Volume>),
}

impl Subject {
    /// The volume of an argument: a mount point, an image or a device spec, which may be mounted.
    pub fn find(target: &OsStr, read_only: bool, consent: Consent) -> Result<Self> {
        let directory = Path::new(target);
        if directory.is_dir() || onode_fuse::is_dead(directory) {
            onode_fuse::our_mount_at(directory, format!("cannot scrub {}", directory.display()))?;
            return Ok(Self::Mounted(directory.to_owned()));
        }
        match location::open(target, read_only, consent) {
            Ok(volume) => Ok(Self::Opened(Box::new(volume))),
            Err(error) if error.class == Class::InUse => match onode_fuse::mount_of(&location::spec(target)?) {
                Some(mounted) => Ok(Self::Mounted(mounted.directory)),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Whether programs may be using it meanwhile.
    pub const fn is_mounted(&self) -> bool {
        matches!(self, Self::Mounted(_))
    }

    /// What people call it.
    pub fn name(&self) -> String {
        match self {
            Self::Mounted(directory) => directory.display().to_string(),
            Self::Opened(volume) => volume.spec().to_string(),
        }
    }

    /// Tells whoever does the work what to do.
    pub fn command(&self, words: &str) -> Result<()> {
        let what = || format!("cannot scrub {}", self.name());
        match self {
            Self::Mounted(directory) => {
                let flags = rustix::fs::XattrFlags::empty();
                rustix::fs::setxattr(directory, SCRUB, words.as_bytes(), flags).map_err(|errno| told(what(), errno))
            }
            Self::Opened(volume) => {
                let (root, name) = (InodeNumber::ROOT, SCRUB.as_bytes());
                let set = volume.files().set_xattr(&Caller::root(), root, name, words.as_bytes(), XattrFlags::Any);
                set.map_err(|error| match error.kind {
                    ErrorKind::NotSupported => unsupported(what()),
                    ErrorKind::Busy => Error::new(Class::InUse, what(), OTHER).hint(OTHER_HINT),
                    _ => Volume::error(what(), &error),
                })
            }
        }
    }

    /// How scrubs of it stand.
    pub fn status(&self) -> Result<ScrubStatus> {
        let what = || format!("cannot tell of scrubs of {}", self.name());
        let value = match self {
            Self::Mounted(directory) => {
                let mut value = vec![0; VALUE_BYTES_MAX];
                let length = rustix::fs::getxattr(directory, SCRUB, value.as_mut_slice());
                value.truncate(length.map_err(|errno| told(what(), errno))?);
                value
            }
            Self::Opened(volume) => {
                let value = volume.files().get_xattr(InodeNumber::ROOT, SCRUB.as_bytes());
                value.map_err(|error| Volume::error(what(), &error))?
            }
        };
        Ok(ScrubStatus::parse(&String::from_utf8_lossy(&value)))
    }

    /// The paths of the files in which something is damaged, by their numbers; of what snapshots
    /// keep, those below `.snapshots`. What no name leads to is not among them; a damaged volume
    /// may hide some.
    pub fn names(&self, found: &ScrubFindings) -> BTreeMap<u64, String> {
        let mut wanted: BTreeSet<u64> = found.damaged.iter().map(|range| range.object).collect();
        let mut names = BTreeMap::new();
        if wanted.is_empty() {
            return names;
        }
        match self {
            Self::Mounted(directory) => {
                let mut take = |number: u64, path: &Path| {
                    if wanted.remove(&number) {
                        names.insert(number, path.display().to_string());
                    }
                    !wanted.is_empty()
                };
                if let Ok(top) = fs::symlink_metadata(directory)
                    && take(top.ino(), directory)
                {
                    look_below(directory, top.dev(), &mut take);
                }
                for number in wanted.into_iter().filter(|number| ObjectId(*number).is_version()) {
                    if let Ok(Some(path)) = ask::fetch::<Option<String>>(directory, &format!("version.{number}")) {
                        names.insert(number, format!("{}{path}", directory.display()));
                    }
                }
            }
            Self::Opened(volume) => {
                let _ = volume.files().walk(b"/", &mut |path, attributes| {
                    if wanted.remove(&attributes.inode.0) {
                        names.insert(attributes.inode.0, String::from_utf8_lossy(path).into_owned());
                    }
                    // Only an error ends the walk.
                    if wanted.is_empty() { Err(ErrorKind::Busy.into()) } else { Ok(true) }
                });
                let numbers: Vec<u64> = wanted.into_iter().collect();
                names.extend(volume.version_paths(&numbers));
            }
        }
        names
    }

    /// Saves everything of a volume that was opened.
    pub fn close(self, read_only: bool) -> Result<()> {
        match self {
            Self::Opened(volume) if !read_only => volume.close(),
            _ => Ok(()),
        }
    }
}

/// Shows `take` what lies below a directory on the same file system, until it has seen enough.
fn look_below(directory: &Path, device: u64, take: &mut dyn FnMut(u64, &Path) -> bool) -> bool {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // What cannot be looked at keeps its number.
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if found.dev() != device {
            continue;
        }
        if !take(found.ino(), &path) || (found.is_dir() && !look_below(&path, device, take)) {
            return false;
        }
    }
    true
}

fn unsupported(what: String) -> Error {
    Error::new(Class::Usage, what, "the device keeps no checksums of content, so there is nothing to verify")
        .hint("`onode check IMAGE` verifies how the volume is built")
}

/// What the server of a mount would say in words comes as a number.
fn told(what: String, errno: Errno) -> Error {
    match errno {
        Errno::OPNOTSUPP => unsupported(what),
        Errno::BUSY => Error::new(Class::InUse, what, OTHER).hint(OTHER_HINT),
        Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only")
            .hint("unmount it, then `onode scrub IMAGE`, or `onode scrub --read-only IMAGE` to change nothing"),
        Errno::PERM => Error::new(Class::Permission, what, "only root and the owner of the volume may"),
        Errno::NODATA => Error::new(Class::General, what, "its server is of another version, which does not do this")
            .hint("unmount it and mount it again"),
        errno => Error::host(what, &io::Error::from(errno)),
    }
}

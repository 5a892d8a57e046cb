//! `.snapshots/NAME`: the tree as it was when a snapshot was taken, and `.clones/NAME`: the tree of
//! a clone. `mkdir` takes a snapshot there, or makes a clone of all files as they are now; `rmdir`
//! deletes one. The folders stand in the topmost directory and no listing shows them, so that no
//! program walks into them that was not told to.
//!
//! A file of a snapshot or clone has a number of its own: that of the snapshot or clone stands
//! above that of the file. The mount is the only one that changes clones, and nothing in a snapshot
//! changes, so the kernel may believe what it knows for as long as it likes; only which there are
//! it asks each time.

use crate::request::answer::{Entry, Listed};
use crate::request::convert::{attributes, errno, no_attributes, system_time};
use crate::request::place::numbers::state;
use crate::request::place::{Place, errno_of};
use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use onode::{Class, CloneInfo, Clones, FileSystem, InodeNumber, Snapshot, Snapshots, Volume};
use onode_base::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// How attributes of the topmost directory of a snapshot, and of a clone, begin that tell of it.
const SNAPSHOT_ATTRIBUTES: &[u8] = b"user.onode.snapshot.";
const CLONE_ATTRIBUTES: &[u8] = b"user.onode.clone.";
/// The attribute of the folder of clones that makes one: `SNAPSHOT/NAME`.
const COMMAND: &[u8] = b"user.onode.clone";

/// One of the two folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    Snapshots,
    Clones,
}

impl Folder {
    /// Its number.
    pub(crate) const fn number(self) -> INodeNo {
        INodeNo(state::FIRST + self as u64)
    }

    /// The one of a number, if it is that of one.
    pub(crate) const fn of(number: INodeNo) -> Option<Self> {
        match number.0.wrapping_sub(state::FIRST) {
            0 => Some(Self::Snapshots),
            1 => Some(Self::Clones),
            _ => None,
        }
    }

    /// The one of a name.
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b".snapshots" => Some(Self::Snapshots),
            b".clones" => Some(Self::Clones),
            _ => None,
        }
    }
}

/// What stands in a folder.
struct Stands {
    generation: u32,
    name: String,
    created: Timestamp,
}

/// The snapshots and clones of a mounted volume.
pub(crate) struct Shown {
    all: Option<(Arc<Snapshots>, Arc<Clones>)>,
    files: Arc<FileSystem>,
}

impl Shown {
    pub(crate) fn new(volume: &Volume) -> Self {
        let all = volume.snapshots().cloned().zip(volume.clones().cloned());
        Self { all, files: Arc::clone(volume.files()) }
    }

    /// The folder that a name in a directory is that of, unless a file has it.
    pub(crate) fn folder_named(&self, parent: INodeNo, name: &[u8]) -> Option<Folder> {
        Folder::named(name).filter(|_| self.all.is_some() && parent == INodeNo::ROOT)
    }

    fn snapshots(&self) -> Result<&Arc<Snapshots>, Errno> {
        self.all.as_ref().map(|(snapshots, _)| snapshots).ok_or(Errno::ENOENT)
    }

    fn clones(&self) -> Result<&Arc<Clones>, Errno> {
        self.all.as_ref().map(|(_, clones)| clones).ok_or(Errno::ENOENT)
    }

    /// The files of a number, if they are used already.
    fn opened(&self, generation: u32) -> Option<Arc<FileSystem>> {
        let (snapshots, clones) = self.all.as_ref()?;
        clones.opened(generation).or_else(|| snapshots.opened(generation))
    }

    /// The file system of a number that is ours and not that of a folder.
    pub(crate) fn place(&self, number: INodeNo) -> Result<Place<'static>, Errno> {
        let generation = state::generation_of(number);
        let tag = state::tag_of(generation);
        if let Some(files) = self.opened(generation) {
            return Ok(Place::State(files, tag));
        }
        let found = match self.snapshots()?.files(generation) {
            Err(error) if error.class == Class::NotFound => self.clones()?.files(generation),
            found => found,
        };
        let files = found.map_err(|error| match errno_of(&error) {
            Errno::ENOENT => Errno::ESTALE,
            other => other,
        })?;
        Ok(Place::State(files, tag))
    }

    /// What stands in a folder, in the order in which it was made.
    fn all_in(&self, folder: Folder) -> Vec<Stands> {
        let Some((snapshots, clones)) = &self.all else { return Vec::new() };
        let of_snapshot = |one: Snapshot| Stands { generation: one.generation, name: one.name, created: one.created };
        let of_clone = |one: CloneInfo| Stands { generation: one.generation, name: one.name, created: one.created };
        match folder {
            Folder::Snapshots => snapshots.list().into_iter().map(of_snapshot).collect(),
            Folder::Clones => clones.list().into_iter().map(of_clone).collect(),
        }
    }

    fn named(&self, folder: Folder, name: &[u8]) -> Result<Stands, Errno> {
        let found = self.all_in(folder).into_iter().find(|one| one.name.as_bytes() == name);
        found.ok_or(Errno::ENOENT)
    }

    /// The tree of a snapshot or clone.
    pub(crate) fn lookup(&self, folder: Folder, name: &[u8]) -> Result<Entry, Errno> {
        let found = self.named(folder, name)?;
        let place = self.place(INodeNo(state::tag_of(found.generation)))?;
        let root = place.attributes(InodeNumber::ROOT).map_err(|error| errno(&error))?;
        Ok(place.entry(&root))
    }

    /// What an attribute says of the snapshot or clone whose topmost directory has this number;
    /// `None` if the attribute, or the number, is another one.
    pub(crate) fn told(&self, number: INodeNo, name: &[u8]) -> Option<Result<Vec<u8>, Errno>> {
        if state::inode(number) != InodeNumber::ROOT {
            return None;
        }
        let generation = state::generation_of(number);
        let (snapshots, clones) = self.all.as_ref()?;
        let time = |at: Timestamp| Ok(format!("{}.{:09}", at.seconds, at.nanoseconds));
        let value = if let Some(asked) = name.strip_prefix(SNAPSHOT_ATTRIBUTES) {
            let snapshot = snapshots.list().into_iter().find(|one| one.generation == generation)?;
            match asked {
                b"created" => time(snapshot.created),
                b"id" => Ok(snapshot.id.map_or_else(String::new, |id| id.to_string())),
                b"kept" => snapshots.kept_bytes(generation).map(|bytes| bytes.to_string()),
                _ => return None,
            }
        } else {
            let asked = name.strip_prefix(CLONE_ATTRIBUTES)?;
            let clone = clones.list().into_iter().find(|one| one.generation == generation)?;
            match asked {
                b"created" => time(clone.created),
                b"base" => Ok(clone.base),
                b"own" => clones.own_bytes(generation).map(|bytes| bytes.to_string()),
                _ => return None,
            }
        };
        Some(value.map(String::into_bytes).map_err(|error| errno_of(&error)))
    }

    /// The kernel forgets uses of a file. Files that are not open any more know of none.
    pub(crate) fn forget(&self, number: INodeNo, count: u64) {
        if let Some(files) = self.opened(state::generation_of(number)) {
            files.forget(state::inode(number), count);
        }
    }

    /// Takes a snapshot, or makes a clone of all files as they are now.
    pub(crate) fn make(&self, folder: Folder, name: &[u8]) -> Result<Entry, Errno> {
        let text = std::str::from_utf8(name).map_err(|_| Errno::EINVAL)?;
        let made = match folder {
            Folder::Snapshots => self.snapshots()?.take(text).map(drop),
            Folder::Clones => self.clones()?.make(text, None).map(drop),
        };
        made.map_err(|error| errno_of(&error))?;
        self.lookup(folder, name)
    }

    /// Does what an attribute of a folder asks for: makes a clone of a snapshot.
    pub(crate) fn command(&self, folder: Folder, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        if folder != Folder::Clones || name != COMMAND {
            return Err(Errno::EPERM);
        }
        let text = std::str::from_utf8(value).map_err(|_| Errno::EINVAL)?;
        let (snapshot, clone) = text.split_once('/').ok_or(Errno::EINVAL)?;
        self.clones()?.make(clone, Some(snapshot)).map(drop).map_err(|error| errno_of(&error))
    }

    /// Deletes one.
    pub(crate) fn delete(&self, folder: Folder, name: &[u8]) -> Result<(), Errno> {
        let found = self.named(folder, name)?;
        let deleted = match folder {
            Folder::Snapshots => self.snapshots()?.delete(&found.name),
            Folder::Clones => self.clones()?.delete(&found.name),
        };
        deleted.map_err(|error| match error.class {
            // A clone was made of it.
            Class::InUse => Errno::EBUSY,
            _ => errno_of(&error),
        })
    }

    /// The attributes of a folder: whoever may make names in the topmost directory may make
    /// snapshots and clones.
    pub(crate) fn folder(&self, folder: Folder) -> FileAttr {
        let root = self.files.attributes(InodeNumber::ROOT);
        let root = root.as_ref().map_or_else(|_| no_attributes(), attributes);
        FileAttr { ino: folder.number(), kind: FileType::Directory, nlink: 2, size: 0, blocks: 0, ..root }
    }

    /// Hands what stands in a folder on to `take` from `offset` on.
    pub(crate) fn list(&self, folder: Folder, offset: u64, take: &mut dyn FnMut(&Listed<'_>) -> bool) {
        let attributes = self.folder(folder);
        let of_one = |one: Stands| {
            let at = system_time(one.created);
            // What its tree shows is asked for when it is.
            let ino = INodeNo(state::tag_of(one.generation) | InodeNumber::ROOT.0);
            (FileAttr { ino, mtime: at, ctime: at, ..attributes }, one.name)
        };
        let above = FileAttr { ino: INodeNo::ROOT, ..attributes };
        let dots = [(attributes, ".".to_owned()), (above, "..".to_owned())];
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let all = dots.into_iter().chain(self.all_in(folder).into_iter().map(of_one));
        for ((attributes, name), cursor) in all.zip(1..).skip(from) {
            let entry = Entry { attributes, generation: Generation(0) };
            if !take(&Listed { entry, cursor, name: name.as_bytes(), ttl: Duration::ZERO }) {
                break;
            }
        }
    }
}

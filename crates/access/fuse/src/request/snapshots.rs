//! `.snapshots/NAME`: the tree as it was when a snapshot was taken. `mkdir` takes one there,
//! `rmdir` deletes one. The folder stands in the topmost directory and no listing shows it, so that
//! no program walks into it that was not told to.
//!
//! A file of a snapshot has a number of its own: that of the snapshot stands above that of the
//! file. Nothing in a snapshot changes, so the kernel may believe what it knows for as long as it
//! likes; only which snapshots there are it asks each time.

use crate::request::answer::{Entry, Listed};
use crate::request::convert::{attributes, errno, no_attributes, system_time};
use crate::request::place::{Place, errno_of};
use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use onode::{FileSystem, InodeNumber, Snapshot, Snapshots, Volume};
use std::sync::Arc;
use std::time::Duration;

/// The name of the folder.
pub(crate) const NAME: &[u8] = b".snapshots";
/// Numbers from here on, up to those of the next one, are those of the folder and of files in it.
const FIRST: u64 = 1 << 61;
const LAST: u64 = (1 << 62) - 1;
/// The folder.
pub(crate) const FOLDER: INodeNo = INodeNo(FIRST);
/// Where the number of the snapshot stands.
const SHIFT: u32 = 39;

/// How attributes of the topmost directory of a snapshot begin that tell of it.
const ATTRIBUTES: &[u8] = b"user.onode.snapshot.";

/// The snapshots of a mounted volume.
pub(crate) struct Shown {
    all: Option<Arc<Snapshots>>,
    files: Arc<FileSystem>,
}

/// Whether a number is that of the folder or of a file in it.
pub(crate) const fn owns(number: INodeNo) -> bool {
    number.0 >= FIRST && number.0 <= LAST
}

/// What stands above the numbers of files of a snapshot.
const fn tag_of(generation: u32) -> u64 {
    FIRST | (generation as u64) << SHIFT
}

const fn generation_of(number: INodeNo) -> u32 {
    ((number.0 - FIRST) >> SHIFT) as u32
}

/// The number of a file in a snapshot.
pub(crate) const fn inode(number: INodeNo) -> InodeNumber {
    InodeNumber(number.0 & ((1 << SHIFT) - 1))
}

impl Shown {
    pub(crate) fn new(volume: &Volume) -> Self {
        Self { all: volume.snapshots().cloned(), files: Arc::clone(volume.files()) }
    }

    /// Whether a name in a directory is that of the folder, unless a file has it.
    pub(crate) fn is_folder(&self, parent: INodeNo, name: &[u8]) -> bool {
        self.all.is_some() && parent == INodeNo::ROOT && name == NAME
    }

    fn all(&self) -> Result<&Arc<Snapshots>, Errno> {
        self.all.as_ref().ok_or(Errno::ENOENT)
    }

    /// The file system of a number that is ours and not that of the folder.
    pub(crate) fn place(&self, number: INodeNo) -> Result<Place<'static>, Errno> {
        let generation = generation_of(number);
        let files = self.all()?.files(generation).map_err(|error| match errno_of(&error) {
            Errno::ENOENT => Errno::ESTALE,
            other => other,
        })?;
        Ok(Place::Snapshot(files, tag_of(generation)))
    }

    fn named(&self, name: &[u8]) -> Result<Snapshot, Errno> {
        let name = std::str::from_utf8(name).map_err(|_| Errno::ENOENT)?;
        self.all()?.named(name).ok_or(Errno::ENOENT)
    }

    /// The tree of a snapshot.
    pub(crate) fn lookup(&self, name: &[u8]) -> Result<Entry, Errno> {
        let snapshot = self.named(name)?;
        let place = self.place(INodeNo(tag_of(snapshot.generation)))?;
        let root = place.attributes(InodeNumber::ROOT).map_err(|error| errno(&error))?;
        Ok(place.entry(&root))
    }

    /// What an attribute says of the snapshot whose topmost directory has this number; `None` if
    /// the attribute, or the number, is another one.
    pub(crate) fn told(&self, number: INodeNo, name: &[u8]) -> Option<Result<Vec<u8>, Errno>> {
        let of_all = name.strip_prefix(ATTRIBUTES).filter(|_| inode(number) == InodeNumber::ROOT)?;
        let generation = generation_of(number);
        let all = self.all.as_ref()?;
        let snapshot = all.list().into_iter().find(|one| one.generation == generation)?;
        let value = match of_all {
            b"created" => Ok(format!("{}.{:09}", snapshot.created.seconds, snapshot.created.nanoseconds)),
            b"id" => Ok(snapshot.id.map_or_else(String::new, |id| id.to_string())),
            b"kept" => all.kept_bytes(generation).map(|bytes| bytes.to_string()),
            _ => return None,
        };
        Some(value.map(String::into_bytes).map_err(|error| errno_of(&error)))
    }

    /// The kernel forgets uses of a file. Files that are not open any more know of none.
    pub(crate) fn forget(&self, number: INodeNo, count: u64) {
        if let Some(files) = self.all.as_ref().and_then(|all| all.opened(generation_of(number))) {
            files.forget(inode(number), count);
        }
    }

    /// Takes a snapshot.
    pub(crate) fn take(&self, name: &[u8]) -> Result<Entry, Errno> {
        let text = std::str::from_utf8(name).map_err(|_| Errno::EINVAL)?;
        self.all()?.take(text).map_err(|error| errno_of(&error))?;
        self.lookup(name)
    }

    /// Deletes one.
    pub(crate) fn delete(&self, name: &[u8]) -> Result<(), Errno> {
        let snapshot = self.named(name)?;
        self.all()?.delete(&snapshot.name).map_err(|error| errno_of(&error))
    }

    /// Those of the folder: whoever may make names in the topmost directory may take snapshots.
    pub(crate) fn folder(&self) -> FileAttr {
        let root = self.files.attributes(InodeNumber::ROOT);
        let root = root.as_ref().map_or_else(|_| no_attributes(), attributes);
        FileAttr { ino: FOLDER, kind: FileType::Directory, nlink: 2, size: 0, blocks: 0, ..root }
    }

    /// Hands the snapshots on to `take` from `offset` on.
    pub(crate) fn list(&self, offset: u64, take: &mut dyn FnMut(&Listed<'_>) -> bool) {
        let all = self.all.as_ref().map_or_else(Vec::new, |all| all.list());
        let folder = self.folder();
        let of_one = |one: Snapshot| {
            let at = system_time(one.created);
            // What its tree shows is asked for when it is.
            let ino = INodeNo(tag_of(one.generation) | InodeNumber::ROOT.0);
            (FileAttr { ino, mtime: at, ctime: at, ..folder }, one.name)
        };
        let above = FileAttr { ino: INodeNo::ROOT, ..folder };
        let dots = [(folder, ".".to_owned()), (above, "..".to_owned())];
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for ((attributes, name), cursor) in dots.into_iter().chain(all.into_iter().map(of_one)).zip(1..).skip(from) {
            let entry = Entry { attributes, generation: Generation(0) };
            if !take(&Listed { entry, cursor, name: name.as_bytes(), ttl: Duration::ZERO }) {
                break;
            }
        }
    }
}

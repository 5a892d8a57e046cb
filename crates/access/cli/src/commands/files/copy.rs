//! Copying trees between the host and volumes: one engine for `get`, `put`, `cp` and `mkfs --from`.
//!
//! Kept are content with its holes, permissions, modification times, symbolic links and, for root,
//! the owner; where all is to be kept also hard links, extended attributes, devices, FIFOs and
//! sockets, which are else left out with a warning. A copy that fails or is interrupted leaves what
//! was copied so far.

mod attributes;
pub mod exclude;
mod host;
pub mod manner;
mod near;
mod report;
mod runs;
pub mod stream;
pub mod tar;
mod task;
mod volume;
mod wanted;

use crate::bar::bar;
use indicatif::ProgressBar;
use onode::Result;
use onode_base::Timestamp;
use onode_console::Output;
use onode_fs::FileType;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::Path;

pub use host::Host;
pub use manner::{CopyArguments, CopyManner};
pub use report::Copied;
pub use runs::Measure;
pub use stream::Stream;
pub use task::{Copying, End};
pub use volume::InVolume;
pub use wanted::{Wanted, shows_progress};

/// What a file is, as far as a copy keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file with bytes.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and where it leads.
    Link(OsString),
    /// A device, FIFO or socket.
    Special(Special),
}

/// A file that has no content of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// What it is.
    pub file_type: FileType,
    /// The number of a device, as the kernel has it.
    pub device: u64,
}

/// Which file a name leads to, on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The file system.
    pub file_system: u64,
    /// The inode there.
    pub inode: u64,
}

/// What a copy keeps of a file beside its content.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Which file it is, if it has several names.
    pub shared: Option<Identity>,
}

/// An extended attribute; an access control list is one, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattr {
    /// Its name, with the namespace.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// One side of a copy. What a side cannot have it refuses.
pub trait Side {
    /// What is at `path`; `None` if nothing.
    fn entry(&self, path: &Path) -> Result<Option<Entry>>;
    /// Whether a copy to `path` goes into it, because it is a directory or, where links are
    /// followed, leads to one.
    fn is_directory(&self, path: &Path) -> Result<bool> {
        Ok(self.entry(path)?.is_some_and(|entry| entry.kind == Kind::Directory))
    }
    /// The names in a directory, in their order.
    fn names(&self, path: &Path) -> Result<Vec<OsString>>;
    /// Reads bytes of a file; 0 at its end.
    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize>;
    /// The first bytes at or behind `offset` that are no hole; `None` if there are no more.
    fn data(&self, path: &Path, offset: u64) -> Result<Option<Range<u64>>>;
    /// The extended attributes, in the order of their names.
    fn xattrs(&self, path: &Path) -> Result<Vec<Xattr>>;
    /// Makes a directory.
    fn make_directory(&self, path: &Path) -> Result<()>;
    /// Makes a symbolic link, in place of one that is there.
    fn make_link(&self, path: &Path, target: &OsStr) -> Result<()>;
    /// Gives a file one more name.
    fn make_name(&self, path: &Path, of: &Path) -> Result<()>;
    /// Makes a device, FIFO or socket.
    fn make_special(&self, path: &Path, special: Special) -> Result<()>;
    /// Makes an empty file, or empties the one that is there.
    fn make_file(&self, path: &Path) -> Result<()>;
    /// Takes a name away from a file that is no directory.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Writes bytes of a file.
    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()>;
    /// Gives a file an extended attribute; whether it may and can have it.
    fn set_xattr(&self, path: &Path, xattr: &Xattr) -> Result<bool>;
    /// Gives a file its size, permissions, owner and time: what comes last. What a file has that
    /// another owner would lose stays if the owner is already the right one.
    fn finish(&self, path: &Path, entry: &Entry) -> Result<()>;
    /// Whether a later copy can go on where an earlier one ended.
    fn goes_on(&self) -> bool {
        true
    }
    /// How people know the path.
    fn name(&self, path: &Path) -> String;
}

/// A bar on standard error, if that is a terminal.
pub fn progress(bytes: u64, output: &Output) -> ProgressBar {
    bar(Some(bytes), "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}", output)
}

/// The same where nobody knows how much there is.
pub fn progress_without_end(output: &Output) -> ProgressBar {
    bar(None, "{spinner} {bytes} {bytes_per_sec} {msg}", output)
}

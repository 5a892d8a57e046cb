//! Files of a volume by path, for programs: a [`File`] that reads, writes and seeks, directories as
//! iterators.
//!
//! It stands on the calls of the file system that a mount uses, as root, and promises the same:
//! what is written is durable after [`File::sync_all`] or [`Volume::sync`].

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use crate::volume::{CreateOptions, MountOptions, Volume};
use onode_fs::{
    Attributes, Caller, DirectoryEntry, FileHandle, FileSystem, FileType, Follow, InodeNumber, OpenFlags, RenameFlags,
    SetAttributes,
};
use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Permissions of new files, as `open` of a user without a umask makes them.
const NEW_FILE: u16 = 0o644;
/// Permissions of new directories.
const NEW_DIRECTORY: u16 = 0o755;

/// What `path` names in `volume`, for messages.
fn failed(doing: &str, path: &Path) -> impl Fn(onode_fs::Error) -> Error {
    let what = format!("cannot {doing} {}", path.display());
    move |error| Volume::error(what.clone(), &error)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

impl Volume {
    /// Opens the volume that `spec` names; an image that is not there is made.
    ///
    /// # Errors
    /// `Usage` for a spec that is none; as [`Volume::create`] and [`Volume::open`].
    pub fn open_or_create(spec: &str) -> Result<Self> {
        let spec = Spec::parse(spec)?;
        match spec.image_path() {
            Some(path) if !path.exists() => Self::create(&spec, &CreateOptions::default())?,
            _ => {}
        }
        Self::open(&spec, MountOptions::default())
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// `NotFound`, `Damaged`, ...
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = path.as_ref();
        self.files().read_file(bytes(path)).map_err(failed("read", path))
    }

    /// Makes a file or replaces its content.
    ///
    /// # Errors
    /// `NotFound` for the directory, `VolumeFull`, `ReadOnly`, ...
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
        let path = path.as_ref();
        let written = self.files().write_file(&Caller::root(), bytes(path), content.as_ref(), NEW_FILE);
        written.map(drop).map_err(failed("write", path))
    }

    /// Opens a file that is there.
    ///
    /// # Errors
    /// `NotFound`; `General` for a directory.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let number = self.files().resolve(bytes(path), Follow::Yes).map_err(failed("open", path))?;
        File::open(self.files(), number, path)
    }

    /// Opens a file; one that is not there is made, one that is there is emptied.
    ///
    /// # Errors
    /// `NotFound` for the directory, `VolumeFull`, `ReadOnly`, ...
    pub fn create_file(&self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let number = self.files().write_file(&Caller::root(), bytes(path), &[], NEW_FILE);
        File::open(self.files(), number.map_err(failed("create", path))?, path)
    }

    /// What a file is, how large, whose, and when it was changed. A symbolic link is not followed.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn metadata(&self, path: impl AsRef<Path>) -> Result<Attributes> {
        let path = path.as_ref();
        let number = self.files().resolve(bytes(path), Follow::No);
        number.and_then(|number| self.files().attributes(number)).map_err(failed("look at", path))
    }

    /// Makes a directory and those on the way to it, as far as they are not there.
    ///
    /// # Errors
    /// `VolumeFull`, `ReadOnly`; `General` if a file is in the way.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let made = self.files().make_directories(&Caller::root(), bytes(path), NEW_DIRECTORY);
        made.map(drop).map_err(failed("make", path))
    }

    /// Gives a file or directory another name. A file that has the name loses it in the same
    /// moment.
    ///
    /// # Errors
    /// `NotFound`; `General` if the one cannot take the place of the other.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let files = self.files();
        let renamed = files.resolve_parent(bytes(from)).and_then(|(from_directory, from_name)| {
            let (to_directory, to_name) = files.resolve_parent(bytes(to))?;
            files.rename(from_directory, from_name, to_directory, to_name, RenameFlags::Replace)
        });
        renamed.map_err(failed("rename", from))
    }

    /// Removes a file, or a directory with all that is in it.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`.
    pub fn remove_all(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.files().remove_all(bytes(path)).map(drop).map_err(failed("remove", path))
    }

    /// The names in a directory, without `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// `NotFound`; `General` if it is no directory.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> Result<ReadDir> {
        let path = path.as_ref();
        let number = self.files().resolve(bytes(path), Follow::Yes);
        let names = number.and_then(|number| self.files().list(number)).map_err(failed("list", path))?;
        let entries: Vec<Entry> = names.iter().map(|name| Entry::below(path, name)).collect();
        Ok(ReadDir(entries.into_iter()))
    }

    /// Everything below a directory, each directory before what is in it.
    #[must_use]
    pub fn walk(&self, path: impl AsRef<Path>) -> Walk<'_> {
        Walk { volume: self, open: Vec::new(), start: Some(path.as_ref().to_owned()) }
    }

    /// Makes everything durable that was done so far.
    ///
    /// # Errors
    /// Those of the device.
    pub fn sync(&self) -> Result<()> {
        self.files().sync().map_err(|error| Self::error(format!("cannot save {}", self.spec()), &error))
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The way to it from the root of the volume.
    pub path: PathBuf,
    /// What it names.
    pub file_type: FileType,
    /// Which file.
    pub inode: InodeNumber,
}

impl Entry {
    fn below(above: &Path, entry: &DirectoryEntry) -> Self {
        let name = OsStr::from_bytes(&entry.name);
        Self { path: above.join(name), file_type: entry.file_type, inode: entry.inode }
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

/// The names in a directory; see [`Volume::read_dir`].
#[derive(Debug)]
pub struct ReadDir(std::vec::IntoIter<Entry>);

impl Iterator for ReadDir {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.0.next()
    }
}

/// The files below a directory; see [`Volume::walk`]. It holds the names of the directories on the
/// way.
#[derive(Debug)]
pub struct Walk<'v> {
    volume: &'v Volume,
    open: Vec<ReadDir>,
    start: Option<PathBuf>,
}

impl Walk<'_> {
    fn enter(&mut self, path: &Path) -> Result<()> {
        self.open.push(self.volume.read_dir(path)?);
        Ok(())
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(start) = self.start.take()
            && let Err(error) = self.enter(&start)
        {
            return Some(Err(error));
        }
        loop {
            let Some(entry) = self.open.last_mut()?.next() else {
                self.open.pop();
                continue;
            };
            if entry.file_type == FileType::Directory
                && let Err(error) = self.enter(&entry.path)
            {
                return Some(Err(error));
            }
            return Some(Ok(entry));
        }
    }
}

/// An open file. Several of one file share its content, each with a position of its own.
#[derive(Debug)]
pub struct File {
    files: Arc<FileSystem>,
    number: InodeNumber,
    handle: FileHandle,
    position: u64,
    path: PathBuf,
}

impl File {
    fn open(files: &Arc<FileSystem>, number: InodeNumber, path: &Path) -> Result<Self> {
        let error = failed("open", path);
        if files.attributes(number).map_err(&error)?.file_type != FileType::Regular {
            let why = "it is no file with bytes";
            return Err(Error::new(Class::General, format!("cannot open {}", path.display()), why));
        }
        // Whether the volume may be written is told by the write.
        let handle = files.open(&Caller::root(), number, OpenFlags::default()).map_err(&error)?;
        Ok(Self { files: Arc::clone(files), number, handle, position: 0, path: path.to_owned() })
    }

    /// What the file is now.
    ///
    /// # Errors
    /// Those of the device.
    pub fn metadata(&self) -> Result<Attributes> {
        self.files.attributes(self.number).map_err(failed("look at", &self.path))
    }

    /// Cuts the file, or lets it grow by a hole.
    ///
    /// # Errors
    /// `ReadOnly`, `VolumeFull`.
    pub fn set_len(&self, size: u64) -> Result<()> {
        let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
        let set = self.files.set_attributes(&Caller::root(), self.number, &change);
        set.map(drop).map_err(failed("cut", &self.path))
    }

    /// Makes the content, the name and the attributes of the file durable.
    ///
    /// # Errors
    /// Those of the device, also of writes before.
    pub fn sync_all(&self) -> Result<()> {
        self.files.fsync(self.number, Some(self.handle), false).map_err(failed("save", &self.path))
    }
}

/// The error of a failed call as programs know it.
fn io_error(error: &onode_fs::Error) -> io::Error {
    io::Error::from_raw_os_error(error.kind.errno())
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.files.read(self.number, self.position, buffer).map_err(|error| io_error(&error))?;
        self.position += got as u64;
        Ok(got)
    }
}

impl Write for File {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        let put = self.files.write(&Caller::root(), self.number, self.position, content);
        let put = put.map_err(|error| io_error(&error))?;
        self.position += put as u64;
        Ok(put)
    }

    /// Nothing waits in the file itself; see [`File::sync_all`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (base, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::Current(by) => (self.position, by),
            SeekFrom::End(by) => (self.files.attributes(self.number).map_err(|error| io_error(&error))?.size, by),
        };
        self.position = base.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A failed write-back is told by `sync_all` and by the end of the volume.
        let _ = self.files.release(self.handle);
    }
}

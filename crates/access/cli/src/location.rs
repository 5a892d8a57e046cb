//! Files in an image that is not mounted: opening it for one command, and walking paths.
//!
//! Paths start at the root of the volume, with or without a slash. Symbolic links on the way are
//! not followed: they speak of the place where the volume will be mounted.

pub mod expand;
pub mod pattern;
pub mod walk;

use onode::devices;
use onode::{Class, Error, MountOptions, Result, Spec, Volume};
use onode_fs::{Attributes, Caller, DirectoryEntry, ErrorKind, FileSystem, InodeNumber};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Whether a command goes on although the volume holds less than it promised.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Consent {
    /// Go on although acknowledged data is missing: what is there is used, what is missing is given
    /// up. Copy the image first.
    #[arg(long)]
    pub accept_loss: bool,
}

/// How a volume is opened.
type Open = fn(&Spec, MountOptions) -> Result<Volume>;

/// The spec of a command-line argument; `LABEL=NAME` and `UUID=NUMBER` are looked for on the block
/// devices.
pub fn spec(argument: &OsStr) -> Result<Spec> {
    let text = argument.to_str().filter(|_| !Path::new(argument).exists());
    match text.map(devices::named).transpose()?.flatten() {
        Some(device) => Spec::from_argument(device.as_os_str()),
        None => Spec::from_argument(argument),
    }
}

/// Opens the volume of a command-line argument; `IMAGE@NAME` is a snapshot of it, to be read, or a
/// clone.
pub fn open(image: &OsStr, read_only: bool, consent: Consent) -> Result<Volume> {
    opened(image, read_only, consent, Volume::open)
}

/// The same for the sake of its size, its snapshots and its clones: also where a stream or a way
/// back to a snapshot did not come to its end.
pub fn open_for_states(image: &OsStr, read_only: bool, consent: Consent) -> Result<Volume> {
    opened(image, read_only, consent, Volume::open_for_states)
}

fn opened(image: &OsStr, read_only: bool, consent: Consent, open: Open) -> Result<Volume> {
    let options = MountOptions { read_only, accept_loss: consent.accept_loss, ..MountOptions::default() };
    let (image, state) = Spec::state_of(image).map_or((image, None), |(image, name)| (OsStr::new(image), Some(name)));
    let spec = spec(image)?;
    let opened = match state {
        Some(name) => Volume::open_state(&spec, name, options),
        None => open(&spec, options.clone()).or_else(|error| match spec {
            // Memory that others use can be used together with them, but not looked at behind their
            // backs.
            Spec::Scm(_) if read_only && error.class == Class::InUse => {
                open(&spec, MountOptions { read_only: false, ..options })
            }
            _ => Err(error),
        }),
    };
    let volume =
        opened.map_err(|error| if error.class == Class::InUse { where_mounted(&spec, error) } else { error })?;
    // Beside the result of the command, which goes elsewhere.
    volume.notes().iter().for_each(|note| eprintln!("onode: {note}"));
    Ok(volume)
}

/// Where the volume of a command-line argument is mounted, if it is; of a directory, that
/// directory. `verb` says for an error what cannot be done there.
pub fn mounted(target: &OsStr, verb: &str) -> Result<Option<PathBuf>> {
    let directory = Path::new(target);
    if !directory.is_dir() {
        return Ok(onode_fuse::mount_of(&spec(target)?).map(|mounted| mounted.directory));
    }
    onode_fuse::our_mount_at(directory, format!("cannot {verb} {}", directory.display()))?;
    Ok(Some(directory.to_owned()))
}

/// Names of as many disks as a volume can have.
const DISK_NAMES_BYTES: usize = 32 << 10;

/// The spec of the volume that is mounted there, with the disks that it has by now.
pub fn spec_with_disks(directory: &Path, what: &str) -> Result<Spec> {
    let spec = Spec::from_argument(&onode_fuse::our_mount_at(directory, what.to_owned())?.source)?.again();
    match disks_of(directory) {
        Ok(disks) => spec.on_disks(disks.into_iter().map(PathBuf::from)),
        Err(Errno::OPNOTSUPP | Errno::NODATA) => Ok(spec),
        Err(errno) => Err(Error::host(what, &errno.into())),
    }
}

/// The disks of the volume that is mounted there, as its server calls them.
pub fn disks_of(directory: &Path) -> std::result::Result<Vec<String>, Errno> {
    let mut value = vec![0; DISK_NAMES_BYTES];
    let length = rustix::fs::getxattr(directory, onode_fs::DISK, &mut value[..])?;
    let names = String::from_utf8_lossy(value.get(..length).unwrap_or_default());
    Ok(names.lines().map(str::to_owned).collect())
}

/// Tells where an image that is in use is mounted, if it is.
pub fn where_mounted(spec: &Spec, error: Error) -> Error {
    match onode_fuse::mount_of(spec) {
        Some(mounted) => {
            let directory = mounted.directory.display();
            let hint = format!("it is mounted at {directory}; work there, or run: onode umount {directory}");
            error.hint(hint)
        }
        None => error,
    }
}

/// Lets `work` change the volume and closes it whatever happens.
pub fn change<T>(image: &OsStr, consent: Consent, work: impl FnOnce(&Volume) -> Result<T>) -> Result<T> {
    worked(open(image, false, consent)?, work)
}

/// The same for the sake of its size, its snapshots and its clones.
pub fn change_states<T>(image: &OsStr, consent: Consent, work: impl FnOnce(&Volume) -> Result<T>) -> Result<T> {
    worked(open_for_states(image, false, consent)?, work)
}

fn worked<T>(volume: Volume, work: impl FnOnce(&Volume) -> Result<T>) -> Result<T> {
    let outcome = work(&volume);
    volume.close()?;
    outcome
}

/// Who runs the command: the owner of what it makes.
pub fn caller() -> Caller {
    Caller { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw(), ..Caller::root() }
}

/// A file that was looked up; gives the use back when dropped.
pub struct Node<'a> {
    files: &'a FileSystem,
    attributes: Attributes,
}

impl<'a> Node<'a> {
    /// The root directory.
    pub fn root(files: &'a FileSystem) -> Result<Self> {
        let attributes = files.attributes(InodeNumber::ROOT).map_err(|error| failed("read", Path::new("/"), &error))?;
        Ok(Self { files, attributes })
    }

    /// Takes over the use that a lookup or creation counted.
    pub const fn counted(files: &'a FileSystem, attributes: Attributes) -> Self {
        Self { files, attributes }
    }

    /// What is known of the file.
    pub const fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Which file.
    pub const fn inode(&self) -> InodeNumber {
        self.attributes.inode
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        if self.attributes.inode != InodeNumber::ROOT {
            self.files.forget(self.attributes.inode, 1);
        }
    }
}

/// The parts of a path in a volume.
pub fn parts(path: &Path) -> Result<Vec<&[u8]>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => parts.push(part.as_bytes()),
            Component::ParentDir | Component::Prefix(_) => {
                let what = format!("cannot use the path {}", path.display());
                return Err(Error::new(Class::Usage, what, "it contains `..`").hint("write the path from the root on"));
            }
        }
    }
    Ok(parts)
}

/// The file at `path`; `None` if there is none.
pub fn find<'a>(files: &'a FileSystem, path: &Path) -> Result<Option<Node<'a>>> {
    let mut node = Node::root(files)?;
    for part in parts(path)? {
        match files.lookup(node.inode(), part) {
            Ok(attributes) => node = Node::counted(files, attributes),
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("reach", path, &error)),
        }
    }
    Ok(Some(node))
}

/// The file at `path`.
pub fn resolve<'a>(files: &'a FileSystem, path: &Path) -> Result<Node<'a>> {
    find(files, path)?.ok_or_else(|| {
        let what = format!("cannot find {} in the volume", path.display());
        Error::new(Class::NotFound, what, "there is no such file").hint("`onode ls IMAGE [PATH]` lists what there is")
    })
}

/// The directory that holds `path` and the name there.
pub fn parent<'a, 'p>(files: &'a FileSystem, path: &'p Path) -> Result<(Node<'a>, &'p [u8])> {
    let parts = parts(path)?;
    let Some((name, _)) = parts.split_last() else {
        let what = format!("cannot do this to {}", path.display());
        return Err(Error::new(Class::Usage, what, "it is the root directory").hint("name something in it"));
    };
    let directory = path.parent().unwrap_or_else(|| Path::new("/"));
    Ok((resolve(files, directory)?, name))
}

/// What a directory holds, without itself and the one above, in the order of the names.
pub fn entries(files: &FileSystem, directory: InodeNumber, path: &Path) -> Result<Vec<DirectoryEntry>> {
    let mut entries = Vec::new();
    gather(files, directory, path, &mut entries)?;
    Ok(entries)
}

/// Adds what a directory holds to `entries`, as [`entries`] has it; before an error what could be
/// read.
fn gather(files: &FileSystem, directory: InodeNumber, path: &Path, entries: &mut Vec<DirectoryEntry>) -> Result<()> {
    let listed = files.read_directory(directory, 0, &mut |entry: &DirectoryEntry| {
        if entry.name != b"." && entry.name != b".." {
            entries.push(entry.clone());
        }
        true
    });
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    listed.map_err(|error| failed("list", path, &error))
}

/// The error of a call of the file system about one path.
pub fn failed(action: &str, path: &Path, error: &onode_fs::Error) -> Error {
    Volume::error(format!("cannot {action} {} in the volume", path.display()), error)
}

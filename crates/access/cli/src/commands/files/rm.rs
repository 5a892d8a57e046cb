//! `onode rm`: removes files from an image.

use crate::location::expand::expand;
use crate::location::{self, Consent, entries, failed, parent, resolve};
use onode::{Class, Error, Result, Volume};
use onode_console::Output;
use onode_fs::{DirectoryEntry, FileSystem, FileType, InodeNumber};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  onode rm disk.img /notes.txt\n  onode rm -r disk.img /photos\n  onode rm disk.img '/logs/*.old'"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// What to remove. Wildcards are meant in the image.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Remove directories with all they hold.
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, _output: &Output) -> Result<u8> {
    location::change(&arguments.image, arguments.consent, |volume| {
        // All of them first: a pattern that nothing matches must not leave half of it done.
        let paths = expand(volume.files(), &arguments.paths)?;
        paths.iter().try_for_each(|path| remove(volume, path, arguments.recursive))
    })?;
    Ok(0)
}

fn remove(volume: &Volume, path: &Path, recursive: bool) -> Result<()> {
    let files = volume.files();
    let (directory, name) = parent(files, path)?;
    let node = resolve(files, path)?;
    if node.attributes().file_type != FileType::Directory {
        return files.unlink(directory.inode(), name).map_err(|error| failed("remove", path, &error));
    }
    if !recursive {
        let what = format!("cannot remove {}", path.display());
        return Err(Error::new(Class::Usage, what, "it is a directory").hint("add -r to remove it with all it holds"));
    }
    empty(files, node.inode(), path)?;
    files.remove_directory(directory.inode(), name).map_err(|error| failed("remove", path, &error))
}

/// Removes everything in a directory.
fn empty(files: &FileSystem, directory: InodeNumber, path: &Path) -> Result<()> {
    for DirectoryEntry { name, inode, file_type, .. } in entries(files, directory, path)? {
        let inner = path.join(OsStr::from_bytes(&name));
        let removed = if file_type == FileType::Directory {
            empty(files, inode, &inner)?;
            files.remove_directory(directory, &name)
        } else {
            files.unlink(directory, &name)
        };
        removed.map_err(|error| failed("remove", &inner, &error))?;
    }
    Ok(())
}

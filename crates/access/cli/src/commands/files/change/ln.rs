//! `onode ln`: gives a file of an image another name, or makes a symbolic link.

use super::{target, wrong};
use crate::location::{self, Consent, Node, caller, failed, parent, resolve};
use onode::{Error, Result, Volume};
use onode_console::Output;
use onode_fs::{ErrorKind, FileType};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A symbolic link holds its target as it is written, whether there is something or not; one that\n\
    begins with a slash is meant from the root of the machine that follows it.\n\n\
    Examples:\n  onode ln disk.img /notes.txt /same.txt\n  onode ln -s disk.img ../photos/2026 /albums/new"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file that gets another name; with -s what the link holds.
    target: PathBuf,
    /// The new name, or the directory to put it in.
    name: PathBuf,
    /// Make a symbolic link.
    #[arg(short, long)]
    symbolic: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, _output: &Output) -> Result<u8> {
    location::change(&arguments.image, arguments.consent, |volume| {
        let name = target(volume.files(), &arguments.name, arguments.target.file_name())?;
        if arguments.symbolic {
            make_symbolic(volume, &arguments.target, &name)
        } else {
            make_hard(volume, &arguments.target, &name)
        }
    })?;
    Ok(0)
}

fn make_symbolic(volume: &Volume, target: &Path, path: &Path) -> Result<()> {
    let files = volume.files();
    let (directory, name) = parent(files, path)?;
    let made = files.make_symbolic_link(&caller(), directory.inode(), name, target.as_os_str().as_bytes());
    drop(Node::counted(files, made.map_err(|error| taken(path, &error))?));
    Ok(())
}

fn make_hard(volume: &Volume, target: &Path, path: &Path) -> Result<()> {
    let files = volume.files();
    let node = resolve(files, target)?;
    if node.attributes().file_type == FileType::Directory {
        let what = format!("cannot give {} another name", target.display());
        return Err(wrong(what, "it is a directory, which has one name only", "make a symbolic link: onode ln -s"));
    }
    let (directory, name) = parent(files, path)?;
    let linked = files.link(node.inode(), directory.inode(), name);
    drop(Node::counted(files, linked.map_err(|error| taken(path, &error))?));
    Ok(())
}

/// The error of a name that could not be made.
fn taken(path: &Path, error: &onode_fs::Error) -> Error {
    let is_taken = error.kind == ErrorKind::Exists;
    let error = failed("make", path, error);
    if is_taken { error.hint("choose another name, or remove it first: onode rm IMAGE PATH") } else { error }
}

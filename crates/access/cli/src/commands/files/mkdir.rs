//! `onode mkdir`: makes directories in an image.

use crate::location::{self, Consent, Node, caller, failed, find, parent, parts};
use onode::{Result, Volume};
use onode_console::Output;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  onode mkdir disk.img /photos\n  onode mkdir -p disk.img /backup/2026/photos /backup/2026/mail"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The directories to make.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Make its parents too; it is no error if it is there already.
    #[arg(short, long)]
    parents: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, _output: &Output) -> Result<u8> {
    location::change(&arguments.image, arguments.consent, |volume| {
        let make = if arguments.parents { make_all } else { make };
        arguments.paths.iter().try_for_each(|path| make(volume, path))
    })?;
    Ok(0)
}

fn make_all(volume: &Volume, path: &Path) -> Result<()> {
    let mut whole = PathBuf::from("/");
    for part in parts(path)? {
        whole.push(OsStr::from_bytes(part));
        if find(volume.files(), &whole)?.is_none() {
            make(volume, &whole)?;
        }
    }
    Ok(())
}

fn make(volume: &Volume, path: &Path) -> Result<()> {
    let files = volume.files();
    let (directory, name) = parent(files, path)?;
    let made = files.make_directory(&caller(), directory.inode(), name, 0o755);
    drop(Node::counted(files, made.map_err(|error| failed("make", path, &error))?));
    Ok(())
}

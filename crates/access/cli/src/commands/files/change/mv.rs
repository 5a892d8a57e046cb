//! `onode mv`: renames files of an image or moves them to another directory of it.

use super::{is_directory, target, wrong};
use crate::location::expand::{check_names, expand};
use crate::location::{self, Consent, failed, find, parent, parts, resolve};
use onode::{Result, Volume};
use onode_console::Output;
use onode_fs::RenameFlags;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file that has the new name is replaced. From one image to another: `onode cp`, then `onode rm`.\n\n\
    Examples:\n  onode mv disk.img /notes.txt /old.txt\n  onode mv disk.img '/*.log' /logs"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// What to move. Wildcards are meant in the image.
    #[arg(required = true)]
    from: Vec<PathBuf>,
    /// The new name, or the directory to move it to.
    to: PathBuf,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, _output: &Output) -> Result<u8> {
    location::change(&arguments.image, arguments.consent, |volume| {
        let to = arguments.to.as_path();
        let paths = expand(volume.files(), &arguments.from)?;
        if paths.len() > 1 && !is_directory(volume.files(), to)? {
            let what = format!("cannot move {} files to {}", paths.len(), to.display());
            return Err(wrong(
                what,
                "it is no directory",
                "name one that is there, or make it: onode mkdir IMAGE PATH",
            ));
        }
        check_names(&paths)?;
        paths.iter().try_for_each(|from| rename(volume, from, to))
    })?;
    Ok(0)
}

fn rename(volume: &Volume, from: &Path, to: &Path) -> Result<()> {
    let files = volume.files();
    let (old_directory, old_name) = parent(files, from)?;
    let moved = resolve(files, from)?;
    check_outside(from, to)?;
    let to = target(files, to, from.file_name())?;
    check_outside(from, &to)?;
    // Two names of one file: the call leaves both, but who moves a file wants one of them gone.
    let is_same = find(files, &to)?.is_some_and(|there| there.inode() == moved.inode());
    if is_same {
        let removed = files.unlink(old_directory.inode(), old_name);
        return removed.map_err(|error| failed("remove", from, &error));
    }
    let (new_directory, new_name) = parent(files, &to)?;
    let flags = RenameFlags::Replace;
    let renamed = files.rename(old_directory.inode(), old_name, new_directory.inode(), new_name, flags);
    renamed.map_err(|error| failed(&format!("move {} to", from.display()), &to, &error))
}

/// That nothing is moved into itself, nor to where it is.
fn check_outside(from: &Path, to: &Path) -> Result<()> {
    let (wanted, own) = (parts(to)?, parts(from)?);
    let what = || format!("cannot move {} to {}", from.display(), to.display());
    match wanted.strip_prefix(own.as_slice()) {
        None => Ok(()),
        Some([]) => Err(wrong(what(), "it is there already", "choose another name")),
        Some(_) => Err(wrong(what(), "it would be within itself", "choose a target outside of it")),
    }
}

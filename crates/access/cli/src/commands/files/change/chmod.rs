//! `onode chmod`: changes permissions of files in an image.

use super::mode::ModeChange;
use super::wrong;
use crate::location::expand::expand;
use crate::location::walk::{Next, Seen, Skipped, Tour, Visitor};
use crate::location::{self, Consent, failed};
use onode::Result;
use onode_console::Output;
use onode_fs::{Caller, FileSystem, FileType, SetAttributes};
use rustix::fs::Mode;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Symbolic links have no permissions of their own; with -R they are left out. What is damaged is\n\
    told and left out, too, and the exit code is 11.\n\n\
    Examples:\n  onode chmod disk.img 640 /notes.txt\n  onode chmod disk.img u+x,go-w '/bin/*'\n  onode chmod -R disk.img a+rX /photos"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// An octal number, or changes: u+x,go-w. Letters as chmod(1) has them.
    #[arg(allow_hyphen_values = true)]
    mode: String,
    /// The files. Wildcards are meant in the image.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Change directories with all they hold.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    // Before the image is opened for writing: a mode that is none must not touch it.
    let change = ModeChange::parse(&arguments.mode, umask()).map_err(|why| {
        let what = format!("cannot understand the mode `{}`", arguments.mode);
        wrong(what, &why, "write for example 640, u+x or go-w")
    })?;
    let mut skipped = Skipped::new(output);
    location::change(&arguments.image, arguments.consent, |volume| {
        let files = volume.files();
        let mut changer = Changer { files, change: &change, is_recursive: arguments.recursive };
        for path in expand(files, &arguments.paths)? {
            Tour { files, skipped: &mut skipped }.go(&path, &mut changer)?;
        }
        Ok(())
    })?;
    Ok(skipped.exit_code())
}

/// Bits that this process takes from what it makes. They can be read only by setting them.
fn umask() -> u16 {
    let umask = rustix::process::umask(Mode::empty());
    rustix::process::umask(umask);
    u16::try_from(umask.bits()).unwrap_or_default()
}

struct Changer<'a> {
    files: &'a FileSystem,
    change: &'a ModeChange,
    is_recursive: bool,
}

impl Visitor for Changer<'_> {
    fn enter(&mut self, seen: &Seen<'_>) -> Result<Next> {
        let found = seen.attributes;
        if found.file_type == FileType::SymbolicLink {
            if seen.depth > 0 {
                return Ok(Next::Past);
            }
            let what = format!("cannot change the permissions of {}", seen.path.display());
            return Err(wrong(what, "it is a symbolic link and has none", "name the file that it leads to"));
        }
        let permissions = Some(self.change.apply(found.permissions, seen.is_directory()));
        let change = SetAttributes { permissions, ..SetAttributes::default() };
        let changed = self.files.set_attributes(&Caller::root(), found.inode, &change);
        changed.map_err(|error| failed("change the permissions of", seen.path, &error))?;
        Ok(if self.is_recursive { Next::Into } else { Next::Past })
    }
}

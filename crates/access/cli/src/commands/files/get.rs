//! `onode get`: copies files out of an image.

use crate::commands::files::copy::{Copied, End, Host, InVolume, Stream, copy};
use crate::location::expand::{Meaning, check_names, meaning};
use crate::location::{self, Consent};
use onode::{Class, Error, Result};
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  onode get disk.img /notes.txt\n  onode get -r disk.img /photos ./photos\n  onode get disk.img /notes.txt - | less\n  onode get disk.img '/logs/*.old' ./logs"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file or directory in the image. Wildcards are meant in the image; several files that
    /// match go into a directory.
    remote: PathBuf,
    /// Where to put it; - for standard output, which then gets no report. Default: under its own
    /// name, here.
    local: Option<PathBuf>,
    /// Copy directories with all they hold.
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let paths = match meaning(volume.files(), &arguments.remote)? {
        Meaning::This(path) => vec![path],
        Meaning::Matches(paths) => paths,
    };
    let local = arguments.local.as_deref();
    if let (Some(local), [_, _, ..]) = (local.filter(|local| !local.is_dir()), paths.as_slice()) {
        let what = format!("cannot copy {} files to {}", paths.len(), local.display());
        let hint = "make a directory for them first; `onode cat` writes several files to standard output";
        return Err(Error::new(Class::Usage, what, "it is no directory").hint(hint));
    }
    check_names(&paths)?;
    let mut copied = Copied::default();
    for remote in &paths {
        let from = End { side: &InVolume(&volume), path: remote };
        if arguments.local.as_deref().is_some_and(Stream::is_meant) {
            copy(from, End { side: &Stream::output(*output), path: Path::new("") }, arguments.recursive, output)?;
            return Ok(0);
        }
        let local = local.or(remote.file_name().map(Path::new)).ok_or_else(|| {
            Error::new(Class::Usage, "cannot copy the root directory to a name of its own", "it has none")
                .hint("say where: onode get -r IMAGE / ./DIRECTORY")
        })?;
        copied.add(&copy(from, End { side: &Host, path: local }, arguments.recursive, output)?);
    }
    output.report(&copied)?;
    Ok(0)
}

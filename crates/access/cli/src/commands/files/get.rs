//! `onode get`: copies files out of an image.

mod archive;

use crate::commands::files::copy::{CopyArguments, Copying, End, Host, InVolume, Stream};
use crate::location::expand::{Meaning, check_names, meaning};
use crate::location::{self, Consent};
use onode::{Class, Error, Result};
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ctrl-C ends the copy after the piece at hand; what was copied stays, and --resume goes on.\n\n\
    Examples:\n  onode get disk.img /notes.txt\n  onode get -r disk.img /photos ./photos\n  \
    onode get disk.img /notes.txt - | less\n  onode get disk.img '/logs/*.old' ./logs\n  \
    onode get -r --exclude '*.tmp' --exclude /cache disk.img /home ./home\n  \
    onode get -r --resume disk.img /photos ./photos      go on after an interrupt\n  \
    onode get --tar disk.img /photos - | gzip > photos.tar.gz"
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
    /// Write a tar archive to LOCAL, a file or -: the content of a directory, or what matches, with
    /// all there is of files (as -a). GNU tar and others read it.
    #[arg(long)]
    tar: bool,
    #[command(flatten)]
    copy: CopyArguments,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let local = arguments.local.as_deref();
    if arguments.tar {
        let manner = arguments.copy.archive_manner()?;
        let volume = location::open(&arguments.image, true, arguments.consent)?;
        let what = meaning(volume.files(), &arguments.remote)?;
        if let Meaning::Matches(paths) = &what {
            check_names(paths)?;
        }
        archive::pack(InVolume::new(&volume), &what, local, &manner, output)?;
        return Ok(0);
    }
    let to_stream = local.is_some_and(Stream::is_meant);
    if to_stream {
        arguments.copy.check_stream()?;
    }
    let manner = arguments.copy.manner()?;
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let paths = match meaning(volume.files(), &arguments.remote)? {
        Meaning::This(path) => vec![path],
        Meaning::Matches(paths) => paths,
    };
    if let (Some(local), [_, _, ..]) = (local.filter(|local| !local.is_dir()), paths.as_slice()) {
        let what = format!("cannot copy {} files to {}", paths.len(), local.display());
        let hint = "make a directory for them first; `onode cat` writes several files to standard output";
        return Err(Error::new(Class::Usage, what, "it is no directory").hint(hint));
    }
    check_names(&paths)?;
    let side = InVolume::new(&volume);
    let mut copying = Copying::new(&manner, output);
    for remote in &paths {
        let from = End { side: &side, path: remote };
        if to_stream {
            let stream = Stream::output(*output, manner.stop.clone());
            copying.copy(from, End { side: &stream, path: Path::new("") })?;
            return Ok(0);
        }
        let local = local.or(remote.file_name().map(Path::new)).ok_or_else(|| {
            Error::new(Class::Usage, "cannot copy the root directory to a name of its own", "it has none")
                .hint("say where: onode get -r IMAGE / ./DIRECTORY")
        })?;
        copying.copy(from, End { side: &Host, path: local })?;
    }
    copying.report()?;
    Ok(0)
}

//! `onode get`: copies files out of an image.

use crate::commands::files::copy::{End, Host, InVolume, Stream, copy};
use crate::location::{self, Consent};
use onode::{Class, Error, Result};
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  onode get disk.img /notes.txt\n  onode get -r disk.img /photos ./photos\n  onode get disk.img /notes.txt - | less"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file or directory in the image.
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
    let local = arguments.local.clone().or_else(|| arguments.remote.file_name().map(PathBuf::from));
    let local = local.ok_or_else(|| {
        Error::new(Class::Usage, "cannot copy the root directory to a name of its own", "it has none")
            .hint("say where: onode get -r IMAGE / ./DIRECTORY")
    })?;
    let from = End { side: &InVolume(&volume), path: &arguments.remote };
    if Stream::is_meant(&local) {
        copy(from, End { side: &Stream::output(*output), path: Path::new("") }, arguments.recursive, output)?;
        return Ok(0);
    }
    let copied = copy(from, End { side: &Host, path: Path::new(&local) }, arguments.recursive, output)?;
    output.report(&copied)?;
    Ok(0)
}

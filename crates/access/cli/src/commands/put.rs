//! `onode put`: copies files into an image.

use crate::commands::copy::{End, Host, InVolume, copy};
use crate::commands::location;
use crate::output::Output;
use onode::{Class, Error, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode put disk.img notes.txt\n  onode put -r disk.img ./photos /backup/photos")]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file or directory of the host.
    local: PathBuf,
    /// Where to put it in the image. Default: under its own name, in the root directory.
    remote: Option<PathBuf>,
    /// Copy directories with all they hold.
    #[arg(short, long)]
    recursive: bool,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    // Before the image is opened for writing: a name that is wrong must not touch it.
    if let Err(error) = std::fs::symlink_metadata(&arguments.local) {
        return Err(Error::host_file("read", &arguments.local, &error));
    }
    if arguments.local.is_dir() && !arguments.recursive {
        let what = format!("cannot copy {}", arguments.local.display());
        return Err(Error::new(Class::Usage, what, "it is a directory").hint("add -r to copy it with all it holds"));
    }
    let copied = location::change(&arguments.image, |volume| {
        let remote = arguments.remote.as_deref().unwrap_or_else(|| Path::new("/"));
        let to = End { side: &InVolume(volume), path: remote };
        copy(End { side: &Host, path: &arguments.local }, to, arguments.recursive, output)
    })?;
    output.report(&copied)?;
    Ok(0)
}

//! `onode put`: copies files into an image.

use crate::commands::files::copy::{End, Host, InVolume, Stream, copy};
use crate::location::{self, Consent};
use onode::{Class, Error, Result, TransactionOptions, Volume};
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// No room for both contents; other processes on the same memory; damage that hides what
/// transactions left. Then a file is replaced as any program does it.
const NOT_BY_A_TRANSACTION: [Class; 3] = [Class::VolumeFull, Class::InUse, Class::Damaged];

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  onode put disk.img notes.txt\n  onode put -r disk.img ./photos /backup/photos\n  pg_dump mail | onode put disk.img - /mail.sql"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file or directory of the host; - for standard input, which needs a name in the image.
    local: PathBuf,
    /// Where to put it in the image. Default: under its own name, in the root directory.
    remote: Option<PathBuf>,
    /// Copy directories with all they hold.
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    // Before the image is opened for writing: a name that is wrong must not touch it.
    if Stream::is_meant(&arguments.local) {
        let named = arguments.remote.as_deref().ok_or_else(|| {
            Error::new(Class::Usage, "cannot copy standard input", "it has no name that the copy could get")
                .hint("say where: onode put IMAGE - /NAME")
        })?;
        return put(arguments, End { side: &Stream::input(), path: Path::new("") }, named, output);
    }
    if let Err(error) = std::fs::symlink_metadata(&arguments.local) {
        return Err(Error::host_file("read", &arguments.local, &error));
    }
    if arguments.local.is_dir() && !arguments.recursive {
        let what = format!("cannot copy {}", arguments.local.display());
        return Err(Error::new(Class::Usage, what, "it is a directory").hint("add -r to copy it with all it holds"));
    }
    let remote = arguments.remote.as_deref().unwrap_or_else(|| Path::new("/"));
    put(arguments, End { side: &Host, path: &arguments.local }, remote, output)
}

fn put(arguments: &Arguments, from: End<'_>, remote: &Path, output: &Output) -> Result<u8> {
    let copied = location::change(&arguments.image, arguments.consent, |volume| {
        let put_into =
            |volume: &Volume| copy(from, End { side: &InVolume(volume), path: remote }, arguments.recursive, output);
        if arguments.recursive || Stream::is_meant(&arguments.local) {
            return put_into(volume);
        }
        // A file that is there has the old content or the new one, whatever its size.
        let put = volume.begin(TransactionOptions::default()).and_then(|transaction| {
            let copied = put_into(transaction.volume())?;
            transaction.commit().map(|_| copied)
        });
        match put {
            Err(error) if NOT_BY_A_TRANSACTION.contains(&error.class) => put_into(volume),
            put => put,
        }
    })?;
    output.report(&copied)?;
    Ok(0)
}

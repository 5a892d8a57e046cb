//! `onode put`: copies files into an image.

mod archive;

use crate::commands::files::copy::{CopyArguments, CopyManner, Copying, End, Host, InVolume, Stream};
use crate::location::{self, Consent};
use archive::Archive;
use onode::{Class, Error, Result, TransactionOptions, Volume};
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// No room for both contents; other processes on the same memory; damage that hides what
/// transactions left. Then a file is replaced as any program does it.
const NOT_BY_A_TRANSACTION: [Class; 3] = [Class::VolumeFull, Class::InUse, Class::Damaged];

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A single file is replaced as a whole: after a crash or an interrupt it is the old one or the new one,\n\
    if there is room for both. With -r, and with --resume, files are written in their places: Ctrl-C ends the\n\
    copy after the piece at hand, what was copied stays, and --resume goes on.\n\
    An archive (--tar) is not unpacked as a whole either: what an error or an interrupt leaves is told and stays.\n\
    Nothing outside of the directory is touched: names with `..`, absolute names, and names that lead through a\n\
    symbolic link are refused. Holes, nanoseconds, hard links, extended attributes and ACLs come along, from\n\
    what GNU tar writes with `--xattrs --xattrs-include='*'`.\n\n\
    Examples:\n  onode put disk.img notes.txt\n  onode put -r disk.img ./photos /backup/photos\n  \
    pg_dump mail | onode put disk.img - /mail.sql\n  \
    onode put -r --dry-run --exclude '*.o' disk.img ./src /src\n  \
    onode put -r --resume disk.img ./photos /backup/photos      go on after an interrupt\n  \
    onode put -a disk.img ./rootfs /                            with hard links, attributes, devices\n  \
    zcat rootfs.tar.gz | onode put --tar disk.img - /           into the root directory"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file or directory of the host; - for standard input, which needs a name in the image.
    local: PathBuf,
    /// Where to put it in the image. Default: under its own name, in the root directory.
    remote: Option<PathBuf>,
    /// Unpack the tar archive LOCAL, a file or -, into the directory REMOTE, with all there is of
    /// files (as -a). It must not be compressed.
    #[arg(long)]
    tar: bool,
    #[command(flatten)]
    copy: CopyArguments,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    // Before the image is opened for writing: what is wrong must not touch it.
    if arguments.tar {
        return unpack(arguments, output);
    }
    let is_stream = Stream::is_meant(&arguments.local);
    if is_stream {
        arguments.copy.check_stream()?;
    }
    let manner = arguments.copy.manner()?;
    if is_stream {
        let named = arguments.remote.as_deref().ok_or_else(|| {
            Error::new(Class::Usage, "cannot copy standard input", "it has no name that the copy could get")
                .hint("say where: onode put IMAGE - /NAME")
        })?;
        let stream = Stream::input(manner.stop.clone());
        return Put { arguments, manner: &manner, output }.run(End { side: &stream, path: Path::new("") }, named);
    }
    if let Err(error) = std::fs::symlink_metadata(&arguments.local) {
        return Err(Error::host_file("read", &arguments.local, &error));
    }
    if arguments.local.is_dir() && !manner.recursive {
        let what = format!("cannot copy {}", arguments.local.display());
        return Err(Error::new(Class::Usage, what, "it is a directory").hint("add -r to copy it with all it holds"));
    }
    let remote = arguments.remote.as_deref().unwrap_or_else(|| Path::new("/"));
    Put { arguments, manner: &manner, output }.run(End { side: &Host, path: &arguments.local }, remote)
}

fn unpack(arguments: &Arguments, output: &Output) -> Result<u8> {
    let Arguments { image, copy, consent, .. } = arguments;
    let manner = copy.archive_manner()?;
    let archive = Archive::open(&arguments.local, &manner.stop)?;
    let directory = Path::new("/").join(arguments.remote.as_deref().unwrap_or_else(|| Path::new("/")));
    location::parts(&directory)?;
    let copied = if copy.is_dry() {
        archive.unpack(&location::open(image, true, *consent)?, &directory, &manner, output)?
    } else {
        location::change(image, *consent, |volume| archive.unpack(volume, &directory, &manner, output))?
    };
    copied.report(manner.voice, output)?;
    Ok(0)
}

/// A copy into a volume.
struct Put<'a> {
    arguments: &'a Arguments,
    manner: &'a CopyManner,
    output: &'a Output,
}

impl<'a> Put<'a> {
    fn run(&self, from: End<'_>, remote: &Path) -> Result<u8> {
        let Arguments { image, copy, consent, .. } = self.arguments;
        let copied = if copy.is_dry() {
            self.into(&location::open(image, true, *consent)?, from, remote)?
        } else {
            location::change(image, *consent, |volume| self.change(volume, from, remote))?
        };
        copied.report()?;
        Ok(0)
    }

    fn into(&self, volume: &Volume, from: End<'_>, remote: &Path) -> Result<Copying<'a>> {
        let mut copying = Copying::new(self.manner, self.output);
        copying.copy(from, End { side: &InVolume::new(volume), path: remote })?;
        Ok(copying)
    }

    fn change(&self, volume: &Volume, from: End<'_>, remote: &Path) -> Result<Copying<'a>> {
        // What is to be gone on with must stay.
        if self.manner.recursive || Stream::is_meant(&self.arguments.local) || self.manner.resumes() {
            return self.into(volume, from, remote);
        }
        // A file that is there has the old content or the new one, whatever its size.
        let put = volume.begin(TransactionOptions::default()).and_then(|transaction| {
            let copied = self.into(transaction.volume(), from, remote)?;
            transaction.commit().map(|_| copied)
        });
        match put {
            Err(error) if self.manner.stop.asked().is_some() => {
                let why = format!("{}; the volume is as it was", error.why);
                Err(Error::new(error.class, error.what, why).hint("run it again"))
            }
            Err(error) if NOT_BY_A_TRANSACTION.contains(&error.class) => self.into(volume, from, remote),
            put => put,
        }
    }
}

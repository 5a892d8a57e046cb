//! `onode put`: copies files into an image, or as a whole into a mounted volume.

mod archive;
mod mount;
mod whole;

use crate::commands::files::copy::{CopyArguments, CopyManner, Copying, End, Host, InVolume, Side, Stream};
use crate::location::expand::check_names;
use crate::location::{self, Consent};
use archive::Archive;
use mount::{OnMount, check_way};
use onode::{Class, Error, Result, TransactionOptions, Volume};
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use whole::Whole;

/// No room for both contents; other processes on the same memory; damage that hides what
/// transactions left. Then a file is replaced as any program does it.
const NOT_BY_A_TRANSACTION: [Class; 3] = [Class::VolumeFull, Class::InUse, Class::Damaged];

/// A copy may take longer than a transaction that nobody uses may stay open.
const WITHOUT_EXPIRY: TransactionOptions = TransactionOptions { uid: 0, expiry_seconds: 0 };

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "onode put [OPTIONS] <IMAGE> <LOCAL> [REMOTE]\n       \
    onode put [OPTIONS] <IMAGE> <LOCAL>... <DIRECTORY>",
    after_help = "A file that is replaced is the old one or the new one after a crash or an interrupt, if there is\n\
    room for both. With -r, --resume, and from standard input, files are written in their places:\n\
    Ctrl-C ends the copy after the piece at hand, what was copied stays, and --resume goes on.\n\n\
    With --atomic all files appear at once at the end, or none: after an error, a cut archive, an\n\
    interrupt or a crash the volume has what it had. It takes the room of both, and memory for names:\n\
    some 300,000 files at a time.\n\n\
    An archive (--tar) is not unpacked as a whole without it: what an error or an interrupt leaves is\n\
    told and stays. Nothing outside of the directory is touched: names with `..`, absolute names, and names\n\
    that lead through a symbolic link are refused. Owners are numbers. Holes, nanoseconds, hard links,\n\
    extended attributes and ACLs come along from what GNU tar writes with\n\
    `--format=posix --sparse --xattrs --xattrs-include='*'`.\n\n\
    Examples:\n  onode put disk.img notes.txt\n  onode put disk.img *.jpg /photos\n  \
    onode put -r disk.img ./photos /backup/photos\n  \
    pg_dump mail | onode put disk.img - /mail.sql\n  \
    onode put -r --dry-run --exclude '*.o' disk.img ./src /src\n  \
    onode put -r --resume disk.img ./photos /backup/photos   go on after an interrupt\n  \
    onode put -a disk.img ./rootfs /                         with hard links, attributes, devices\n  \
    zcat rootfs.tar.gz | onode put --tar disk.img - /        into the root directory\n  \
    zcat update.tar.gz | onode put --atomic --tar disk.img - /   all of it, or nothing\n  \
    onode put --atomic -r /mnt ./site /srv/www               the same on a mount"
)]
pub struct Arguments {
    /// The image or device spec; with --atomic also a directory of a mount.
    image: OsString,
    /// The files or directories of the host, and where to put them in the image. Default: under
    /// its own name, in the root directory. Several go into a directory. - is standard input,
    /// which needs a name in the image.
    #[arg(required = true, value_name = "LOCAL")]
    files: Vec<PathBuf>,
    /// Unpack the tar archive LOCAL, a file or -, into the directory REMOTE, with all there is of
    /// files (as -a). It must not be compressed.
    #[arg(long)]
    tar: bool,
    /// All files appear together when the last one is there, or none does, whatever happens.
    #[arg(long, conflicts_with = "resume")]
    atomic: bool,
    #[command(flatten)]
    copy: CopyArguments,
    #[command(flatten)]
    consent: Consent,
}

/// The files that are meant, and where they go.
struct PutLine<'a> {
    locals: &'a [PathBuf],
    remote: Option<&'a Path>,
}

impl Arguments {
    fn line(&self) -> PutLine<'_> {
        match self.files.as_slice() {
            [locals @ .., remote] if !locals.is_empty() => PutLine { locals, remote: Some(remote) },
            locals => PutLine { locals, remote: None },
        }
    }

    /// The mount into which it goes as a whole, if it does.
    fn mount(&self) -> Result<Option<OnMount>> {
        if self.atomic { OnMount::find(&self.image) } else { Ok(None) }
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    // Before the image is opened for writing: what is wrong must not touch it.
    let PutLine { locals, remote } = arguments.line();
    if let (true, [_, other, ..]) = (arguments.tar || locals.iter().any(|local| Stream::is_meant(local)), locals) {
        let what = format!("cannot copy {} beside another file", other.display());
        return Err(Error::new(Class::Usage, what, "an archive, or standard input, is copied by itself")
            .hint("copy the others by a command of their own"));
    }
    if arguments.tar {
        return unpack(arguments, output);
    }
    let is_stream = locals.iter().any(|local| Stream::is_meant(local));
    if is_stream {
        arguments.copy.check_stream()?;
    }
    let manner = CopyManner { is_whole: arguments.atomic, ..arguments.copy.manner()? };
    let put = Put { arguments, manner: &manner, output };
    if is_stream {
        let named = remote.ok_or_else(|| {
            Error::new(Class::Usage, "cannot copy standard input", "it has no name that the copy could get")
                .hint("say where: onode put IMAGE - /NAME")
        })?;
        let stream = Stream::input(manner.stop.clone());
        return put.run(&[End { side: &stream, path: Path::new("") }], named);
    }
    for local in locals {
        if let Err(error) = std::fs::symlink_metadata(local) {
            return Err(Error::host_file("read", local, &error));
        }
        if local.is_dir() && !manner.recursive {
            let what = format!("cannot copy {}", local.display());
            return Err(Error::new(Class::Usage, what, "it is a directory").hint("add -r to copy it with all it holds"));
        }
    }
    check_names(locals)?;
    let ends: Vec<End<'_>> = locals.iter().map(|local| End { side: &Host, path: local }).collect();
    put.run(&ends, remote.unwrap_or_else(|| Path::new("/")))
}

fn unpack(arguments: &Arguments, output: &Output) -> Result<u8> {
    let Arguments { image, copy, consent, .. } = arguments;
    let PutLine { locals, remote } = arguments.line();
    let manner = CopyManner { is_whole: arguments.atomic, ..copy.archive_manner()? };
    let archive = Archive::open(locals.first().map_or_else(|| Path::new("-"), PathBuf::as_path), &manner.stop)?;
    let directory = Path::new("/").join(remote.unwrap_or_else(|| Path::new("/")));
    location::parts(&directory)?;
    let unpack =
        |archive: Archive, volume: &Volume| archive.unpack(&InVolume::new(volume), &directory, &manner, output);
    let copied = if let Some(mount) = arguments.mount()? {
        mount.change(&manner, |side, top| archive.unpack(side, &below(top, &directory), &manner, output))?
    } else if copy.is_dry() {
        unpack(archive, &location::open(image, true, *consent)?)?
    } else if arguments.atomic {
        Whole { image, consent: *consent, stop: &manner.stop }.change(|volume| unpack(archive, volume))?
    } else {
        location::change(image, *consent, |volume| unpack(archive, volume))?
    };
    copied.report(manner.voice, output)?;
    Ok(0)
}

/// A path of the volume below the directory that shows it.
fn below(top: &Path, path: &Path) -> PathBuf {
    top.join(path.strip_prefix("/").unwrap_or(path))
}

/// Several go into a directory that is there.
fn check_several(from: &[End<'_>], side: &dyn Side, remote: &Path) -> Result<()> {
    if from.len() > 1 && !side.is_directory(remote)? {
        let what = format!("cannot copy {} files to {}", from.len(), remote.display());
        return Err(Error::new(Class::Usage, what, "it is no directory").hint("make one first: onode mkdir IMAGE DIR"));
    }
    Ok(())
}

/// A copy into a volume.
struct Put<'a> {
    arguments: &'a Arguments,
    manner: &'a CopyManner,
    output: &'a Output,
}

impl Put<'_> {
    fn run(&self, from: &[End<'_>], remote: &Path) -> Result<u8> {
        let Arguments { image, copy, consent, .. } = self.arguments;
        let mut copying = Copying::new(self.manner, self.output);
        if let Some(mount) = self.arguments.mount()? {
            mount.change(self.manner, |side, top| {
                location::parts(remote)?;
                let remote = below(top, remote);
                check_way(top, &remote)?;
                check_several(from, side, &remote)?;
                from.iter().try_for_each(|from| copying.copy(*from, End { side, path: &remote }))
            })?;
            copying.report()?;
            return Ok(0);
        }
        let work = |volume: &Volume| {
            check_several(from, &InVolume::new(volume), remote)?;
            from.iter().try_for_each(|from| self.one(volume, *from, remote, &mut copying))
        };
        if copy.is_dry() {
            let mut work = work;
            work(&location::open(image, true, *consent)?)?;
        } else if self.arguments.atomic {
            Whole { image, consent: *consent, stop: &self.manner.stop }.change(work)?;
        } else {
            location::change(image, *consent, work)?;
        }
        copying.report()?;
        Ok(0)
    }

    fn one(&self, volume: &Volume, from: End<'_>, remote: &Path, copying: &mut Copying<'_>) -> Result<()> {
        let into = |volume: &Volume, copying: &mut Copying<'_>| {
            copying.copy(from, End { side: &InVolume::new(volume), path: remote })
        };
        let before = copying.copied();
        // What is to be gone on with must stay.
        if self.manner.is_whole
            || self.manner.recursive
            || self.manner.resumes()
            || self.manner.is_dry
            || !from.side.goes_on()
        {
            return into(volume, copying);
        }
        // A file that is there has the old content or the new one, whatever its size.
        let put = volume.begin(WITHOUT_EXPIRY).and_then(|transaction| {
            into(transaction.volume(), copying)?;
            transaction.commit().map(drop)
        });
        match put {
            Err(error) if self.manner.stop.asked().is_some() => {
                let why = format!("{}; what it would replace is as it was", error.why);
                Err(Error::new(error.class, error.what, why).hint("run it again"))
            }
            Err(error) if NOT_BY_A_TRANSACTION.contains(&error.class) => {
                copying.take_back(before);
                into(volume, copying)
            }
            put => put,
        }
    }
}

//! `onode replace`: a disk of a volume on two gives its place to another one.

use crate::bar;
use crate::location::{self, Consent};
use crate::signals::Stop;
use onode::{Class, Error, Result, Spec, Volume, human_size};
use onode_console::Output;
use onode_fs::{ErrorKind, REPLACE, REPLACE_FURTHER, STOP_REPLACING};
use onode_object::powers::{Copying, ReplaceState, Replaced};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// A state, and why a disk could not be cleared.
const STATE_BYTES: usize = 4 << 10;
/// As for damage that is found: something could not be read.
const UNREADABLE: u8 = 11;

#[derive(Debug, clap::Args)]
#[command(after_help = "The volume may be mounted and in use. Of a big disk, what is in use is copied, and what is \
    written meanwhile goes to both; until everything is on the new disk, durably, the old one is the disk of \
    the volume, so an interrupt or a power cut leaves it as it was. Then the old disk is made to forget the \
    volume. The fast disk brings everything to the big one, and an empty one takes its place.\n\n\
    What the old disk cannot read is zeros on the new one, and told (exit code 11): `onode scrub` repairs it \
    from what the fast disk has, and names the files otherwise.\n\n\
    Members of a pool come and go by `onode pool add` and `onode pool remove`.\n\n\
    Examples:\n  onode replace /mnt /dev/sdb /dev/sdc\n  \
    onode replace tier:fast.img,big.img big.img new.img\n  \
    onode replace /mnt /dev/nvme0n1 /dev/nvme1n1   a larger fast disk\n  \
    onode resize /mnt                              then: take up what a larger big disk has more")]
pub struct Arguments {
    /// The directory where the volume is mounted, or its spec.
    target: OsString,
    /// The disk that goes.
    old: PathBuf,
    /// The disk that comes: a device that holds nothing, or a file that is made if it is not there.
    new: PathBuf,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    old: String,
    new: String,
    /// Bytes that the old disk could not read.
    unreadable: u64,
    /// Why the old disk still says that it is a part of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_cleared: Option<String>,
    /// The spec of the volume from now on.
    spec: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, old, new, unreadable, not_cleared, spec } = self;
        writeln!(f, "{target}: {new} has the place of {old}")?;
        if *unreadable > 0 {
            let bytes = human_size(*unreadable);
            writeln!(f, "{bytes} could not be read of {old}; `onode scrub` repairs them or names the files")?;
        }
        if let Some(why) = not_cleared {
            writeln!(f, "{old} still says that it is a part of the volume ({why}): never use it as such again")?;
        }
        writeln!(f, "from now on it is {spec}")
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let Arguments { target, new, consent, .. } = arguments;
    let what = format!("cannot replace {} of {}", arguments.old.display(), target.display());
    let new = std::path::absolute(new).map_err(|error| Error::host_file("find", new, &error))?;
    let report = match location::mounted(target, "replace a disk of")? {
        Some(directory) => {
            let spec = location::spec_with_disks(&directory, &what)?;
            replace(arguments, &DiskOfMount { directory: &directory, what }, &new, spec, output)
        }
        None => {
            let spec = location::spec(target)?.again().with_absolute_paths();
            location::change_states(target, *consent, |volume| {
                replace(arguments, &DiskOfImage { volume, what }, &new, spec, output)
            })
        }
    }?;
    output.report(&report)?;
    Ok(if report.unreadable > 0 { UNREADABLE } else { 0 })
}

/// A volume whose disk goes: an open one, or one that a server has.
trait Replaceable {
    fn what(&self) -> &str;
    /// The disks as whoever has them open calls them.
    fn disks(&self) -> Result<Vec<String>>;
    fn begin(&self, old: &str, new: &str) -> Result<()>;
    fn further(&self) -> Result<()>;
    fn stop(&self) -> Result<()>;
    fn state(&self) -> Result<ReplaceState>;
}

fn replace(
    arguments: &Arguments,
    subject: &dyn Replaceable,
    new: &Path,
    spec: Spec,
    output: &Output,
) -> Result<Report> {
    let target = arguments.target.display().to_string();
    let disks = subject.disks()?;
    let old = known_as(&arguments.old, &disks, subject.what())?;
    let renamed = disks.iter().map(|disk| if *disk == old { new.to_owned() } else { PathBuf::from(disk) });
    let spec = spec.on_disks(renamed)?.to_string();
    onode::check_empty_disk(new)?;
    let (is_made, name) = (!new.exists(), new.display().to_string());
    let copied = subject.begin(&old, &name).and_then(|()| copy(subject, output)).inspect_err(|_| {
        // A part of a copy is of no use to anybody. What failed at the very end may be in use: only
        // who has the volume open knows. The first error is the one that counts.
        if is_made && subject.disks().is_ok_and(|disks| !disks.contains(&name)) {
            let _ = std::fs::remove_file(new);
        }
    });
    let Replaced { unreadable, not_cleared } = copied?;
    Ok(Report { target, old, new: name, unreadable, not_cleared, spec })
}

/// What the disk at `path` is called by whoever has it open.
fn known_as(path: &Path, disks: &[String], what: &str) -> Result<String> {
    let same = |disk: &&String| match (Path::new(disk).canonicalize(), path.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        // One that is dead may not be there any more.
        _ => Path::new(disk) == path,
    };
    disks.iter().find(same).cloned().ok_or_else(|| {
        let why = format!("{} is none of its disks", path.display());
        Error::new(Class::NotFound, what, why).hint(format!("it lies on {}", disks.join(", ")))
    })
}

/// Goes on until the new disk has everything, and shows how far it is.
fn copy(subject: &dyn Replaceable, output: &Output) -> Result<Replaced> {
    let stop = Stop::default();
    stop.listen()?;
    let template = "{bar:30} {bytes}/{total_bytes} copied, {binary_bytes_per_sec}, {eta} left";
    let bar = bar::bar(Some(0), template, output);
    let outcome = loop {
        match subject.state() {
            Ok(ReplaceState::Done(replaced)) => break Ok(replaced),
            Ok(ReplaceState::Copying(Copying { done, total, .. })) => {
                bar.set_length(total);
                bar.set_position(done);
            }
            Ok(ReplaceState::Idle) => {
                break Err(Error::new(Class::InUse, subject.what(), "another command has stopped it"));
            }
            Err(error) => break Err(error),
        }
        if let Some(why) = stop.asked() {
            break Err(Error::new(Class::General, subject.what(), why)
                .hint("the old disk stays, and has everything; the same command begins again"));
        }
        if let Err(error) = subject.further() {
            break Err(error);
        }
    };
    bar.finish_and_clear();
    if outcome.is_err() {
        // Whatever is told of that, the first error is the one that counts.
        let _ = subject.stop();
    }
    outcome
}

const NOT_REPLACED: &str = "volumes on two disks have disks that are replaced; `onode pool` adds and removes members of a pool, and a volume on \
    one device moves by `onode send` and `onode receive`";

/// A volume that this process has open.
struct DiskOfImage<'a> {
    volume: &'a Volume,
    what: String,
}

impl DiskOfImage<'_> {
    fn told<T>(&self, outcome: onode_fs::Result<T>) -> Result<T> {
        outcome.map_err(|error| match error.kind {
            ErrorKind::Invalid => Error::new(Class::Usage, self.what.as_str(), error.detail),
            ErrorKind::NotSupported => Error::new(Class::Usage, self.what.as_str(), error.detail).hint(NOT_REPLACED),
            _ => Volume::error(self.what.as_str(), &error),
        })
    }
}

impl Replaceable for DiskOfImage<'_> {
    fn what(&self) -> &str {
        &self.what
    }

    fn disks(&self) -> Result<Vec<String>> {
        self.told(self.volume.files().disks())
    }

    fn begin(&self, old: &str, new: &str) -> Result<()> {
        self.told(self.volume.files().begin_replacing(old, new))
    }

    fn further(&self) -> Result<()> {
        self.told(self.volume.files().replace_some())
    }

    fn stop(&self) -> Result<()> {
        self.told(self.volume.files().stop_replacing())
    }

    fn state(&self) -> Result<ReplaceState> {
        self.told(self.volume.files().replace_state())
    }
}

/// A volume that is mounted.
struct DiskOfMount<'a> {
    directory: &'a Path,
    what: String,
}

impl DiskOfMount<'_> {
    fn set(&self, text: &str, invalid: &str) -> Result<()> {
        let set = rustix::fs::setxattr(self.directory, REPLACE, text.as_bytes(), XattrFlags::empty());
        // What the file system would say in words comes as a number through the mount.
        set.map_err(|errno| match errno {
            Errno::PERM => self.error(Class::Permission, "only root may give it another disk while it is mounted"),
            Errno::ROFS => self.error(Class::ReadOnly, "it is mounted read-only"),
            Errno::INVAL => {
                self.error(Class::Usage, invalid).hint("unmounted, the same command with the spec says more")
            }
            Errno::BUSY | Errno::AGAIN => self.error(Class::InUse, "the new disk is in use"),
            Errno::IO => self.error(Class::General, "the new disk failed, or the old one reads nothing any more"),
            errno => Error::host(&self.what, &errno.into()),
        })
    }

    fn unknown(&self, errno: Errno) -> Error {
        match errno {
            Errno::OPNOTSUPP | Errno::NODATA => {
                let why = "it lies on no disks that are replaced, or its server is older than this command";
                self.error(Class::Usage, why).hint(NOT_REPLACED)
            }
            errno => Error::host(&self.what, &errno.into()),
        }
    }

    fn error(&self, class: Class, why: &str) -> Error {
        Error::new(class, self.what.as_str(), why)
    }
}

impl Replaceable for DiskOfMount<'_> {
    fn what(&self) -> &str {
        &self.what
    }

    fn disks(&self) -> Result<Vec<String>> {
        location::disks_of(self.directory).map_err(|errno| self.unknown(errno))
    }

    fn begin(&self, old: &str, new: &str) -> Result<()> {
        let invalid = "its server cannot use the new disk, which is not empty, too small, or of another kind; \
            or the volume changes its size just now";
        self.set(&format!("{old}\n{new}"), invalid)
    }

    fn further(&self) -> Result<()> {
        self.set(REPLACE_FURTHER, "another command has stopped it")
    }

    fn stop(&self) -> Result<()> {
        self.set(STOP_REPLACING, "")
    }

    fn state(&self) -> Result<ReplaceState> {
        let mut value = [0; STATE_BYTES];
        let length = rustix::fs::getxattr(self.directory, REPLACE, &mut value[..]);
        let length = length.map_err(|errno| self.unknown(errno))?;
        let text = String::from_utf8_lossy(value.get(..length).unwrap_or_default());
        let mut words = text.splitn(3, ' ');
        let state = words.next().unwrap_or_default();
        let number = |text: Option<&str>| text.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Ok(match state {
            "copying" => {
                let done = number(words.next());
                let (total, unreadable) = words.next().and_then(|rest| rest.split_once(' ')).unwrap_or_default();
                ReplaceState::Copying(Copying {
                    done,
                    total: number(Some(total)),
                    unreadable: number(Some(unreadable)),
                })
            }
            "done" => {
                let unreadable = number(words.next());
                let not_cleared = words.next().filter(|why| !why.is_empty()).map(str::to_owned);
                ReplaceState::Done(Replaced { unreadable, not_cleared })
            }
            _ => ReplaceState::Idle,
        })
    }
}

//! `onode snapshot`: takes, lists and deletes snapshots, on a mount and of an image, and goes back
//! to one.

pub mod receive;
pub mod send;

use crate::bar::bar;
use crate::commands::files::ls::date;
use crate::location::{self, Consent};
use crate::signals::{self, Stop};
use onode::{Class, Error, Result, Snapshots, SystemClock, Volume, human_size};
use onode_base::{Clock, Timestamp};
use onode_console::{Output, quote};
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// The folder of a mount, and what it says of a snapshot.
const FOLDER: &str = ".snapshots";
const CREATED: &str = "user.onode.snapshot.created";
const KEPT: &str = "user.onode.snapshot.kept";
/// Steps between two looks at whether somebody wants an end.
const STEPS: u32 = 64;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A snapshot keeps all files as they are at one moment. Taking one takes no time and no space;\n\
    what changes from then on is kept for it. Volumes on flash, on two disks, in a pool, and encrypted\n\
    ones can have some; those on storage-class memory cannot yet. `onode clone` makes one that can be\n\
    changed.\n\n\
    On a mount snapshots are directories in `.snapshots` of the topmost directory, which no listing\n\
    shows: `mkdir` takes one there, `rmdir` deletes one. Without a mount, IMAGE@NAME is a snapshot for\n\
    every command that reads.\n\n\
    Examples:\n  onode snapshot create /mnt before-upgrade   of a mounted volume\n  \
    ls /mnt/.snapshots/before-upgrade           its files\n  \
    cp -a /mnt/.snapshots/before-upgrade/etc /mnt/etc   bring some back\n  \
    onode snapshot list disk.img                those of an image, and what they keep\n  \
    onode get disk.img@before-upgrade etc .     files out of one\n  \
    onode snapshot rollback disk.img before-upgrade     all files of it\n  \
    onode send /mnt tuesday --from monday | ssh host onode receive backup.img\n  \
    onode snapshot delete /mnt before-upgrade   give back what only it keeps"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: SnapshotVerb,
}

#[derive(Debug, clap::Subcommand)]
enum SnapshotVerb {
    /// Take a snapshot of all files as they are now.
    #[command(after_help = "Example:\n  onode snapshot create /mnt monday")]
    Create {
        #[command(flatten)]
        of: Of,
        /// Its name, one of a directory. Default: the time, as 2026-11-26T14.05.09Z.
        name: Option<String>,
    },
    /// Show the snapshots, the oldest first.
    #[command(after_help = "Example:\n  onode snapshot list /mnt")]
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Give a volume that is not mounted the files that a snapshot shows.
    #[command(
        after_help = "What has changed since is given up; take a snapshot first to keep it. All snapshots stay, later ones\n\
        too, and so do the volume's number and label. If it is interrupted, the next mount ends it.\n\n\
        Example:\n  onode umount /mnt\n  onode snapshot rollback disk.img before-upgrade"
    )]
    Rollback {
        #[command(flatten)]
        of: Of,
        /// The name of the snapshot.
        name: String,
    },
    /// Delete snapshots.
    #[command(after_help = "Example:\n  onode snapshot delete /mnt monday tuesday")]
    Delete {
        #[command(flatten)]
        of: Of,
        /// Their names.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// Of what.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// The directory where the volume is mounted, or an image or device spec.
    #[arg(value_name = "DIR|IMAGE")]
    pub target: OsString,
    #[command(flatten)]
    pub consent: Consent,
}

#[derive(Debug, Serialize)]
struct SnapshotListed {
    name: String,
    /// Seconds since 1970.
    created: i64,
    /// What it keeps of files that have changed since, up to the next snapshot.
    kept_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    snapshots: Vec<SnapshotListed>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.snapshots.is_empty() {
            return writeln!(f, "no snapshots");
        }
        writeln!(f, "{:<19} {:>10}  name", "taken", "keeps")?;
        for one in &self.snapshots {
            let taken = date(Timestamp { seconds: one.created, nanoseconds: 0 });
            writeln!(f, "{taken:<19} {:>10}  {}", human_size(one.kept_bytes), quote::message(&one.name))?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        SnapshotVerb::Create { of, name } => create(of, name.clone().unwrap_or_else(name_now), output),
        SnapshotVerb::List { of } => list(of, output),
        SnapshotVerb::Rollback { of, name } => roll_back(of, name, output),
        SnapshotVerb::Delete { of, names } => delete(of, names, output),
    }
}

fn create(of: &Of, name: String, output: &Output) -> Result<u8> {
    match folder_of(&of.target)? {
        Some(folder) => {
            let path = folder.join(plain(&name)?);
            rustix::fs::mkdir(&path, 0o755_u32.into()).map_err(|errno| refused("take", &path, errno))?;
        }
        None => location::change(&of.target, of.consent, |volume| snapshots(volume)?.take(&name).map(drop))?,
    }
    output.note(&format!("took the snapshot `{}`", quote::message(&name)));
    Ok(0)
}

fn list(of: &Of, output: &Output) -> Result<u8> {
    let target = of.target.display().to_string();
    let snapshots = match folder_of(&of.target)? {
        Some(folder) => of_mount(&folder)?,
        None => {
            let volume = location::open(&of.target, true, of.consent)?;
            let all = snapshots(&volume)?;
            let listed = |one: onode::Snapshot| {
                let kept_bytes = all.kept_bytes(one.generation)?;
                Ok(SnapshotListed { name: one.name, created: one.created.seconds, kept_bytes })
            };
            let listed: Result<Vec<_>> = all.list().into_iter().map(listed).collect();
            volume.close()?;
            listed?
        }
    };
    output.report(&Report { target, snapshots })?;
    Ok(0)
}

fn of_mount(folder: &Path) -> Result<Vec<SnapshotListed>> {
    let what = || format!("cannot list {}", folder.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| Error::host(what(), &error))? {
        let entry = entry.map_err(|error| Error::host(what(), &error))?;
        // One that was deleted meanwhile is none.
        let (Some(created), Some(kept)) = (told(&entry.path(), CREATED), told(&entry.path(), KEPT)) else { continue };
        let created = created.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        let name = entry.file_name().to_string_lossy().into_owned();
        all.push(SnapshotListed { name, created, kept_bytes: kept.parse().unwrap_or(0) });
    }
    Ok(all)
}

/// What an attribute of a snapshot or clone says.
pub fn told(path: &Path, name: &str) -> Option<String> {
    let mut value = vec![0; 64];
    let length = rustix::fs::getxattr(path, name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    String::from_utf8(value).ok()
}

fn roll_back(of: &Of, name: &str, output: &Output) -> Result<u8> {
    let spec = location::spec(&of.target)?;
    if let Some(mounted) = location::mounted(&of.target, "roll back")? {
        let what = format!("cannot go back to the snapshot `{}` of {}", quote::message(name), of.target.display());
        let directory = mounted.display();
        return Err(Error::new(Class::InUse, what, "it is mounted, and programs have its files open")
            .hint(format!("unmount it first: onode umount {directory}; or copy files from {directory}/{FOLDER}/")));
    }
    let stop = Stop::default();
    stop.listen()?;
    let bar = bar(None, "{spinner} {pos} changes of objects", output);
    let done = onode::roll_back(&spec, name, &mut |changes| {
        bar.set_position(changes);
        match stop.asked() {
            None => Ok(()),
            Some(why) => Err(Error::new(Class::General, format!("went back to `{name}` in part"), why)
                .hint(format!("the next mount ends it; so does: onode snapshot rollback {spec} {name}"))),
        }
    });
    bar.finish_and_clear();
    match done?.changes {
        0 => output.note(&format!("nothing had changed since the snapshot `{}`", quote::message(name))),
        changes => {
            output.note(&format!("went back to the snapshot `{}`: {changes} changes of objects", quote::message(name)));
        }
    }
    Ok(0)
}

fn delete(of: &Of, names: &[String], output: &Output) -> Result<u8> {
    if let Some(folder) = folder_of(&of.target)? {
        for name in names {
            let path = folder.join(plain(name)?);
            rustix::fs::unlinkat(rustix::fs::CWD, &path, rustix::fs::AtFlags::REMOVEDIR)
                .map_err(|errno| refused("delete", &path, errno))?;
        }
        output.note("what only they kept is removed in the background");
        return Ok(0);
    }
    let (sender, events) = channel();
    signals::forward(sender, |why| why)?;
    location::change(&of.target, of.consent, |volume| {
        let all = snapshots(volume)?;
        for name in names {
            all.delete(name)?;
        }
        clean(all, &events, output)
    })?;
    Ok(0)
}

/// Removes what deleted snapshots kept and clones had. It can be interrupted: the next mount goes
/// on.
pub fn clean(all: &Snapshots, events: &Receiver<&'static str>, output: &Output) -> Result<()> {
    let mut steps = 0_u64;
    while all.clean(STEPS)? {
        steps += u64::from(STEPS);
        output.progress(&format!("removing what they kept: {steps} steps"));
        if !matches!(events.try_recv(), Err(TryRecvError::Empty)) {
            output.note("interrupted: the rest of what they kept is removed by the next mount");
            return Ok(());
        }
    }
    Ok(())
}

/// The snapshots of a volume that can have some.
pub fn snapshots(volume: &Volume) -> Result<&Snapshots> {
    volume.snapshots().map(AsRef::as_ref).ok_or_else(|| {
        let what = format!("cannot use snapshots of {}", volume.spec());
        Error::new(Class::Usage, what, "a volume on storage-class memory has none")
            .hint("programs may change its content without a call; volumes on flash, two disks or a pool can have some")
    })
}

/// The folder of snapshots where the volume is mounted, if it is.
fn folder_of(target: &OsStr) -> Result<Option<PathBuf>> {
    Ok(location::mounted(target, "use snapshots of")?.map(|directory| directory.join(FOLDER)))
}

/// A name of a snapshot or clone that leads nowhere else in a path.
pub fn plain(name: &str) -> Result<&OsStr> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        let why = "names of snapshots and clones are those of directories";
        return Err(Error::new(Class::Usage, format!("`{}` names none", quote::message(name)), why));
    }
    Ok(OsStr::from_bytes(name.as_bytes()))
}

/// The name of one that has none.
fn name_now() -> String {
    let now = date(SystemClock.now());
    format!("{}Z", now.replace(' ', "T").replace(':', "."))
}

fn refused(verb: &str, path: &Path, errno: Errno) -> Error {
    let what = format!("cannot {verb} the snapshot {}", path.display());
    match errno {
        Errno::EXIST => Error::new(Class::Exists, what, "there is one of that name").hint("choose another name"),
        Errno::NOENT => Error::new(Class::NotFound, what, "there is none of that name, or the volume can have none")
            .hint("`onode snapshot list` shows those that there are; a volume on storage-class memory has none"),
        Errno::ACCESS | Errno::PERM => {
            Error::new(Class::Permission, what, "only root and the owner of the topmost directory may")
        }
        Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only"),
        Errno::NOSPC => Error::new(Class::VolumeFull, what, "the volume is full").hint("delete a snapshot, or files"),
        Errno::BUSY => Error::new(Class::InUse, what, "a clone was made of it and needs it")
            .hint("`onode clone list` shows which; delete the clone first"),
        Errno::INVAL => Error::new(Class::Usage, what, "a name has at most 255 bytes and no control characters"),
        errno => Error::host(&what, &errno.into()),
    }
}

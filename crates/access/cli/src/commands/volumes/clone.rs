//! `onode clone`: makes, lists and deletes clones, on a mount and of an image.

use crate::commands::files::ls::date;
use crate::commands::volumes::snapshot::{Of, clean, plain, snapshots, told};
use crate::location;
use crate::signals;
use onode::{Class, Clones, Error, Result, Volume, human_size};
use onode_base::Timestamp;
use onode_console::{Output, quote};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

/// The folder of a mount, what makes a clone of a snapshot there, and what it says of one.
const FOLDER: &str = ".clones";
const COMMAND: &str = "user.onode.clone";
const CREATED: &str = "user.onode.clone.created";
const BASE: &str = "user.onode.clone.base";
const OWN: &str = "user.onode.clone.own";

#[derive(Debug, clap::Args)]
#[command(after_help = "A clone begins as a snapshot and can be changed; the volume and other clones see nothing of\n\
    that. Making one takes no time and no space, and it has of its own only what was changed in it.\n\
    The snapshot stays as long as the clone does.\n\n\
    On a mount clones are directories in `.clones` of the topmost directory, which no listing shows:\n\
    `mkdir` makes one of all files as they are now, `rmdir` deletes one. Without a mount, IMAGE@NAME\n\
    is a clone for every command, and `onode mount -o clone=NAME IMAGE DIR` mounts it alone.\n\n\
    Examples:\n  onode clone create /mnt try                 of all files as they are now\n  \
    apt-get -o Dir=/mnt/.clones/try upgrade     try something\n  \
    onode clone create /mnt fix --from monday   of a snapshot\n  \
    onode clone list disk.img                   what they were made of, and have of their own\n  \
    onode mount -o clone=fix disk.img /mnt      one alone\n  \
    onode clone delete /mnt try                 give back what it has")]
pub struct Arguments {
    #[command(subcommand)]
    verb: CloneVerb,
}

#[derive(Debug, clap::Subcommand)]
enum CloneVerb {
    /// Make a clone of a snapshot, or of all files as they are now.
    #[command(
        after_help = "Without --from a snapshot is taken first; it is called NAME.base and goes with the clone.\n\n\
        Examples:\n  onode clone create /mnt try\n  onode clone create disk.img fix --from monday"
    )]
    Create {
        #[command(flatten)]
        of: Of,
        /// Its name, one of a directory.
        name: String,
        /// The snapshot that it begins as.
        #[arg(long, value_name = "SNAPSHOT")]
        from: Option<String>,
    },
    /// Show the clones, the oldest first.
    #[command(after_help = "Example:\n  onode clone list /mnt")]
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Delete clones with all that was changed in them.
    #[command(after_help = "Example:\n  onode clone delete /mnt try")]
    Delete {
        #[command(flatten)]
        of: Of,
        /// Their names.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Debug, Serialize)]
struct CloneListed {
    name: String,
    /// The snapshot that it was made of.
    base: String,
    /// Seconds since 1970.
    created: i64,
    /// What it has of its own.
    own_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    clones: Vec<CloneListed>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.clones.is_empty() {
            return writeln!(f, "no clones");
        }
        writeln!(f, "{:<19} {:>10}  name (of)", "made", "own")?;
        for one in &self.clones {
            let made = date(Timestamp { seconds: one.created, nanoseconds: 0 });
            let (name, base) = (quote::message(&one.name), quote::message(&one.base));
            writeln!(f, "{made:<19} {:>10}  {name} ({base})", human_size(one.own_bytes))?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        CloneVerb::Create { of, name, from } => create(of, name, from.as_deref(), output),
        CloneVerb::List { of } => list(of, output),
        CloneVerb::Delete { of, names } => delete(of, names, output),
    }
}

fn create(of: &Of, name: &str, from: Option<&str>, output: &Output) -> Result<u8> {
    match folder_of(&of.target)? {
        Some(folder) => {
            let path = folder.join(plain(name)?);
            let made = match from {
                None => rustix::fs::mkdir(&path, 0o755_u32.into()),
                Some(snapshot) => {
                    plain(snapshot)?;
                    rustix::fs::setxattr(&folder, COMMAND, format!("{snapshot}/{name}").as_bytes(), XattrFlags::empty())
                }
            };
            made.map_err(|errno| refused("make", &path, errno))?;
        }
        None => location::change(&of.target, of.consent, |volume| clones(volume)?.make(name, from).map(drop))?,
    }
    output.note(&format!("made the clone `{}`", quote::message(name)));
    Ok(0)
}

fn list(of: &Of, output: &Output) -> Result<u8> {
    let target = of.target.display().to_string();
    let clones = match folder_of(&of.target)? {
        Some(folder) => of_mount(&folder)?,
        None => {
            let volume = location::open(&of.target, true, of.consent)?;
            let all = clones(&volume)?;
            let listed = |one: onode::CloneInfo| {
                let own_bytes = all.own_bytes(one.generation)?;
                Ok(CloneListed { name: one.name, base: one.base, created: one.created.seconds, own_bytes })
            };
            let listed: Result<Vec<_>> = all.list().into_iter().map(listed).collect();
            volume.close()?;
            listed?
        }
    };
    output.report(&Report { target, clones })?;
    Ok(0)
}

fn of_mount(folder: &Path) -> Result<Vec<CloneListed>> {
    let what = || format!("cannot list {}", folder.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| Error::host(what(), &error))? {
        let path = entry.map_err(|error| Error::host(what(), &error))?.path();
        // One that was deleted meanwhile is none.
        let (Some(created), Some(base), Some(own)) = (told(&path, CREATED), told(&path, BASE), told(&path, OWN)) else {
            continue;
        };
        let created = created.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.push(CloneListed { name, base, created, own_bytes: own.parse().unwrap_or(0) });
    }
    Ok(all)
}

fn delete(of: &Of, names: &[String], output: &Output) -> Result<u8> {
    if let Some(folder) = folder_of(&of.target)? {
        for name in names {
            let path = folder.join(plain(name)?);
            rustix::fs::unlinkat(rustix::fs::CWD, &path, rustix::fs::AtFlags::REMOVEDIR)
                .map_err(|errno| refused("delete", &path, errno))?;
        }
        output.note("what they had of their own is removed in the background");
        return Ok(0);
    }
    let (sender, events) = channel();
    signals::forward(sender, |why| why)?;
    location::change(&of.target, of.consent, |volume| {
        for name in names {
            clones(volume)?.delete(name)?;
        }
        clean(snapshots(volume)?, &events, output)
    })?;
    Ok(0)
}

fn clones(volume: &Volume) -> Result<&Clones> {
    // Where there are no snapshots, that says why.
    snapshots(volume)?;
    volume.clones().map(AsRef::as_ref).ok_or_else(|| {
        let what = format!("cannot use clones of {}", volume.spec());
        Error::new(Class::Usage, what, "this is a clone already").hint("name the volume itself")
    })
}

/// The folder of clones where the volume is mounted, if it is.
fn folder_of(target: &OsStr) -> Result<Option<PathBuf>> {
    Ok(location::mounted(target, "use clones of")?.map(|directory| directory.join(FOLDER)))
}

fn refused(verb: &str, path: &Path, errno: Errno) -> Error {
    let what = format!("cannot {verb} the clone {}", path.display());
    match errno {
        Errno::EXIST => {
            Error::new(Class::Exists, what, "there is a clone or a snapshot of that name").hint("choose another name")
        }
        Errno::NOENT => {
            Error::new(Class::NotFound, what, "there is no such clone or snapshot, or the volume can have none")
                .hint("`onode clone list` and `onode snapshot list` show what there is; memory has none")
        }
        Errno::ACCESS | Errno::PERM => {
            Error::new(Class::Permission, what, "only root and the owner of the topmost directory may")
        }
        Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only"),
        Errno::NOSPC => Error::new(Class::VolumeFull, what, "the volume is full").hint("delete a snapshot, or files"),
        Errno::INVAL => Error::new(Class::Usage, what, "a name has at most 255 bytes and no control characters"),
        errno => Error::host(&what, &errno.into()),
    }
}

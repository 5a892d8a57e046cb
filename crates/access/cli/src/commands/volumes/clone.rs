//! `onode clone`: makes, lists and deletes clones, on a mount and of an image.

use crate::commands::volumes::snapshot::folder::{Of, Stands, StateFolder, day, plain, snapshots};
use crate::location;
use onode::{Class, Clones, Error, Result, Volume, human_size};
use onode_console::{Output, quote};
use rustix::fs::XattrFlags;
use serde::Serialize;
use std::fmt;
use std::path::Path;

const FOLDER: StateFolder = StateFolder { name: ".clones", noun: "clone" };
/// The attribute of the folder that makes a clone of a snapshot.
const COMMAND: &str = "user.onode.clone";

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
            let made = day(one.created);
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
    match (FOLDER.of(&of.target)?, from) {
        (Some(folder), None) => FOLDER.make(&folder, "make", name)?,
        (Some(folder), Some(snapshot)) => {
            let path = folder.join(plain(name)?);
            plain(snapshot)?;
            let value = format!("{snapshot}/{name}");
            let made = rustix::fs::setxattr(&folder, COMMAND, value.as_bytes(), XattrFlags::empty());
            made.map_err(|errno| FOLDER.refused("make", &path, errno))?;
        }
        (None, _) => location::change(&of.target, of.consent, |volume| clones(volume)?.make(name, from).map(drop))?,
    }
    output.note(&format!("made the clone `{}`", quote::message(name)));
    Ok(0)
}

fn list(of: &Of, output: &Output) -> Result<u8> {
    let target = of.target.display().to_string();
    let clones = match FOLDER.of(&of.target)? {
        Some(folder) => of_mount(&folder)?,
        None => {
            let volume = location::open_for_states(&of.target, true, of.consent)?;
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
    let listed = |Stands { name, created, told: [base, own] }| {
        let own_bytes = own.parse().unwrap_or(0);
        CloneListed { name, base, created, own_bytes }
    };
    Ok(FOLDER.list(folder, ["base", "own"])?.into_iter().map(listed).collect())
}

fn delete(of: &Of, names: &[String], output: &Output) -> Result<u8> {
    let delete = |volume: &Volume, name: &str| clones(volume)?.delete(name);
    FOLDER.delete_all(of, names, &delete, "what they had of their own is removed in the background", output)?;
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

//! `onode snapshot`: takes, lists and deletes snapshots, on a mount and of an image, and goes back
//! to one.

pub mod folder;
pub mod receive;
pub mod send;

use crate::bar::bar;
use crate::commands::files::ls::date;
use crate::commands::volumes::snapshot::folder::{Of, Stands, StateFolder, day, snapshots};
use crate::location;
use crate::signals::Stop;
use onode::{Class, Error, Result, SystemClock, Volume, human_size};
use onode_base::Clock;
use onode_console::{Output, quote};
use serde::Serialize;
use std::fmt;
use std::path::Path;

const FOLDER: StateFolder = StateFolder { name: ".snapshots", noun: "snapshot" };

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A snapshot keeps all files as they are at one moment. Taking one takes no time and no space;\n\
    what changes from then on is kept for it. Volumes on flash, on two disks, in a pool, and encrypted\n\
    ones can have some; those on storage-class memory if one process at a time uses them\n\
    (`onode tune IMAGE exclusive=on`). `onode clone` makes one that can be changed.\n\n\
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
            let taken = day(one.created);
            writeln!(f, "{taken:<19} {:>10}  {}", human_size(one.kept_bytes), quote::message(&one.name))?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        SnapshotVerb::Create { of, name } => create(of, &name.clone().unwrap_or_else(name_now), output),
        SnapshotVerb::List { of } => list(of, output),
        SnapshotVerb::Rollback { of, name } => roll_back(of, name, output),
        SnapshotVerb::Delete { of, names } => delete(of, names, output),
    }
}

fn create(of: &Of, name: &str, output: &Output) -> Result<u8> {
    match FOLDER.of(&of.target)? {
        Some(folder) => FOLDER.make(&folder, "take", name)?,
        None => location::change(&of.target, of.consent, |volume| snapshots(volume)?.take(name).map(drop))?,
    }
    output.note(&format!("took the snapshot `{}`", quote::message(name)));
    Ok(0)
}

fn list(of: &Of, output: &Output) -> Result<u8> {
    let target = of.target.display().to_string();
    let snapshots = match FOLDER.of(&of.target)? {
        Some(folder) => of_mount(&folder)?,
        None => {
            let volume = location::open_for_states(&of.target, true, of.consent)?;
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
    let listed = |Stands { name, created, told: [kept] }| {
        let kept_bytes = kept.parse().unwrap_or(0);
        SnapshotListed { name, created, kept_bytes }
    };
    Ok(FOLDER.list(folder, ["kept"])?.into_iter().map(listed).collect())
}

fn roll_back(of: &Of, name: &str, output: &Output) -> Result<u8> {
    let spec = location::spec(&of.target)?;
    if let Some(mounted) = location::mounted(&of.target, "roll back")? {
        let what = format!("cannot go back to the snapshot `{}` of {}", quote::message(name), of.target.display());
        let directory = mounted.display();
        return Err(Error::new(Class::InUse, what, "it is mounted, and programs have its files open").hint(format!(
            "unmount it first: onode umount {directory}; or copy files from {directory}/{}/",
            FOLDER.name
        )));
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
    let delete = |volume: &Volume, name: &str| snapshots(volume)?.delete(name);
    FOLDER.delete_all(of, names, &delete, "what only they kept is removed in the background", output)?;
    Ok(0)
}

/// The name of one that has none.
fn name_now() -> String {
    let now = date(SystemClock.now());
    format!("{}Z", now.replace(' ', "T").replace(':', "."))
}

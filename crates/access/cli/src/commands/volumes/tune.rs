//! `onode tune`: the settings that a volume keeps, and how those are changed that can be.

mod setting;
mod settings;

use crate::commands::state::ask;
use crate::commands::volumes::info;
use crate::location::{self, Consent};
use onode::{Class, Error, Result, Volume};
use onode_console::{Output, quote};
use onode_fs::{NewTuning, TUNING, Tuning};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;
use setting::{Names, TuneLine, uuid_of};
use settings::{SettingShown, all_of};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

/// Bytes that the attribute has at most.
const BYTES_MAX: usize = 4096;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without settings it shows all that the volume keeps, and what changes each. What is set is set as\n\
    a whole or not at all, also while the volume is mounted:\n\n  \
    label=NAME           a name for people; label= takes it away\n  \
    uuid=random|NUMBER   another unique number: a copy made by dd or cp has that of the original\n  \
    mount-options=LIST   options that hold where neither the command line nor fstab says another:\n  \
    \x20                    compress=fast,relatime,write-back=30; mount-options= takes them away\n\n\
    Options that are no matter of the volume are refused: ro, suid, dev, allow_other, keys, hooks,\n\
    threads. They hold from the next mount on; commands that need no mount do not heed them.\n\n\
    A volume on storage-class memory that nobody has open:\n\n  \
    exclusive=on|off     on: one process at a time uses it and maps none of its files, so it can have\n  \
    \x20                    snapshots, clones and limits, and a mount caches names and content;\n  \
    \x20                    off: processes share it, heaps and mapped files are there again\n\n\
    Parts of a volume (two disks, a memory beside flash, members of a pool) know each other by\n\
    numbers of their own, which stay: never put together a part of an original and one of its copy.\n\n\
    Examples:\n  onode tune disk.img                                show them\n  \
    onode tune --json /mnt\n  \
    onode tune copy.img uuid=random label=copy         a copy that is no longer taken for the original\n  \
    onode tune /mnt mount-options=compress=fast,relatime\n  \
    onode tune /mnt mount-options=                     as if nobody had said anything\n  \
    onode tune /dev/shm/heap exclusive=on              it can have snapshots from now on"
)]
pub struct Arguments {
    /// The directory where the volume is mounted, or an image or device spec.
    target: OsString,
    /// What to set.
    #[arg(value_name = "NAME=VALUE", value_parser = Names, hide_possible_values = true)]
    settings: Vec<OsString>,
    #[command(flatten)]
    consent: Consent,
}

/// All settings of a volume.
#[derive(Debug, Serialize)]
struct Report {
    target: String,
    settings: Vec<SettingShown>,
}

/// A setting before and after.
#[derive(Debug, Serialize)]
struct SettingChanged {
    name: &'static str,
    before: String,
    after: String,
}

/// What was changed.
#[derive(Debug, Serialize)]
struct TunedReport {
    target: String,
    changed: Vec<SettingChanged>,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let target = arguments.target.display().to_string();
    let what = format!("cannot tune {target}");
    let wanted = TuneLine::of(&what, &arguments.settings)?;
    let directory = location::mounted(&arguments.target, "tune")?;
    if wanted.is_empty() {
        let settings = match directory {
            Some(directory) => all_of(&info::of_mount(&directory)?, &of_mount(&what, &directory)?),
            None => {
                let volume = location::open(&arguments.target, true, arguments.consent)?;
                all_of(&info::Report::of(&volume), &of_volume(&what, &volume)?)
            }
        };
        output.report(&Report { target, settings })?;
        return Ok(0);
    }
    if let Some(exclusive) = wanted.exclusive() {
        let changed = vec![set_exclusive(&what, &arguments.target, directory.as_deref(), exclusive)?];
        output.report(&TunedReport { target, changed })?;
        return Ok(0);
    }
    let (before, after) = match directory {
        Some(directory) => on_mount(&what, &directory, &wanted)?,
        None => {
            // Before the image is opened for writing: what is wrong must not touch it.
            let new = wanted.of_volume(&what, &location::spec(&arguments.target)?)?;
            location::change(&arguments.target, arguments.consent, |volume| {
                let before = of_volume(&what, volume)?;
                volume.files().tune(&new).map_err(|error| Volume::error(what.as_str(), &error))?;
                Ok((before, of_volume(&what, volume)?))
            })?
        }
    };
    let of_all = [
        ("label", before.label, after.label),
        ("uuid", uuid_of(&before.uuid), uuid_of(&after.uuid)),
        ("mount-options", before.mount_options, after.mount_options),
    ];
    let named = of_all.into_iter().filter(|(name, ..)| wanted.names().contains(name));
    let changed = named.map(|(name, before, after)| SettingChanged { name, before, after }).collect();
    output.report(&TunedReport { target, changed })?;
    Ok(0)
}

/// Has one process at a time use a volume on memory, or processes share it.
fn set_exclusive(what: &str, target: &OsStr, mounted: Option<&Path>, exclusive: bool) -> Result<SettingChanged> {
    if let Some(directory) = mounted {
        return Err(Error::new(Class::InUse, what, "it is mounted, and how it is opened is not changed then")
            .hint(format!("unmount it first: onode umount {}", directory.display())));
    }
    let is_changed = Volume::set_exclusive(&location::spec(target)?, exclusive)?;
    let shown = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    Ok(SettingChanged { name: "exclusive", before: shown(exclusive != is_changed), after: shown(exclusive) })
}

fn of_volume(what: &str, volume: &Volume) -> Result<Tuning> {
    volume.files().tuning().map_err(|error| Volume::error(what, &error))
}

fn of_mount(what: &str, directory: &Path) -> Result<Tuning> {
    let mut value = vec![0; BYTES_MAX];
    let length = rustix::fs::getxattr(directory, TUNING, value.as_mut_slice());
    value.truncate(length.map_err(|errno| refused(what, errno))?);
    let text = String::from_utf8(value).ok();
    text.and_then(|text| Tuning::parse(&text)).ok_or_else(|| refused(what, Errno::NODATA))
}

/// Changes settings of a mounted volume; as they were and as they are.
fn on_mount(what: &str, directory: &Path, wanted: &TuneLine) -> Result<(Tuning, Tuning)> {
    let mounted = onode_fuse::our_mount_at(directory, what.to_owned())?;
    let new = wanted.of_volume(what, &location::spec(&mounted.source)?)?;
    let before = of_mount(what, directory)?;
    set(what, directory, &new)?;
    Ok((before, of_mount(what, directory)?))
}

fn set(what: &str, directory: &Path, new: &NewTuning) -> Result<()> {
    let set = rustix::fs::setxattr(directory, TUNING, new.to_text().as_bytes(), XattrFlags::empty());
    set.map_err(|errno| ask::changeless(what, directory, errno).unwrap_or_else(|| refused(what, errno)))
}

/// What the server of a mount would say in words comes as a number.
fn refused(what: &str, errno: Errno) -> Error {
    match errno {
        Errno::PERM | Errno::ACCESS => Error::new(Class::Permission, what, "only root and the owner of the volume may"),
        Errno::ROFS => Error::new(Class::ReadOnly, what, "it is mounted read-only").hint("mount it without `ro` first"),
        Errno::NOSPC => Error::new(Class::VolumeFull, what, "the volume is full").hint("remove something first"),
        Errno::INVAL => Error::new(Class::Usage, what, "its server refuses one of the values"),
        Errno::NODATA | Errno::OPNOTSUPP => {
            Error::new(Class::General, what, "its server is of another version, which does not do this")
                .hint("unmount it and mount it again")
        }
        errno => Error::host(what, &errno.into()),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for SettingShown { name, value, changed_by } in &self.settings {
            let value = if value.is_empty() { "-".to_owned() } else { quote::message(value).to_string() };
            let by = changed_by.map_or_else(|| "fixed by mkfs".to_owned(), |by| format!("changed by {by}"));
            writeln!(f, "{name:<13} {value:<36}  {by}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TunedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &str| if value.is_empty() { "-".to_owned() } else { quote::message(value).to_string() };
        for SettingChanged { name, before, after } in &self.changed {
            writeln!(f, "{name}: {} -> {}", shown(before), shown(after))?;
        }
        Ok(())
    }
}

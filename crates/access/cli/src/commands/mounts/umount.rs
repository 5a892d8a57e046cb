//! `onode umount`: unmounts, waits until everything is saved, and tells if it is not.
//!
//! The file system has no way to tell who unmounts it; the record that its server keeps has.

use crate::watch::record::{Other, killed};
use onode::{Class, Error, Result};
use onode_console::Output;
use onode_fuse::Mounted;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After which time people hear that it takes long, and how often.
const LONG: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// How long open files are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(
    after_help = "It returns when the server of the mount has closed the volume. If not everything could be saved, it says why, with the\n\
    exit code of that reason (15 volume full, 16 host full, ...); a server that was killed is told as a failure, too (1).\n\
    It waits a second for files that are open.\n\
    After umount(8), which cannot tell, the log has it, and so do the next `onode mount`, `check` and `health`.\n\n\
    Examples:\n  onode umount /mnt\n  onode umount --lazy /mnt    even if files in it are open; returns at once"
)]
pub struct Arguments {
    /// Where it is mounted.
    directory: PathBuf,
    /// Take it out of sight at once; it ends when its last file is closed.
    #[arg(short, long)]
    lazy: bool,
}

/// What was unmounted.
#[derive(Debug, Serialize)]
struct Report {
    unmounted: String,
    directory: String,
    /// Whether everything is saved; nothing if that is not known.
    saved: Option<bool>,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let directory = arguments.directory.as_path();
    let what = format!("cannot unmount {}", directory.display());
    let Some(mounted) = mounted_at(directory)? else {
        return Err(Error::new(Class::MountPoint, what, "nothing is mounted there")
            .hint("`findmnt -t fuse.onode` lists the mounts"));
    };
    if !mounted.is_ours() {
        let why = format!("a file system of type {} is mounted there, not Onode", mounted.type_name);
        return Err(Error::new(Class::MountPoint, what, why).hint("use umount(8) for it"));
    }
    let spec = mounted.source.to_string_lossy().into_owned();
    if onode_fuse::is_dead(directory) {
        onode_fuse::detach(directory)?;
        let taken = format!("the dead mount at {} was taken away", directory.display());
        let error = killed(&spec);
        let why = format!("{}; {taken}", error.why);
        return Err(error.why(why));
    }
    let mut saved = None;
    if arguments.lazy {
        onode_fuse::detach(directory)?;
    } else {
        // The record can be found as long as the mount is there.
        let record = Other::of(&mounted);
        release(directory)?;
        match record {
            Some(record) => {
                record.wait(|waited| tell_long(&mounted, waited, output))?;
                saved = Some(true);
            }
            None => {
                wait_for_end(&mounted, output);
                output.warning(
                    "the server of this mount keeps no record of its end: whether everything was saved is not known",
                );
            }
        }
    }
    if output.json() {
        output.report(&Report { unmounted: spec, directory: directory.display().to_string(), saved })?;
    }
    Ok(0)
}

/// Unmounts. What has a file open for a moment only, as a program does that is being started or a
/// desktop that looks at what is new, is waited for.
fn release(directory: &Path) -> Result<()> {
    let mut waited = Duration::ZERO;
    loop {
        match onode_fuse::release(directory) {
            Err(error) if error.class == Class::InUse && waited < PATIENCE => {
                std::thread::sleep(POLL);
                waited += POLL;
            }
            done => return done,
        }
    }
}

/// What is mounted there. A directory that is not there is no mount point either, and need not be
/// made for that.
fn mounted_at(directory: &Path) -> Result<Option<Mounted>> {
    onode_fuse::mounted_at(directory).map_err(|error| {
        error.what(format!("cannot unmount {}", directory.display())).hint("`findmnt -t fuse.onode` lists the mounts")
    })
}

fn tell_long(mounted: &Mounted, waited: Duration, output: &Output) {
    let is_due = waited.as_millis().is_multiple_of(LONG.as_millis());
    if is_due && !waited.is_zero() {
        let (image, seconds) = (mounted.source.display(), waited.as_secs());
        output.warning(&format!("{image} is still being saved after {seconds} seconds; waiting"));
    }
}

/// The server closes the image after the mount is gone; then nobody holds its lock any more.
fn wait_for_end(mounted: &Mounted, output: &Output) {
    let Some(path) = mounted.image_path() else { return };
    let Ok(image) = File::open(&path) else { return };
    let mut waited = Duration::ZERO;
    while flock(&image, FlockOperation::NonBlockingLockShared).is_err() {
        std::thread::sleep(POLL);
        waited += POLL;
        tell_long(mounted, waited, output);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is unmounted from {}", self.unmounted, self.directory)
    }
}

//! `onode umount`: unmounts and waits until everything is saved.

use crate::output::Output;
use onode::{Class, Error, Result};
use onode_fuse::Mounted;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for the server to save what is left.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode umount /mnt\n  onode umount --lazy /mnt    even if files in it are open")]
pub struct Arguments {
    /// Where it is mounted.
    directory: PathBuf,
    /// Take it out of sight at once; it ends when its last file is closed.
    #[arg(short, long)]
    lazy: bool,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let directory = arguments.directory.as_path();
    let what = format!("cannot unmount {}", directory.display());
    match onode_fuse::mounted_at(directory)? {
        None => {
            return Err(Error::new(Class::MountPoint, what, "nothing is mounted there")
                .hint("`findmnt -t fuse.onode` lists the mounts"));
        }
        Some(mounted) if !mounted.is_ours() => {
            let why = format!("a file system of type {} is mounted there, not Onode", mounted.type_name);
            return Err(Error::new(Class::MountPoint, what, why).hint("use umount(8) for it"));
        }
        Some(_) if onode_fuse::is_dead(directory) => {
            onode_fuse::detach(directory)?;
            output.note("took away a dead mount; the next mount recovers its files");
        }
        Some(_) if arguments.lazy => onode_fuse::detach(directory)?,
        Some(mounted) => {
            onode_fuse::release(directory)?;
            wait_for_end(&mounted, output);
        }
    }
    Ok(0)
}

/// The server closes the image after the mount is gone; then nobody holds its lock any more.
fn wait_for_end(mounted: &Mounted, output: &Output) {
    let Some(path) = mounted.image_path() else { return };
    let Ok(image) = File::open(&path) else { return };
    let mut waited = Duration::ZERO;
    while flock(&image, FlockOperation::NonBlockingLockShared).is_err() {
        if waited >= PATIENCE {
            output.warning(&format!("{} is still being saved", Path::new(&path).display()));
            return;
        }
        std::thread::sleep(POLL);
        waited += POLL;
    }
}

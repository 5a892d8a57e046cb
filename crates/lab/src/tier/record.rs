//! Records what ext2 and xfs ask of a disk: each workload on a fresh file system on a loop device
//! whose file logs.
//!
//! It needs root, FUSE, a loop device and the kernel's file systems. What it writes is plain;
//! `tests/bench/record-peers.sh` packs it.

mod kernel;
mod logged;

use super::files::Files;
use super::workload::{DISK_BYTES, WORKLOADS, Workload};
use super::{PEERS, failed, recording_name};
use kernel::Kernel;
use onode::Result;
use std::path::Path;

/// Records the workloads whose names contain `only`, all without it, in files in `folder`.
///
/// # Errors
/// What is missing on this machine; what a file system said.
pub fn record(folder: &Path, only: Option<&str>, progress: &mut dyn FnMut(&str)) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| failed("cannot make the folder for recordings", error))?;
    for peer in PEERS {
        for workload in &WORKLOADS {
            let name = recording_name(peer, workload.name);
            if only.is_none_or(|only| name.contains(only)) {
                progress(&name);
                record_one(peer, workload, &folder.join(format!("{name}.blk")))?;
            }
        }
    }
    Ok(())
}

fn record_one(peer: &'static str, workload: &Workload, path: &Path) -> Result<()> {
    let options = if workload.is_mounted_sync { "sync" } else { "" };
    let mut kernel = Kernel::new(peer, options, DISK_BYTES, workload.has_slow_flushes)?;
    (workload.run)(&mut kernel as &mut dyn Files)?;
    let recording = kernel.finish()?;
    std::fs::write(path, recording.encode()).map_err(|error| failed("cannot write a recording", error))
}

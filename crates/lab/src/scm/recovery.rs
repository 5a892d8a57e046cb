//! How long a volume of many files takes to come back after its process died.

use super::Measuring;
use super::host::{failed, memory_available, nanoseconds};
use onode::{Result, SystemClock};
use onode_base::Timestamp;
use onode_fs::{Caller, FileSystem, FormatOptions, InodeNumber, Options, WriteMode};
use onode_media::real::{MappedOptions, MappedPmem};
use onode_scm::{MountOptions, ScmDevice};
use std::sync::Arc;

const FILES: usize = 1_000_000;
const MEMORY_BYTES: u64 = 2 << 30;
/// Names in one directory.
const IN_DIRECTORY: usize = 10_000;

/// Measures the recovery.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let what = "cannot measure a recovery";
    let went = |error: onode_fs::Error| failed(what, error);
    let device_went = |error: onode_object::Error| failed(what, error);
    let (files, bytes, rounds) = if measuring.options.quick { (2000, 64 << 20, 1) } else { (FILES, MEMORY_BYTES, 5) };
    if memory_available() < bytes + (1 << 30) {
        return Err(failed(what, "there is too little free memory"));
    }
    measuring.say(&format!("recovery of {files} files"));
    let options = MappedOptions { reserve: bytes, ..MappedOptions::default() };
    let memory = Arc::new(MappedPmem::anonymous(bytes, &options).map_err(|error| failed(what, error))?);
    let device = ScmDevice::format(Arc::clone(&memory), &onode_scm::FormatOptions::default()).map_err(device_went)?;
    onode_fs::format(&device, &FormatOptions::default(), Timestamp::default()).map_err(went)?;
    let through = || Options { write_mode: WriteMode::WriteThrough, ..Options::default() };
    let fs = FileSystem::mount(Arc::new(device), Arc::new(SystemClock), through()).map_err(went)?;
    let root = Caller::root();
    let mut directory = InodeNumber::ROOT;
    for number in 0..files {
        if number % IN_DIRECTORY == 0 {
            let name = format!("directory-{number}");
            directory = fs.make_directory(&root, InodeNumber::ROOT, name.as_bytes(), 0o755).map_err(went)?.inode;
        }
        let made = fs.create(&root, directory, format!("file-{number:07}").as_bytes(), 0o644).map_err(went)?;
        fs.forget(made.inode, 1);
    }
    // Nothing is closed: what the memory holds is what a process leaves that dies.
    drop(fs);
    let (mut best, mut best_of_processor) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        let begin = processor_nanoseconds();
        let (time, objects) = nanoseconds(|| {
            let device = ScmDevice::mount(Arc::clone(&memory), &MountOptions::default()).map_err(device_went)?;
            let fs = FileSystem::mount(Arc::new(device), Arc::new(SystemClock), through()).map_err(went)?;
            Ok(fs.statfs().files)
        })?;
        if objects < files as u64 {
            return Err(failed(what, format!("{objects} of {files} files came back")));
        }
        best = best.min(time);
        best_of_processor = best_of_processor.min(processor_nanoseconds() - begin);
    }
    let name = if files == FILES { "recovery of 1 M files".to_owned() } else { format!("recovery of {files} files") };
    measuring.shown(format!("{name}, processor time"), best_of_processor / 1e9, "s");
    measuring.at_most(name, best / 1e9, "s", 0.5);
    Ok(())
}

/// Nanoseconds that processors have worked for this process.
fn processor_nanoseconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

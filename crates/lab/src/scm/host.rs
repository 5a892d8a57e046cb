//! What the measurements take from the host: places in memory, file systems on loop devices, the
//! time.
#![allow(clippy::disallowed_methods, reason = "the lab measures how long things take")]

use onode::{Class, Error, Result};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

pub(super) fn failed(what: &str, error: impl ToString) -> Error {
    Error::new(Class::General, what, error.to_string())
}

/// Nanoseconds that `work` takes.
pub(super) fn nanoseconds<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let begin = Instant::now();
    let done = work()?;
    Ok((begin.elapsed().as_nanos() as f64, done))
}

/// Bytes of memory that the host can give.
pub(super) fn memory_available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// A path whose file or folder is gone at the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    /// In memory.
    pub(super) fn new(name: &str) -> Self {
        Self::beside(Path::new("/dev/shm"), name)
    }

    /// In a folder.
    pub(super) fn beside(folder: &Path, name: &str) -> Self {
        let path = folder.join(format!("onode-lab-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether the kernel has a file system of that name, or a module for it.
pub(super) fn kernel_has(kind: &str) -> bool {
    let listed = || fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has = |text: &str| text.lines().any(|line| line.split_whitespace().next_back() == Some(kind));
    if !has(&listed()) {
        // It may be a module; whether that worked shows in the list.
        let _ = Command::new("modprobe").arg(kind).output();
    }
    has(&listed())
}

/// A file system of the kernel on a loop device over a file; unmounted at the end.
pub(super) struct LoopMount {
    pub(super) mount: PathBuf,
    _image: Scratch,
}

impl LoopMount {
    /// Makes one of 1.5 GiB in `folder` and mounts it with further options.
    pub(super) fn new(kind: &str, options: &str, folder: &Path) -> Result<Self> {
        let what =
            format!("cannot make a file system {kind} to compare with (root, its mkfs and a loop device are needed)");
        let image = Scratch::beside(folder, &format!("{kind}.img"));
        File::create(&image.0).and_then(|file| file.set_len(1536 << 20)).map_err(|error| failed(&what, error))?;
        let mount = std::env::temp_dir().join(format!("onode-lab-{}-{kind}{options}", std::process::id()));
        fs::create_dir_all(&mount).map_err(|error| failed(&what, error))?;
        let run = |program: &str, arguments: &[&OsStr]| {
            let output = Command::new(program).args(arguments).output().map_err(|error| failed(&what, error))?;
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() { Ok(()) } else { Err(failed(&what, said)) }
        };
        let flags: &[&str] = if kind == "vfat" { &[] } else { &["-q", "-F"] };
        let mut arguments: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
        arguments.push(image.0.as_os_str());
        run(&format!("mkfs.{kind}"), &arguments)?;
        let options = if options.is_empty() { "loop".to_owned() } else { format!("loop,{options}") };
        let arguments = [OsStr::new("-t"), kind.as_ref(), "-o".as_ref(), options.as_ref()];
        run("mount", &[&arguments[..], &[image.0.as_os_str(), mount.as_os_str()]].concat())?;
        Ok(Self { mount, _image: image })
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).output();
        let _ = fs::remove_dir(&self.mount);
    }
}

//! `onode stat`: space, counters and segments of a volume, mounted or not, or the details of one file.
//!
//! A mounted volume is asked through a read-only attribute of its root directory.

use crate::commands::location::{self, failed, resolve};
use crate::commands::ls::{date, mode, type_name};
use crate::output::Output;
use onode::{Class, Error, Result, Volume, human_size};
use onode_object::ObjectStat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The largest value an attribute can have.
const REPORT_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode stat disk.img\n  onode stat /mnt                a mounted volume\n  \
    onode stat disk.img /notes.txt\n  onode stat --json /mnt")]
pub struct Arguments {
    /// The image or device spec, or the directory where it is mounted.
    image: OsString,
    /// A file in an image that is not mounted.
    path: Option<PathBuf>,
}

/// The figures of a volume.
#[derive(Debug, Serialize, Deserialize)]
struct VolumeReport {
    spec: String,
    read_only: Option<String>,
    total_bytes: u64,
    available_bytes: u64,
    objects: u64,
    files: BTreeMap<String, u64>,
    device: Vec<(String, u64)>,
    segments: BTreeMap<String, Segments>,
}

/// The segments in one state.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Segments {
    count: u64,
    live_bytes: u64,
    capacity_bytes: u64,
    erases: u64,
}

/// The details of one file.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    inode: u64,
    #[serde(rename = "type")]
    file_type: &'static str,
    mode: String,
    links: u32,
    uid: u32,
    gid: u32,
    size: u64,
    allocated_bytes: u64,
    extents: Vec<(u64, u64)>,
    accessed: String,
    modified: String,
    changed: String,
    created: String,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    if Path::new(&arguments.image).is_dir() {
        output.report(&of_mount(Path::new(&arguments.image), arguments.path.is_some())?)?;
        return Ok(0);
    }
    let volume = location::open(&arguments.image, true)?;
    match &arguments.path {
        Some(path) => output.report(&of_file(&volume, path)?)?,
        None => output.report(&VolumeReport::of(&volume))?,
    }
    Ok(0)
}

/// The report of an open volume as JSON, for the attribute of a mount.
pub fn volume_json(volume: &Volume) -> Vec<u8> {
    serde_json::to_vec(&VolumeReport::of(volume)).unwrap_or_default()
}

fn of_mount(directory: &Path, has_path: bool) -> Result<VolumeReport> {
    let what = format!("cannot show {}", directory.display());
    if has_path {
        return Err(Error::new(Class::Usage, what, "a path can only be given for an image")
            .hint("use stat(1) for a file of a mounted volume"));
    }
    if !onode_fuse::mounted_at(directory)?.is_some_and(|mounted| mounted.is_ours()) {
        return Err(Error::new(Class::MountPoint, what, "no Onode volume is mounted there")
            .hint("`findmnt -t fuse.onode` lists the mounts"));
    }
    let mut value = vec![0; REPORT_BYTES_MAX];
    let length = rustix::fs::getxattr(directory, onode_fuse::REPORT_ATTRIBUTE, value.as_mut_slice())
        .map_err(|errno| Error::host(&what, &errno.into()))?;
    serde_json::from_slice(value.get(..length).unwrap_or_default())
        .map_err(|error| Error::new(Class::General, what, format!("the mount answers strangely: {error}")))
}

fn of_file(volume: &Volume, path: &Path) -> Result<FileReport> {
    let node = resolve(volume.files(), path)?;
    let found = node.attributes();
    let object = found.inode.object();
    let device_failed = |error: &onode_object::Error| failed("inspect", path, &error.clone().into());
    let ObjectStat { allocated, .. } = volume.device().stat(object).map_err(|error| device_failed(&error))?;
    let mut extents = Vec::new();
    let mut offset = 0;
    loop {
        let more = volume.device().extents(object, offset, 256).map_err(|error| device_failed(&error))?;
        let Some((start, length)) = more.last() else { break };
        offset = start.saturating_add(*length);
        extents.extend(more);
    }
    Ok(FileReport {
        path: path.display().to_string(),
        inode: found.inode.0,
        file_type: type_name(found.file_type),
        mode: mode(found),
        links: found.links,
        uid: found.uid,
        gid: found.gid,
        size: found.size,
        allocated_bytes: allocated,
        extents,
        accessed: date(found.accessed),
        modified: date(found.modified),
        changed: date(found.changed),
        created: date(found.created),
    })
}

impl VolumeReport {
    fn of(volume: &Volume) -> Self {
        let space = volume.device().space();
        let statistics = volume.files().statistics();
        let inspect = volume.device().inspect();
        let mut segments: BTreeMap<String, Segments> = BTreeMap::new();
        for segment in inspect.map(|inspect| inspect.segments()).unwrap_or_default() {
            let name = format!("{} {}", segment.state.name(), segment.stream);
            let sum = segments.entry(name.trim_end().to_owned()).or_default();
            sum.count += 1;
            sum.live_bytes += segment.live_bytes;
            sum.capacity_bytes += segment.capacity_bytes;
            sum.erases += u64::from(segment.erases);
        }
        let files = [
            ("changes", statistics.changes),
            ("transactions", statistics.transactions),
            ("written bytes", statistics.written_bytes),
            ("written-back bytes", statistics.written_back_bytes),
            ("read bytes", statistics.read_bytes),
            ("dirty bytes", statistics.dirty_bytes),
            ("dropped bytes", statistics.dropped_bytes),
            ("cached inodes", statistics.cached_inodes),
            ("name cache bytes", statistics.name_cache_bytes),
            ("name cache hits", statistics.name_cache_hits),
            ("name cache misses", statistics.name_cache_misses),
            ("write-back errors", statistics.write_back_errors),
        ];
        Self {
            spec: volume.spec().to_string(),
            read_only: volume.device().info().read_only,
            total_bytes: space.total,
            available_bytes: space.available,
            objects: space.objects,
            files: files.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            device: inspect.map(|inspect| inspect.counters()).unwrap_or_default(),
            segments,
        }
    }
}

impl fmt::Display for VolumeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.spec)?;
        if let Some(why) = &self.read_only {
            writeln!(f, "READ-ONLY: {why}")?;
        }
        let used = self.total_bytes.saturating_sub(self.available_bytes);
        let (used, total) = (human_size(used), human_size(self.total_bytes));
        writeln!(f, "{used} of {total} used, {} free, {} objects", human_size(self.available_bytes), self.objects)?;
        writeln!(f, "\nfile system")?;
        for (name, value) in &self.files {
            writeln!(f, "  {name:<28} {value:>16}")?;
        }
        writeln!(f, "\ndevice")?;
        for (name, value) in &self.device {
            writeln!(f, "  {name:<28} {value:>16}")?;
        }
        if !self.segments.is_empty() {
            writeln!(f, "\nsegments             count         live of capacity      erases")?;
        }
        for (name, sum) in &self.segments {
            let (live, capacity) = (human_size(sum.live_bytes), human_size(sum.capacity_bytes));
            writeln!(f, "  {name:<16} {:>7} {live:>12} of {capacity:<12} {:>8}", sum.count, sum.erases)?;
        }
        Ok(())
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "file       {} ({}, inode {})", self.path, self.file_type, self.inode)?;
        writeln!(f, "mode       {} links {} uid {} gid {}", self.mode, self.links, self.uid, self.gid)?;
        writeln!(f, "size       {} bytes, {} bytes on the medium", self.size, self.allocated_bytes)?;
        writeln!(f, "accessed   {} UTC", self.accessed)?;
        writeln!(f, "modified   {} UTC", self.modified)?;
        writeln!(f, "changed    {} UTC", self.changed)?;
        writeln!(f, "created    {} UTC", self.created)?;
        writeln!(f, "extents    {}", self.extents.len())?;
        for (start, length) in &self.extents {
            writeln!(f, "  {start} + {length}")?;
        }
        Ok(())
    }
}

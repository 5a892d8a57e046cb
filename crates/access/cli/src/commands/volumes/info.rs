//! `onode info`: what an image is.

use crate::commands::files::ls::date;
use crate::commands::state::ask;
use crate::figures::beside_parts;
use crate::location::Consent;
use crate::watch::health::HealthReport;
use crate::watch::record;
use onode::devices::uuid_text;
use onode::{Inodes, Result, Volume, human_size};
use onode_base::Timestamp;
use onode_console::{Output, quote};
use onode_fs::Tuning;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode info disk.img\n  onode info /mnt\n  onode info --json disk.img")]
pub struct Arguments {
    /// The image or device spec, or the directory where it is mounted.
    image: OsString,
    #[command(flatten)]
    consent: Consent,
}

/// What an image is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    spec: String,
    device: String,
    summary: String,
    uuid: String,
    label: String,
    created_seconds: i64,
    format_version: u32,
    inodes: String,
    total_bytes: u64,
    available_bytes: u64,
    objects: u64,
    image_bytes_on_host: Option<u64>,
    pub health: HealthReport,
    /// Whether content may be compressed.
    #[serde(default)]
    compressed: bool,
    /// How many snapshots there are; nothing on a volume that can have none.
    #[serde(default)]
    snapshots: Option<u64>,
    /// The name of the last one.
    #[serde(default)]
    last_snapshot: Option<String>,
    /// The memory beside flash by part; nothing without one.
    memory: Vec<Part>,
}

/// A part of the memory beside flash.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    name: String,
    bytes: u64,
    /// For each GiB that the flash holds; nothing if it holds nothing.
    bytes_per_gib: Option<u64>,
}

impl Report {
    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub const fn available_bytes(&self) -> u64 {
        self.available_bytes
    }

    pub fn device(&self) -> &str {
        &self.device
    }

    pub fn summary(&self) -> &str {
        &self.summary
    }

    pub fn inodes(&self) -> &str {
        &self.inodes
    }

    pub const fn format_version(&self) -> u32 {
        self.format_version
    }

    pub const fn created_seconds(&self) -> i64 {
        self.created_seconds
    }

    pub const fn is_compressed(&self) -> bool {
        self.compressed
    }

    pub const fn snapshots(&self) -> Option<u64> {
        self.snapshots
    }

    /// The report of an open volume.
    pub fn of(volume: &Volume) -> Self {
        let info = volume.device().info();
        let space = volume.device().space();
        let settings = volume.files().volume();
        let on_host = volume.spec().image_path().and_then(|path| std::fs::metadata(path).ok());
        let on_host = on_host.filter(std::fs::Metadata::is_file);
        let snapshots = volume.snapshots().map(|all| all.list());
        // They may have been changed since the volume was opened.
        let tuning = volume.files().tuning().unwrap_or_else(|_| Tuning {
            label: settings.label.clone(),
            uuid: settings.uuid,
            mount_options: String::new(),
        });
        Self {
            spec: volume.spec().to_string(),
            device: info.kind.to_owned(),
            summary: info.summary,
            uuid: uuid_text(tuning.uuid),
            label: tuning.label,
            created_seconds: settings.created.seconds,
            format_version: settings.format_version,
            inodes: match settings.inodes() {
                Inodes::Embedded => "embedded",
                Inodes::Separate => "separate",
            }
            .to_owned(),
            total_bytes: space.total,
            available_bytes: space.available,
            objects: space.objects,
            image_bytes_on_host: on_host.map(|metadata| metadata.blocks() * 512),
            health: record::health_at_rest(volume).into(),
            compressed: settings.is_compressed(),
            snapshots: snapshots.as_ref().map(|all| all.len() as u64),
            last_snapshot: snapshots.and_then(|mut all| all.pop()).map(|last| last.name),
            memory: memory_of(volume),
        }
    }
}

/// Of less data than this, what the memory has of it is mostly what an empty volume has.
const TELLING_BYTES: u64 = 1 << 20;

fn memory_of(volume: &Volume) -> Vec<Part> {
    let counters = volume.device().inspect().map(|inspect| inspect.counters()).unwrap_or_default();
    let live = counters.iter().find(|(name, _)| name == "live_bytes").map_or(0, |(_, bytes)| *bytes);
    let of_part = |(name, bytes): (&str, u64)| {
        let is_telling = live >= TELLING_BYTES && name != "free";
        let per_gib = is_telling.then(|| (u128::from(bytes) << 30) / u128::from(live));
        let bytes_per_gib = per_gib.and_then(|bytes| u64::try_from(bytes).ok());
        Part { name: name.to_owned(), bytes, bytes_per_gib }
    };
    beside_parts(counters.iter().map(|(name, count)| (name, count))).map(of_part).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "volume      {}", self.spec)?;
        if !self.label.is_empty() {
            writeln!(f, "label       {}", self.label)?;
        }
        writeln!(f, "uuid        {}", self.uuid)?;
        writeln!(f, "made        {} UTC", date(Timestamp { seconds: self.created_seconds, nanoseconds: 0 }))?;
        writeln!(f, "device      {}: {}", self.device, self.summary)?;
        writeln!(f, "format      version {}, {} inodes", self.format_version, self.inodes)?;
        let (available, total) = (human_size(self.available_bytes), human_size(self.total_bytes));
        writeln!(f, "space       {available} of {total} free, {} objects", self.objects)?;
        if let (Some(count), Some(last)) = (self.snapshots, &self.last_snapshot) {
            writeln!(f, "snapshots   {count}, the last one is `{}`", quote::message(last))?;
        }
        if let Some(bytes) = self.image_bytes_on_host {
            writeln!(f, "on the host {}", human_size(bytes))?;
        }
        for (number, part) in self.memory.iter().enumerate() {
            let title = if number == 0 { "memory" } else { "" };
            let per_gib =
                part.bytes_per_gib.map_or_else(String::new, |bytes| format!(", {} per GiB of data", human_size(bytes)));
            writeln!(f, "{title:<11} {:<9} {}{per_gib}", part.name, human_size(part.bytes))?;
        }
        if self.health.is_healthy() { Ok(()) } else { write!(f, "{}", self.health.lines("health      ")) }
    }
}

/// The report of a mounted volume.
pub fn of_mount(directory: &Path) -> Result<Report> {
    ask::fetch(directory, "info")
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    output.report(&ask::ask(&arguments.image, arguments.consent, Report::of, of_mount)?)?;
    Ok(0)
}

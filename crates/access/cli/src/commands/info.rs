//! `onode info`: what an image is.

use crate::commands::location;
use crate::commands::ls::date;
use crate::output::Output;
use onode::{Inodes, Result, Volume, human_size};
use onode_base::Timestamp;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode info disk.img\n  onode info --json disk.img")]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
}

/// What an image is.
#[derive(Debug, Serialize)]
pub struct Report {
    spec: String,
    device: String,
    summary: String,
    uuid: String,
    label: String,
    created_seconds: i64,
    format_version: u32,
    inodes: &'static str,
    total_bytes: u64,
    available_bytes: u64,
    objects: u64,
    image_bytes_on_host: Option<u64>,
}

impl Report {
    /// The report of an open volume.
    pub fn of(volume: &Volume) -> Self {
        let info = volume.device().info();
        let space = volume.device().space();
        let settings = volume.files().volume();
        let on_host = volume.spec().image_path().and_then(|path| std::fs::metadata(path).ok());
        let on_host = on_host.filter(std::fs::Metadata::is_file);
        Self {
            spec: volume.spec().to_string(),
            device: info.kind.to_owned(),
            summary: info.summary,
            uuid: uuid(settings.uuid),
            label: settings.label.clone(),
            created_seconds: settings.created.seconds,
            format_version: settings.format_version,
            inodes: match settings.inodes() {
                Inodes::Embedded => "embedded",
                Inodes::Separate => "separate",
            },
            total_bytes: space.total,
            available_bytes: space.available,
            objects: space.objects,
            image_bytes_on_host: on_host.map(|metadata| metadata.blocks() * 512),
        }
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
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
        if let Some(bytes) = self.image_bytes_on_host {
            writeln!(f, "on the host {}", human_size(bytes))?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true)?;
    output.report(&Report::of(&volume))?;
    Ok(0)
}

//! `onode divide`: the sections of the fast disk, shown or divided anew.

use crate::commands::tiers::target::{Files, Target};
use onode::{Class, Error, Result, Section};
use onode_console::Output;
use onode_object::powers::SectionSize;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is copied: copies that lie across a new border are given up, for the big disk has them. A name that was \
    there before keeps what is placed in it; what was placed in a section that is gone goes to the one in its place, or \
    to the first.\n\n\
    Examples:\n  onode divide /mnt                              show the sections\n  \
    onode divide /mnt small:64K:1+large:1M:3       a quarter and three quarters, by extents of 64 KiB and 1 MiB\n  \
    onode divide tier:ssd.img,hdd.img mail:16K:1+rest:512K:9"
)]
pub struct Arguments {
    /// The directory on which a volume is mounted, or the device spec of one that is not mounted.
    volume: OsString,
    /// The new sections: NAME:EXTENT or NAME:EXTENT:SHARE, joined by +; extents of 16K to 1M,
    /// shares relative to each other.
    sections: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    sections: Vec<SectionRow>,
    divided: bool,
}

#[derive(Debug, Serialize)]
struct SectionRow {
    name: String,
    extent_bytes: u64,
    bytes: u64,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let wanted = match &arguments.sections {
        Some(text) => Some(Section::parse_all("cannot divide the fast disk", text)?),
        None => None,
    };
    let is_spec = arguments.volume.to_string_lossy().contains(':') && !Path::new(&arguments.volume).exists();
    let target = Target::new(arguments.volume.clone(), is_spec.then(|| PathBuf::from("/")));
    let report = target.with(wanted.is_none(), |files| {
        // Asked first, so that what is not the top of a volume says so.
        files.division()?;
        if let Some(wanted) = &wanted {
            let words = wanted.iter().map(|one| format!("{}:{}:{}", one.name, one.extent, one.share));
            files.divide(&words.collect::<Vec<_>>().join("+"))?;
        }
        Ok(Report { sections: sections(files)?, divided: wanted.is_some() })
    })?;
    output.report(&report)?;
    Ok(0)
}

fn sections(files: &Files) -> Result<Vec<SectionRow>> {
    let text = files.division()?;
    let sections = SectionSize::parse_all(&text)
        .ok_or_else(|| Error::new(Class::Bug, "cannot tell the sections", format!("`{text}` makes no sense")))?;
    let row = |SectionSize { name, extent_bytes, bytes }| SectionRow { name, extent_bytes, bytes };
    Ok(sections.into_iter().map(row).collect())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sections.is_empty() {
            return write!(f, "there is no fast disk");
        }
        writeln!(f, "{:<16} {:>14} {:>16}", "section", "extent, bytes", "bytes")?;
        for SectionRow { name, extent_bytes, bytes } in &self.sections {
            writeln!(f, "{name:<16} {extent_bytes:>14} {bytes:>16}")?;
        }
        if self.divided { write!(f, "divided anew, nothing copied") } else { Ok(()) }
    }
}

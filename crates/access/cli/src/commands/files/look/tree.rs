//! `onode tree`: the directories of an image and what they hold, indented.

use crate::commands::files::ls::{bytes_of, type_name};
use crate::location::walk::{Next, Seen, Skipped, Tour, Visitor};
use crate::location::{self, Consent, failed};
use onode::Result;
use onode_console::Output;
use onode_console::quote::{self, Style};
use onode_fs::{FileSystem, FileType};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Directories end with a slash. What is damaged is told and left out, and the exit code is 11.\n\n\
    Examples:\n  onode tree disk.img\n  onode tree --depth 2 disk.img /photos\n  onode tree --json disk.img /"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The directory at the top.
    #[arg(default_value = "/")]
    path: PathBuf,
    /// Go so many directories deep; 1 shows what the top holds.
    #[arg(short, long, value_name = "N")]
    depth: Option<usize>,
    #[command(flatten)]
    consent: Consent,
}

/// A file and what it holds.
#[derive(Debug, Serialize)]
struct Branch {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<Vec<u8>>,
    #[serde(rename = "type")]
    file_type: &'static str,
    size: u64,
    target: Option<String>,
    children: Vec<Branch>,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    top: Option<Branch>,
    directories: u64,
    files: u64,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let mut skipped = Skipped::new(output);
    let depth = arguments.depth.unwrap_or(usize::MAX);
    let mut drawing = Drawing { files: volume.files(), depth, open: Vec::new(), report: Report::default() };
    Tour { files: volume.files(), skipped: &mut skipped }.go(&arguments.path, &mut drawing)?;
    output.report(&drawing.report)?;
    Ok(skipped.exit_code())
}

struct Drawing<'a> {
    files: &'a FileSystem,
    depth: usize,
    /// The directories on the way.
    open: Vec<Branch>,
    report: Report,
}

impl Visitor for Drawing<'_> {
    fn enter(&mut self, seen: &Seen<'_>) -> Result<Next> {
        let name = if seen.depth == 0 { seen.path.as_os_str().as_encoded_bytes() } else { seen.name() };
        let found = seen.attributes;
        let mut shown = quote::name(name, Style::Shell);
        let mut target = None;
        if seen.is_directory() && !shown.ends_with('/') {
            shown.push('/');
        } else if found.file_type == FileType::SymbolicLink {
            let leads = self.files.read_link(found.inode).map_err(|error| failed("read", seen.path, &error))?;
            shown = format!("{shown} -> {}", quote::name(&leads, Style::Shell));
            target = Some(String::from_utf8_lossy(&leads).into_owned());
        }
        self.open.push(Branch {
            name: String::from_utf8_lossy(name).into_owned(),
            name_bytes: bytes_of(name),
            file_type: type_name(found.file_type),
            size: found.size,
            target,
            children: Vec::new(),
            shown,
        });
        Ok(if seen.depth < self.depth { Next::Into } else { Next::Past })
    }

    fn leave(&mut self, seen: &Seen<'_>) -> Result<()> {
        let Some(branch) = self.open.pop() else { return Ok(()) };
        match (seen.depth > 0, seen.is_directory()) {
            (true, true) => self.report.directories += 1,
            (true, false) => self.report.files += 1,
            (false, _) => {}
        }
        match self.open.last_mut() {
            Some(above) => above.children.push(branch),
            None => self.report.top = Some(branch),
        }
        Ok(())
    }
}

impl Branch {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        writeln!(f, "{:1$}{2}", "", depth * 2, self.shown)?;
        self.children.iter().try_for_each(|child| child.write(f, depth + 1))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.top.as_ref().map_or(Ok(()), |top| top.write(f, 0))?;
        let count = |number: u64, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
        let directories = count(self.directories, "directory", "directories");
        write!(f, "{directories}, {}", count(self.files, "file", "files"))
    }
}

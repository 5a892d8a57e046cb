//! `onode check`: verifies everything in an image and changes nothing.
//!
//! Two walks that know nothing of each other: every object of the device is read and its checksums
//! verified, and the names, inodes and attributes of the file system are compared with one another.
//! What is wrong is a list of findings, not an error.

use crate::commands::session::where_mounted;
use crate::output::Output;
use indicatif::{ProgressBar, ProgressStyle};
use onode::{Class, Error, Result, Spec, Volume, human_size, open_device};
use onode_fs::check::{Finding, Severity};
use onode_object::{ObjectDevice, ObjectId};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;

/// Exit codes of fsck(8).
pub const CLEAN: u8 = 0;
/// Damage was found and repaired.
pub const REPAIRED: u8 = 1;
/// Damage is left.
pub const DAMAGED: u8 = 4;
/// The check itself failed.
pub const FAILED: u8 = 8;
/// The command line is wrong.
pub const USAGE: u8 = 16;

/// Objects verified between two updates of the progress bar.
const OBJECTS_AT_ONCE: usize = 64;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode check disk.img\n  onode check --json disk.img\n\n\
    Exit codes: 0 clean, 4 damage found, 8 could not check, 16 wrong usage")]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// `medium` for lost bytes, `files` for what contradicts itself.
    pub layer: &'static str,
    /// How bad it is.
    pub severity: String,
    /// What it is, as one word.
    pub kind: String,
    /// The object concerned.
    pub object: Option<u64>,
    /// The bytes concerned.
    pub range: Option<(u64, u64)>,
    /// The name concerned.
    pub name: Option<String>,
    /// One sentence.
    pub message: String,
    #[serde(skip)]
    harmless: bool,
}

/// What a check saw.
#[derive(Debug, Serialize)]
pub struct Report {
    spec: String,
    clean: bool,
    findings: Vec<Found>,
    objects: u64,
    files: u64,
    directories: u64,
    names: u64,
    verified_bytes: u64,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let checked =
        Spec::from_argument(&arguments.image).and_then(|spec| Report::of(&spec, open(&spec, true)?.as_ref(), output));
    match checked {
        Ok(report) => {
            output.report(&report)?;
            Ok(if report.clean { CLEAN } else { DAMAGED })
        }
        Err(error) => {
            output.error(&error);
            Ok(code_of(&error))
        }
    }
}

/// The exit code of fsck(8) for an error.
pub const fn code_of(error: &Error) -> u8 {
    match error.class {
        Class::Usage | Class::BadSize => USAGE,
        Class::Damaged => DAMAGED,
        _ => FAILED,
    }
}

/// Opens the device of an image.
pub fn open(spec: &Spec, read_only: bool) -> Result<std::sync::Arc<dyn ObjectDevice>> {
    if spec.image_path().is_none() {
        return Err(Error::new(Class::Usage, format!("cannot check {spec}"), "it lives in memory only"));
    }
    open_device(spec, read_only).map_err(
        |error| {
            if error.class == Class::InUse { where_mounted(spec, error) } else { error }
        },
    )
}

impl Report {
    /// Checks everything on a device.
    pub fn of(spec: &Spec, device: &dyn ObjectDevice, output: &Output) -> Result<Self> {
        let (mut findings, verified_bytes) = verify_objects(spec, device, output)?;
        let what = format!("cannot check {spec}");
        let files = onode_fs::check::check(device).map_err(|error| Volume::error(what, &error))?;
        findings.extend(files.findings.iter().map(Found::in_files));
        Ok(Self {
            spec: spec.to_string(),
            clean: findings.iter().all(|found| found.harmless),
            findings,
            objects: files.objects,
            files: files.files,
            directories: files.directories,
            names: files.names,
            verified_bytes,
        })
    }

    /// Whether nothing is wrong.
    pub const fn is_clean(&self) -> bool {
        self.clean
    }
}

/// Reads every object with all its checksums.
fn verify_objects(spec: &Spec, device: &dyn ObjectDevice, output: &Output) -> Result<(Vec<Found>, u64)> {
    let Some(scrub) = device.scrub() else { return Ok((Vec::new(), 0)) };
    let bar = if output.json() { ProgressBar::hidden() } else { ProgressBar::new(device.space().objects) };
    if let Ok(style) = ProgressStyle::with_template("checking {bar:30} {pos}/{len} objects {msg}") {
        bar.set_style(style);
    }
    let (mut findings, mut bytes) = (Vec::new(), 0u64);
    let mut next = Some(ObjectId(0));
    while let Some(from) = next {
        let step = scrub.scrub(from, OBJECTS_AT_ONCE);
        let step = step.map_err(|error| Error::device(format!("cannot check {spec}"), &error))?;
        findings.extend(step.damaged.iter().map(Found::in_medium));
        bytes = bytes.saturating_add(step.bytes);
        bar.inc(step.objects);
        bar.set_message(human_size(bytes));
        next = step.next;
    }
    bar.finish_and_clear();
    Ok((findings, bytes))
}

impl Found {
    fn in_medium(error: &onode_object::Error) -> Self {
        Self {
            layer: "medium",
            severity: "error".to_owned(),
            kind: format!("{:?}", error.kind),
            object: error.object.map(|object| object.0),
            range: error.range.as_ref().map(|range| (range.start, range.end)),
            name: None,
            message: error.to_string(),
            harmless: false,
        }
    }

    /// A finding of the file system.
    pub fn in_files(finding: &Finding) -> Self {
        Self {
            layer: "files",
            severity: format!("{:?}", finding.severity()).to_lowercase(),
            kind: format!("{:?}", finding.kind),
            object: Some(finding.object.0),
            range: None,
            name: finding.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()),
            message: finding.to_string(),
            harmless: finding.severity() == Severity::Note,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}: {}", self.severity, self.layer, self.kind, self.message)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let verdict = if self.clean { "clean" } else { "DAMAGED" };
        write!(f, "{}: {verdict}; {} objects, ", self.spec, self.objects)?;
        write!(f, "{} files, {} directories, {} names, ", self.files, self.directories, self.names)?;
        write!(f, "{} verified", human_size(self.verified_bytes))?;
        if !self.clean {
            write!(f, "\n`onode repair` repairs what can be repaired; lost bytes stay lost")?;
        }
        Ok(())
    }
}

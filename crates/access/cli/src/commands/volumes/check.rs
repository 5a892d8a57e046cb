//! `onode check`: verifies everything in an image and changes nothing.
//!
//! Two walks that know nothing of each other: one over the raw pages of the medium with all their
//! checksums and a recount of everything, one over the names, inodes and attributes of the files,
//! those of clones as well. What is wrong is a list of findings, not an error.

pub mod sealed;
mod states;
mod text;

use self::sealed::Sealed;
use crate::bar::bar;
use crate::location::{self, where_mounted};
use crate::watch::health::ConditionReport;
use crate::watch::record::Left;
use onode::keys::NOT_AUTHENTIC;
use onode::medium::{MediumFinding, MediumReport, check_medium};
use onode::{Class, Error, MountOptions, Result, Spec, Volume, open_device};
use onode_console::Output;
use onode_fs::check::{Finding, Severity};
use onode_object::{Condition, ErrorKind, ObjectDevice};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

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

/// What to do with an image that cannot even be opened to be checked.
const BEYOND_REPAIR: &str =
    "copy it again, whole, from where it came, or restore it from a backup: as it is nothing in it can be used";

#[derive(Debug, clap::Args)]
#[command(after_help = "Clones are checked with the volume; a snapshot is when it is named.\n\n\
    Examples:\n  onode check disk.img\n  onode check disk.img@monday      the files of a snapshot or clone\n  \
    onode check --json disk.img\n\n\
    Exit codes: 0 clean, 4 damage found, 8 could not check, 16 wrong usage")]
pub struct Arguments {
    /// The image or device spec, or IMAGE@NAME for the files of a snapshot or clone.
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
    /// The clone or snapshot whose files are concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Where on the medium.
    pub place: Option<String>,
    /// The object concerned.
    pub object: Option<u64>,
    /// The bytes concerned.
    pub range: Option<(u64, u64)>,
    /// The name concerned.
    pub name: Option<String>,
    /// The path of the file whose bytes are concerned.
    pub path: Option<String>,
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
    closed_in_order: bool,
    /// What was noticed when it was opened, and how its last mount ended if it did not end well.
    notes: Vec<String>,
    findings: Vec<Found>,
    objects: u64,
    files: u64,
    directories: u64,
    names: u64,
    /// Clones whose files were looked at, too.
    clones: usize,
    pages_read: u64,
    verified_bytes: u64,
    /// What a check of such a medium cannot verify.
    unverified: Vec<String>,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let (image, state) = Spec::state_of(&arguments.image)
        .map_or((arguments.image.as_os_str(), None), |(image, name)| (OsStr::new(image), Some(name)));
    match location::spec(image).and_then(|spec| Report::of_state(&spec, state, output)) {
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

/// Opens the device of an image, with what people should hear of how it was opened.
pub fn open(spec: &Spec, read_only: bool, accept_loss: bool) -> Result<(Arc<dyn ObjectDevice>, Vec<String>)> {
    if spec.image_path().is_none() {
        return Err(Error::new(Class::Usage, format!("cannot check {spec}"), "it lives in memory only"));
    }
    open_device(spec, read_only, accept_loss).map_err(|error| explained(spec, error))
}

/// Whether the hint of an error says no more than what is usually said of damage.
pub fn leads_to_check(error: &Error) -> bool {
    error.hint.as_ref().is_none_or(|hint| error.class == Class::Loss || hint.contains("onode check"))
}

fn explained(spec: &Spec, error: Error) -> Error {
    match error.class {
        Class::InUse => where_mounted(spec, error),
        Class::Damaged if leads_to_check(&error) => error.hint(BEYOND_REPAIR),
        _ => error,
    }
}

impl Report {
    /// Checks everything in an image.
    pub fn of(spec: &Spec, output: &Output) -> Result<Self> {
        Self::of_state(spec, None, output)
    }

    /// The same, with the files of the clone or snapshot `state` if one is named.
    fn of_state(spec: &Spec, state: Option<&str>, output: &Output) -> Result<Self> {
        let medium = on_medium(spec, output)?;
        let mut findings: Vec<Found> = medium.findings.iter().map(Found::in_medium).collect();
        let mut files = onode_fs::check::Report::default();
        let (mut notes, mut sealed_bytes, mut locked) = (Vec::new(), None, 0);
        let mut clones = states::InClones::default();
        if let Some(name) = state.filter(|_| medium.is_mountable) {
            files = states::of_state(spec, name)?;
            name_files(spec, &mut findings);
        } else if medium.is_mountable {
            let what = format!("cannot check {spec}");
            // That something is missing is a finding: what is there is looked at all the same, and
            // nothing is changed.
            let (device, told) = match open(spec, true, true) {
                // The walk over the medium has said what is damaged, and that there is a way on.
                Err(error) if error.class == Class::Damaged && !medium.is_sound => {
                    return Ok(Self::of_medium(spec, medium, vec![unopened(&error)]));
                }
                opened => opened?,
            };
            notes = noted(device.as_ref(), told, &medium);
            findings.extend(sealed::in_sums(device.as_ref()));
            let content =
                Sealed::of(device.as_ref(), output).map_err(|error| Volume::error(what.clone(), &error.into()))?;
            // The walk over the medium may have told of it.
            let told: BTreeSet<_> = findings.iter().filter_map(|found| found.object).collect();
            let is_new = |found: &Found| found.object.is_none_or(|object| !told.contains(&object));
            findings.extend(content.findings.into_iter().filter(is_new));
            (sealed_bytes, locked) = (content.verified_bytes, content.locked);
            let checked = onode_fs::check::check(device.as_ref());
            drop(device);
            match checked {
                Ok(checked) => files = checked,
                // The walk over the medium has said what is damaged there.
                Err(error) if error.kind == ErrorKind::Corrupt && !medium.is_sound => {
                    notes.push(format!("the names of files could not be checked: {error}"));
                }
                Err(error) => return Err(Volume::error(what, &error)),
            }
            name_files(spec, &mut findings);
            match states::of_clones(spec) {
                Ok(found) => clones = found,
                // Where the medium is damaged the volume may not be mountable for that.
                Err(error) if !medium.is_sound => notes.push(format!("clones could not be checked: {error}")),
                Err(error) => return Err(error),
            }
        }
        findings.append(&mut clones.findings);
        findings.extend(files.findings.iter().map(|one| match state {
            Some(name) => Found::in_files(one).of_state(name),
            None => Found::in_files(one),
        }));
        notes.extend(Left::of(spec.image_path()).into_iter().map(|left| left.text));
        let mut unverified = match sealed_bytes {
            Some(_) => sealed::left_unverified(spec, medium.unverified),
            None => medium.unverified,
        };
        for (count, whose) in [(locked.max(files.locked), ""), (clones.locked, " of clones")] {
            if count > 0 {
                let where_they_are = "in directories whose keys are locked, or that may have a name in one";
                unverified.push(format!("{count} files{whose} {where_they_are}: --unlock FILE unlocks one"));
            }
        }
        Ok(Self {
            spec: state.map_or_else(|| spec.to_string(), |name| format!("{spec}@{name}")),
            clean: medium.is_sound && medium.is_mountable && findings.iter().all(|found| found.harmless),
            closed_in_order: medium.is_closed,
            notes,
            findings,
            objects: files.objects,
            files: files.files,
            directories: files.directories,
            names: files.names,
            clones: clones.count,
            pages_read: medium.pages_read,
            verified_bytes: medium.bytes_verified.max(sealed_bytes.unwrap_or(0)),
            unverified,
        })
    }

    /// What the walk over the medium saw, of a volume that cannot be opened to look at its files.
    fn of_medium(spec: &Spec, medium: MediumReport, notes: Vec<String>) -> Self {
        Self {
            spec: spec.to_string(),
            clean: false,
            closed_in_order: medium.is_closed,
            notes,
            findings: medium.findings.iter().map(Found::in_medium).collect(),
            objects: 0,
            files: 0,
            directories: 0,
            names: 0,
            clones: 0,
            pages_read: medium.pages_read,
            verified_bytes: medium.bytes_verified,
            unverified: medium.unverified,
        }
    }

    /// Whether nothing is wrong.
    pub const fn is_clean(&self) -> bool {
        self.clean
    }
}

/// That the files could not be looked at.
fn unopened(error: &Error) -> String {
    let why = &error.why;
    format!("it cannot be opened to look at its files: {why}; `onode repair` looks for an older state that is whole")
}

/// What was noticed at the opening and is no finding. That the loss was accepted is only so for
/// this look.
fn noted(device: &dyn ObjectDevice, told: Vec<String>, medium: &MediumReport) -> Vec<String> {
    let is_found = |text: &str| medium.findings.iter().any(|finding| finding.message.contains(text));
    let conditions = device.health().conditions.into_iter();
    let is_told = |condition: &Condition| ["loss-accepted", NOT_AUTHENTIC].contains(&condition.code.as_ref());
    let conditions: Vec<_> = conditions.filter(|told| !is_told(told) && !is_found(&told.text)).collect();
    let is_condition = |text: &str| conditions.iter().any(|condition| condition.text == text);
    let mut notes: Vec<String> = told.into_iter().filter(|note| !is_found(note) && !is_condition(note)).collect();
    notes.extend(conditions.into_iter().map(|condition| ConditionReport::from(condition).to_string()));
    notes
}

/// Says which files are concerned, as far as they can be reached; a damaged volume may hide some.
fn name_files(spec: &Spec, findings: &mut [Found]) {
    let mut wanted: BTreeMap<u64, Vec<&mut Found>> = BTreeMap::new();
    for found in findings.iter_mut() {
        if let Some(object) = found.object {
            wanted.entry(object).or_default().push(found);
        }
    }
    if wanted.is_empty() {
        return;
    }
    // What is lost was said before.
    let options = MountOptions { read_only: true, accept_loss: true, ..MountOptions::default() };
    let Ok(volume) = Volume::open(spec, options) else { return };
    let _ = volume.files().walk(b"/", &mut |path, attributes| {
        for found in wanted.remove(&attributes.inode.0).unwrap_or_default() {
            found.path = Some(String::from_utf8_lossy(path).into_owned());
        }
        Ok(true)
    });
    // What is left is of no file as it is now, but may be of one as a snapshot has it.
    let numbers: Vec<u64> = wanted.keys().copied().collect();
    for (number, path) in volume.version_paths(&numbers) {
        wanted.remove(&number).into_iter().flatten().for_each(|found| found.path = Some(path.clone()));
    }
}

/// The paths of files by their numbers; of those that no name leads to, the number.
pub fn paths_of(spec: &Spec, numbers: &[u64]) -> Vec<String> {
    let mut wanted: BTreeSet<u64> = numbers.iter().copied().collect();
    let options = MountOptions { read_only: true, accept_loss: true, ..MountOptions::default() };
    let mut paths = Vec::new();
    if !wanted.is_empty()
        && let Ok(volume) = Volume::open(spec, options)
    {
        // A damaged volume may hide some.
        let _ = volume.files().walk(b"/", &mut |path, attributes| {
            if wanted.remove(&attributes.inode.0) {
                paths.push(String::from_utf8_lossy(path).into_owned());
            }
            Ok(!wanted.is_empty())
        });
        let numbers: Vec<u64> = wanted.iter().copied().collect();
        for (number, path) in volume.version_paths(&numbers) {
            wanted.remove(&number);
            paths.push(path);
        }
    }
    paths.extend(wanted.into_iter().map(|number| format!("object {number}")));
    paths
}

/// The walk over the medium, with a progress bar.
fn on_medium(spec: &Spec, output: &Output) -> Result<MediumReport> {
    let bar = bar(Some(0), "checking {bar:30} {pos}/{len} pages {eta}", output);
    let report = check_medium(spec, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    report.map_err(|error| explained(spec, error))
}

impl Found {
    fn in_medium(finding: &MediumFinding) -> Self {
        Self {
            layer: "medium",
            severity: finding.severity.to_owned(),
            kind: finding.kind.clone(),
            state: None,
            place: Some(finding.place.clone()),
            object: finding.object,
            range: finding.range,
            name: None,
            path: None,
            message: finding.message.clone(),
            harmless: finding.severity == "warning",
        }
    }

    /// An error of this layer and kind, of no place.
    fn error(layer: &'static str, kind: &str, message: String) -> Self {
        Self {
            layer,
            severity: "error".to_owned(),
            kind: kind.to_owned(),
            state: None,
            place: None,
            object: None,
            range: None,
            name: None,
            path: None,
            message,
            harmless: false,
        }
    }

    /// A finding of the file system.
    pub fn in_files(finding: &Finding) -> Self {
        Self {
            layer: "files",
            severity: format!("{:?}", finding.severity()).to_lowercase(),
            kind: format!("{:?}", finding.kind),
            state: None,
            place: None,
            object: Some(finding.object.0),
            range: None,
            name: finding.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()),
            path: None,
            message: finding.to_string(),
            harmless: finding.severity() == Severity::Note,
        }
    }
}

impl Found {
    /// The same in the files of a clone or snapshot.
    fn of_state(self, name: &str) -> Self {
        Self { state: Some(name.to_owned()), ..self }
    }
}

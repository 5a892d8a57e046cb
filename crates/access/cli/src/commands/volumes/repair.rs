//! `onode repair`: verifies an image and repairs what can be repaired.
//!
//! First the medium: what was counted wrongly is set right. Then the files: those that lost their
//! names come back in `/lost+found`. Bytes that the medium lost stay an error for exactly those
//! bytes: nothing is made up, and nothing that can still be read is given up unless it is asked
//! for.

use crate::commands::volumes::check::{self, DAMAGED, Found, REPAIRED, Report, code_of, sealed};
use crate::location::{self, Consent, where_mounted};
use onode::medium::{MediumRepaired, repair_medium};
use onode::{Class, Error, Result, Spec, Volume, repair_files};
use onode_console::Output;
use onode_fs::ErrorKind;
use onode_fs::check::{FindingKind, Repaired};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode repair disk.img\n  onode repair --json disk.img\n  \
    onode repair --drop-key 1 disk.img          (what is in directories whose key is lost)\n\n\
    Exit codes: 0 clean, 1 repaired, 4 damage left, 8 could not check, 16 wrong usage")]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// Give up what cannot be read any more, so that the rest can be used.
    #[arg(long)]
    drop_damaged: bool,
    /// Remove everything that needs the key of a directory of this number, which is locked: without
    /// that key nobody can name it, or read it. Files that were moved elsewhere stay, unless they
    /// were compressed.
    #[arg(long, value_name = "NUMBER")]
    drop_key: Option<u32>,
    #[command(flatten)]
    consent: Consent,
}

/// What a repair did.
#[derive(Debug, Serialize)]
struct RepairOutcome {
    fixed: u64,
    lost: bool,
    /// Files and directories that needed a key which is lost.
    dropped: u64,
    medium: Vec<String>,
    /// What was noticed when it was opened after that.
    notes: Vec<String>,
    found: Vec<Found>,
    /// Files that lost content, to be restored from a backup.
    restore: Vec<String>,
    after: Report,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match spec_of(&arguments.image).and_then(|spec| repair(&spec, arguments, output)) {
        Ok(outcome) => {
            output.report(&outcome)?;
            Ok(match (outcome.after.is_clean(), outcome.fixed) {
                (true, 0) => check::CLEAN,
                (true, _) => REPAIRED,
                (false, _) => DAMAGED,
            })
        }
        Err(error) => {
            output.error(&error);
            Ok(code_of(&error))
        }
    }
}

/// The spec of the argument, which names a whole volume.
fn spec_of(image: &OsStr) -> Result<Spec> {
    let Some((volume, name)) = Spec::state_of(image) else { return location::spec(image) };
    let why = format!("`{name}` is a snapshot or clone, and lies on the same medium as the volume");
    Err(Error::new(Class::Usage, format!("cannot repair {}", image.display()), why).hint(format!(
        "`onode repair {volume}` repairs the medium under all of them; if `onode check {volume}@{name}` still finds \
         something, copy its files out with `onode get {volume}@{name}` and delete it"
    )))
}

fn repair(spec: &Spec, arguments: &Arguments, output: &Output) -> Result<RepairOutcome> {
    let Arguments { drop_damaged, consent: Consent { accept_loss }, .. } = *arguments;
    let repaired = repair_medium(spec, drop_damaged, accept_loss).map_err(|error| match error.class {
        Class::InUse => where_mounted(spec, error),
        // What to do about an image that was cut short is said already.
        _ if error.hint.as_ref().is_some_and(|hint| hint.contains("truncate -s")) => error,
        Class::Loss if !drop_damaged && !accept_loss => error.hint(
            "nothing was changed: copy the image first; then `onode repair --accept-loss`, or --drop-damaged, goes on \
             without what is missing",
        ),
        Class::Damaged | Class::Loss if !drop_damaged && check::leads_to_check(&error) => {
            error.hint("`onode repair --drop-damaged` gives up what is lost, so that the rest can be used")
        }
        Class::Damaged if check::leads_to_check(&error) => {
            error.hint("nothing was changed: restore the files from a backup onto a new volume")
        }
        _ => error,
    })?;
    files(spec, arguments, &repaired, output).inspect_err(|_| {
        // What was dropped is gone, and no later repair knows it.
        repaired.actions.iter().for_each(|action| output.warning(&format!("medium: {action}")));
        for path in check::paths_of(spec, &repaired.losers) {
            output.warning(&format!("restore from a backup: {path}"));
        }
    })
}

/// Repairs the files after their medium was.
fn files(spec: &Spec, arguments: &Arguments, medium: &MediumRepaired, output: &Output) -> Result<RepairOutcome> {
    let Arguments { drop_damaged, consent: Consent { accept_loss }, .. } = *arguments;
    let MediumRepaired { actions, lost, mut losers } = medium.clone();
    let (device, notes) = check::open(spec, false, accept_loss)?;
    let failed = |error: &onode_object::Error| Error::device(format!("cannot repair {spec}"), error);
    let dropped = match drop_damaged {
        true => sealed::drop_damaged(device.as_ref(), output).map_err(|error| failed(&error))?,
        false => Vec::new(),
    };
    losers.extend(dropped.iter().filter_map(|found| found.object));
    let links = match drop_damaged {
        true => onode_fs::check::drop_links(device.as_ref())
            .map_err(|error| Volume::error(format!("cannot repair {spec}"), &error))?,
        false => Vec::new(),
    };
    let (actions, lost) = match links.len() {
        0 => (actions, lost),
        count => ([actions, vec![format!("removed {count} symbolic links that lost their targets")]].concat(), true),
    };
    let mut given_up = BTreeSet::new();
    if let Some(key) = arguments.drop_key {
        let removed = onode_fs::check::drop_key(device.as_ref(), key);
        let removed = removed.map_err(|error| match error.kind {
            ErrorKind::Invalid => Error::new(Class::Usage, format!("cannot drop key {key} of {spec}"), error.detail)
                .hint("`onode key list IMAGE` shows the keys"),
            _ => Volume::error(format!("cannot drop key {key} of {spec}"), &error),
        })?;
        given_up.extend(removed.iter().map(|object| object.0));
    }
    let Repaired { mut before, fixed, .. } = repair_files(spec, device.as_ref())?;
    // That names lead to nothing which was given up is no finding.
    before.findings.retain(|finding| finding.found.is_none_or(|found| !given_up.contains(&found)));
    device.close().map_err(|error| failed(&error))?;
    drop(device);
    Ok(RepairOutcome {
        fixed: fixed + (actions.len() + dropped.len() + given_up.len()) as u64,
        lost,
        dropped: given_up.len() as u64,
        medium: actions,
        notes,
        found: dropped.into_iter().chain(before.findings.iter().map(Found::in_files)).collect(),
        restore: lost_files(spec, &losers, &before),
        after: Report::of(spec, output)?,
    })
}

/// Files that lost something, by their paths, and those that are gone with only a name left of
/// them.
fn lost_files(spec: &Spec, losers: &[u64], before: &onode_fs::check::Report) -> Vec<String> {
    let gone: Vec<(u64, &[u8])> = before
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::EntryDangling)
        .filter_map(|finding| Some((finding.object.0, finding.name.as_deref()?)))
        .collect();
    // What is gone is told by its name and not by its number.
    let dangling = before.findings.iter().filter(|finding| finding.kind == FindingKind::EntryDangling);
    let named: BTreeSet<u64> = dangling.filter_map(|finding| finding.found).collect();
    let losers: Vec<u64> = losers.iter().copied().filter(|number| !named.contains(number)).collect();
    let mut files = check::paths_of(spec, &losers);
    for (directory, name) in gone {
        let above = check::paths_of(spec, &[directory]).pop().unwrap_or_default();
        files.push(format!("{}/{}", above.trim_end_matches('/'), String::from_utf8_lossy(name)));
    }
    files
}

impl fmt::Display for RepairOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in &self.medium {
            writeln!(f, "medium: {action}")?;
        }
        if self.dropped > 0 {
            writeln!(f, "removed {} files and directories that needed the key", self.dropped)?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        for finding in &self.found {
            writeln!(f, "found: {finding}")?;
        }
        for path in &self.restore {
            writeln!(f, "restore from a backup: {path}")?;
        }
        if self.medium.iter().any(|action| action.starts_with("lost: the last ")) {
            writeln!(f, "not all are named: files that changed since that older state are as they were then")?;
        }
        writeln!(f, "repaired {} things; now:", self.fixed)?;
        write!(f, "{}", self.after)
    }
}

//! The files of clones and snapshots, as a check looks at them.
//!
//! A clone is changed like a volume, so each is looked at; a snapshot was sound when it was taken
//! and never changes, so one is looked at when it is named. Their content lies on the same medium,
//! which the check has read as a whole.

use super::Found;
use onode::{MountOptions, Result, Spec, Volume};
use onode_fs::check::{Report, check};

/// What has been said of the medium is no reason not to look at the rest.
fn options() -> MountOptions {
    MountOptions { read_only: true, accept_loss: true, ..MountOptions::default() }
}

/// The files of the clone or snapshot `name`.
pub(super) fn of_state(spec: &Spec, name: &str) -> Result<Report> {
    let volume = Volume::open_state(spec, name, options())?;
    let checked = check(volume.device()).map_err(|error| Volume::error(format!("cannot check {spec}@{name}"), &error));
    volume.close()?;
    checked
}

/// What was found in the files of all clones.
#[derive(Default)]
pub(super) struct InClones {
    pub(super) findings: Vec<Found>,
    /// How many clones there are.
    pub(super) count: usize,
    /// Files that need keys of directories which are locked, or may be in such a directory.
    pub(super) locked: u64,
}

/// What is wrong in the files of all clones.
pub(super) fn of_clones(spec: &Spec) -> Result<InClones> {
    let volume = Volume::open(spec, options())?;
    let names: Vec<String> =
        volume.clones().map(|clones| clones.list().into_iter().map(|one| one.name).collect()).unwrap_or_default();
    volume.close()?;
    let mut it = InClones { count: names.len(), ..InClones::default() };
    for name in &names {
        let report = of_state(spec, name)?;
        it.locked += report.locked;
        it.findings.extend(report.findings.iter().map(|one| Found::in_files(one).of_state(name)));
    }
    Ok(it)
}

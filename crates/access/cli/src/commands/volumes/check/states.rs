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

/// What is wrong in the files of all clones, and how many clones there are.
pub(super) fn of_clones(spec: &Spec) -> Result<(Vec<Found>, usize)> {
    let volume = Volume::open(spec, options())?;
    let names: Vec<String> =
        volume.clones().map(|clones| clones.list().into_iter().map(|one| one.name).collect()).unwrap_or_default();
    volume.close()?;
    let mut findings = Vec::new();
    for name in &names {
        findings.extend(of_state(spec, name)?.findings.iter().map(|one| Found::in_files(one).of_state(name)));
    }
    Ok((findings, names.len()))
}

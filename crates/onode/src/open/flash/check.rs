//! Check and repair of flash and of the memory beside it, without a mount.

use crate::error::{Class, Error, Result};
use crate::open::access::Access;
use crate::open::flash::beside::{self, Both, open_flash};
use crate::open::flash::nand::open_nand;
use crate::open::medium::{MediumFinding, MediumRepaired, MediumReport, OBJECTS_A_STEP};
use crate::spec::Spec;
use crate::spec::flash::{Beside, Flash};
use onode_flash::check::{CheckOptions, Finding, Severity};
use onode_flash::repair::{Action, RepairOptions};
use onode_object::{ObjectDevice, ObjectId};
use onode_services::Dropped;
use std::collections::BTreeSet;
use std::path::Path;

/// Checks the flash at `image` by a walk of its own over the raw pages.
pub(crate) fn check(
    spec: &Spec,
    flash: &Flash,
    image: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<MediumReport> {
    let mut nand = open_nand(spec, image, &flash.shape, true)?;
    let report = onode_flash::check(&mut nand, &CheckOptions::default(), progress);
    let mut made = MediumReport {
        is_sound: report.is_sound(),
        is_mountable: report.worst() < Some(Severity::Fatal),
        is_closed: report.clean,
        pages_read: report.pages_read,
        bytes_verified: report.bytes_verified,
        findings: report.findings.iter().map(MediumFinding::of).collect(),
        unverified: Vec::new(),
    };
    if made.is_mountable
        && let Flash { shape, policies, beside: Some(memory), .. } = flash
    {
        check_beside(Both { spec, image, shape, policies, beside: memory }, &mut made)?;
    }
    Ok(made)
}

/// Compares the memory beside the flash with it, entry by entry. A memory that is damaged, behind
/// or not there loses nothing by itself; one that answers otherwise than the flash does is an
/// error.
fn check_beside(volume: Both<'_>, report: &mut MediumReport) -> Result<()> {
    let Both { spec, beside, .. } = volume;
    let place = beside.path.as_ref().map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
    let finding = |severity, message: String| {
        let (kind, place) = ("Memory".to_owned(), place.clone());
        MediumFinding { severity, kind, place, object: None, range: None, message }
    };
    match open_flash(volume, Access::LOOK) {
        Ok((device, notes)) => {
            report.findings.extend(notes.into_iter().map(|note| finding("warning", note)));
            let compared = device.compare_memory();
            let wrong = compared.unwrap_or_else(|error| vec![format!("the memory could not be compared: {error}")]);
            report.is_sound &= wrong.is_empty();
            report.findings.extend(wrong.into_iter().map(|wrong| finding("error", wrong)));
            if report.is_sound && device.had_buffered() {
                // The walk over the flash did not see what these changes place.
                let damaged = read_all(&device, spec)?;
                report.is_sound = damaged.is_empty();
                report.findings.extend(damaged.iter().map(|error| MediumFinding {
                    object: error.object.map(|object| object.0),
                    range: error.range.as_ref().map(|range| (range.start, range.end)),
                    ..finding("error", error.to_string())
                }));
            }
        }
        Err(error) if error.class == Class::Loss => {
            report.findings.push(finding("fatal", error.why));
            report.is_sound = false;
        }
        // The walk over the flash has said what is damaged there.
        Err(error) if error.class == Class::Damaged && !report.is_sound => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Reads all content; what of it is damaged.
fn read_all(device: &dyn ObjectDevice, spec: &Spec) -> Result<Vec<onode_object::Error>> {
    let (mut damaged, mut next) = (Vec::new(), Some(ObjectId(0)));
    while let (Some(scrub), Some(from)) = (device.scrub(), next) {
        let step = scrub.scrub(from, OBJECTS_A_STEP);
        let step = step.map_err(|error| Error::device(format!("cannot check {spec}"), &error))?;
        damaged.extend(step.damaged);
        next = step.next;
    }
    Ok(damaged)
}

/// The flash at `image` that is to be repaired as far as `access` allows.
pub(crate) struct Repair<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) flash: &'a Flash,
    pub(crate) image: &'a Path,
    pub(crate) access: Access,
}

/// Repairs flash; what goes of objects is noted in `dropped`.
pub(crate) fn repair(repair: Repair<'_>, dropped: &mut Dropped) -> Result<MediumRepaired> {
    let Repair { spec, flash, image, access } = repair;
    let Access { accept_loss, drop_damaged, .. } = access;
    let may_lose = accept_loss || drop_damaged;
    let missing = if may_lose { missing_by_memory(spec, flash, image) } else { None };
    let is_recovered = recover_with_memory(&repair, may_lose)?;
    let nand = open_nand(spec, image, &flash.shape, false)?;
    let repaired = onode_flash::repair::repair(nand, &RepairOptions { drop_damaged, accept_loss: may_lose });
    let actions = repaired.map_err(|error| Error::device(format!("cannot repair {spec}"), &error))?.actions;
    actions.iter().for_each(|action| note_dropped(action, dropped));
    let losers: BTreeSet<u64> = actions.iter().filter_map(Action::object).map(|object| object.0).collect();
    let mut done = MediumRepaired {
        lost: actions.iter().any(Action::is_loss),
        losers: losers.into_iter().collect(),
        actions: actions.iter().map(ToString::to_string).collect(),
    };
    if let Some((memory, why)) = missing {
        // What the flash has is what is left, and the memory would say for ever that more was
        // promised.
        if !is_recovered {
            beside::give_up(spec, memory)?;
        }
        done.actions.push(format!("lost: {why}"));
        done.lost = true;
    }
    Ok(done)
}

/// Brings to the flash what a write buffer in the memory beside it has, as a mount does: a repair
/// knows the flash alone, and would give that up. False if that is not needed, or cannot be and
/// `may_lose`.
fn recover_with_memory(repair: &Repair<'_>, may_lose: bool) -> Result<bool> {
    let Repair { spec, flash, image, access } = *repair;
    let Flash { shape, policies, beside: Some(memory), .. } = flash else { return Ok(false) };
    let failed = |error: &onode_object::Error| Error::device(format!("cannot repair {spec}"), error);
    let needs_memory = || {
        let mut nand = open_nand(spec, image, shape, true)?;
        onode_flash::repair::needs_memory(&mut nand).map_err(|error| failed(&error))
    };
    if !needs_memory()? {
        return Ok(false);
    }
    let access = Access { read_only: false, accept_loss: may_lose, ..access };
    match open_flash(Both { spec, image, shape, policies, beside: memory }, access) {
        Ok((device, _)) => {
            device.close().map_err(|error| failed(&error))?;
            drop(device);
            // Nothing is written where the flash itself is damaged before what the memory has.
            Ok(!needs_memory()?)
        }
        Err(error) if may_lose && matches!(error.class, Class::Damaged | Class::Loss) => Ok(false),
        Err(error) => Err(error.what(format!("cannot repair {spec}"))),
    }
}

/// Notes what of objects is gone with an action.
fn note_dropped(action: &Action, dropped: &mut Dropped) {
    match action {
        Action::NodeDropped { from, until } => dropped.add_objects(*from..=until.unwrap_or(ObjectId(u64::MAX))),
        Action::EntryDropped { object, .. } => dropped.add_objects(*object..=*object),
        Action::ContentDropped { object, range } => dropped.add_content(*object, range.clone()),
        _ => {}
    }
}

/// The memory beside the flash and what the flash should have, as that memory knows.
fn missing_by_memory<'a>(spec: &Spec, flash: &'a Flash, image: &Path) -> Option<(&'a Beside, String)> {
    let Flash { shape, policies, beside: Some(memory), .. } = flash else { return None };
    match open_flash(Both { spec, image, shape, policies, beside: memory }, Access::LOOK) {
        Err(error) if error.class == Class::Loss => Some((memory, error.why)),
        // What else is wrong with the memory costs nothing, and the next mount tells it.
        _ => None,
    }
}

impl MediumFinding {
    fn of(finding: &Finding) -> Self {
        Self {
            severity: finding.severity.name(),
            kind: format!("{:?}", finding.kind),
            place: finding.place.to_string(),
            object: finding.object.map(|object| object.0),
            range: finding.range.as_ref().map(|range| (range.start, range.end)),
            // The severity stands in a field of its own.
            message: finding.to_string().split_off(finding.severity.name().len() + 2),
        }
    }
}

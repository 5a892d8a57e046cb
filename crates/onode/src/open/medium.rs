//! What lies on a medium below its objects: check, repair and dumps, without a mount.

use crate::error::{Class, Error, Result};
use crate::open::access::Access;
use crate::open::beside::{self, Both, open_flash};
use crate::open::memory;
use crate::open::nand::open_nand;
use crate::open::tiers;
use crate::spec::{Beside, Memory, Spec, Tiers};
use onode_flash::check::{CheckOptions, Finding, Severity};
use onode_flash::repair::{Action, RepairOptions};
use onode_media::Nand;
use onode_object::powers::ScrubReport;
use onode_object::{Durability, ErrorKind, ObjectDevice, ObjectId, Transaction};
use onode_tier::Salvaged;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

pub use onode_flash::dump::{
    AttributeDump, ExtentDump, ItemDump, NodeDump, OnodeDump, PageDump, ReferenceDump, SegmentDump, SuperblockContent,
    SuperblockDump, TreeDump,
};

/// One thing on a medium that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumFinding {
    /// How bad it is: `warning`, `error` or `fatal`.
    pub severity: &'static str,
    /// What is wrong.
    pub kind: String,
    /// Where on the medium.
    pub place: String,
    /// The object concerned.
    pub object: Option<u64>,
    /// The bytes of the object concerned.
    pub range: Option<(u64, u64)>,
    /// One line with all of it.
    pub message: String,
}

/// What the check of a medium saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumReport {
    /// What is wrong.
    pub findings: Vec<MediumFinding>,
    /// Nothing is lost or wrong; warnings do not count.
    pub is_sound: bool,
    /// The volume can be mounted.
    pub is_mountable: bool,
    /// The volume was closed in order.
    pub is_closed: bool,
    /// Pages read in all.
    pub pages_read: u64,
    /// Bytes of content that were read and verified.
    pub bytes_verified: u64,
    /// What a check of this medium cannot verify, one phrase each.
    pub unverified: Vec<String>,
}

/// Checks the medium of `spec` by a walk of its own over the raw pages; changes nothing. `progress`
/// hears of pages done and in all.
///
/// # Errors
/// If the medium cannot be opened. What is wrong on it is no error but a finding.
pub fn check_medium(spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    if let Spec::Scm(Memory { path: Some(path), .. }) = spec {
        return check_memory(spec, path, progress);
    }
    if let Spec::Tier(disks) = spec {
        return check_disks(spec, disks, progress);
    }
    let report = onode_flash::check(&mut open(spec, true)?, &CheckOptions::default(), progress);
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
        && let Spec::Flash { shape, policies, beside: Some(memory), .. } = spec
        && let Some(image) = spec.image_path()
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

/// Replays the logs of both disks in memory, has the tree compared with the blocks in use, and
/// reads all content of the big disk and all copies on the fast one.
fn check_disks(spec: &Spec, disks: &Tiers, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    let place = spec.image_path().map(|path| path.display().to_string()).unwrap_or_default();
    let finding = |severity, object: Option<u64>, message: String| {
        let (kind, place) = ("Damaged".to_owned(), place.clone());
        MediumFinding { severity, kind, place, object, range: None, message }
    };
    let mut report = MediumReport { is_closed: true, is_mountable: true, ..MediumReport::default() };
    let mut missing = None;
    let device = match look(&mut missing, |access| tiers::mount(spec, disks, access, Default::default())) {
        Ok(device) => device,
        Err(error) if [Class::Damaged, Class::Loss].contains(&error.class) => {
            report.findings.push(finding("fatal", None, error.why));
            report.is_mountable = false;
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    report.findings.extend(missing.map(|why| finding("error", None, why)));
    if let Err(error) = device.verify() {
        report.findings.push(finding("error", None, error.to_string()));
    }
    let objects = device.space().objects;
    let (mut done, mut next) = (0, Some(ObjectId(0)));
    while let Some(from) = next {
        progress(done, objects);
        let step = device.scrub().map_or(Ok(ScrubReport::default()), |scrub| scrub.scrub(from, OBJECTS_A_STEP));
        let step = match step {
            Ok(step) => step,
            // Behind a damaged node of the tree nothing can be found.
            Err(error) if error.kind == ErrorKind::Corrupt => {
                let message = format!("objects behind {from} could not be checked: {error}");
                report.findings.push(finding("error", None, message));
                break;
            }
            Err(error) => return Err(Error::device(format!("cannot check {spec}"), &error)),
        };
        let damaged = step.damaged.iter();
        report.findings.extend(damaged.map(|error| MediumFinding {
            range: error.range.as_ref().map(|range| (range.start, range.end)),
            ..finding("error", error.object.map(|object| object.0), error.to_string())
        }));
        report.bytes_verified += step.bytes;
        (done, next) = (done + step.objects, step.next);
    }
    progress(objects, objects);
    report.is_sound = report.findings.is_empty();
    // What is told of the disks is no damage of the volume; of a fast disk that is away nothing was
    // verified.
    let told = device.health().conditions.into_iter().filter(|told| told.code != "blocks-damaged");
    report
        .findings
        .extend(told.map(|told| MediumFinding { kind: told.code.into_owned(), ..finding("warning", None, told.text) }));
    Ok(report)
}

/// Opens what is there. That something is missing is a finding, and the rest is looked at all the
/// same.
fn look<D>(missing: &mut Option<String>, mount: impl Fn(Access) -> Result<D>) -> Result<D> {
    match mount(Access::LOOK) {
        Err(error) if error.class == Class::Loss => {
            *missing = Some(error.why);
            mount(Access { accept_loss: true, ..Access::LOOK })
        }
        other => other,
    }
}

/// Objects verified between two looks at the clock.
const OBJECTS_A_STEP: usize = 64;

/// Recovers a private copy of the memory and has blocks, index and log compared.
fn check_memory(spec: &Spec, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    let Spec::Scm(memory) = spec else { return Ok(MediumReport::default()) };
    progress(0, 1);
    let finding = |severity, object: Option<u64>, message: String| {
        let (kind, place) = ("Damaged".to_owned(), path.display().to_string());
        MediumFinding { severity, kind, place, object, range: None, message }
    };
    let mut report = MediumReport { is_closed: true, is_mountable: true, ..MediumReport::default() };
    let mut missing = None;
    match look(&mut missing, |access| memory::mount(spec, memory, path, access)) {
        Ok(device) => {
            report.is_closed = device.was_closed();
            report.unverified.push("the content of files: this kind of device has no checksums of it".to_owned());
            report.findings.extend(missing.map(|why| finding("error", None, why)));
            report.findings.extend(device.mended().into_iter().map(|what| finding("warning", None, what)));
            report.findings.extend(device.verify().err().map(|what| finding("error", None, what)));
            let concerned = device.objects_of_losses().into_iter();
            let files = concerned.map(|id| finding("error", Some(id.0), format!("{id} may lack what was lost")));
            report.findings.extend(files);
        }
        Err(error) if error.class == Class::Damaged => {
            report.findings.push(finding("fatal", None, error.why));
            report.is_mountable = false;
        }
        Err(error) => return Err(error),
    }
    progress(1, 1);
    report.is_sound = report.findings.iter().all(|finding| finding.severity == "warning");
    Ok(report)
}

/// What a repair of a medium did, one line each, and whether anything is gone with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumRepaired {
    /// In the order it was done; empty if nothing was wrong.
    pub actions: Vec<String>,
    /// Something could not be saved.
    pub lost: bool,
    /// Objects that lost something of what they held, in order.
    pub losers: Vec<u64>,
}

/// Repairs the medium of `spec`. With `drop_damaged` also what cannot be read any more is dropped
/// from the index; without it nothing is lost that can still be read. With `accept_loss` the repair
/// goes on without what is missing.
///
/// # Errors
/// `Damaged` if more would have to be dropped than allowed, `Loss` if something is missing; nothing
/// was changed then.
pub fn repair_medium(spec: &Spec, drop_damaged: bool, accept_loss: bool) -> Result<MediumRepaired> {
    let access = Access { accept_loss, ..Access::CHANGE };
    if let Spec::Scm(memory) = spec
        && let Some(path) = &memory.path
    {
        return repair_memory(spec, memory, path, Access { accept_loss: accept_loss || drop_damaged, ..access });
    }
    if let Spec::Tier(disks) = spec {
        return repair_disks(spec, disks, Access { drop_damaged, ..access });
    }
    let missing = if accept_loss || drop_damaged { missing_by_memory(spec) } else { None };
    let repaired = onode_flash::repair::repair(open(spec, false)?, &RepairOptions { drop_damaged });
    let actions = repaired.map_err(|error| Error::device(format!("cannot repair {spec}"), &error))?.actions;
    let losers: BTreeSet<u64> = actions.iter().filter_map(Action::object).map(|object| object.0).collect();
    let mut done = MediumRepaired {
        lost: actions.iter().any(Action::is_loss),
        losers: losers.into_iter().collect(),
        actions: actions.iter().map(ToString::to_string).collect(),
    };
    if let Some((memory, why)) = missing {
        // What the flash has is what is left, and the memory would say for ever that more was
        // promised.
        beside::give_up(spec, memory)?;
        done.actions.push(format!("lost: {why}"));
        done.lost = true;
    }
    Ok(done)
}

/// The memory beside the flash and what the flash should have, as that memory knows.
fn missing_by_memory(spec: &Spec) -> Option<(&Beside, String)> {
    let Spec::Flash { shape, policies, beside: Some(memory), .. } = spec else { return None };
    match open_flash(Both { spec, image: spec.image_path()?, shape, policies, beside: memory }, Access::LOOK) {
        Err(error) if error.class == Class::Loss => Some((memory, error.why)),
        // What else is wrong with the memory costs nothing, and the next mount tells it.
        _ => None,
    }
}

/// A mount makes everything anew that is not in the log. Where the log lacks something, with
/// consent, it says again what is left.
fn repair_memory(spec: &Spec, memory: &Memory, path: &Path, access: Access) -> Result<MediumRepaired> {
    let device = memory::mount(spec, memory, path, access)?;
    let losses = device.losses();
    let losers = device.objects_of_losses().iter().map(|object| object.0).collect();
    let mut done = MediumRepaired { actions: device.mended(), lost: !losses.is_empty(), losers };
    done.actions.extend(losses.into_iter().map(|what| format!("dropped what cannot be read: {what}")));
    device.close().map_err(|error| Error::device(format!("cannot repair {spec}"), &error))?;
    Ok(done)
}

/// What a mount can make good it makes good. Damaged blocks of the big disk are written again from
/// their copies on the fast one; a block whose content is gone stays and says so, or becomes a hole
/// if what is damaged is to be dropped, and a damaged node of the tree is dropped with its entries.
/// Damaged copies are given up.
fn repair_disks(spec: &Spec, disks: &Tiers, access: Access) -> Result<MediumRepaired> {
    let went = |error: onode_object::Error| Error::device(format!("cannot repair {spec}"), &error);
    let device = tiers::mount(spec, disks, access, Default::default())?;
    let (mut repaired, mut next) = (0, Some(ObjectId(0)));
    let Salvaged { actions, losers, is_loss } = device.salvaged();
    let losers = losers.into_iter().map(|object| object.0).collect();
    let mut done = MediumRepaired { actions, lost: is_loss, losers };
    while let (Some(scrub), Some(from)) = (device.scrub(), next) {
        let step = scrub.scrub(from, OBJECTS_A_STEP).map_err(went)?;
        repaired += step.repaired;
        next = step.next;
        for (object, range) in damaged_ranges(&step.damaged).into_iter().filter(|_| access.drop_damaged) {
            let mut hole = Transaction::new();
            hole.punch(object, range.start, range.end - range.start);
            device.commit(hole, Durability::Buffered).map_err(went)?;
            done.lost = true;
            done.losers.push(object.0);
            done.actions.push(format!("zeroed bytes {} to {} of {object}, which were damaged", range.start, range.end));
        }
    }
    done.losers.sort_unstable();
    done.losers.dedup();
    let copies = device.damaged_copies();
    device.close().map_err(went)?;
    if copies > 0 {
        done.actions.push(format!("gave up {copies} damaged blocks of copies on the fast disk; the big disk has them"));
    }
    if repaired > 0 {
        done.actions.push(format!("wrote {repaired} damaged bytes of the big disk again from the fast disk"));
    }
    Ok(done)
}

/// The bytes that damage concerns, neighbours of one object as one range.
fn damaged_ranges(damage: &[onode_object::Error]) -> Vec<(ObjectId, Range<u64>)> {
    let mut ranges: Vec<(ObjectId, Range<u64>)> = Vec::new();
    for one in damage {
        let (Some(object), Some(range)) = (one.object, one.range.clone()) else { continue };
        match ranges.last_mut() {
            Some((last, before)) if *last == object && before.end == range.start => before.end = range.end,
            _ => ranges.push((object, range)),
        }
    }
    ranges
}

/// Every page of the superblock area that was programmed.
///
/// # Errors
/// If the medium cannot be opened or fails.
pub fn dump_superblocks(spec: &Spec) -> Result<Vec<SuperblockDump>> {
    explain(spec, onode_flash::dump::superblocks(&mut open(spec, true)?))
}

/// One segment.
///
/// # Errors
/// `NotFound` if there is no such segment; as [`dump_superblocks`].
pub fn dump_segment(spec: &Spec, number: u32) -> Result<SegmentDump> {
    explain(spec, onode_flash::dump::segment(&mut open(spec, true)?, number))
}

/// One object.
///
/// # Errors
/// `NotFound` if there is no such object; as [`dump_superblocks`].
pub fn dump_onode(spec: &Spec, object: u64) -> Result<OnodeDump> {
    explain(spec, onode_flash::dump::onode(&mut open(spec, true)?, ObjectId(object)))
}

/// The nodes of the tree; with `only`, those that may hold entries of that object.
///
/// # Errors
/// As [`dump_superblocks`].
pub fn dump_tree(spec: &Spec, only: Option<u64>) -> Result<TreeDump> {
    explain(spec, onode_flash::dump::tree(&mut open(spec, true)?, only.map(ObjectId)))
}

fn explain<T>(spec: &Spec, dumped: onode_object::Result<T>) -> Result<T> {
    dumped.map_err(|error| {
        let class = if error.kind == ErrorKind::Invalid { Class::NotFound } else { Class::of_device(&error) };
        Error::new(class, format!("cannot dump from {spec}"), error.detail)
    })
}

fn open(spec: &Spec, read_only: bool) -> Result<Box<dyn Nand>> {
    match (spec, spec.image_path()) {
        (Spec::Flash { shape, .. }, Some(path)) => open_nand(spec, path, shape, read_only),
        (Spec::Scm(_) | Spec::Tier(_), _) => Err(Error::new(
            Class::Usage,
            format!("cannot dump from {spec}"),
            "there are dumps of flash media only, so far",
        )
        .hint("`onode stat` and `onode check` look into it")),
        _ => Err(Error::new(Class::Usage, format!("cannot look into {spec}"), "it lives in memory only")),
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

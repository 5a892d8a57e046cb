//! Check and repair of two disks, without a mount of their files.

use crate::error::{Class, Error, Result};
use crate::open::access::Access;
use crate::open::medium::{MediumFinding, MediumRepaired, MediumReport, OBJECTS_A_STEP, look};
use crate::open::tier;
use crate::spec::Spec;
use crate::spec::tiers::Tiers;
use onode_object::powers::ScrubReport;
use onode_object::{Durability, ErrorKind, ObjectDevice, ObjectId, Transaction};
use onode_tier::Salvaged;
use std::ops::Range;

/// Replays the logs of both disks in memory, has the tree compared with the blocks in use, and
/// reads all content of the big disk and all copies on the fast one.
pub(crate) fn check(spec: &Spec, disks: &Tiers, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    let place = spec.image_path().map(|path| path.display().to_string()).unwrap_or_default();
    let finding = |severity, object: Option<u64>, message: String| {
        let (kind, place) = ("Damaged".to_owned(), place.clone());
        MediumFinding { severity, kind, place, object, range: None, message }
    };
    let mut report = MediumReport { is_closed: true, is_mountable: true, ..MediumReport::default() };
    let mut missing = None;
    let device = match look(&mut missing, |access| tier::mount(spec, disks, access, Default::default())) {
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
    report.findings.extend(device.salvaged().superblocks.into_iter().map(|place| {
        let message = format!("the superblock {place} is missing or damaged; `onode repair` writes it again");
        MediumFinding { kind: "superblock-damaged".to_owned(), ..finding("warning", None, message) }
    }));
    Ok(report)
}

/// What a mount can make good it makes good. Damaged blocks of the big disk are written again from
/// their copies on the fast one; a block whose content is gone stays and says so, or becomes a hole
/// if what is damaged is to be dropped, and a damaged node of the tree is dropped with its entries.
/// Damaged copies are given up.
pub(crate) fn repair(spec: &Spec, disks: &Tiers, access: Access) -> Result<MediumRepaired> {
    let went = |error: onode_object::Error| Error::device(format!("cannot repair {spec}"), &error);
    let device = tier::mount(spec, disks, access, Default::default())?;
    let (mut repaired, mut next) = (0, Some(ObjectId(0)));
    let Salvaged { mut actions, losers, is_loss, superblocks } = device.salvaged();
    actions.extend(superblocks.iter().map(|place| format!("wrote the superblock {place} again")));
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

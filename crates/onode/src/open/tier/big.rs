//! The big disk of a volume, and the disks on which it goes on.
//!
//! Each of these says where it belongs, so a spec may name them in any order. One that is missing
//! is told of as such: a volume never takes what another one has for its own.

use crate::error::{Class, Error, Result};
use crate::host::signature;
use crate::open::failure::medium_error;
use crate::open::missing::refuse_missing;
use crate::spec::Spec;
use crate::spec::tiers::Tiers;
use onode_base::size::human_size;
use onode_media::blockdev::joined::label::{DiskLabel, LABEL_BYTES};
use onode_media::image::OpenMode;
use onode_media::real::{DeviceFile, Kind, identify};
use onode_media::{BlockDev, JoinedDisk, MediaErrorKind};
use onode_object::ErrorKind;
use onode_tier::TierDevice;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A new file on which a volume goes on has so many bytes behind its label; when the volume takes
/// it up it becomes longer.
const LEAST_BYTES: u64 = 1 << 20;

/// New and empty disks as one, of the volume with the number `uuid`.
pub(crate) fn made(spec: &Spec, disks: Vec<DeviceFile>, uuid: [u8; 16]) -> Result<JoinedDisk> {
    let failed = |error: &onode_media::Error| medium_error(format!("cannot make {spec}"), Path::new(""), error);
    let mut disks = disks.into_iter();
    let first = disks.next().ok_or_else(|| Error::new(Class::Bug, format!("cannot make {spec}"), "it has no disk"))?;
    let mut all = JoinedDisk::new(Box::new(first));
    disks.try_for_each(|disk| all.join(Box::new(disk), uuid)).map_err(|error| failed(&error))?;
    Ok(all)
}

/// The disks of a spec as one.
pub(crate) fn open(spec: &Spec, tiers: &Tiers, mode: OpenMode) -> Result<JoinedDisk> {
    let what = || format!("cannot open {spec}");
    let disk = |path: &Path| match DeviceFile::open(path, mode) {
        Ok(disk) => Ok(disk.with_requests_in_flight()),
        Err(error) => Err(medium_error(what(), path, &error)),
    };
    let path = spec_path(tiers);
    let mut all = JoinedDisk::new(Box::new(disk(path)?));
    let mut labelled = Vec::with_capacity(tiers.further.len());
    for path in &tiers.further {
        let mut disk = disk(path)?;
        match DiskLabel::read(&mut disk) {
            Ok(Some(label)) => labelled.push((label, path, disk)),
            Ok(None) => return Err(no_part(what(), path, "says nothing of being one")),
            Err(error) => return Err(medium_error(what(), path, &error)),
        }
    }
    labelled.sort_by_key(|(label, ..)| label.number);
    let of_volume = labelled.first().map(|(label, ..)| label.uuid);
    for ((label, path, disk), number) in labelled.into_iter().zip(1..) {
        if Some(label.uuid) != of_volume {
            return Err(no_part(what(), path, "is one of another volume"));
        }
        match label.number.cmp(&number) {
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Less => {
                return Err(no_part(what(), path, &format!("has the same place as another one, number {number}")));
            }
            std::cmp::Ordering::Greater => {
                let why = format!(
                    "{} is its disk number {}, and number {} is missing",
                    path.display(),
                    label.number + 1,
                    number + 1
                );
                return Err(Error::new(Class::NotFound, what(), why).hint(NAME_ALL));
            }
        }
        all.push(Box::new(disk), label.start).map_err(|error| medium_error(what(), path, &error))?;
    }
    check(what, path, of_volume, &mut all)?;
    Ok(all)
}

const NAME_ALL: &str = "name all disks of the volume: tier:FAST,BIG,BIG2,...";

/// The path of the disk that is the first; there is one.
fn spec_path(tiers: &Tiers) -> &Path {
    tiers.disks.as_ref().map_or(Path::new(""), |(_, big)| big)
}

fn no_part(what: String, path: &Path, why: &str) -> Error {
    let why = format!("{} is no disk on which this volume goes on: it {why}", path.display());
    Error::new(Class::Usage, what, why).hint("`onode resize VOLUME SIZE --add DISK` has a volume go on on another disk")
}

/// Whether the disks are those of the volume that the first one holds, and all of them.
fn check(what: impl Fn() -> String, path: &Path, of_volume: Option<[u8; 16]>, all: &mut JoinedDisk) -> Result<()> {
    // Damage is told by who mounts it.
    let Some((uuid, bytes)) = TierDevice::volume_on(all) else { return Ok(()) };
    if of_volume.is_some_and(|of_volume| of_volume != uuid) {
        let why = format!("the other disks are not of the volume on {}", path.display());
        return Err(Error::new(Class::Usage, what(), why).hint(NAME_ALL));
    }
    if bytes > all.bytes() {
        let (has, bytes) = (human_size(all.bytes()), human_size(bytes));
        let why = format!(
            "the volume has {bytes}, and {} has {has}: it was cut short, or goes on on another disk",
            all.name()
        );
        return Err(Error::new(Class::Damaged, what(), why).hint(NAME_ALL));
    }
    Ok(())
}

/// A disk on which the volume with the number `uuid` can go on: nothing is lost that somebody may
/// need. What is no device is made.
pub(crate) fn another(place: &str, uuid: [u8; 16]) -> onode_object::Result<DeviceFile> {
    let path = Path::new(place);
    let invalid = |error: Error| onode_object::Error::new(ErrorKind::Invalid, error.why);
    let is_labelled = check_empty_disk(path).map_err(invalid)?;
    if !path.exists() {
        let made = File::create_new(path).and_then(|file| file.set_len(LABEL_BYTES + LEAST_BYTES));
        made.map_err(|error| invalid(Error::host_file("make", path, &error)))?;
    }
    let refused = |error: onode_media::Error| {
        onode_object::Error::new(error.error_kind(), format!("cannot open {place}: {error}"))
    };
    let mut disk = DeviceFile::open(path, OpenMode::ReadWrite).map_err(refused)?.with_requests_in_flight();
    let least = LABEL_BYTES + LEAST_BYTES;
    if disk.bytes() < least {
        let why = format!("{place} has {}, the least is {}", human_size(disk.bytes()), human_size(least));
        return Err(onode_object::Error::new(ErrorKind::Invalid, why));
    }
    if is_labelled && !matches!(DiskLabel::read(&mut disk), Ok(Some(label)) if label.uuid == uuid) {
        return Err(onode_object::Error::new(ErrorKind::Invalid, format!("{place} holds {}", signature::FURTHER_DISK)));
    }
    Ok(disk)
}

/// Refuses a disk or file that holds something, for who wants a volume to go on on it; one that is
/// not there is no matter. Says whether it was made for one before, which may not have taken it up.
///
/// # Errors
/// `Exists` if there is something on it, `Usage` for what is no disk, `NotFound` for a device.
pub fn check_empty_disk(path: &Path) -> Result<bool> {
    let what = || format!("cannot go on on {}", path.display());
    let failed = |error: &onode_media::Error| medium_error(what(), path, error);
    match identify(path) {
        Ok(Kind::Block) => {}
        Ok(Kind::File | Kind::Other) if path.is_file() => {}
        Ok(_) => return Err(Error::new(Class::Usage, what(), "it is no disk that is rewritten in place")),
        Err(error) if error.kind == MediaErrorKind::NotFound => {
            return refuse_missing(&what(), path).map(|()| false);
        }
        Err(error) => return Err(failed(&error)),
    }
    let looked = |error: &std::io::Error| Error::host_file("look at", path, error);
    let content = match signature::of_device(path).map_err(|error| looked(&error))? {
        Some(signature::FURTHER_DISK) => return Ok(true),
        // Of a file that has something nothing need be known.
        None if path.is_file() => {
            let mut head = Vec::new();
            let file = File::open(path).and_then(|file| file.take(LABEL_BYTES).read_to_end(&mut head));
            file.map_err(|error| looked(&error))?;
            head.iter().any(|byte| *byte != 0).then_some("something")
        }
        content => content,
    };
    match content {
        None => Ok(false),
        Some(content) => Err(Error::new(Class::Exists, what(), format!("it holds {content}"))
            .hint("choose another one; `wipefs -a DEVICE` has a device forget what it holds")),
    }
}

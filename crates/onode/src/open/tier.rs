//! Volumes on two disks: the files or devices of a spec, and what is done when the fast one is not
//! what it should be.
//!
//! The big disk has everything. The fast one is disposable, but never without a word: a disk that
//! is not there may only not be plugged in, so whoever uses the big one alone, or gives a fast one
//! up, says so in the spec.

pub mod big;
mod check;
mod finder;

use crate::error::{Class, Error, Result};
use crate::host::budget::cache_bytes;
use crate::host::clock::SystemClock;
use crate::host::random_bytes;
use crate::host::signature;
use crate::open::access::{Access, NewVolume, Opened, Users, volume_error};
use crate::open::failure::medium_error;
use crate::open::kind::DeviceKind;
use crate::open::medium::{MediumRepaired, MediumReport, lives_in_memory};
use crate::open::place::{Place, place_to_make, refuse_content};
use crate::open::replace::{in_its_place, lock_replaced};
use crate::spec::Spec;
use crate::spec::tiers::{Fast, Tiers, USUAL_SECTIONS};
use finder::DiskFinder;
use onode_base::size::human_size;
use onode_media::image::OpenMode;
use onode_media::real::DeviceFile;
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, JoinedDisk};
use onode_object::{Acknowledge, ErrorKind, ObjectDevice};
use onode_services::Dropped;
use onode_tier::fast::extent::Scheme;
use onode_tier::fast::{FastOptions, FastSettings, SectionOptions};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const LEAST_CACHE_BYTES: u64 = 2 << 20;

impl DeviceKind for Tiers {
    fn open(&self, spec: &Spec, access: Access, _: Users, uuid: [u8; 16]) -> Result<Opened> {
        let device = mount(spec, self, access, [uuid, random_bytes()?])?;
        device.set_clock(Arc::new(SystemClock));
        if let Some((fast, _)) = &self.disks {
            device.set_finder(Arc::new(DiskFinder::new(self.clone(), fast.clone())));
        }
        let notes = device.reports();
        Ok(Opened { device: Arc::new(device), faces: Vec::new(), notes })
    }

    fn settings(&self) -> &[&str] {
        // Disks in memory are made when they are opened.
        let all: &[&str] = &["node-cache", "fast-daily", "fast-sequential", "fast-collect", "fast-admit"];
        if self.disks.is_some() { all } else { &[] }
    }

    fn create(&self, spec: &Spec, new: NewVolume<'_>) -> Result<()> {
        create(spec, self, new)
    }

    fn check(&self, spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
        check::check(spec, self, progress)
    }

    fn repair(&self, spec: &Spec, access: Access, _: &mut Dropped) -> Result<MediumRepaired> {
        check::repair(spec, self, access)
    }
}

fn format_options(tiers: &Tiers, uuid: [u8; 16]) -> FormatOptions {
    let acknowledge = tiers.acknowledge.unwrap_or(Acknowledge::Safe);
    FormatOptions { uuid, log_bytes: tiers.log, acknowledge, ..FormatOptions::default() }
}

pub(crate) fn new_fast(tiers: &Tiers, disk: Box<dyn BlockDev>, uuid: [u8; 16], before: Option<FastOptions>) -> NewFast {
    let options = fast_options(tiers, &*disk, before);
    NewFast { disk, uuid, options }
}

fn mount_options(tiers: &Tiers, access: Access) -> MountOptions {
    let discard = !tiers.keeps_unneeded;
    let acknowledge = tiers.acknowledge.unwrap_or_default();
    let Access { read_only, accept_loss, drop_damaged, settings } = access;
    let usual = FastSettings::default();
    let fast = FastSettings {
        discard,
        daily_bytes: settings.fast_daily_bytes,
        sequential_bytes: settings.fast_sequential_bytes.unwrap_or(usual.sequential_bytes),
        admit: settings.fast_admit.map_or(usual.admit, |admit| u32::try_from(admit).unwrap_or(u32::MAX)),
        collect_nanoseconds: settings.fast_collect_seconds.map_or(usual.collect_nanoseconds, nanoseconds),
        ..usual
    };
    let usual = MountOptions::default();
    let fitting = |bytes| cache_bytes(bytes).max(LEAST_CACHE_BYTES);
    MountOptions {
        read_only,
        accept_loss,
        drop_damaged,
        acknowledge,
        fast,
        discard,
        node_cache_bytes: settings.node_cache_bytes.unwrap_or_else(|| fitting(usual.node_cache_bytes)),
        pending_bytes: fitting(usual.pending_bytes),
        tail_bytes: fitting(usual.tail_bytes),
        ..usual
    }
}

const fn nanoseconds(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}

/// How a new fast disk is divided: as was said, else as the one `before` it was, else as usual.
fn fast_options(tiers: &Tiers, disk: &dyn BlockDev, before: Option<FastOptions>) -> FastOptions {
    let scheme = if tiers.as_in_paper { Scheme::Paper } else { Scheme::Exact };
    let section = |name: &str, weight, extent| SectionOptions { scheme, ..SectionOptions::new(name, weight, extent) };
    let usual = || USUAL_SECTIONS.iter().map(|(name, extent, share)| section(name, *share, *extent)).collect();
    let said: Vec<_> = tiers.sections.iter().map(|one| section(&one.name, one.share, one.extent.into())).collect();
    let defaults = match tiers.acknowledge {
        Some(Acknowledge::Either) => FastOptions::for_first_home(disk.bytes()),
        _ => FastOptions::for_disk(disk.bytes()),
    };
    // What the device tells of itself, unless it is too large for the room that there is.
    let told = disk.stripe_bytes().filter(|stripe| *stripe <= disk.bytes() / 64);
    // A smaller disk cannot have as much of a log as a larger one had.
    let most = disk.bytes() / 4;
    let kept = before.as_ref().map(|before| (before.ring_bytes.min(most), before.stripe_bytes));
    let (ring_bytes, stripe_bytes) = kept.unwrap_or((defaults.ring_bytes, told.unwrap_or(defaults.stripe_bytes)));
    let sections = match before {
        _ if !said.is_empty() => said,
        Some(before) if tiers.as_in_paper => {
            before.sections.into_iter().map(|it| SectionOptions { scheme, ..it }).collect()
        }
        Some(before) => before.sections,
        None => usual(),
    };
    FastOptions {
        ring_bytes: tiers.log.unwrap_or(ring_bytes),
        stripe_bytes: tiers.erase_block.map_or(stripe_bytes, u64::from),
        sections,
    }
}

/// The fast disk as a part of a volume.
const FAST: u8 = 1;

/// Makes a volume on the disks of a spec.
fn create(spec: &Spec, tiers: &Tiers, new: NewVolume<'_>) -> Result<()> {
    let Some((fast, big)) = &tiers.disks else { return Err(lives_in_memory(spec)) };
    let NewVolume { replace, uuid, fill, .. } = new;
    let uuids = [uuid, new.uuid_of_part(FAST)?];
    let size = tiers.size.map_or(Size::Usual(tiers.bytes()), Size::Said);
    let disks: Vec<&Path> = std::iter::once(big).chain(&tiers.further).map(|path| path.as_path()).collect();
    let new = NewDisks { spec, size, replace };
    new.in_places(&disks, Vec::new(), &mut |disks| {
        let finish = |fast: Option<Box<dyn BlockDev>>| {
            let big = big::made(spec, disks, uuid)?;
            let device: Arc<dyn ObjectDevice> = Arc::new(format(spec, tiers, Box::new(big), fast, uuids)?);
            fill(&device)?;
            device.close().map_err(|error| volume_error(format!("cannot make {spec}"), &error))
        };
        if tiers.fast == Fast::Away {
            return finish(None);
        }
        let size = tiers.fast_size.map_or(Size::Usual(tiers.fast_bytes()), Size::Said);
        in_place(spec, fast, size, replace, |fast| finish(Some(Box::new(fast))))
    })
}

/// Bytes of a file that is made.
#[derive(Clone, Copy)]
enum Size {
    /// A device has to have as many.
    Said(u64),
    /// A device has what it has.
    Usual(u64),
}

/// Disks that are made for the big one of a volume.
struct NewDisks<'a> {
    spec: &'a Spec,
    size: Size,
    /// What is there already may go.
    replace: bool,
}

impl NewDisks<'_> {
    /// Hands `make` empty disks at all `paths`, behind those of `before`, as [`in_place`] does with
    /// one.
    fn in_places(
        &self,
        paths: &[&Path],
        mut before: Vec<DeviceFile>,
        make: &mut dyn FnMut(Vec<DeviceFile>) -> Result<()>,
    ) -> Result<()> {
        let Some((path, rest)) = paths.split_first() else { return make(before) };
        in_place(self.spec, path, self.size, self.replace, |disk| {
            before.push(disk);
            self.in_places(rest, before, make)
        })
    }
}

/// Hands `make` an empty disk at `path`: a device as it is, or a new file that gets its name when
/// `make` is done.
fn in_place(
    spec: &Spec,
    path: &Path,
    size: Size,
    replace: bool,
    make: impl FnOnce(DeviceFile) -> Result<()>,
) -> Result<()> {
    let what = || format!("cannot make {spec}");
    let open = |path: &Path| DeviceFile::open(path, OpenMode::ReadWrite);
    match place_to_make(spec, path)? {
        Place::File => {
            let replaced = lock_replaced(path, replace)?;
            in_its_place(path, replaced.is_some(), |unfinished| {
                let _ = std::fs::remove_file(unfinished);
                File::create_new(unfinished).map_err(|error| Error::host_file("make", path, &error))?;
                let (Size::Said(bytes) | Size::Usual(bytes)) = size;
                let disk = open(unfinished).and_then(|mut disk| disk.extend(bytes).map(|()| disk));
                make(disk.map_err(|error| medium_error(what(), path, &error))?)
            })
        }
        Place::Block => {
            refuse_content(spec, path, replace, || signature::of_device(path))?;
            let disk = open(path).map_err(|error| medium_error(what(), path, &error))?;
            match size {
                Size::Said(bytes) if bytes != disk.bytes() => {
                    let why = format!("{} has {}", path.display(), human_size(disk.bytes()));
                    Err(Error::new(Class::BadSize, what(), why).hint("leave the size out: a device knows its own"))
                }
                Size::Said(_) | Size::Usual(_) => make(disk),
            }
        }
        Place::Zoned | Place::Mtd => {
            Err(Error::new(Class::Usage, what(), format!("{} is no disk that is rewritten in place", path.display()))
                .hint("flash:DEVICE is for raw flash and zoned devices"))
        }
    }
}

fn format(
    spec: &Spec,
    tiers: &Tiers,
    big: Box<dyn BlockDev>,
    fast: Option<Box<dyn BlockDev>>,
    [uuid, of_fast]: [[u8; 16]; 2],
) -> Result<TierDevice> {
    let fast = fast.map(|disk| new_fast(tiers, disk, of_fast, None));
    let made = TierDevice::format(big, fast, &format_options(tiers, uuid), &mount_options(tiers, Access::CHANGE));
    made.map_err(|error| {
        let class = if error.kind == ErrorKind::Invalid { Class::BadSize } else { Class::of_device(&error) };
        Error::new(class, format!("cannot make {spec}"), error.to_string())
    })
}

/// The device of a spec.
pub(crate) fn mount(spec: &Spec, tiers: &Tiers, access: Access, uuids: [[u8; 16]; 2]) -> Result<TierDevice> {
    let what = || format!("cannot open {spec}");
    let options = mount_options(tiers, access);
    let read_only = access.read_only;
    let Some((fast_path, _)) = &tiers.disks else {
        let disk = |name, bytes| Box::new(SimDisk::new(name, bytes)) as Box<dyn BlockDev>;
        let fast = (tiers.fast != Fast::Away).then(|| disk("fast", tiers.fast_bytes()));
        return format(spec, tiers, disk("big", tiers.bytes()), fast, uuids);
    };
    let mode = if read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    let disk = |path: &Path| match DeviceFile::open(path, mode) {
        Ok(disk) => Ok(disk.with_requests_in_flight()),
        Err(error) => Err(medium_error(what(), path, &error)),
    };
    let mut big = Box::new(big::open(spec, tiers, mode)?);
    let device = match tiers.fast {
        Fast::Away => TierDevice::mount(big, None, &options),
        Fast::Used => {
            let fast = disk(fast_path).map_err(|error| match error.class {
                Class::NotFound => without_it(error, "is dead or away"),
                _ => error,
            })?;
            TierDevice::mount(big, Some(Box::new(fast)), &options)
        }
        Fast::New if read_only => {
            return Err(Error::new(Class::Usage, what(), "a fast disk cannot be made anew and nothing be changed"));
        }
        Fast::New => {
            let known = |error: onode_object::Error| volume_error(what(), &error);
            let before = TierDevice::division_of_fast(&mut *big).map_err(known)?;
            if TierDevice::needs_fast(&mut *big).map_err(known)? {
                // Of the disk that is given up, if it can be read.
                drop(big);
                bring_home(disk(fast_path).ok(), big::open(spec, tiers, mode)?, &options)?;
                big = Box::new(big::open(spec, tiers, mode)?);
            }
            let mut made = None;
            let size = tiers.fast_size.map_or(Size::Usual((big.bytes() / 8).next_multiple_of(4096)), Size::Said);
            in_place(spec, fast_path, size, true, |fast| {
                let attached = TierDevice::attach(big, new_fast(tiers, Box::new(fast), uuids[1], before), &options);
                made = Some(attached.map_err(|error| volume_error(what(), &error))?);
                Ok(())
            })?;
            // It is there if there was no error.
            return made.ok_or_else(|| Error::new(Class::Bug, what(), "the fast disk was made and is not there"));
        }
    };
    device.map_err(|error| match error.kind {
        ErrorKind::Loss if tiers.fast == Fast::Away => volume_error(what(), &error).hint(
            "mount it once with its fast disk, which brings home what only that has; or say that this loss is accepted",
        ),
        ErrorKind::WrongPart => without_it(Error::new(Class::Usage, what(), error.detail), "cannot be used"),
        _ => volume_error(what(), &error),
    })
}

/// Mounts the volume with the fast disk that is to be given up, so that the big disk gets what only
/// that has. Whatever stands in the way of it, whoever makes the new one is asked for consent.
fn bring_home(fast: Option<DeviceFile>, big: JoinedDisk, options: &MountOptions) -> Result<()> {
    let Some(fast) = fast else { return Ok(()) };
    let careful = MountOptions { accept_loss: false, ..options.clone() };
    let Ok(device) = TierDevice::mount(Box::new(big), Some(Box::new(fast)), &careful) else { return Ok(()) };
    device.close().map_err(|error| volume_error("cannot bring home what the fast disk has".to_owned(), &error))
}

fn without_it(error: Error, state: &str) -> Error {
    error.hint(format!(
        "if the fast disk {state}: fast=none (or --without-fast) uses the big one alone, fast=new makes an empty fast disk; \
         what was acknowledged by the rule `safe` is all there"
    ))
}

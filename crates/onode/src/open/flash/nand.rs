//! From a path to the NAND on it: an image, a file used like a device, or a device.
//!
//! What a path is, is seen by looking at it: the kind of device, or the first bytes of a file. A
//! volume is therefore named by its path alone, however it was made.

use crate::error::{Class, Error, Result};
use crate::spec::{Shape, Spec};
use onode_media::image::{ImageNand, OpenMode};
use onode_media::real::block::{has_far_label, is_labelled};
use onode_media::real::{BlockNand, Kind, MtdNand, ZonedNand, identify};
use onode_media::{Geometry, MediaErrorKind, Nand};
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

/// What a path is, for who wants to put a volume there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A file, or nothing yet.
    File,
    /// A block device.
    Block,
    /// A zoned block device.
    Zoned,
    /// A raw NAND chip.
    Mtd,
}

/// What a new volume would lie on.
pub(crate) fn place_to_make(spec: &Spec, path: &Path) -> Result<Place> {
    let what = || format!("cannot make {spec}");
    match identify(path) {
        // What has a name and is no device is refused where files are made.
        Ok(Kind::File | Kind::Other) => Ok(Place::File),
        Ok(Kind::Block) => Ok(Place::Block),
        Ok(Kind::Zoned) => Ok(Place::Zoned),
        Ok(Kind::Mtd) => Ok(Place::Mtd),
        Err(error) if error.kind == MediaErrorKind::NotFound => Ok(Place::File),
        Err(error) => Err(medium_error(what(), path, &error)),
    }
}

/// Opens the NAND of a spec.
pub(crate) fn open_nand(spec: &Spec, path: &Path, shape: &Shape, read_only: bool) -> Result<Box<dyn Nand>> {
    let what = format!("cannot open {spec}");
    let mode = if read_only { OpenMode::ReadOnly } else { OpenMode::ReadWrite };
    let opened: onode_media::Result<Box<dyn Nand>> = match identify(path) {
        Ok(Kind::File) if !is_like_a_device(path) => ImageNand::open(path, mode).map(|nand| Box::new(nand) as _),
        Ok(Kind::File | Kind::Block) => BlockNand::open(path, mode).map(|nand| Box::new(nand) as _),
        Ok(Kind::Mtd) => MtdNand::open(path, mode).map(|nand| Box::new(nand) as _),
        Ok(Kind::Zoned) => ZonedNand::open(path, mode).map(|nand| Box::new(nand) as _),
        Ok(Kind::Other) => return Err(not_a_device(what)),
        Err(error) => Err(error),
    };
    let nand = opened.map_err(|error| medium_error(what.clone(), path, &error))?;
    check_shape(&what, &nand.geometry(), shape)?;
    Ok(nand)
}

/// Whether `path` is a bare chip.
pub(crate) fn is_chip(path: &Path) -> bool {
    identify(path) == Ok(Kind::Mtd)
}

/// Whether a file is one that is used like a device, also if its start is gone. One that cannot be
/// read is not; opening it tells why.
fn is_like_a_device(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut first = [0; 8];
    let is_there = file.read_exact_at(&mut first, 0).is_ok();
    is_there && (is_labelled(&first) || first == [0; 8] && has_far_label(&file))
}

fn not_a_device(what: String) -> Error {
    Error::new(Class::NotAnImage, what, "it is neither a file nor a device that can hold a volume")
        .hint("give a file, a block device or a partition")
}

/// That a medium has the shape the spec says, if it says one.
fn check_shape(what: &str, geometry: &Geometry, said: &Shape) -> Result<()> {
    for (key, said, there) in [
        ("page", said.page, geometry.page_bytes),
        ("spare", said.spare, geometry.spare_bytes),
        ("pages-per-block", said.pages_per_block, geometry.pages_per_block),
        ("chips", said.chips, geometry.chips),
    ] {
        if said.is_some_and(|said| said != there) {
            return Err(Error::new(Class::Usage, what, format!("the image has {key}={there}"))
                .hint("leave the settings out: an image knows its own"));
        }
    }
    Ok(())
}

/// Whether not even the directory is there that a file would be in.
fn has_no_directory(path: &Path) -> bool {
    path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.exists())
}

/// The error for people of a medium at `path`.
pub(crate) fn medium_error(what: String, path: &Path, error: &onode_media::Error) -> Error {
    let made = Error::medium(what, error);
    let place = path.display();
    let is_device = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.file_type().is_block_device() || metadata.file_type().is_char_device());
    match made.class {
        Class::NotFound if place.to_string().starts_with("/dev/") && !path.starts_with("/dev/shm") => {
            made.hint("`lsblk` and `cat /proc/mtd` list the devices there are")
        }
        Class::NotFound if has_no_directory(path) => {
            made.hint(format!("make its directory first: mkdir -p {}", path.parent().unwrap_or(path).display()))
        }
        Class::NotFound => made.hint("`onode mkfs IMAGE` makes one, `onode up DIR IMAGE` makes and mounts one"),
        Class::NotAnImage if is_device => {
            made.hint(format!("`onode mkfs {place}` makes a volume there; what the device holds is lost then"))
        }
        Class::InUse if is_device => {
            made.hint(format!("unmount it first; `lsblk {place}` or `fuser -v {place}` tells who uses it"))
        }
        Class::Permission if is_device => {
            made.hint(format!("run it as root, or as a member of the group that `ls -l {place}` shows"))
        }
        _ => made,
    }
}

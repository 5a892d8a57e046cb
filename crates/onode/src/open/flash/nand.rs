//! From a path to the NAND on it: an image, a file used like a device, or a device.
//!
//! What a path is, is seen by looking at it: the kind of device, or the first bytes of a file. A
//! volume is therefore named by its path alone, however it was made.

use crate::error::{Class, Error, Result};
use crate::open::failure::medium_error;
use crate::spec::Spec;
use crate::spec::flash::Shape;
use onode_media::image::{ImageNand, OpenMode};
use onode_media::real::block::{has_far_label, has_label_without_mark, is_labelled};
use onode_media::real::{BlockNand, Kind, MtdNand, ZonedNand, identify};
use onode_media::{Geometry, Nand};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
    is_there && (is_labelled(&first) || first == [0; 8] && has_far_label(&file) || has_label_without_mark(&file))
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

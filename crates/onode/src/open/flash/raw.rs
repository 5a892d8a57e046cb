//! Making room for a volume on a device, or in a file that is used like one.
//!
//! It keeps true: nothing is overwritten that anybody would recognise unless that was asked for,
//! and a file that was made for a volume is gone again if the volume never came to be.

use crate::error::{Class, Error, Result};
use crate::host::signature;
use crate::open::failure::medium_error;
use crate::open::place::{Place, refuse_content};
use crate::open::replace::lock_replaced;
use crate::spec::Spec;
use crate::spec::flash::Shape;
use onode_base::size::exact_size;
use onode_media::BlockDev;
use onode_media::image::OpenMode;
use onode_media::real::block::{blocks_that_fit, bytes_for};
use onode_media::real::{BlockNand, DeviceFile, MtdNand, ZonedNand};
use onode_media::{Geometry, Nand};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Block devices have sectors of up to so many bytes.
const LEAST_PAGE_BYTES: u32 = 4096;

/// How a medium is to be made ready for a volume.
pub(crate) struct Wanted<'a> {
    pub shape: &'a Shape,
    /// What is there already may go.
    pub replace: bool,
    pub uuid: [u8; 16],
}

/// A NAND, all erased, on which a volume can be made.
pub(crate) struct Prepared {
    pub nand: Box<dyn Nand>,
    /// Its shape, complete.
    pub shape: Shape,
    /// The file that was made for it, if one was.
    pub file: NewFile,
}

/// A file that goes away again unless it is kept.
pub(crate) struct NewFile(Option<PathBuf>);

impl NewFile {
    /// The volume in it is complete.
    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // The error that led here says more than that this could not be removed either.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Divides what lies at `path` into pages and blocks.
pub(crate) fn prepare(spec: &Spec, path: &Path, place: Place, wanted: &Wanted<'_>) -> Result<Prepared> {
    let Wanted { shape, replace, uuid } = *wanted;
    match place {
        Place::Mtd => return chip(spec, path, shape, replace),
        Place::Zoned => return zones(spec, path, shape, replace, uuid),
        Place::File | Place::Block => {}
    }
    let what = || format!("cannot make {spec}");
    let mut shape = *shape;
    if shape.spare.is_some_and(|spare| spare > 0) || shape.chips.is_some_and(|chips| chips != 1) {
        return Err(Error::new(Class::BadSize, what(), "a block device has one chip and no spare bytes")
            .hint("leave out --spare and --chips"));
    }
    (shape.spare, shape.chips) = (Some(0), Some(1));
    if shape.page.is_some_and(|page| page < LEAST_PAGE_BYTES) {
        return Err(Error::new(Class::BadSize, what(), "pages on a block device have at least 4K"));
    }
    let file = match place {
        Place::File => make_file(path, replace, &mut shape)?,
        Place::Block | Place::Zoned | Place::Mtd => {
            refuse_content(spec, path, replace, || signature::of_device(path))?;
            fit(spec, path, &mut shape)?;
            NewFile(None)
        }
    };
    let nand = BlockNand::create(path, shape.geometry()?, uuid);
    let nand = Box::new(nand.map_err(|error| medium_error(what(), path, &error))?);
    Ok(Prepared { nand, shape, file })
}

/// A chip is used whole and as it is.
fn chip(spec: &Spec, path: &Path, shape: &Shape, replace: bool) -> Result<Prepared> {
    let what = || format!("cannot make {spec}");
    let nand = MtdNand::open(path, OpenMode::ReadWrite).map_err(|error| medium_error(what(), path, &error))?;
    let there = nand.geometry();
    require(&what(), "chip", shape, &there)?;
    let block_bytes = u64::from(there.page_bytes) * u64::from(there.pages_per_block);
    refuse_content(spec, path, replace, || signature::of_chip(path, block_bytes))?;
    let shape = complete(&what(), shape, &there)?;
    Ok(Prepared { nand: Box::new(nand), shape, file: NewFile(None) })
}

/// A zoned device is used whole; only the pages can be chosen.
fn zones(spec: &Spec, path: &Path, shape: &Shape, replace: bool, uuid: [u8; 16]) -> Result<Prepared> {
    let what = || format!("cannot make {spec}");
    refuse_content(spec, path, replace, || signature::of_zones(path))?;
    let failed = |error| medium_error(what(), path, &error);
    let there = ZonedNand::geometry_at(path, shape.page).map_err(failed)?;
    require(&what(), "zoned device", shape, &there)?;
    let shape = complete(&what(), shape, &there)?;
    let nand = ZonedNand::create(path, shape.page, uuid).map_err(failed)?;
    Ok(Prepared { nand: Box::new(nand), shape, file: NewFile(None) })
}

/// That `said` asks for nothing but what is there.
fn require(what: &str, kind: &str, said: &Shape, there: &Geometry) -> Result<()> {
    for (key, said, there) in [
        ("size", said.size, there.bytes()),
        ("page", said.page.map(u64::from), u64::from(there.page_bytes)),
        ("spare", said.spare.map(u64::from), u64::from(there.spare_bytes)),
        ("pages-per-block", said.pages_per_block.map(u64::from), u64::from(there.pages_per_block)),
        ("chips", said.chips.map(u64::from), u64::from(there.chips)),
    ] {
        if said.is_some_and(|said| said != there) {
            return Err(Error::new(Class::BadSize, what, format!("the {kind} has {key}={}", exact_size(there)))
                .hint(format!("leave the settings out: a {kind} knows its own")));
        }
    }
    Ok(())
}

/// The shape of a medium that is used whole.
fn complete(what: &str, said: &Shape, there: &Geometry) -> Result<Shape> {
    let shape = Shape {
        size: Some(there.bytes()),
        page: Some(there.page_bytes),
        spare: Some(there.spare_bytes),
        pages_per_block: Some(there.pages_per_block),
        chips: Some(there.chips),
        ..*said
    };
    shape.geometry().map_err(|error| error.what(what))?;
    Ok(shape)
}

/// Makes the file, or takes the one that is there.
fn make_file(path: &Path, replace: bool, shape: &mut Shape) -> Result<NewFile> {
    // What is impossible is refused before anything comes into being.
    let mut new = *shape;
    new.suit(Shape::DEFAULT_SIZE, LEAST_PAGE_BYTES);
    new.geometry()?;
    match lock_replaced(path, replace)? {
        Some(there) => {
            let bytes = there.metadata().map_err(|error| Error::host_file("look at", path, &error))?.len();
            shape.suit(if bytes > 0 { bytes } else { Shape::DEFAULT_SIZE }, LEAST_PAGE_BYTES);
            if shape.size.is_none() && bytes > 0 {
                shape.size = Some(volume_bytes(bytes, shape));
            }
            Ok(NewFile(None))
        }
        None => {
            *shape = new;
            File::create_new(path).map_err(|error| Error::host_file("make", path, &error))?;
            Ok(NewFile(Some(path.to_owned())))
        }
    }
}

/// Lets the volume fill the device if nothing smaller was said; larger blocks if there were too
/// many.
fn fit(spec: &Spec, path: &Path, shape: &mut Shape) -> Result<()> {
    let what = || format!("cannot make {spec}");
    let bytes = DeviceFile::open(path, OpenMode::ReadOnly).map_err(|error| medium_error(what(), path, &error))?.bytes();
    let blocks_were_said = shape.pages_per_block.is_some();
    shape.suit(bytes, LEAST_PAGE_BYTES);
    let most = volume_bytes(bytes, shape);
    if let (false, Some(page), Some(pages)) = (blocks_were_said, shape.page, &mut shape.pages_per_block) {
        *pages = (*pages).min(64);
        while *pages < 4096 && most / (u64::from(page) * u64::from(*pages)) > 1 << 24 {
            *pages *= 2;
        }
    }
    match shape.size {
        Some(size) if size > most => Err(Error::new(
            Class::BadSize,
            what(),
            format!("size {} is more than the {} that the device holds", exact_size(size), exact_size(most)),
        )),
        Some(_) => Ok(()),
        None => {
            shape.size = Some(volume_bytes(bytes, shape));
            let geometry = shape.geometry().map_err(|error| error.what(what()))?;
            debug_assert!(bytes_for(&geometry) <= bytes, "{geometry:?} is larger than {bytes}");
            Ok(())
        }
    }
}

/// Bytes of a volume that fits into `bytes`, in whole blocks.
fn volume_bytes(bytes: u64, shape: &Shape) -> u64 {
    let (page, pages) = (shape.page.unwrap_or(4096), shape.pages_per_block.unwrap_or(64));
    let blocks = blocks_that_fit(bytes, page, pages).unwrap_or(0);
    u64::from(blocks) * u64::from(page) * u64::from(pages)
}

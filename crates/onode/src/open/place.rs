//! What a path is for who wants to put a volume there, and whether something is there that somebody
//! may need.

use crate::error::{Class, Error, Result};
use crate::open::failure::medium_error;
use crate::spec::Spec;
use onode_media::MediaErrorKind;
use onode_media::real::{Kind, identify};
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

/// Refuses a device that holds something, unless it is to be replaced.
pub(crate) fn refuse_content(
    spec: &Spec,
    path: &Path,
    replace: bool,
    look: impl FnOnce() -> std::io::Result<Option<&'static str>>,
) -> Result<()> {
    if replace {
        return Ok(());
    }
    match look() {
        Ok(None) => Ok(()),
        Ok(Some(content)) => {
            Err(Error::new(Class::Exists, format!("cannot make {spec}"), format!("the device holds {content}"))
                .hint("choose another device, or add --force to replace it with all it holds"))
        }
        Err(error) => Err(Error::host_file("look at", path, &error)),
    }
}

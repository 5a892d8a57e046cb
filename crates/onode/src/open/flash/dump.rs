//! Dumps of what lies on flash below its objects, without a mount.

use crate::error::{Class, Error, Result};
use crate::open::flash::nand::open_nand;
use crate::open::medium::lives_in_memory;
use crate::spec::Spec;
use onode_media::Nand;
use onode_object::{ErrorKind, ObjectId};

pub use onode_flash::dump::{
    AttributeDump, ExtentDump, ItemDump, NodeDump, OnodeDump, PageDump, ReferenceDump, SegmentDump, SuperblockContent,
    SuperblockDump, TreeDump,
};

/// Every page of the superblock area that was programmed.
///
/// # Errors
/// If the medium cannot be opened or fails.
pub fn dump_superblocks(spec: &Spec) -> Result<Vec<SuperblockDump>> {
    explain(spec, onode_flash::dump::superblocks(&mut open(spec)?))
}

/// One segment.
///
/// # Errors
/// `NotFound` if there is no such segment; as [`dump_superblocks`].
pub fn dump_segment(spec: &Spec, number: u32) -> Result<SegmentDump> {
    explain(spec, onode_flash::dump::segment(&mut open(spec)?, number))
}

/// One object.
///
/// # Errors
/// `NotFound` if there is no such object; as [`dump_superblocks`].
pub fn dump_onode(spec: &Spec, object: u64) -> Result<OnodeDump> {
    explain(spec, onode_flash::dump::onode(&mut open(spec)?, ObjectId(object)))
}

/// The nodes of the tree; with `only`, those that may hold entries of that object.
///
/// # Errors
/// As [`dump_superblocks`].
pub fn dump_tree(spec: &Spec, only: Option<u64>) -> Result<TreeDump> {
    explain(spec, onode_flash::dump::tree(&mut open(spec)?, only.map(ObjectId)))
}

fn explain<T>(spec: &Spec, dumped: onode_object::Result<T>) -> Result<T> {
    dumped.map_err(|error| {
        let class = if error.kind == ErrorKind::Invalid { Class::NotFound } else { Class::of_device(&error) };
        Error::new(class, format!("cannot dump from {spec}"), error.detail)
    })
}

pub(super) fn open(spec: &Spec) -> Result<Box<dyn Nand>> {
    match (spec, spec.image_path()) {
        (Spec::Flash(flash), Some(path)) => open_nand(spec, path, &flash.shape, true),
        (_, Some(_)) => Err(Error::new(
            Class::Usage,
            format!("cannot dump from {spec}"),
            "there are dumps of flash media only, so far",
        )
        .hint("`onode stat` and `onode check` look into it")),
        (_, None) => Err(lives_in_memory(spec)),
    }
}

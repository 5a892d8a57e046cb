//! A look at what lies on a medium, structure by structure, for people and for bug reports.
//!
//! Everything is read straight from the pages, as the newest readable superblock describes it, and
//! nothing is changed. Damage does not end a dump: it is part of what is shown. The tree and the
//! onodes are those of the newest checkpoint; what the journal changed since stands beside them as
//! records in words.

mod node;
mod segment;
mod words;

pub use node::{AttributeDump, ExtentDump, KeyDump, NodeDump, OnodeDump, TreeDump, onode, tree};
pub use segment::{ItemDump, PageDump, SegmentDump, segment};

use crate::medium::errors::{damaged, from_media};
use crate::medium::format::{BlobReference, Superblock};
use crate::medium::ring;
use crate::medium::saved;
use crate::tools::check::medium::Medium;
use crate::tools::check::superblocks::{self, Located, Slot};
use crate::tools::check::table::{self, Table};
use crate::tools::check::{Context, Report};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use onode_base::ErrorKind;
use onode_media::Nand;
use onode_object::{Error, Result};

/// Where a tree node or a piece of the segment table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReferenceDump {
    /// Payload address.
    pub location: u64,
    /// Length in bytes.
    pub length: u32,
    /// CRC-32C of those bytes.
    pub checksum: u32,
}

impl From<&BlobReference> for ReferenceDump {
    fn from(reference: &BlobReference) -> Self {
        Self { location: reference.location.get(), length: reference.length.get(), checksum: reference.checksum.get() }
    }
}

impl fmt::Display for ReferenceDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {} (crc {:08x})", self.length, self.location, self.checksum)
    }
}

/// A page of the superblock area that was programmed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuperblockDump {
    /// Erase block.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
    /// What it says; `None` if it is no superblock that can be read.
    pub content: Option<SuperblockContent>,
    /// It is a copy of a page of the index.
    pub is_copy: bool,
    /// Whether a mount starts here.
    pub newest: bool,
}

/// The fields of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuperblockContent {
    /// Format version: major, minor.
    pub format: (u16, u16),
    /// Feature flags: incompatible, read-only compatible, compatible.
    pub features: (u32, u32, u32),
    /// The volume.
    pub uuid: [u8; 16],
    /// Erase blocks of a segment.
    pub blocks_per_segment: u16,
    /// Its number.
    pub generation: u32,
    /// Number of the first superblock of its checkpoint.
    pub checkpoint_generation: u32,
    /// Whether nothing followed in the journal.
    pub clean: bool,
    /// Root of the tree.
    pub root: ReferenceDump,
    /// Level of the root.
    pub root_level: u8,
    /// Where the journal goes on: segment, page, sequence number.
    pub journal: (u32, u32, u32),
    /// The journal segment after that one, and its sequence number.
    pub journal_next: (u32, u32),
    /// The next sequence number.
    pub next_sequence: u32,
    /// The next object id.
    pub next_object: u64,
    /// Commits so far.
    pub transaction: u64,
    /// Objects.
    pub objects: u64,
    /// Extents.
    pub extents: u64,
    /// Pieces of the segment table.
    pub table: Vec<ReferenceDump>,
}

impl SuperblockContent {
    fn of(superblock: &Superblock, pieces: &[BlobReference]) -> Self {
        Self {
            format: (superblock.major.get(), superblock.minor.get()),
            features: (
                superblock.incompatible.get(),
                superblock.read_only_compatible.get(),
                superblock.compatible.get(),
            ),
            uuid: superblock.uuid,
            blocks_per_segment: superblock.blocks_per_segment.get(),
            generation: superblock.generation.get(),
            checkpoint_generation: superblock.checkpoint_generation.get(),
            clean: superblock.clean == 1,
            root: (&superblock.root).into(),
            root_level: superblock.root_level,
            journal: (
                superblock.journal_segment.get(),
                superblock.journal_page.get(),
                superblock.journal_sequence.get(),
            ),
            journal_next: (superblock.journal_next_segment.get(), superblock.journal_next_sequence.get()),
            next_sequence: superblock.next_sequence.get(),
            next_object: superblock.next_object.get(),
            transaction: superblock.transaction.get(),
            objects: superblock.objects.get(),
            extents: superblock.extents.get(),
            table: pieces.iter().map(ReferenceDump::from).collect(),
        }
    }
}

impl fmt::Display for SuperblockDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} page {}: ", self.block, self.page)?;
        let other = if self.is_copy { "copy of a page of the index" } else { "unreadable" };
        let Some(one) = &self.content else { return f.write_str(other) };
        let (newest, clean) = (if self.newest { ", newest" } else { "" }, if one.clean { ", clean" } else { "" });
        writeln!(f, "superblock {} of checkpoint {}{clean}{newest}", one.generation, one.checkpoint_generation)?;
        writeln!(f, "  format {}.{}, features {:?}", one.format.0, one.format.1, one.features)?;
        writeln!(f, "  root: level {}, {}", one.root_level, one.root)?;
        let (segment, page, sequence) = one.journal;
        writeln!(f, "  journal: segment {segment} page {page} sequence {sequence}, then {:?}", one.journal_next)?;
        writeln!(f, "  next sequence {}, next object {}", one.next_sequence, one.next_object)?;
        write!(f, "  commit {}, {} objects, {} extents", one.transaction, one.objects, one.extents)?;
        for (number, piece) in one.table.iter().enumerate() {
            write!(f, "\n  table piece {number}: {piece}")?;
        }
        Ok(())
    }
}

/// Every programmed page of the superblock area, in order of address.
///
/// # Errors
/// `Media` if the medium fails.
pub fn superblocks(nand: &mut dyn Nand) -> Result<Vec<SuperblockDump>> {
    let shape = nand.geometry();
    let mut all = Vec::new();
    for block in ring::blocks_of(nand)?.into_iter().flatten() {
        for page in 0..shape.pages_per_block {
            let content = match superblocks::read_slot(nand, block, page) {
                Slot::Erased => continue,
                Slot::Unreadable => None,
                Slot::Sound(one) => Some(SuperblockContent::of(&one.superblock, &one.references.pieces)),
                Slot::Failed(error) => return Err(from_media("read superblock", &error)),
            };
            all.push(SuperblockDump { block, page, content, is_copy: false, newest: false });
        }
    }
    let content = all.iter().filter_map(|one| one.content.as_ref()).max_by_key(|one| one.generation);
    let (newest, uuid) = (content.map(|one| one.generation), content.map(|one| one.uuid));
    for one in &mut all {
        let is_copy = |uuid| saved::is_copy(nand, &uuid, one.block, one.page);
        one.is_copy = one.content.is_none() && uuid.is_some_and(is_copy);
        one.newest = newest.is_some() && one.content.as_ref().map(|one| one.generation) == newest;
    }
    Ok(all)
}

/// The newest superblock with medium and segment table, for the other dumps.
fn open(nand: &mut dyn Nand) -> Result<(Medium<'_>, Located, Table)> {
    let mut context = Context::silent();
    let newest = superblocks::scan(nand, &mut context).pop();
    let newest =
        newest.ok_or_else(|| Error::new(ErrorKind::Invalid, "no superblock: this is not an Onode flash volume"))?;
    let Some(layout) = superblocks::judge(&newest, nand, &mut context) else { return Err(why(&context.report)) };
    let mut medium = Medium::new(nand, layout, &newest);
    let Some(table) = table::load(&mut medium, &newest, &mut context) else { return Err(why(&context.report)) };
    Ok((medium, newest, table))
}

fn why(report: &Report) -> Error {
    damaged(report.findings.last().map_or_else(String::new, |finding| format!("{finding}")))
}

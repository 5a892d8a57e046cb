//! Superblocks of checkpoints: what they say, and that the memory beside the flash goes first.

use super::Checkpoints;
use crate::index::Index;
use crate::log::Log;
use crate::medium::format::{
    BlobReference, FEATURE_BUFFERED, FEATURE_DEFERRED, FEATURE_PARITY_PENDING, FEATURE_SAVED_PAGES, FORMAT_MAJOR,
    FORMAT_MINOR, FORMAT_MINOR_PARITY, FORMAT_MINOR_PLAIN, NOWHERE, References, SUPERBLOCK_MAGIC, SavedPage,
    Superblock,
};
use crate::medium::layout::{End, Layout, SegmentPage};
use crate::medium::ring::Attempt;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, Result};
use zerocopy::IntoBytes;

/// More pages are not copied: a close is not to take long.
const PAGES_MAX: usize = 32;

/// Pages of nodes are copied as long as all copies take at most one page in so many of their erase
/// block.
const NODES_SHARE: u32 = 2;

/// The minor number of a volume of this division.
const fn minor_of(layout: &Layout) -> u16 {
    match layout.chosen_parity {
        Some(_) => FORMAT_MINOR,
        None if layout.has_parity() => FORMAT_MINOR_PARITY,
        None => FORMAT_MINOR_PLAIN,
    }
}

/// Adds the pages on which `reference` lies that are not among `pages` yet.
fn add_pages(layout: &Layout, reference: &BlobReference, pages: &mut Vec<SegmentPage>) {
    let (first, offset) = layout.page_of(reference.location.get());
    let count = (offset + reference.length.get()).div_ceil(layout.payload_bytes);
    for page in first.page..first.page + count {
        let at = SegmentPage { page, ..first };
        if !pages.contains(&at) {
            pages.push(at);
        }
    }
}

impl Checkpoints {
    /// Writes a superblock of the present checkpoint. `first` says that the checkpoint is a new
    /// one.
    pub fn write_superblock(&mut self, index: &mut Index, log: &mut Log, first: bool) -> Result<()> {
        let mut failed: Vec<u32> = Vec::new();
        // That of a clean volume starts a block, where a mount finds it with few reads.
        if first && self.state.clean {
            self.ring.end_blocks();
        }
        let mut generation = self.ring.generation();
        let mut changes_wait = first;
        let mut written: Option<Vec<u8>> = None;
        // Where one block is left at the start, it can be erased when the end has the new one.
        for end in [End::Start, End::Far, End::Start] {
            if written.is_some() && self.ring.is_at(end) {
                continue;
            }
            let mut attempt = Attempt::new(log.store());
            while let Some(place) = self.ring.next_place(log.medium(), end, written.is_some(), &mut attempt)? {
                if written.is_none() {
                    // A page whose program failed may yet be readable: the next attempt has a
                    // number of its own.
                    generation += 1;
                    if first {
                        self.ring.begin_checkpoint(generation);
                    }
                    let is_full = core::mem::take(&mut changes_wait);
                    if !self.fold(index, log, is_full, self.closes(first), generation)? {
                        // No anchor may fit, whatever became of the last one.
                        generation += 2;
                        if first {
                            self.ring.begin_checkpoint(generation);
                        }
                    }
                    self.ring.set_buffered(self.buffers_writes(index) && !self.closes(first));
                }
                let is_copy = written.is_some();
                let bytes = written.take().unwrap_or_else(|| self.encode_superblock(log, generation));
                if self.ring.program(log.medium(), &place, generation, &bytes)? {
                    written = Some(bytes);
                    break;
                }
                attempt.note_failed(&place);
                written = is_copy.then_some(bytes);
            }
            failed.extend(attempt.failed());
        }
        if written.is_none() {
            return Err(log.latch().fail(Error::new(ErrorKind::Media, "no sound superblock block is left")));
        }
        log.flush()?;
        self.ring.retire(log.medium(), &failed)
    }

    /// Whether nothing follows the superblock that is about to be written, `first` of its
    /// checkpoint or not.
    const fn closes(&self, first: bool) -> bool {
        self.state.clean && (first || self.clean)
    }

    /// The superblock with the number `generation`.
    pub fn encode_superblock(&self, log: &Log, generation: u32) -> Vec<u8> {
        let layout = log.layout();
        let shape = &layout.geometry;
        let checkpoint = &self.state;
        let (root, root_level) = checkpoint.root;
        let (placement, victim) = self.policies.bytes();
        let deferred = if checkpoint.references.deferred.is_some() { FEATURE_DEFERRED } else { 0 };
        let buffered = if self.ring.is_buffered() { FEATURE_BUFFERED } else { 0 };
        let pending = if self.parity_pending() && !is_planted(Bug::WishUnstored) { FEATURE_PARITY_PENDING } else { 0 };
        let saved = if checkpoint.references.saved.is_empty() { 0 } else { FEATURE_SAVED_PAGES };
        let superblock = Superblock {
            magic: SUPERBLOCK_MAGIC,
            major: FORMAT_MAJOR.into(),
            minor: minor_of(layout).into(),
            incompatible: (self.incompatible | deferred).into(),
            read_only_compatible: 0.into(),
            compatible: (self.policies.compatible() | buffered | saved | pending).into(),
            uuid: self.uuid,
            page_bytes: shape.page_bytes.into(),
            pages_per_block: shape.pages_per_block.into(),
            blocks: shape.blocks.into(),
            chips: (shape.chips as u16).into(),
            blocks_per_segment: (layout.blocks_per_segment as u16).into(),
            generation: generation.into(),
            checkpoint_generation: self.ring.checkpoint_generation().into(),
            root,
            root_level,
            placement,
            clean: checkpoint.clean.into(),
            victim,
            table_pieces: (checkpoint.references.pieces.len() as u32).into(),
            journal_segment: checkpoint.journal_segment.into(),
            journal_page: checkpoint.journal_page.into(),
            journal_sequence: checkpoint.journal_sequence.into(),
            journal_next_segment: checkpoint.journal_next.0.into(),
            journal_next_sequence: checkpoint.journal_next.1.into(),
            next_sequence: checkpoint.next_sequence.into(),
            next_object: checkpoint.next_object.into(),
            transaction: checkpoint.transaction.into(),
            objects: checkpoint.objects.into(),
            extents: checkpoint.extents.into(),
        };
        let mut bytes = superblock.as_bytes().to_vec();
        bytes.extend_from_slice(&checkpoint.references.encode());
        bytes
    }

    /// Repeats the superblock of a closed volume with copies of its most important pages behind it.
    /// It also makes the checkpoint safe from a cut that hit the first superblock unnoticed.
    pub fn write_last_superblock(&mut self, index: &mut Index, log: &mut Log) -> Result<()> {
        let most_nodes = (log.layout().geometry.pages_per_block / NODES_SHARE) as usize;
        let nodes = index.entries_mut().nodes_mut().nearest_to_root(log, most_nodes.min(PAGES_MAX));
        let wanted = self.pages_to_save(log, &nodes, most_nodes);
        let first_copy = self.ring.first_copy(log.store());
        let sequence = |at: &SegmentPage| log.table().get(at.segment).sequence.into();
        let saved = wanted.iter().zip(first_copy.into_iter().flatten()).map(|(at, copy)| SavedPage {
            page: log.layout().address(*at).0.into(),
            copy: copy.into(),
            sequence: sequence(at),
        });
        self.state.references.saved = saved.take(self.saved_pages_max(log)).collect();
        self.write_superblock(index, log, false)?;
        self.ring.save_pages(log.medium(), &wanted, &self.state.references.saved)
    }

    /// The pages on which the root of the tree and the pieces of the segment table lie, and then
    /// those of `nodes` as long as there are at most `most_nodes` pages in all; each once.
    fn pages_to_save(&self, log: &Log, nodes: &[BlobReference], most_nodes: usize) -> Vec<SegmentPage> {
        let checkpoint = &self.state;
        let mut pages: Vec<SegmentPage> = Vec::new();
        for reference in core::iter::once(&checkpoint.root.0).chain(&checkpoint.references.pieces) {
            if reference.location.get() != NOWHERE {
                add_pages(log.layout(), reference, &mut pages);
            }
        }
        for reference in nodes {
            let before = pages.len();
            add_pages(log.layout(), reference, &mut pages);
            if pages.len() > most_nodes && pages.len() > before {
                pages.truncate(before);
                break;
            }
        }
        pages
    }

    /// How many copies the superblock has room to name.
    fn saved_pages_max(&self, log: &Log) -> usize {
        let taken = size_of::<Superblock>()
            + References { saved: Vec::new(), ..self.state.references.clone() }.encode().len()
            + References::SAVED_HEADER_BYTES;
        let room = (log.layout().payload_bytes as usize).saturating_sub(taken);
        (room / size_of::<SavedPage>()).min(PAGES_MAX)
    }
}

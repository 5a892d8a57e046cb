//! Making a volume and mounting one; the memory beside it comes and goes.
//!
//! The memory goes when the flash has everything. What comes is filled from the flash, whatever it
//! held: a memory that was away knows nothing of what was done since.

mod beside;

pub use beside::mount_beside;

use super::Core;
use crate::cleaner::Cleaner;
use crate::commit::checkpoint::Checkpoints;
use crate::commit::compact::Rhythm;
use crate::index::Index;
use crate::index::apply::{Applied, Counts};
use crate::index::beside::MemoryOptions;
use crate::index::bpram::buffer::HeldPage;
use crate::index::bpram::waiting::area_for;
use crate::index::bpram::{Bpram, MemoryUse};
use crate::index::entries::{Entries, Limits};
use crate::index::tree::Tree;
use crate::log::Log;
use crate::medium::errors::{damaged, from_media};
use crate::medium::format::{
    FEATURE_COMPACT_RECORDS, FEATURE_DEFERRED, FEATURE_MEMORY, FEATURE_WAITING_PAGES, FEATURES_OF_SUPERBLOCKS,
    features_of_chosen_parity, features_of_parity,
};
use crate::medium::layout::{End, Layout, SuperblockBlocks};
use crate::medium::page::Examined;
use crate::medium::ring;
use crate::medium::saved::SavedPages;
use crate::medium::store::Store;
use crate::options::{FormatOptions, MountOptions, Policies};
use crate::policy::{Chooser, Classifier};
use crate::recover::replay::Recovery;
use crate::space::segments::{SegmentState, SegmentTable};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::{Geometry, IoTag, Nand, Pmem};
use onode_object::{Condition, Error, ObjectId, Result, Severity};

/// What the parts of a volume are made of, whether it is new or was found.
struct Basis {
    nand: Box<dyn Nand>,
    layout: Layout,
    uuid: [u8; 16],
    table: SegmentTable,
    tree: Tree,
    policies: Policies,
}

impl Core {
    /// Makes an empty volume; everything on the medium is lost.
    pub fn format(
        mut nand: Box<dyn Nand>,
        memory: Option<(Box<dyn Pmem>, &MemoryOptions)>,
        options: &FormatOptions,
        mount: &MountOptions,
    ) -> Result<Self> {
        mount.validate()?;
        let medium = nand.geometry();
        let shape = Geometry { blocks: options.blocks.unwrap_or(medium.blocks), ..medium };
        if shape.blocks > medium.blocks {
            let detail = format!("the medium has {} erase blocks, {} are asked for", medium.blocks, shape.blocks);
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        let layout = Layout::new(shape, options.blocks_per_segment(&shape))?.with_records_in_spare();
        let layout = layout.with_parity(options.parity_pages)?;
        let layout = options.chosen_parity.map_or(Ok(layout), |usual| layout.with_choice(usual))?;
        // No superblock of an earlier volume may outlive the new one.
        let at_start = SuperblockBlocks::at_start(&shape).at(End::Start);
        let of_medium = SuperblockBlocks::of_new(&medium).at(End::Far).filter(|_| shape.blocks < medium.blocks);
        for block in at_start.chain(layout.superblocks.at(End::Far)).chain(of_medium) {
            ring::clear_block(&mut *nand, block).map_err(|error| from_media("clear superblocks", &error))?;
        }
        let mut table = SegmentTable::new(&layout);
        for segment in bad_segments(&mut *nand, &layout, 0)? {
            table.update(segment, |entry| entry.state = SegmentState::Bad);
        }
        let policies = mount.policies.or(options.policies);
        let tree = Tree::new(layout.node_bytes());
        let mut core = Self::assemble(Basis { nand, layout, uuid: options.uuid, table, tree, policies }, mount);
        if let Some((memory, beside)) = memory {
            core.checkpoints.add_feature(FEATURE_MEMORY);
            let mut bpram = core.blank_memory(memory, beside)?;
            bpram.begin_empty();
            core.index.entries_mut().put_memory(bpram);
        }
        let least = core.room().least_segments();
        if core.log.table().allocatable() < least {
            let sound = core.log.table().allocatable();
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{sound} sound segments are too few, at least {least} are needed; make the medium larger"),
            ));
        }
        core.log.reserve_journal()?;
        core.checkpoints.set_clean(false);
        core.checkpoints.note_session_begun();
        core.checkpoint(true)?;
        core.checkpoints.write_last_superblock(&mut core.index, &mut core.log)?;
        if let Some(why) = core.checkpoints.memory_lost() {
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        if mount.read_only {
            core.log.latch().close();
        }
        Ok(core)
    }

    /// Mounts the volume on `nand` and recovers it if need be.
    pub fn mount(mut nand: Box<dyn Nand>, options: &MountOptions) -> Result<Self> {
        options.validate()?;
        let Some(found) = ring::find(&mut *nand, None)? else {
            return Err(Error::new(ErrorKind::Invalid, "no superblock: this is not an Onode flash volume"));
        };
        if found.superblock.incompatible.get() & FEATURE_MEMORY != 0 {
            let detail = "the volume has its index in a memory beside it: open it as flash+scm, with the memory";
            return Err(Error::new(ErrorKind::PartNeeded, detail));
        }
        Self::mount_found(nand, &found, options, None)?.recovered(options)
    }

    /// Makes a state that was found durable, unless it is not to be changed.
    pub fn recovered(self, options: &MountOptions) -> Result<Self> {
        let mut core = self;
        if let Some(why) = core.recovery.damage().map(String::from) {
            core.accept(&format!("{why}; what was done after commit {} is not found", core.log.transaction()))?;
            core.log.latch().fail_because(|| format!("{why}; the volume is read-only"));
        }
        if let Some(why) = core.recovery.short().map(String::from) {
            core.accept(&why)?;
        }
        if !core.options.read_only && !core.checkpoints.is_clean() && core.log.store().latch().why().is_none() {
            let (recovery, mut volume) = core.recovery_parts();
            let recovered = recovery.finish(&mut volume);
            core.outlive_recovery(recovered)?;
            if core.index.has_long_deferred() && core.log.latch().why().is_none() {
                let (cleaner, mut volume) = core.parts();
                let applied = cleaner.apply_deferred_in_room(&mut volume);
                core.outlive_recovery(applied)?;
            }
        }
        if options.read_only {
            core.log.latch().close();
        }
        Ok(core)
    }

    /// Goes on without writing if a recovery failed for lack of space or sound blocks: what was
    /// replayed can still be read.
    pub fn outlive_recovery(&mut self, recovered: Result<()>) -> Result<()> {
        match recovered {
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::NoSpace | ErrorKind::HostFull | ErrorKind::Media | ErrorKind::ReadOnly
                ) =>
            {
                self.log.latch().fail_because(|| format!("the volume could not be recovered: {error}"));
                Ok(())
            }
            other => other,
        }
    }

    /// Replays the journal in memory; nothing is written.
    pub(super) fn replay(&mut self) -> Result<()> {
        let (recovery, mut volume) = self.recovery_parts();
        let told = recovery.replay(&mut volume)?;
        self.events.extend(told);
        Ok(())
    }

    /// Goes on although `lost` is not there, if that was consented to.
    ///
    /// # Errors
    /// `Loss` without consent.
    pub fn accept(&mut self, lost: &str) -> Result<()> {
        if !self.options.accept_loss {
            return Err(Error::new(ErrorKind::Loss, lost));
        }
        self.events.push(Condition::new("loss-accepted", Severity::Failed, format!("with consent: {lost}")));
        Ok(())
    }

    /// The state that the superblock `found` and the journal behind it describe. Nothing is
    /// written. `held` is what a write buffer has of the journal.
    pub fn mount_found(
        nand: Box<dyn Nand>,
        found: &ring::Found,
        options: &MountOptions,
        held: Option<HeldPage>,
    ) -> Result<Self> {
        let mut core = Self::of_superblock(nand, found, options)?;
        core.load(found, Recovery::new(held))?;
        Ok(core)
    }

    /// Takes up the segment table of the superblock `found`, and what `recovery` finds behind it.
    /// Nothing is written.
    pub fn load(&mut self, found: &ring::Found, recovery: Recovery) -> Result<()> {
        self.recovery = recovery;
        self.load_table(found)?;
        if let Some(stored) = found.references.deferred {
            match self.index.load_deferred(&mut self.log, stored) {
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    self.recovery.note_deferred_damaged(&error);
                }
                loaded => loaded?,
            }
        }
        self.replay()
    }

    /// The state that the superblock `found` describes, without the segment table.
    pub fn of_superblock(nand: Box<dyn Nand>, found: &ring::Found, options: &MountOptions) -> Result<Self> {
        let layout = ring::check_superblock(found, &*nand)?;
        let superblock = &found.superblock;
        let level = superblock.root_level;
        let tree = Tree::open(layout.node_bytes(), superblock.root, level);
        let table = SegmentTable::new(&layout);
        let policies = options.policies.or(Policies::stored(superblock));
        let uuid = superblock.uuid;
        let mut core = Self::assemble(Basis { nand, layout, uuid, table, tree, policies }, options);
        // Segments of an earlier placement may still be there.
        let of_format = FEATURE_COMPACT_RECORDS | FEATURE_WAITING_PAGES | FEATURE_MEMORY | FEATURES_OF_SUPERBLOCKS;
        let incompatible = policies.features() & !of_format | superblock.incompatible.get() & !FEATURE_DEFERRED;
        core.checkpoints.resume(found, incompatible);
        core.log.let_pages_wait(core.checkpoints.has_feature(FEATURE_WAITING_PAGES));
        let next_object =
            if is_planted(Bug::IdsForgotten) { ObjectId::FIRST_FREE.0 } else { superblock.next_object.get() };
        let (objects, extents) = (superblock.objects.get(), superblock.extents.get());
        *core.index.counts_mut() = Counts { next_object, objects, extents };
        core.log.set_transaction(superblock.transaction.get());
        core.log.table_mut().set_next_sequence(superblock.next_sequence.get());
        core.log.set_next_journal(superblock.journal_segment.get(), superblock.journal_sequence.get());
        core.log.set_saved(SavedPages::of(superblock, &found.references));
        Ok(core)
    }

    /// Reads the segment table. The segments that hold its own pieces are not in it yet, so their
    /// sequence numbers are taken from the pages; the pieces' checksums stand in the superblock.
    fn load_table(&mut self, found: &ring::Found) -> Result<()> {
        let layout = *self.log.layout();
        let mut known = BTreeSet::new();
        for (piece, reference) in found.references.pieces.iter().enumerate() {
            let location = reference.location.get();
            if layout.contains(location, u64::from(reference.length.get())) && known.insert(layout.segment_of(location))
            {
                let (at, _) = layout.page_of(location);
                let page = match self.log.examine(at, None)? {
                    Examined::Sound(page) => Some(page),
                    Examined::Unsound(_) => self.log.restore(at)?,
                };
                if let Some(page) = page {
                    self.log.table_mut().update(at.segment, |entry| entry.sequence = page.info.sequence);
                    self.log.store().pages().keep(layout.address(at), page);
                }
            }
            let bytes = self.log.read_blob(*reference, IoTag::Recovery)?;
            self.log.table_mut().load_piece(piece, *reference, &bytes, &layout)?;
        }
        self.log.table_mut().finish_loading();
        Ok(())
    }

    fn assemble(basis: Basis, options: &MountOptions) -> Self {
        let Basis { nand, layout, uuid, table, tree, policies } = basis;
        let store = Store::new(nand, layout, &uuid, options.page_cache_bytes);
        // Pages that carry their trailers themselves divide what hosts write in powers of two.
        let copies_waiting = !Layout::trailer_in_spare(&layout.geometry);
        let waiting = if copies_waiting { FEATURE_WAITING_PAGES } else { 0 };
        let superblocks = layout.superblocks.features(&layout.geometry);
        let limits = limits(&layout, options);
        let placement = Classifier::new(policies.placement(), layout.segments);
        let parity = features_of_parity(layout.parity_pages) | features_of_chosen_parity(layout.chosen_parity);
        let incompatible = policies.features() | FEATURE_COMPACT_RECORDS | waiting | superblocks | parity;
        let checkpoints = Checkpoints::new(uuid, policies, incompatible, options, layout.geometry.pages());
        let mut core = Self {
            log: Log::new(store, table, placement, options.write_buffer_bytes),
            index: Index::new(Applied::new(Entries::new(tree, limits), options.extents), options.read_only),
            finder: None,
            events: Vec::new(),
            unconfirmed: false,
            options: *options,
            checkpoints,
            cleaner: Cleaner::new(
                Chooser::new(policies.victim(), layout.segment_bytes() as u32),
                options.clean_ahead.unwrap_or(0),
            ),
            recovery: Recovery::default(),
            rhythm: Rhythm::default(),
            tickets: crate::commit::sync::Ticket::default(),
            shrinking: None,
            commits: 0,
            bytes_written: 0,
        };
        core.log.let_pages_wait(copies_waiting);
        core.log.table_mut().choose_by(policies.wear(), policies.placement());
        core
    }
}

/// The segments from `first` on that have a bad block.
pub fn bad_segments(nand: &mut dyn Nand, layout: &Layout, first: u32) -> Result<BTreeSet<u32>> {
    let mut bad = BTreeSet::new();
    for segment in first..layout.segments {
        for block in layout.blocks(segment) {
            if nand.is_bad(block).map_err(|error| from_media("look for bad blocks", &error))? {
                bad.insert(segment);
            }
        }
    }
    Ok(bad)
}

/// What nodes may take of the working memory.
pub fn limits(layout: &Layout, options: &MountOptions) -> Limits {
    let bytes = layout.geometry.bytes();
    // On small media more of it: names that are spread change a node each, and a checkpoint after
    // every few of them writes inner nodes and segment table again.
    let by_size = (bytes / 512).clamp(16 << 10, 1 << 20).max((bytes / 128).min(256 << 10)) as usize;
    Limits {
        node_bytes: layout.node_bytes(),
        dirty_bytes: options.dirty_node_bytes.unwrap_or(by_size),
        cache_bytes: options.node_cache_bytes,
    }
}

/// The memory beside the flash.
impl Core {
    /// What the memory holds, if there is one.
    pub fn memory_use(&self) -> Option<MemoryUse> {
        self.index.entries().memory().map(Bpram::usage)
    }

    /// An index with nothing in it, and the room for a write buffer if one is wanted.
    pub fn blank_memory(&self, memory: Box<dyn Pmem>, beside: &MemoryOptions) -> Result<Bpram> {
        let layout = self.log.layout();
        let wanted = (beside.buffer || beside.log_bytes.is_some()).then_some(beside.log_bytes);
        let area = wanted.map(|wanted| area_for(memory.length(), layout, wanted)).transpose()?;
        Bpram::blank(memory, self.checkpoints.uuid(), layout.payload_bytes, area)
    }

    /// Makes sure, if it was not yet, that flash and memory belong together.
    pub fn confirm_once(&mut self) -> Result<()> {
        if self.unconfirmed { self.confirm() } else { Ok(()) }
    }

    /// Makes sure that the flash stands where the memory says, or one superblock before: the memory
    /// goes first.
    fn confirm(&mut self) -> Result<()> {
        let known = self.checkpoints.ring().generation();
        let Some(newest) = ring::find(self.log.medium().nand(), Some(known))? else {
            return Err(damaged("no superblock is left on the flash"));
        };
        if newest.superblock.uuid != *self.checkpoints.uuid() {
            return Err(of_another_volume());
        }
        let found = newest.superblock.generation.get();
        if !(known.saturating_sub(1)..=known).contains(&found) {
            let detail = format!("the flash stands at superblock {found}, the memory beside it at {known}");
            return Err(Error::new(ErrorKind::Stale, detail));
        }
        // A superblock that the memory alone knows gives its number to the next one, or the two
        // would part further.
        self.checkpoints.stand_at(&newest);
        self.unconfirmed = false;
        Ok(())
    }

    pub fn detach_memory(&mut self) -> Result<()> {
        self.give_memory_up("it was detached")
    }

    /// Goes on with the flash alone, which has everything then, because of `why`.
    pub(super) fn give_memory_up(&mut self, why: &str) -> Result<()> {
        self.log.store().latch().check()?;
        if self.index.entries().memory().is_none() {
            return Err(invalid("there is no memory to detach"));
        }
        self.prepare_writing()?;
        if self.log.is_chain_broken() {
            self.checkpoint(false)?;
        }
        self.checkpoints.give_memory_up(&mut self.index, &mut self.log, String::from(why))
    }

    pub fn check_attachable(&self) -> Result<()> {
        self.log.store().latch().check()?;
        if !self.checkpoints.has_feature(FEATURE_MEMORY) {
            return Err(invalid("the volume is made for no memory beside the flash"));
        }
        if self.index.entries().memory().is_some() {
            return Err(invalid("there is a memory already"));
        }
        Ok(())
    }

    pub fn attach_memory(
        &mut self,
        memory: Box<dyn Pmem>,
        options: &MemoryOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        self.check_attachable()?;
        let blank = self.blank_memory(memory, options)?;
        self.prepare_writing()?;
        // Two superblocks further no memory of before fits the flash any more, wherever it comes
        // from.
        self.checkpoints.write_superblock(&mut self.index, &mut self.log, false)?;
        self.checkpoints.write_superblock(&mut self.index, &mut self.log, false)?;
        self.index.entries_mut().put_memory(blank);
        self.checkpoints.forget_memory_lost();
        self.checkpoints.use_memory(options.spill, options.buffer);
        self.checkpoint(false)?;
        self.checkpoints.refill_memory(&mut self.index, &mut self.log, progress)?;
        if let Some(why) = self.checkpoints.memory_lost() {
            return Err(invalid(why));
        }
        let text = String::from("the memory beside the flash was attached and filled from the flash");
        self.events.push(Condition::new("memory-rebuilt", Severity::Notice, text));
        Ok(())
    }
}

fn of_another_volume() -> Error {
    Error::new(ErrorKind::WrongPart, "the memory is that of another volume than the flash")
}

fn invalid(detail: &str) -> Error {
    Error::new(ErrorKind::Invalid, detail)
}

//! Making a volume and mounting one.

use crate::cleaner::levelling::Levelling;
use crate::commit::access::Pending;
use crate::core::{CheckpointState, Core, Statistics};
use crate::index::beside::MemoryOptions;
use crate::index::bpram::buffer::HeldPage;
use crate::index::deferred::Deferred;
use crate::index::tree::Tree;
use crate::log::Log;
use crate::log::compact::Rhythm;
use crate::medium::errors::from_media;
use crate::medium::format::{
    FEATURE_COMPACT_RECORDS, FEATURE_DEFERRED, FEATURE_FAR_SUPERBLOCKS, FEATURE_MEMORY, FEATURE_WAITING_PAGES,
};
use crate::medium::layout::{End, Layout, SuperblockBlocks};
use crate::medium::ring::{self, Ring, SavedPages};
use crate::medium::store::Store;
use crate::options::{FormatOptions, MountOptions, Policies};
use crate::policy::{Chooser, Classifier};
use crate::recover::replay::Recovery;
use crate::space::costliest::Costliest;
use crate::space::segments::choice::Choice;
use crate::space::segments::{SegmentState, SegmentTable};
use crate::space::stall::Stalls;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::evict::Lru;
use onode_base::planted::{Bug, is_planted};
use onode_media::{IoTag, Nand, Pmem};
use onode_object::{Condition, Error, ObjectId, Result, Severity};

impl Core {
    /// Makes an empty volume; everything on the medium is lost.
    pub fn format(
        mut nand: Box<dyn Nand>,
        memory: Option<(Box<dyn Pmem>, &MemoryOptions)>,
        options: &FormatOptions,
        mount: &MountOptions,
    ) -> Result<Self> {
        mount.validate()?;
        let shape = nand.geometry();
        let layout = Layout::new(shape, options.blocks_per_segment(&shape))?.with_records_in_spare();
        // No superblock of an earlier volume may outlive the new one.
        let at_start = SuperblockBlocks::at_start(&shape).at(End::Start);
        for block in at_start.chain(layout.superblocks.at(End::Far)) {
            let block = onode_media::BlockAddress(block);
            if !nand.is_bad(block).map_err(|error| from_media("look for bad blocks", &error))?
                && nand.erase(block, IoTag::Anchor).is_err()
            {
                nand.mark_bad(block).map_err(|error| from_media("mark bad block", &error))?;
            }
        }
        let mut table = SegmentTable::new(&layout);
        for segment in 0..layout.segments {
            for block in layout.blocks(segment) {
                if nand.is_bad(block).map_err(|error| from_media("look for bad blocks", &error))? {
                    table.update(segment, |entry| entry.state = SegmentState::Bad);
                }
            }
        }
        let policies = Policies::new(options, mount);
        let tree = Tree::new(layout.node_bytes());
        let mut core = Self::assemble(nand, layout, options.uuid, table, tree, policies, mount);
        if let Some((memory, beside)) = memory {
            core.incompatible |= FEATURE_MEMORY;
            let mut bpram = core.blank_memory(memory, beside)?;
            bpram.begin_empty();
            core.bpram = Some(bpram);
        }
        let least = core.least_segments();
        if core.log.table.allocatable() < least {
            let sound = core.log.table.allocatable();
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{sound} sound segments are too few, at least {least} are needed; make the medium larger"),
            ));
        }
        core.log.reserve_journal()?;
        core.clean = false;
        core.session_begun = true;
        core.checkpoint(true)?;
        core.write_last_superblock()?;
        if let Some(why) = &core.memory_lost {
            return Err(Error::new(ErrorKind::Invalid, why.clone()));
        }
        if mount.read_only {
            core.log.store.latch("the volume is mounted read-only");
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
        if let Some(why) = core.journal_damage.clone() {
            core.accept(&format!("{why}; what was done after commit {} is not found", core.log.transaction))?;
            core.log.store.latch(&format!("{why}; the volume is read-only"));
        }
        if let Some(why) = core.journal_short.clone() {
            core.accept(&why)?;
        }
        if !core.options.read_only && !core.clean && core.log.store.read_only().is_none() {
            let recovered = core.recover_pending();
            core.outlive_recovery(recovered)?;
        }
        if options.read_only {
            core.log.store.latch("the volume is mounted read-only");
        }
        Ok(core)
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
        core.held = held;
        core.load_table(found)?;
        if let Some(stored) = found.references.deferred {
            match core.load_deferred(stored) {
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    core.journal_damage =
                        Some(format!("what a checkpoint took over of the journal is damaged: {error}"));
                }
                loaded => loaded?,
            }
        }
        core.replay()?;
        Ok(core)
    }

    /// The state that the superblock `found` describes, without the segment table.
    pub fn of_superblock(nand: Box<dyn Nand>, found: &ring::Found, options: &MountOptions) -> Result<Self> {
        let layout = ring::check_superblock(found, &*nand)?;
        let superblock = &found.superblock;
        let level = superblock.root_level;
        let tree = Tree::open(layout.node_bytes(), superblock.root, level);
        let table = SegmentTable::new(&layout);
        let policies = Policies::stored(superblock, options);
        let mut core = Self::assemble(nand, layout, superblock.uuid, table, tree, policies, options);
        // Segments of an earlier placement may still be there.
        let of_format = FEATURE_COMPACT_RECORDS | FEATURE_WAITING_PAGES | FEATURE_MEMORY | FEATURE_FAR_SUPERBLOCKS;
        core.incompatible = core.incompatible & !of_format | superblock.incompatible.get() & !FEATURE_DEFERRED;
        core.log.copies_waiting = core.incompatible & FEATURE_WAITING_PAGES != 0;
        core.ring = Ring::after_mount(found);
        core.next_object = superblock.next_object.get();
        if is_planted(Bug::IdsForgotten) {
            core.next_object = ObjectId::FIRST_FREE.0;
        }
        core.objects = superblock.objects.get();
        core.extents = superblock.extents.get();
        core.log.transaction = superblock.transaction.get();
        core.log.table.next_sequence = superblock.next_sequence.get();
        core.log.next_journal = (superblock.journal_segment.get(), superblock.journal_sequence.get());
        core.log.store.set_saved(SavedPages::of(superblock, &found.references));
        core.checkpoint_state = CheckpointState {
            root: (superblock.root, level),
            clean: superblock.clean == 1,
            journal_segment: superblock.journal_segment.get(),
            journal_page: superblock.journal_page.get(),
            journal_sequence: superblock.journal_sequence.get(),
            journal_next: (superblock.journal_next_segment.get(), superblock.journal_next_sequence.get()),
            next_sequence: superblock.next_sequence.get(),
            next_object: superblock.next_object.get(),
            transaction: superblock.transaction.get(),
            objects: superblock.objects.get(),
            extents: superblock.extents.get(),
            references: found.references.clone(),
        };
        Ok(core)
    }

    /// Reads the segment table. The segments that hold its own pieces are not in it yet, so their
    /// sequence numbers are taken from the pages; the pieces' checksums stand in the superblock.
    fn load_table(&mut self, found: &ring::Found) -> Result<()> {
        let layout = self.log.store.layout;
        let mut known = BTreeSet::new();
        for (piece, reference) in found.references.pieces.iter().enumerate() {
            let location = reference.location.get();
            if layout.contains(location, u64::from(reference.length.get())) && known.insert(layout.segment_of(location))
            {
                let (at, _) = layout.page_of(location);
                let page = match self.log.store.examine(layout.address(at), None, IoTag::Recovery)? {
                    Ok(page) => Some(page),
                    Err(_) => self.log.store.restore(at, None, IoTag::Recovery)?,
                };
                if let Some(page) = page {
                    self.log.table.update(at.segment, |entry| entry.sequence = page.info.sequence);
                    self.log.store.pages().keep(layout.address(at), page);
                }
            }
            let bytes = self.log.read_blob(*reference, IoTag::Recovery)?;
            self.log.table.load_piece(piece, *reference, &bytes, &layout)?;
        }
        self.log.table.finish_loading();
        Ok(())
    }

    fn assemble(
        nand: Box<dyn Nand>,
        layout: Layout,
        uuid: [u8; 16],
        table: SegmentTable,
        tree: Tree,
        policies: Policies,
        options: &MountOptions,
    ) -> Self {
        let bytes = layout.geometry.bytes();
        let store = Store::new(nand, layout, &uuid, options.page_cache_bytes);
        // Pages that carry their trailers themselves divide what hosts write in powers of two.
        let copies_waiting = !Layout::trailer_in_spare(&layout.geometry);
        let waiting = if copies_waiting { FEATURE_WAITING_PAGES } else { 0 };
        let far = if layout.superblocks.at_both_ends() { FEATURE_FAR_SUPERBLOCKS } else { 0 };
        // On small media more of it: names that are spread change a node each, and a checkpoint
        // after every few of them writes inner nodes and segment table again.
        let by_size = (bytes / 512).clamp(16 << 10, 1 << 20).max((bytes / 128).min(256 << 10)) as usize;
        let mut core = Self {
            log: Log::new(store, table, options.write_buffer_bytes),
            tree,
            bpram: None,
            memory_lost: None,
            finder: None,
            spills: false,
            buffers: false,
            held: None,
            held_fits: false,
            events: Vec::new(),
            unconfirmed: false,
            nodes: Lru::new(options.node_cache_bytes),
            ring: Ring::fresh(),
            uuid,
            options: *options,
            policies,
            placement: Classifier::new(policies.placement(), layout.segments),
            victim: Chooser::new(policies.victim(), layout.segment_bytes() as u32),
            incompatible: policies.features() | FEATURE_COMPACT_RECORDS | waiting | far,
            node_bytes: layout.node_bytes(),
            dirty_limit: options.dirty_node_bytes.unwrap_or(by_size),
            checkpoint_pages: options.checkpoint_pages.unwrap_or((layout.geometry.pages() / 128).clamp(16, 512) as u32),
            next_object: ObjectId::FIRST_FREE.0,
            objects: 0,
            extents: 0,
            pending_access: Pending::new(),
            checkpoint_state: CheckpointState::default(),
            clean: true,
            session_begun: false,
            cleaning: None,
            emptied: BTreeSet::new(),
            stuck: BTreeSet::new(),
            journal_damage: None,
            journal_short: None,
            pending: Recovery::default(),
            deferred: Deferred::default(),
            rhythm: Rhythm::default(),
            tickets: crate::commit::sync::Ticket::default(),
            statistics: Statistics::default(),
            stalls: Stalls::default(),
            levelling: Levelling::default(),
            costliest: Costliest::default(),
        };
        core.log.copies_waiting = copies_waiting;
        core.log.table.choice = Choice::new(policies.wear(), policies.placement());
        core
    }
}

//! Checkpoints: the whole state on the medium, and a superblock that says where.
//!
//! Order is everything: content, then tree nodes and what was deferred, then the segment table,
//! then the superblock, each complete before the next begins. Until the superblock is on the medium
//! the one before it counts, and nothing that it refers to has been touched.
//!
//! They know the log and the index, and who writes to them, not why.

mod failing;
pub mod memory;
mod superblock;
mod table;

use crate::cleaner::moving::Mover;
use crate::index::Index;
use crate::log::Log;
use crate::medium::errors::damaged;
use crate::medium::format::{
    BlobReference, FEATURE_PARITY_PENDING, FEATURE_VERSIONS, FEATURES_OF_SUPERBLOCKS, References,
};
use crate::medium::layout::SegmentPage;
use crate::medium::ring::{Found, Ring};
use crate::options::{MountOptions, Policies};
use crate::policy::Stream;
use crate::space::room::{Room, Settings};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use memory::MemoryState;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;
use table::write_table;

/// The numbers of a checkpoint, as every superblock that describes it repeats them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointState {
    /// Root of the tree, and its level.
    pub root: (BlobReference, u8),
    /// Nothing follows in the journal.
    pub clean: bool,
    /// Segment at which a replay starts.
    pub journal_segment: u32,
    /// Page of that segment.
    pub journal_page: u32,
    /// Its sequence number.
    pub journal_sequence: u32,
    /// The journal segment after it, and its sequence number.
    pub journal_next: (u32, u32),
    /// The next sequence number.
    pub next_sequence: u32,
    /// The next object id.
    pub next_object: u64,
    /// Commits so far.
    pub transaction: u64,
    /// Objects that exist.
    pub objects: u64,
    /// Extents that exist.
    pub extents: u64,
    /// To the segment table, deferred changes and copies of pages.
    pub references: References,
}

/// What is written when, and what may be reused after it.
pub struct Checkpoints {
    uuid: [u8; 16],
    /// Superblocks.
    ring: Ring,
    /// Policies as they were chosen.
    policies: Policies,
    /// Features without which the medium cannot be used at all.
    incompatible: u32,
    /// Content may have another parity than its object wishes.
    parity_pending: Arc<AtomicBool>,
    /// What the newest superblock says.
    state: CheckpointState,
    /// Whether the newest superblock describes the present state and nothing was logged since.
    clean: bool,
    /// What the figures of the volume depend on; this session's sequence numbers are reserved on
    /// the medium once it has begun.
    settings: Settings,
    /// Bytes of the journal after which a checkpoint is written although more pages are allowed.
    bytes_most: u64,
    memory: MemoryState,
    /// Checkpoints written.
    written: u64,
    /// Those that went to the memory beside the flash, too.
    folds: u64,
}

impl Checkpoints {
    /// Those of a volume without any.
    pub fn new(uuid: [u8; 16], policies: Policies, incompatible: u32, options: &MountOptions, pages: u64) -> Self {
        let settings = Settings {
            has_runs: options.extents,
            packs: options.small_object_buffer,
            checkpoint_pages: checkpoint_pages(options, pages),
            session_begun: false,
        };
        Self {
            uuid,
            ring: Ring::fresh(),
            policies,
            incompatible,
            parity_pending: Arc::default(),
            state: CheckpointState::default(),
            clean: true,
            settings,
            bytes_most: options.checkpoint_bytes.unwrap_or(u64::MAX),
            memory: MemoryState::default(),
            written: 0,
            folds: 0,
        }
    }

    /// Goes on from the superblock that a mount found, with these features.
    pub fn resume(&mut self, found: &Found, incompatible: u32) {
        let superblock = &found.superblock;
        self.incompatible = incompatible;
        self.ring = Ring::after_mount(found);
        self.set_parity_pending(superblock.compatible.get() & FEATURE_PARITY_PENDING != 0);
        self.state = CheckpointState {
            root: (superblock.root, superblock.root_level),
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
    }

    /// The volume has `pages` of the medium now; superblocks stand where `features` say.
    pub fn resize(&mut self, options: &MountOptions, pages: u64, features: u32) {
        self.settings.checkpoint_pages = checkpoint_pages(options, pages);
        self.incompatible = self.incompatible & !FEATURES_OF_SUPERBLOCKS | features;
        self.ring.forget_far();
    }

    /// The volume.
    pub const fn uuid(&self) -> &[u8; 16] {
        &self.uuid
    }

    /// Policies as they were chosen.
    pub const fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Whether the volume has this feature.
    pub const fn has_feature(&self, feature: u32) -> bool {
        self.incompatible & feature != 0
    }

    /// The volume has this feature from the next superblock on.
    pub const fn add_feature(&mut self, feature: u32) {
        self.incompatible |= feature;
    }

    /// Whether content may have another parity than its object wishes.
    pub fn parity_pending(&self) -> bool {
        self.parity_pending.load(Ordering::Relaxed)
    }

    /// The same for who does not have the device's lock.
    pub fn share_parity_pending(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.parity_pending)
    }

    /// Superblocks say from now on whether content may have another parity than its object wishes.
    pub fn set_parity_pending(&mut self, pending: bool) {
        self.parity_pending.store(pending, Ordering::Relaxed);
    }

    /// Superblocks.
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The newest superblock on the medium is `found`, whatever was known before.
    pub const fn stand_at(&mut self, found: &Found) {
        self.ring.stands_at(found);
    }

    /// Superblocks go on behind `found`, as after a mount that found it.
    pub const fn go_on_from(&mut self, found: &Found) {
        self.ring = Ring::after_mount(found);
    }

    /// What the newest superblock says.
    pub const fn state(&self) -> &CheckpointState {
        &self.state
    }

    /// Whether the newest superblock describes the present state.
    pub const fn is_clean(&self) -> bool {
        self.clean
    }

    /// Says whether it does.
    pub const fn set_clean(&mut self, clean: bool) {
        self.clean = clean;
    }

    /// The session's sequence numbers are reserved, by a new volume or a repair.
    pub const fn note_session_begun(&mut self) {
        self.settings.session_begun = true;
    }

    /// What the figures of the volume depend on beside its state.
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Checkpoints written, and those that went to the memory beside the flash, too.
    pub const fn written(&self) -> (u64, u64) {
        (self.written, self.folds)
    }

    fn room<'a>(&self, index: &'a Index, log: &'a Log) -> Room<'a> {
        Room::new(log, index, self.settings)
    }

    /// What moves content and nodes, not for the sake of wear.
    pub fn mover<'a>(&self, index: &'a mut Index, log: &'a mut Log) -> Mover<'a> {
        let mover = Mover::new(index, log, self.settings, self.state.journal_sequence);
        mover.among_versions(self.has_feature(FEATURE_VERSIONS))
    }

    /// Writes a checkpoint. `clean` seals the streams first: nothing follows in the journal.
    pub fn write(&mut self, index: &mut Index, log: &mut Log, clean: bool) -> Result<()> {
        let result = self.write_all(index, log, clean);
        if let Err(error) = &result {
            log.latch().fail_because(|| format!("a checkpoint failed: {error}"));
        }
        result
    }

    fn write_all(&mut self, index: &mut Index, log: &mut Log, clean: bool) -> Result<()> {
        log.store().latch().check()?;
        if clean || !index.can_store_deferred(log) {
            index.apply_all_deferred(log)?;
        }
        let (position, journal_sequence) = loop {
            // What a failed program left in memory has to go elsewhere first.
            self.rescue(index, log)?;
            self.move_restored(index, log)?;
            let position = self.write_state(index, log, clean)?;
            if !log.has_stranded() || is_planted(Bug::StrandedForgotten) {
                break position;
            }
        };
        log.flush()?;
        let unwritten = || damaged("a checkpoint before the tree was written");
        let counts = *index.counts();
        self.state = CheckpointState {
            root: index.entries().nodes().written_root().ok_or_else(unwritten)?,
            clean,
            journal_segment: position.segment,
            journal_page: position.page,
            journal_sequence,
            journal_next: log.next_journal(),
            next_sequence: log.table().next_sequence(),
            next_object: counts.next_object,
            transaction: log.transaction(),
            objects: counts.objects,
            extents: counts.extents,
            references: References {
                pieces: log.table().pieces().to_vec(),
                deferred: index.stored_deferred(),
                saved: Vec::new(),
            },
        };
        self.write_superblock(index, log, true)?;
        log.forget_restored();
        log.note_durable(log.transaction())?;
        log.table_mut().release_held();
        log.note_checkpoint();
        log.table_mut().forget_emptied();
        self.written += 1;
        self.clean = clean;
        index.share_memory();
        Self::retire_failing(index, log, journal_sequence)
    }

    /// Writes everything but the superblock; returns where the journal goes on and the sequence
    /// number there.
    fn write_state(&self, index: &mut Index, log: &mut Log, clean: bool) -> Result<(SegmentPage, u32)> {
        log.program_page(Stream::Journal)?;
        // A clean volume goes on in a journal segment that holds nothing yet, so no node may go
        // there. And with hardly a free segment left nodes keep to themselves: among content they
        // would not leave one empty soon.
        let apart = clean || !self.room(index, log).has_room(1);
        log.keep_index_apart(apart);
        if clean {
            // The summary at its end also tells a replay from the superblock before to go on in the
            // next journal segment, should the coming superblock be lost.
            log.seal(Stream::Journal)?;
            for stream in Stream::CONTENT {
                log.seal(stream)?;
            }
            // The whole table in one place: the next mount reads few pages.
            for piece in 0..log.table().pieces().len() {
                log.table_mut().touch_piece(piece);
            }
        }
        if !is_planted(Bug::CheckpointBeforeContent) {
            log.program_content()?;
        }
        index.entries_mut().nodes_mut().write_back(log)?;
        index.store_deferred(log)?;
        if index.access_times().is_empty() && (clean || log.access().is_long()) {
            log.release_access_times();
        }
        log.hold_dead();
        write_table(log)?;
        if !is_planted(Bug::SuperblockBeforeIndex) {
            log.program_index()?;
        }
        if clean {
            log.close_rows()?;
        }
        // Behind all of it, should it have gone to the journal.
        Ok(log.journal_position())
    }

    /// Whether enough has changed for a checkpoint.
    pub fn is_due(&self, index: &Index, log: &Log) -> bool {
        let (journal_pages, mixed_pages) = log.pages_since_checkpoint();
        log.is_chain_broken()
            || index.dirty_bytes() > index.entries().limits().dirty_bytes
            || self.memory_is_due(index)
            || (index.entries().memory().is_some() && replay_reads(index, log) >= self.reads_allowed())
            || journal_pages.max(mixed_pages) >= self.pages_between(log)
            || (journal_pages + mixed_pages >= self.settings.checkpoint_pages
                && Room::new(log, index, self.settings()).is_tight())
    }

    /// Journal pages between two checkpoints.
    fn pages_between(&self, log: &Log) -> u32 {
        let most = (self.bytes_most / u64::from(log.layout().payload_bytes)).max(1);
        u64::from(self.settings.checkpoint_pages).min(most) as u32
    }

    /// The same in bytes.
    pub fn bytes_between(&self, log: &Log) -> u64 {
        u64::from(self.pages_between(log)) * u64::from(log.layout().payload_bytes)
    }

    /// So many of them are the bound: two pages for each of the journal, less what one more commit
    /// and the search for the journal's end may add.
    const fn reads_allowed(&self) -> u32 {
        let pages = 2 * self.settings.checkpoint_pages;
        pages - pages / 16
    }

    /// The first write of a session is a superblock. It repeats the newest one, which a second cut
    /// might take away, and reserves sequence numbers that no session had: a session that left only
    /// segments which no superblock came to know has left pages that must not be taken for those of
    /// this one. Once it is written, the checkpoint before is of no use any more, and what was held
    /// for it is free.
    pub fn prepare_writing(&mut self, index: &mut Index, log: &mut Log) -> Result<()> {
        self.clean = false;
        if !self.settings.session_begun {
            if !is_planted(Bug::SessionUnnumbered) {
                log.table_mut().skip_numbers();
                self.state.next_sequence = log.table().next_sequence();
                self.write_superblock(index, log, false)?;
            }
            self.settings.session_begun = true;
            log.table_mut().release_held();
        }
        self.reopen_memory(index, log)
    }
}

/// Journal pages after which a checkpoint is due on a medium of `pages`.
pub fn checkpoint_pages(options: &MountOptions, pages: u64) -> u32 {
    options.checkpoint_pages.unwrap_or((pages / 128).clamp(16, 512) as u32)
}

/// About the pages that a mount would read after a cut now: those of the journal that its way
/// back leads through, and the node behind each that changed.
fn replay_reads(index: &Index, log: &Log) -> u32 {
    log.replay_reads().saturating_add(index.entries().nodes().dirty_nodes() as u32)
}

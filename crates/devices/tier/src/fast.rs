//! The fast disk: verified copies of what lies on the big one, and a log ring beside that one's.
//!
//! A copy is named by the blocks of the big disk that it is of and by the checkpoint at which they
//! were allocated. Nothing here knows what content should be: whoever reads a copy compares it with
//! the checksums on the big disk and tells [`Fast::damaged`] if it does not match. So nothing that
//! goes wrong here can give wrong bytes, and all of it can be thrown away at any time.
//!
//! What it keeps true:
//! * No block holds two copies. A block that was given up is written again only when a snapshot of
//!   the map that does not name it is durable.
//! * Writes are collected until they fill a stripe, and stripes are filled from their first block
//!   to their last.
//! * Every refusal to copy has a reason, which is counted and can be asked for.
//!
//! What it does not do: the log. It only says where the ring lies ([`Fast::ring`]).

mod admission;
mod collection;
mod divide;
pub mod extent;
pub mod format;
mod map;
pub mod mover;
pub mod options;
mod piece;
mod report;
mod room;
mod section;
mod snapshot;
mod store;

pub use options::{FastOptions, FastSettings, Identity, SectionOptions};
pub use piece::{Offered, Piece, Refusal};
pub use report::Copied;
pub(crate) use snapshot::has_map_of;

use crate::medium::errors::{from_media, wrong_part};
use crate::space::discard_queue::AT_CLOSE;
use admission::Admission;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use collection::Collection;
use format::{Division, FastSuperblock};
use map::Map;
use mover::Mover;
use onode_base::Clock;
use onode_base::planted::{Bug, is_planted};
use onode_media::blockdev::{BlockDev, SECTOR_BYTES, SharedDisk};
use onode_object::{Maintenance, Result};
use section::Section;

const BLOCK: u64 = SECTOR_BYTES as u64;

/// The sequence of a superblock that was damaged: higher than what any copy says that becomes
/// readable again.
const RESTORED: u64 = 1 << 48;

/// A fast disk that takes part in a volume.
pub struct Fast {
    disk: Box<dyn BlockDev>,
    /// Who reads it beside us.
    reader: Option<Arc<dyn SharedDisk>>,
    superblock: FastSuperblock,
    settings: FastSettings,
    sections: Vec<Section>,
    map: Map,
    collection: Collection,
    admission: Admission,
    mover: Mover,
    /// Objects all of whose new copies are pinned.
    pins: BTreeSet<u64>,
    /// The sequence of the newest snapshot.
    snapshots: u64,
    /// The map is another than that of the newest snapshot.
    is_changed: bool,
    /// Requests so far: the clock of the policies.
    tick: u64,
    /// The time that was handed in last.
    now: u64,
    /// Where the time comes from, if not from who calls.
    clock: Option<Arc<dyn Clock>>,
    counts: FastCounts,
}

#[derive(Clone, Copy, Debug, Default)]
struct FastCounts {
    hits: u64,
    misses: u64,
    stale: u64,
    damaged: u64,
    promoted: u64,
    written_back: u64,
    evicted: u64,
    moved: u64,
    snapshot_blocks: u64,
    snapshots_lost: u64,
    entries_dropped: u64,
}

impl Fast {
    /// Makes `disk` the empty fast disk of a volume. What was on it is gone.
    ///
    /// # Errors
    /// `Invalid` for a division that cannot be, `Media`.
    pub fn format(
        mut disk: Box<dyn BlockDev>,
        identity: &Identity,
        options: &FastOptions,
        settings: &FastSettings,
    ) -> Result<Self> {
        let division = options.divide(disk.bytes())?;
        let Identity { volume, own, session } = *identity;
        let superblock = FastSuperblock { volume, own, sequence: 0, session, division };
        let (ring, slots) = (superblock.division.ring_first, superblock.division.slot_first);
        for (first, blocks) in [(0, 2), (ring, 1), (slots, 1), (slots + superblock.division.slot_blocks, 1)] {
            disk.zero(first * BLOCK, blocks * BLOCK).map_err(|error| from_media("formatting the fast disk", &error))?;
        }
        disk.flush().map_err(|error| from_media("formatting the fast disk", &error))?;
        let mut fast = Self::empty(disk, superblock, settings);
        fast.superblock.write_next(fast.disk.as_mut())?;
        Ok(fast)
    }

    /// Whose fast disk this is; `None` if it is nobody's.
    ///
    /// # Errors
    /// `Corrupt` if both superblocks are damaged, `WrongPart` for a newer format, `Media`.
    pub fn identify(disk: &mut dyn BlockDev) -> Result<Option<Identity>> {
        let Some(FastSuperblock { volume, own, session, .. }) = FastSuperblock::read_newest(disk)? else {
            return Ok(None);
        };
        Ok(Some(Identity { volume, own, session }))
    }

    /// Takes up the fast disk of the volume of that number, with the copies of its last snapshot.
    ///
    /// # Errors
    /// `WrongPart` if it is no fast disk, another volume's, or of a newer format; `Corrupt`,
    /// `Media`. The volume is whole without it in all cases.
    pub fn open(mut disk: Box<dyn BlockDev>, volume: [u8; 16], settings: &FastSettings) -> Result<Self> {
        let Some(superblock) = FastSuperblock::read_newest(disk.as_mut())? else {
            let name = disk.name();
            return Err(wrong_part(format!(
                "{name} is no fast disk of Onode; mount without it, and attach it as a new one"
            )));
        };
        if superblock.volume != volume {
            return Err(wrong_part(format!(
                "{} is the fast disk of another volume; mount without it, or give the right one",
                disk.name()
            )));
        }
        let mut fast = Self::empty(disk, superblock, settings);
        fast.read_snapshot()?;
        Ok(fast)
    }

    /// Takes up a fast disk whose superblocks are damaged, with what the big disk knows of it. That
    /// it is the one is for the caller to see.
    ///
    /// # Errors
    /// `Media`.
    pub fn restore(
        disk: Box<dyn BlockDev>,
        identity: &Identity,
        division: &Division,
        settings: &FastSettings,
    ) -> Result<Self> {
        let Identity { volume, own, session } = *identity;
        let superblock = FastSuperblock { volume, own, sequence: RESTORED, session, division: division.clone() };
        let mut fast = Self::empty(disk, superblock, settings);
        fast.read_snapshot()?;
        Ok(fast)
    }

    /// Whether its superblocks are damaged.
    #[must_use]
    pub const fn is_restored(&self) -> bool {
        self.superblock.sequence == RESTORED
    }

    /// How it is divided.
    #[must_use]
    pub const fn layout(&self) -> &Division {
        &self.superblock.division
    }

    fn empty(disk: Box<dyn BlockDev>, superblock: FastSuperblock, settings: &FastSettings) -> Self {
        let division = &superblock.division;
        let sections = division.sections.iter().cloned();
        let sections: Vec<Section> =
            sections.map(|place| Section::new(place, division.stripe, settings.policy)).collect();
        let blocks: u64 = sections.iter().map(|section| section.allocator.blocks()).sum();
        Self {
            reader: disk.shared(),
            disk,
            settings: *settings,
            admission: Admission::new(blocks, settings),
            sections,
            superblock,
            map: Map::default(),
            collection: Collection::default(),
            mover: Mover::default(),
            pins: BTreeSet::new(),
            snapshots: 0,
            is_changed: false,
            tick: 0,
            now: 0,
            clock: None,
            counts: FastCounts::default(),
        }
    }

    /// The first block of the log ring, and how many there are.
    #[must_use]
    pub const fn ring(&self) -> (u64, u64) {
        (self.superblock.division.ring_first, self.superblock.division.ring_blocks)
    }

    /// Blocks of an erase block or stripe: a log that continues at a multiple of it after each
    /// checkpoint is written without copies inside the disk.
    #[must_use]
    pub const fn stripe_blocks(&self) -> u64 {
        self.superblock.division.stripe
    }

    /// The disk, for the log and for reading copies.
    pub fn disk(&mut self) -> &mut dyn BlockDev {
        self.disk.as_mut()
    }

    /// Who reads the disk without being its owner, if it lets others do that.
    #[must_use]
    pub const fn reader(&self) -> Option<&Arc<dyn SharedDisk>> {
        self.reader.as_ref()
    }

    /// Whose it is, and the session in which it joined last.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        let FastSuperblock { volume, own, session, .. } = self.superblock;
        Identity { volume, own, session }
    }

    /// Says on the disk in which session it joined.
    ///
    /// # Errors
    /// `Media`.
    pub fn join(&mut self, session: u64) -> Result<()> {
        self.superblock.session = session;
        self.superblock.write_next(self.disk.as_mut())
    }

    /// Tells the time, in nanoseconds, virtual or of the host.
    pub fn set_time(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Takes the time from `clock` from now on.
    pub fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.clock = Some(clock);
    }

    /// A request begins.
    fn begin(&mut self) {
        self.tick += 1;
        self.read_clock();
    }

    fn read_clock(&mut self) {
        if let Some(clock) = &self.clock {
            self.now = self.now.max(clock.now().as_nanoseconds());
        }
    }

    /// Where the copy of a block lies and how many more follow it in a row. Counts as a use.
    pub fn lookup(&mut self, block: u64, born: u64) -> Option<(u64, u32)> {
        self.tick += 1;
        let (key, copy) = self.current(block, born)?;
        if self.collection.holds_any(copy.fast..copy.fast + u64::from(copy.blocks)) {
            return None;
        }
        self.count_hit(key, &copy);
        Some((copy.fast + (block - key), copy.blocks - (block - key) as u32))
    }

    /// Reads from what was collected and is not written yet; false if not all of it is there.
    /// Counts as a use.
    pub fn read_collected(&mut self, block: u64, born: u64, out: &mut [u8]) -> bool {
        if self.collection.bytes() == 0 {
            return false;
        }
        let (mut block, mut rest) = (block, out);
        while !rest.is_empty() {
            let Some((key, copy)) = self.current(block, born) else { return false };
            let from = block - key;
            let length = (u64::from(copy.blocks) - from).min(rest.len() as u64 / BLOCK);
            let (own, more) = rest.split_at_mut((length * BLOCK) as usize);
            if length == 0 || !self.collection.read(copy.fast + from, own) {
                return false;
            }
            self.count_hit(key, &copy);
            block += length;
            rest = more;
        }
        true
    }

    /// The copy that holds a block, if it is of the same birth; one of another is stale and
    /// dropped.
    fn current(&mut self, block: u64, born: u64) -> Option<(u64, map::Copy)> {
        let (key, copy) = self.map.find(block).map(|(key, copy)| (key, *copy))?;
        if copy.born == born || is_planted(Bug::TierCopyBelieved) {
            return Some((key, copy));
        }
        self.counts.stale += 1;
        self.drop_copy(key);
        None
    }

    fn count_hit(&mut self, key: u64, copy: &map::Copy) {
        self.counts.hits += 1;
        let tick = self.tick;
        if let Some(section) = self.section_of(copy.fast) {
            section.policy(copy.placed).hit(key, tick);
        }
    }

    /// The copy of a block did not match its checksum: it is dropped. Whether it was made since the
    /// mount, so that the disk did not keep what it was just given.
    pub fn damaged(&mut self, block: u64) -> bool {
        let Some((key, is_new)) = self.map.find(block).map(|(key, copy)| (key, copy.is_new)) else { return false };
        self.counts.damaged += 1;
        self.drop_copy(key);
        is_new
    }

    /// Blocks of the big disk were freed: their copies are worth nothing.
    pub fn forget(&mut self, block: u64, blocks: u64) {
        self.cut(block..block.saturating_add(blocks));
    }

    /// Gives up all copies of an object, and its pin; how many blocks that were.
    pub fn demote(&mut self, object: u64) -> u64 {
        self.pins.remove(&object);
        let keys: Vec<u64> = self.map.of_object(object).into_iter().map(|(key, _)| key).collect();
        let blocks = keys.into_iter().map(|key| self.drop_copy(key)).sum();
        self.mover.changed();
        blocks
    }

    /// Keeps the copies of an object, those it has and those it gets, until it is demoted; or lets
    /// them go as others. Pins beyond half of a section are not kept.
    pub fn pin(&mut self, object: u64, pinned: bool) {
        if pinned {
            self.pins.insert(object);
        } else {
            self.pins.remove(&object);
            self.mover.changed();
        }
        let tick = self.tick;
        for (key, copy) in self.map.of_object(object) {
            let blocks = u64::from(copy.blocks);
            let Some(section) = self.section_of(copy.fast).filter(|_| copy.pinned != pinned) else { continue };
            if pinned && section.pinned_blocks + blocks > section.allocator.blocks() / 2 {
                continue;
            }
            if pinned {
                section.pinned_blocks += blocks;
                section.policy(copy.placed).remove(key);
            } else {
                section.pinned_blocks = section.pinned_blocks.saturating_sub(blocks);
                section.policy(copy.placed).insert(key, blocks, tick);
            }
            self.map.pin(key, pinned);
            self.is_changed = true;
        }
    }

    /// Blocks of a piece that have a copy.
    #[must_use]
    pub fn copied(&self, piece: &Piece) -> u64 {
        let copied = (piece.block..piece.end())
            .filter(|block| self.map.find(*block).is_some_and(|(_, copy)| copy.born == piece.born));
        copied.count() as u64
    }

    /// The list of objects that are copied in the background.
    pub fn mover(&mut self) -> &mut Mover {
        &mut self.mover
    }

    /// The day, as [`Mover`] counts them.
    pub fn day(&mut self) -> u64 {
        self.read_clock();
        admission::day(self.now)
    }

    /// Writes what was collected, and the map: what a clean end of a session does.
    ///
    /// # Errors
    /// `Media`.
    pub fn close(&mut self) -> Result<()> {
        self.write_collected()?;
        self.snapshot()?;
        self.discard(AT_CLOSE);
        Ok(())
    }

    /// Does up to `budget` units of what need not wait for a request: writes what was collected for
    /// too long, and makes room before it is needed.
    ///
    /// # Errors
    /// `Media`.
    pub fn maintain(&mut self, budget: u32) -> Result<Maintenance> {
        let mut done = 0;
        self.begin();
        if self.clock.is_none() {
            // A simulated disk knows how long it took.
            self.now = self.now.max(self.disk.virtual_nanoseconds());
        }
        if self.collection.is_older_than(self.now.saturating_sub(self.settings.collect_nanoseconds)) {
            self.write_collected()?;
            // The paper's extents leave their tables when the time is over.
            self.sections.iter_mut().filter(|section| !section.is_in_order()).for_each(Section::seal);
            done += 1;
        }
        for number in 0..self.sections.len() {
            let is_short = self.sections.get(number).is_some_and(Section::is_short);
            if done < budget && is_short {
                // Others than what was placed there go first.
                let only_placed = self.sections.get(number).is_some_and(|section| section.lent_blocks() == 0);
                self.make_room(number, 0, only_placed)?;
                done += 1;
            }
        }
        done += self.discard(budget.saturating_sub(done));
        let more = |section: &Section| section.is_short() || !section.discards.is_empty();
        Ok(Maintenance { done, more: done == budget && self.sections.iter().any(more) })
    }

    /// What `stat --why` says of the copy of a block.
    #[must_use]
    pub fn why(&self, block: u64) -> String {
        self.explain(block)
    }
}

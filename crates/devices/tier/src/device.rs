//! The object device over the volume.

pub mod attach;
pub mod options;
mod replacing;
mod resizing;

use crate::commit::Volume;
use crate::commit::room::space_for;
use crate::content::ranges::data_ranges;
use crate::core::commit::MOVE_UNIT;
use crate::device::attach::FindDisks;
use crate::device::options::{FormatOptions, MountOptions, NewFast};
use crate::disks::fast_disk::FastDisk;
use crate::fast::{Fast, FastOptions, FastSettings, Identity, has_map_of};
use crate::log::need::Need;
use crate::log::record::Seal;
use crate::log::ring::{self, Area};
use crate::medium::errors::invalid;
use crate::medium::layout::BLOCK;
use crate::medium::superblock::Superblock;
use crate::recover::mount::{format_big, mount, newest_superblock, read_superblock};
use crate::recover::recovery::what_is_missing;
use crate::space::discard_queue::AT_CLOSE;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::Clock;
use onode_base::sync::{Mutex, rank};
use onode_media::{BlockDev, IoTag};
use onode_object::powers::{Attach, Inspect, Place, Replaced, Resize, Scrub};
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Error, ErrorKind, Health, Maintenance, ObjectDevice, ObjectId,
    ObjectStat, Result, Space, SyncScope, Transaction,
};

/// What a call gets without waiting for another.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FreeNow {
    /// State, log and disks.
    pub state: bool,
    /// The right to write to the big disk.
    pub home: bool,
    /// A change needs no checkpoint before it.
    pub takes_more: bool,
    /// Commits that were applied so far.
    pub commits: u64,
}

/// A commit that is applied, and is to be in the log before it returns.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unlogged {
    commit: u64,
    need: Need,
}

/// A fast and a big disk, or the big one alone, as an object device.
pub struct TierDevice {
    pub(crate) volume: Volume,
    /// Who finds a fast disk that is to take part again.
    finder: Mutex<Option<Arc<dyn FindDisks>>, rank::TierFinder>,
    /// Who takes a step of a disk that is replaced: it ends when all steps before have copied.
    replacing: Mutex<(), rank::TierReplacing>,
    /// What became of the disk that was replaced last.
    replaced: Mutex<Option<Replaced>, rank::TierReplaced>,
}

impl TierDevice {
    const fn of(volume: Volume) -> Self {
        Self { volume, finder: Mutex::new(None), replacing: Mutex::new(()), replaced: Mutex::new(None) }
    }

    /// Makes an empty volume and mounts it. What was on the disks is gone.
    ///
    /// # Errors
    /// `Invalid`, `Media`.
    pub fn format(
        mut big: Box<dyn BlockDev>,
        fast: Option<NewFast>,
        format: &FormatOptions,
        mount: &MountOptions,
    ) -> Result<Self> {
        format_big(&mut *big, format)?;
        match fast {
            Some(fast) => Self::attach(big, fast, mount),
            None => Self::mount(big, None, mount),
        }
    }

    /// Mounts a volume with its fast disk, or alone: then the big disk remembers that it went on
    /// without. A fast disk that is damaged or fails is left away, which [`reports`](Self::reports)
    /// tells.
    ///
    /// # Errors
    /// `Invalid` if the big disk holds no volume, `NotSupported` for a newer one, `WrongPart` if
    /// the fast disk is none of this volume; `Corrupt`, `Media` of the big disk.
    pub fn mount(mut big: Box<dyn BlockDev>, fast: Option<Box<dyn BlockDev>>, options: &MountOptions) -> Result<Self> {
        let Some(fast) = fast else { return Ok(Self::of(mount(big, FastDisk::default(), options)?)) };
        let (superblock, _) = read_superblock(&mut *big)?;
        let slot = match open_fast(fast, &superblock, &options.fast) {
            Ok(fast) => FastDisk::of(fast),
            Err(error) if matches!(error.kind, ErrorKind::WrongPart | ErrorKind::Invalid) => return Err(error),
            // The mount finds out whether anything is lost with it.
            Err(error) => {
                let mut slot = FastDisk::default();
                slot.lose(format!("{error}"));
                slot
            }
        };
        Ok(Self::of(mount(big, slot, options)?))
    }

    /// Gives the volume on `big` a new, empty fast disk and mounts both. What that held is gone.
    ///
    /// # Errors
    /// As [`mount`](Self::mount); `Invalid` for a read-only mount.
    pub fn attach(mut big: Box<dyn BlockDev>, new: NewFast, options: &MountOptions) -> Result<Self> {
        if options.read_only {
            return Err(invalid("a fast disk cannot be attached read-only"));
        }
        let (superblock, _) = read_superblock(&mut *big)?;
        if let Some(what) =
            what_is_missing(&superblock, "the fast disk is to be replaced").filter(|_| !options.accept_loss)
        {
            // Before the new one is written to: it may be the old one.
            return Err(Error::new(ErrorKind::Loss, what));
        }
        let volume = superblock.uuid;
        let identity = Identity { volume, own: new.uuid, session: 0 };
        let fast = Fast::format(new.disk, &identity, &new.options, &options.fast)?;
        Ok(Self::of(mount(big, FastDisk::of(fast), options)?))
    }

    /// How the fast disk of the volume on `big` is or was divided, so that a new one gets the same.
    ///
    /// # Errors
    /// As [`mount`](Self::mount).
    pub fn division_of_fast(big: &mut dyn BlockDev) -> Result<Option<FastOptions>> {
        Ok(read_superblock(big)?.0.division.as_ref().map(FastOptions::of))
    }

    /// The number of the volume on `big`, and how many bytes of the disk it has; `None` if there is
    /// none, or it is so damaged that a mount fails.
    pub fn volume_on(big: &mut dyn BlockDev) -> Option<([u8; 16], u64)> {
        let (superblock, _) = newest_superblock(big).ok()?;
        Some((superblock.uuid, superblock.layout.blocks * BLOCK))
    }

    /// Whether the fast disk of the volume on `big` may hold changes that were acknowledged and
    /// that the big disk has not.
    ///
    /// # Errors
    /// As [`mount`](Self::mount).
    pub fn needs_fast(big: &mut dyn BlockDev) -> Result<bool> {
        Ok(what_is_missing(&read_superblock(big)?.0, "").is_some())
    }

    /// Blocks of copies on the fast disk that were found damaged since the mount; they are given
    /// up.
    #[must_use]
    pub fn damaged_copies(&self) -> u32 {
        self.volume.core.lock().disks().fast.lock().mismatches
    }

    /// Whether the fast disk takes part.
    #[must_use]
    pub fn has_fast(&self) -> bool {
        self.volume.core.lock().disks().fast.lock().is_there()
    }

    /// What a call made now would come to without waiting for another: for who makes the calls of
    /// several clients in one thread.
    #[doc(hidden)]
    #[must_use]
    pub fn free_now(&self) -> FreeNow {
        let (Some(_log), Some(core)) = (self.volume.log.try_lock(), self.volume.core.try_lock()) else {
            return FreeNow::default();
        };
        let home = self.volume.home.try_lock().is_some();
        let (state, takes_more) = (core.disks().are_free(), core.takes_more());
        FreeNow { state, home, takes_more, commits: core.commits().count() }
    }

    /// Does the part of a commit that waits for no other one; what is left, if anything is, is for
    /// [`end_commit`](Self::end_commit).
    ///
    /// # Errors
    /// Those of a commit.
    #[doc(hidden)]
    pub fn begin_commit(&self, transaction: &Transaction, durability: Durability) -> Result<Option<Unlogged>> {
        let begun = self.volume.begin_commit(transaction, durability)?;
        Ok(begun.map(|(commit, need)| Unlogged { commit, need }))
    }

    /// Waits until a commit is durable.
    ///
    /// # Errors
    /// `Media`.
    #[doc(hidden)]
    pub fn end_commit(&self, unlogged: Unlogged) -> Result<()> {
        self.volume.persist(unlogged.commit, unlogged.need)
    }

    /// Takes the time, by which daily budgets and the ageing of what is collected go, from `clock`
    /// from now on.
    pub fn set_clock(&self, clock: Arc<dyn Clock>) {
        let mut core = self.volume.core.lock();
        if let Some(fast) = core.disks().fast.lock().get() {
            fast.set_clock(Arc::clone(&clock));
        }
        core.set_clock(clock);
    }
}

/// The fast disk of a volume. If its superblocks are damaged the big disk knows what they said, and
/// its map or its log shows that it is the one.
pub(crate) fn open_fast(mut fast: Box<dyn BlockDev>, superblock: &Superblock, settings: &FastSettings) -> Result<Fast> {
    let state = superblock.fast;
    let is_damaged = match Fast::identify(&mut *fast) {
        Ok(found) => found.is_none(),
        Err(error) => error.kind == ErrorKind::Corrupt,
    };
    let Some(division) = superblock.division.as_ref().filter(|_| is_damaged && state.is_attached) else {
        return Fast::open(fast, superblock.uuid, settings);
    };
    let disk = &mut *fast;
    let has_map = division.blocks <= disk.bytes() / BLOCK && has_map_of(disk, &state.uuid, division);
    let seal = Seal::of(&superblock.uuid, superblock.version);
    let (first, blocks, stripe) = (division.ring_first, division.ring_blocks, division.stripe);
    let area = Area { first, blocks, gap: 0, stripe, seal };
    let mut read = |block: u64, out: &mut [u8]| disk.read_at(block * BLOCK, out, IoTag::Recovery).is_ok();
    let is_ours =
        has_map || ring::stands(&area, state.last, &mut read) || !ring::scan(&area, state.tail, &mut read).is_empty();
    if !is_ours {
        return Fast::open(fast, superblock.uuid, settings);
    }
    let identity = Identity { volume: superblock.uuid, own: state.uuid, session: state.session };
    Fast::restore(fast, &identity, division, settings)
}

/// How requests reach a disk, behind its size.
fn describe(way: Option<&str>) -> String {
    way.map_or_else(String::new, |way| format!(" ({way})"))
}

impl ObjectDevice for TierDevice {
    fn info(&self) -> DeviceInfo {
        let core = self.volume.core.lock();
        let layout = core.index().layout();
        let mut slot = core.disks().fast.lock();
        let fast = match (slot.get(), &core.superblock().sections) {
            (Some(fast), sections) => {
                let way = describe(fast.disk().way());
                format!("fast disk of {} MiB{way} with {} sections", fast.disk().bytes() >> 20, sections.len())
            }
            (None, _) if core.superblock().fast.is_known => String::from("the fast disk is away"),
            (None, _) => String::from("no fast disk"),
        };
        // Behind the volume is a superblock.
        let (big, log) = (((layout.blocks + 1) * BLOCK) >> 20, (layout.ring_blocks * BLOCK) >> 10);
        let way = describe(core.disks().big_way);
        let summary = format!("big disk of {big} MiB{way}, log of {log} KiB, {fast}");
        drop(slot);
        DeviceInfo {
            kind: "tier",
            uuid: core.superblock().uuid,
            summary,
            read_only: core.latch().why().map(String::from),
            transaction_bytes: 1 << 20,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut core = self.volume.core.lock();
        core.check_writable()?;
        core.index_mut().reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.volume.commit(&transaction, durability)
    }

    fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        self.volume.check_commit(transaction)
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        self.volume.sync()
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.volume.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.volume.look(|core, _| {
            core.index_mut().known(object)?;
            Ok(core.index_mut().attribute(object, key)?.map(<[u8]>::to_vec))
        })
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.volume.look(|core, _| core.index_mut().attributes(object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.volume.look(|core, _| {
            let onode = core.index_mut().known(object)?;
            let allocated = if onode.has_blocks {
                onode.blocks.saturating_mul(BLOCK)
            } else {
                core.index_mut().inline(object)?.len() as u64
            };
            Ok(ObjectStat { size: onode.size, allocated, hints: onode.hints, accessed: onode.accessed })
        })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.volume.look(|core, _| core.index_mut().list(from, limit))
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.volume.look(|core, _| {
            let (index, _, pending) = core.parts();
            data_ranges(index, pending, object, offset, limit)
        })
    }

    fn space(&self) -> Space {
        self.volume.core.lock().user_space()
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        space_for(demand)
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.volume.core.lock().check_writable()?;
        let (steps, is_under_way) = self.volume.checkpoint_steps(budget)?;
        let (moved, waits) = self.volume.move_waiting(budget.saturating_sub(steps))?;
        let told = self.volume.discard_on_big(budget.saturating_sub(steps + moved));
        let core = self.volume.core.lock();
        let left = budget.saturating_sub(steps + moved + told);
        let fast = core.disks().fast.lock().with(|fast| fast.maintain(left)).unwrap_or_default();
        let more = is_under_way || waits || fast.more || core.space().has_discards();
        Ok(Maintenance { done: steps + moved + told + fast.done, more })
    }

    fn move_unit(&self) -> Option<u64> {
        Some(MOVE_UNIT)
    }

    fn close(&self) -> Result<()> {
        {
            let core = self.volume.core.lock();
            if core.latch().is_read_only() {
                return Ok(());
            }
            if let Some(why) = core.latch().why() {
                return Err(Error::new(ErrorKind::Media, why));
            }
        }
        let mut home = self.volume.home();
        home.checkpoint()?;
        self.volume.discard_on_big(AT_CLOSE);
        home.disks.fast.lock().with(Fast::close);
        home.notice_loss()?;
        home.write_closed()
    }

    fn health(&self) -> Health {
        self.conditions()
    }

    fn place(&self) -> Option<&dyn Place> {
        Some(self)
    }

    fn attachment(&self) -> Option<&dyn Attach> {
        Some(self)
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        Some(self)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }

    fn resizing(&self) -> Option<&dyn Resize> {
        Some(self)
    }
}

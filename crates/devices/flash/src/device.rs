//! The device behind the object interface: one lock around the state machine.
//!
//! A read looks its extents up under the lock, pins their segments and gives the lock back before
//! the medium works, where the medium can be read beside its owner. Nodes of the index are still
//! loaded under the lock. Flushes of syncs go on without it, too.
//!
//! Locks, in the order of their ranks: that of the syncs, the state's, then for a moment those of
//! pins and of pages that were read; a read that goes on is locked, too, and needs none of the
//! others but that of the pages.

mod group_commit;
mod memory;
mod resizing;
mod scrub;

use crate::cleaner::pace::Step;
use crate::cleaner::reprotect::Reprotect;
use crate::commit::sync::Syncs;
use crate::core::{Core, MOVE_UNIT};
use crate::index::Index;
use crate::index::read::check_host_object;
use crate::log::Log;
use crate::medium::format::FEATURE_MEMORY;
use crate::medium::layout::ChosenParity;
use crate::options::{FormatOptions, MountOptions};
use crate::space::pins::Pinned;
use crate::tools::decide::decisions;
use crate::tools::health::health;
use crate::volume::Volume;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, rank};
use onode_media::{Gap, IoTag, Nand};
use onode_object::powers::{Attach, Decision, Inspect, Resize, Scrub};
use onode_object::validate::reserve;
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Health, Maintenance, ObjectDevice, ObjectId, ObjectStat,
    ParityChoice, Result, Space, SyncScope, Transaction,
};

/// Units of deferred changes that background work applies at once.
const APPLIED_AT_ONCE: u32 = 16;

/// Steps of moving for another parity when the volume is closed: at most 64 MiB, and what is left
/// then goes on after the next mount.
const REPROTECTED_AT_CLOSE: u32 = 512;

/// What a call gets without waiting for another.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AtOnce {
    /// The lock of the state.
    pub state: bool,
    /// That of the syncs.
    pub syncs: bool,
    /// Segments to be opened.
    pub free_segments: usize,
    /// Commits that were applied since the mount.
    pub commits: u64,
}

/// A volume of objects on raw NAND flash (paper 1).
pub struct FlashDevice {
    /// How far flushes have come; who takes both locks takes this one first.
    pub(crate) syncs: Mutex<Syncs, rank::FlashSyncs>,
    /// How objects choose their parity, which no change of the size changes.
    chosen: Option<ChosenParity>,
    /// Content may have another parity than its object wishes.
    parity_pending: Arc<AtomicBool>,
    /// The state.
    pub(crate) core: Mutex<Core, rank::FlashState>,
}

impl FlashDevice {
    /// Makes an empty volume on `nand`; everything on it is lost.
    ///
    /// # Errors
    /// `Invalid` if the medium is too small or of an impossible shape, `Media` if it fails.
    pub fn format(nand: impl Nand + 'static, options: &FormatOptions, mount: &MountOptions) -> Result<Self> {
        Ok(Self::over(Core::format(Box::new(nand), None, options, mount)?))
    }

    /// Mounts the volume on `nand` and recovers it after a crash.
    ///
    /// # Errors
    /// `Invalid` if there is no volume or one of another shape, `NotSupported` for a newer format,
    /// `Corrupt` if its index cannot be read, `Media` if the medium fails.
    pub fn mount(nand: impl Nand + 'static, options: &MountOptions) -> Result<Self> {
        let mut core = Core::mount(Box::new(nand), options)?;
        core.with_index(|index, log| index.entries_mut().nodes_mut().check_root(log))?;
        Ok(Self::over(core))
    }

    /// Asks the index under the device's lock.
    fn with_index<T>(&self, ask: impl FnOnce(&mut Index, &mut Log) -> Result<T>) -> Result<T> {
        self.core()?.with_index(ask)
    }

    /// What a call made now would come to without waiting for another: for who makes the calls of
    /// several clients in one thread.
    #[doc(hidden)]
    #[must_use]
    pub fn at_once(&self) -> AtOnce {
        let Some(core) = self.core.try_lock() else { return AtOnce::default() };
        let (syncs, free_segments) = (self.syncs.try_lock().is_some(), core.log().table().free_beside_pins());
        AtOnce { state: true, syncs, free_segments, commits: core.written().0 }
    }

    /// How many pages of a row are parity at most, and of content that wishes nothing where objects
    /// choose.
    #[must_use]
    pub fn parity_pages(&self) -> (u8, Option<u8>) {
        let core = self.core.lock();
        let layout = core.log().layout();
        (layout.parity_pages as u8, layout.chosen_parity)
    }

    /// How many bytes of an object have another parity than it wishes.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    #[doc(hidden)]
    pub fn other_parity(&self, object: ObjectId) -> Result<u64> {
        let mut core = self.core()?;
        let hints = core.next_stream(object)?.1.hints;
        Ok(core.other_parity(object, &hints)?.0)
    }

    /// The device over a state.
    pub(crate) fn over(mut core: Core) -> Self {
        if core.checkpoints().parity_pending() {
            core.parts().0.reprotect_mut().note_all();
        }
        let (chosen, parity_pending) = (core.log().layout().chosen(), core.checkpoints().share_parity_pending());
        Self { chosen, parity_pending, syncs: Mutex::default(), core: Mutex::new(core) }
    }
}

impl ObjectDevice for FlashDevice {
    fn info(&self) -> DeviceInfo {
        let core = self.core.lock();
        let layout = core.log().layout();
        let shape = &layout.geometry;
        let memory = core.memory_use().map_or_else(String::new, |used| {
            let (filled, all) = ((used.capacity - used.free_bytes).div_ceil(1024), used.capacity / 1024);
            format!(", index in {filled} of {all} KiB of memory")
        });
        let parity = match layout.parity_pages {
            0 => String::new(),
            most => {
                let least = layout.chosen_parity.map_or(String::new(), |_| String::from("0 to "));
                format!(", {least}{most} of {} pages parity", layout.blocks_per_segment)
            }
        };
        DeviceInfo {
            kind: if core.checkpoints().has_feature(FEATURE_MEMORY) { "flash+scm" } else { "flash" },
            uuid: *core.checkpoints().uuid(),
            summary: format!(
                "{} blocks of {} pages of {} bytes, {} segments of {} KiB{parity}{memory}",
                shape.blocks,
                shape.pages_per_block,
                shape.page_bytes,
                layout.segments,
                layout.segment_bytes() / 1024
            ),
            read_only: core.log().store().latch().why().map(ToString::to_string),
            transaction_bytes: 1 << 20,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut core = self.core()?;
        let volume = core.volume();
        volume.log.store().latch().check()?;
        let next_object = &mut volume.index.counts_mut().next_object;
        let (first, next) = reserve(ObjectId(*next_object), count)?;
        *next_object = next.0;
        Ok(first)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.commit_grouped(transaction, durability)
    }

    fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        self.core()?.check_commit(transaction)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.sync_grouped(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        check_host_object(object)?;
        let mut core = self.core()?;
        let Volume { log, index, .. } = core.volume();
        let plan = index.plan_read(log, object, offset, buffer)?;
        let beside = log.store().beside(plan.wants(), IoTag::Data).filter(|_| !plan.wants().is_empty());
        let Some(mut beside) = beside else {
            return plan.carry_out(&mut log.reader(IoTag::Data), buffer);
        };
        let pinned = log.table().pin(plan.segments());
        let pinned = Some(pinned).filter(|_| !is_planted(Bug::ManyPinDropped));
        let _busy = pinned.as_ref().map(Pinned::begin);
        // From here on the medium works for this caller while others have the lock.
        drop(core);
        plan.carry_out(&mut beside, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        check_host_object(object)?;
        self.with_index(|index, log| index.attribute(log, object, key))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        check_host_object(object)?;
        self.with_index(|index, log| index.attributes(log, object, from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        check_host_object(object)?;
        self.with_index(|index, log| index.stat(log, object))
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.with_index(|index, log| index.list(log, from, limit))
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        check_host_object(object)?;
        self.with_index(|index, log| index.data_ranges(log, object, offset, limit))
    }

    fn space(&self) -> Space {
        let core = self.core.lock();
        core.room().space(core.checkpoints().memory_allows(core.index(), core.log()))
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        // Asked for each write: nobody waits for the device here.
        self.chosen.map_or(demand.usual_bytes(), |chosen| chosen.bytes_for_any(demand.usual_bytes()))
    }

    fn space_to_replace(&self, bytes: u64) -> u64 {
        // What has the parity that is wished is replaced by what takes as much.
        match self.chosen.filter(|_| self.parity_pending.load(Ordering::Relaxed)) {
            Some(chosen) => chosen.bytes_for_any(bytes),
            None => 0,
        }
    }

    fn health(&self) -> Health {
        let mut core = self.core.lock();
        // A device that takes no changes has no background work, which would ask otherwise.
        let (cleaner, mut volume) = core.parts();
        cleaner.note_bitflips(&mut volume);
        health(&core)
    }

    fn move_unit(&self) -> Option<u64> {
        Some(MOVE_UNIT)
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        let mut report = Maintenance::default();
        let mut round = None;
        let (has_moved, has_refreshed) = {
            let mut core = self.core()?;
            let (cleaner, mut volume) = core.parts();
            cleaner.move_failing(&mut volume)?;
            let has_moved = cleaner.move_doubtful(&mut volume)?;
            cleaner.patrol_some(&mut volume)?;
            (has_moved, core.refresh()?)
        };
        report.done += u32::from(has_moved) + u32::from(has_refreshed);
        report.more = has_refreshed || has_moved && self.core.lock().log().doubtful_segment().is_some();
        // Few at a time, for who waits for the lock.
        for _ in 0..budget {
            if !self.with_index(|index, log| index.apply_some_deferred(log, APPLIED_AT_ONCE))? {
                break;
            }
        }
        // The lock is given back after each step: who reads waits for one step, not for the
        // cleaner.
        let beside = self.core.lock().log().store().shared().cloned();
        while report.done < budget {
            let mut core = self.core.lock();
            let (cleaner, mut volume) = core.parts();
            if round.is_none() && !cleaner.wants_round(&volume) {
                break;
            }
            let step = cleaner.background_step(&mut volume, &mut round)?;
            drop(core);
            beside.iter().for_each(|beside| beside.tell(Gap::Works));
            match step {
                Step::Moved => {}
                Step::Gained => report.done += 1,
                Step::Nothing => return Ok(report),
            }
        }
        let mut core = self.core.lock();
        let (cleaner, volume) = core.parts();
        report.more |= cleaner.wants_round(&volume) || volume.index.has_deferred();
        Ok(report)
    }

    fn rearranging_bytes(&self) -> u64 {
        let Ok(mut core) = self.core() else { return 0 };
        let (cleaner, volume) = core.parts();
        if cleaner.reprotect().is_pending() { Reprotect::step_bytes(volume.log.layout()) } else { 0 }
    }

    /// After each step the lock is given back.
    fn rearrange(&self, budget: u32) -> Result<Maintenance> {
        for done in 0..budget {
            let mut core = self.core()?;
            let (cleaner, mut volume) = core.parts();
            if !cleaner.reprotect_some(&mut volume)? {
                return Ok(Maintenance { done, more: false });
            }
        }
        Ok(Maintenance { done: budget, more: budget > 0 })
    }

    fn close(&self) -> Result<()> {
        // A flush that goes on beside the lock is over before the volume is.
        let _syncs = self.syncs.lock();
        let mut core = self.core.lock();
        let (cleaner, mut volume) = core.parts();
        for _ in 0..REPROTECTED_AT_CLOSE {
            if !cleaner.reprotect_some(&mut volume)? {
                break;
            }
        }
        core.close()
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
        check_host_object(object)?;
        decisions(&mut *self.core()?, object)
    }

    fn parity(&self) -> Option<ParityChoice> {
        self.chosen.map(|chosen| chosen.choice)
    }

    fn attachment(&self) -> Option<&dyn Attach> {
        let is_for_memory = self.core.lock().checkpoints().has_feature(FEATURE_MEMORY);
        is_for_memory.then_some(self)
    }

    fn resizing(&self) -> Option<&dyn Resize> {
        Some(self)
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        Some(self)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

//! The object device over the volume.

use crate::commit::Volume;
use crate::discard::AT_CLOSE;
use crate::errors::{damaged, invalid};
use crate::fast::{Fast, Identity};
use crate::layout::BLOCK;
use crate::mount::{format_big, mount, read_superblock};
use crate::node::{Key, Space as Part};
use crate::options::{FormatOptions, MountOptions, NewFast};
use crate::slot::FastSlot;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::Clock;
use onode_media::BlockDev;
use onode_object::powers::{Inspect, Place, Scrub};
use onode_object::validate::reserve;
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, ErrorKind, Maintenance, ObjectDevice, ObjectId, ObjectStat, Result,
    Space, SyncScope, Transaction,
};

/// A fast and a big disk, or the big one alone, as an object device.
pub struct TierDevice {
    pub(crate) volume: Volume,
}

impl TierDevice {
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

    /// Mounts a volume with its fast disk, or alone: then the big disk remembers that it went on without. A fast disk
    /// that is damaged or fails is left away, which [`reports`](Self::reports) tells.
    ///
    /// # Errors
    /// `Invalid` if the big disk holds no volume, or if the fast one is not a fast disk of this volume; `Corrupt`,
    /// `Media` of the big disk.
    pub fn mount(mut big: Box<dyn BlockDev>, fast: Option<Box<dyn BlockDev>>, options: &MountOptions) -> Result<Self> {
        let Some(fast) = fast else { return Ok(Self { volume: mount(big, FastSlot::default(), options)? }) };
        let (superblock, _) = read_superblock(&mut *big)?;
        let slot = match Fast::open(fast, superblock.uuid, &options.fast) {
            Ok(fast) => FastSlot::of(fast),
            Err(error) if error.kind == ErrorKind::Invalid => return Err(error),
            Err(error) => {
                let mut slot = FastSlot::default();
                slot.lose(format!("{error}"));
                slot
            }
        };
        Ok(Self { volume: mount(big, slot, options)? })
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
        let volume = superblock.uuid;
        let identity = Identity { volume, own: new.uuid, session: 0 };
        let fast = Fast::format(new.disk, &identity, &new.options, &options.fast)?;
        Ok(Self { volume: mount(big, FastSlot::of(fast), options)? })
    }

    /// What was found at the mount that people should know: dropped records, disks that lost what they had said was
    /// durable, why the fast disk is away.
    #[must_use]
    pub fn reports(&self) -> Vec<String> {
        let core = self.volume.core.lock();
        let mut all = core.reports.clone();
        let lost = core.disks.fast.lock().lost.clone();
        all.extend(lost.map(|why| format!("the fast disk is away: {why}")));
        all.dedup();
        all
    }

    /// Whether the fast disk takes part.
    #[must_use]
    pub fn has_fast(&self) -> bool {
        self.volume.core.lock().disks.fast.lock().is_there()
    }

    /// Takes the time, by which daily budgets and the ageing of what is collected go, from `clock` from now on.
    pub fn set_clock(&self, clock: Arc<dyn Clock>) {
        if let Some(fast) = self.volume.core.lock().disks.fast.lock().get() {
            fast.set_clock(clock);
        }
    }
}

/// How requests reach a disk, behind its size.
fn way(disk: &dyn BlockDev) -> String {
    disk.way().map_or_else(String::new, |way| format!(" ({way})"))
}

impl ObjectDevice for TierDevice {
    fn info(&self) -> DeviceInfo {
        let core = self.volume.core.lock();
        let layout = core.io.layout;
        let mut slot = core.disks.fast.lock();
        let fast = match (slot.get(), &core.superblock.sections) {
            (Some(fast), sections) => {
                let way = way(fast.disk());
                format!("fast disk of {} MiB{way} with {} sections", fast.disk().bytes() >> 20, sections.len())
            }
            (None, _) if core.superblock.fast.is_known => String::from("the fast disk is away"),
            (None, _) => String::from("no fast disk"),
        };
        let (big, log) = ((layout.blocks * BLOCK) >> 20, (layout.ring_blocks * BLOCK) >> 10);
        let way = way(&**core.disks.big.lock());
        let summary = format!("big disk of {big} MiB{way}, log of {log} KiB, {fast}");
        drop(slot);
        DeviceInfo {
            kind: "tier",
            uuid: core.superblock.uuid,
            summary,
            read_only: core.read_only.clone(),
            transaction_bytes: 1 << 20,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut core = self.volume.core.lock();
        core.check_writable()?;
        let (first, next) = reserve(ObjectId(core.next_id), count)?;
        core.next_id = next.0;
        Ok(first)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.volume.commit(&transaction, durability)
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        self.volume.sync()
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.volume.core.lock().read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let core = &mut *self.volume.core.lock();
        core.known(object)?;
        Ok(core.tree.get(&mut core.io, &Key::attribute(object.0, key))?.map(<[u8]>::to_vec))
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let core = &mut *self.volume.core.lock();
        core.known(object)?;
        let mut out = Vec::new();
        let mut from = Some(from);
        while let Some(start) = from.filter(|_| out.len() < limit) {
            let Some((key, value)) = core.tree.next(&mut core.io, &Key::attribute(object.0, start))? else { break };
            if key.object != object.0 || key.space != Part::Attribute {
                break;
            }
            out.push((key.attribute_key(), value.to_vec()));
            from = key.attribute_key().next();
        }
        Ok(out)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let mut core = self.volume.core.lock();
        let onode = core.known(object)?;
        let allocated =
            if onode.has_blocks { onode.blocks.saturating_mul(BLOCK) } else { core.inline(object)?.len() as u64 };
        Ok(ObjectStat { size: onode.size, allocated, hints: onode.hints, accessed: onode.accessed })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let core = &mut *self.volume.core.lock();
        let mut out = Vec::new();
        let mut from = Some(from.0);
        while let Some(start) = from.filter(|_| out.len() < limit) {
            let Some((key, _)) = core.tree.next(&mut core.io, &Key::of(start, Part::Onode))? else { break };
            if key.space != Part::Onode {
                // The rest of an object that has no onode: nothing that could be shown.
                let object = ObjectId(key.object);
                if key.object != start {
                    return Err(damaged(format!("{object} has content and no onode")));
                }
            } else {
                out.push(ObjectId(key.object));
            }
            from = key.object.checked_add(1);
        }
        Ok(out)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.volume.core.lock().data_ranges(object, offset, limit)
    }

    fn space(&self) -> Space {
        self.volume.core.lock().user_space()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.volume.core.lock().check_writable()?;
        let (steps, is_under_way) = self.volume.bring_home(budget)?;
        let (moved, waits) = self.volume.move_waiting(budget.saturating_sub(steps))?;
        let mut core = self.volume.core.lock();
        let told = core.tell_big(budget.saturating_sub(steps + moved));
        let left = budget.saturating_sub(steps + moved + told);
        let fast = core.disks.fast.lock().with(|fast| fast.maintain(left)).unwrap_or_default();
        let more = is_under_way || waits || fast.more || !core.space.unneeded.is_empty();
        Ok(Maintenance { done: steps + moved + told + fast.done, more })
    }

    fn close(&self) -> Result<()> {
        {
            let core = self.volume.core.lock();
            if core.options.read_only {
                return Ok(());
            }
            if let Some(why) = &core.read_only {
                return Err(Error::new(ErrorKind::Media, why.clone()));
            }
        }
        self.volume.checkpoint()?;
        self.volume.core.lock().tell_big(AT_CLOSE);
        self.volume.core.lock().disks.fast.lock().with(Fast::close);
        self.volume.log.lock().notice_loss(&mut self.volume.core.lock())
    }

    fn place(&self) -> Option<&dyn Place> {
        Some(self)
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        Some(self)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

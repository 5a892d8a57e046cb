//! The object device over the volume.

use crate::commit::Volume;
use crate::errors::damaged;
use crate::layout::BLOCK;
use crate::mount::{format_big, mount_big};
use crate::node::{Key, Space as Part};
use crate::options::{FormatOptions, MountOptions};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use onode_media::BlockDev;
use onode_object::powers::{Inspect, Scrub};
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
    /// Makes an empty volume on the big disk alone and mounts it.
    ///
    /// # Errors
    /// `Invalid`, `Media`.
    pub fn format_alone(mut big: Box<dyn BlockDev>, format: &FormatOptions, mount: &MountOptions) -> Result<Self> {
        format_big(&mut *big, format)?;
        Self::mount_alone(big, mount)
    }

    /// Mounts the big disk alone, whatever there was beside it.
    ///
    /// # Errors
    /// `Invalid` if it holds no volume, `Corrupt`, `Media`.
    pub fn mount_alone(big: Box<dyn BlockDev>, options: &MountOptions) -> Result<Self> {
        Ok(Self { volume: mount_big(big, options)? })
    }
}

impl ObjectDevice for TierDevice {
    fn info(&self) -> DeviceInfo {
        let core = self.volume.core.lock();
        let layout = core.io.layout;
        let summary = format!(
            "big disk of {} MiB, log of {} KiB, no fast disk",
            (layout.blocks * BLOCK) >> 20,
            (layout.ring_blocks * BLOCK) >> 10
        );
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

    fn maintain(&self, _budget: u32) -> Result<Maintenance> {
        {
            let core = self.volume.core.lock();
            core.check_writable()?;
            if core.pending.bytes() * 2 < core.options.pending_bytes {
                return Ok(Maintenance::default());
            }
        }
        self.volume.checkpoint()?;
        Ok(Maintenance { done: 1, more: false })
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
        self.volume.checkpoint()
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        Some(self)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

//! A mounted volume that takes up what its big disk has more than it, or gives some of it back.

use super::TierDevice;
use crate::medium::errors::{from_media, invalid};
use crate::medium::layout::{BLOCK, LEAST_GROWTH};
use onode_media::MediaErrorKind;
use onode_object::Result;
use onode_object::powers::{Extent, Replace, Resize};

impl Resize for TierDevice {
    fn extent(&self) -> Result<Extent> {
        let bytes_of = |blocks: u64| (blocks + 1) * BLOCK;
        let (disks, blocks, fewest, moving) = {
            let core = self.volume.core.lock();
            let disks = alloc::sync::Arc::clone(core.disks());
            (disks, core.index().layout().blocks, core.fewest_blocks(), core.moving_bytes())
        };
        let most = {
            let mut big = disks.big.lock();
            big.grow(0).map_err(|error| from_media("measuring the big disk", &error))?;
            big.bytes() / BLOCK * BLOCK
        };
        // Behind the volume is a superblock.
        let bytes = bytes_of(blocks);
        Ok(Extent {
            bytes,
            most: most.max(bytes),
            least: bytes + LEAST_GROWTH * BLOCK,
            unit: BLOCK,
            fewest: bytes_of(fewest),
            moving,
        })
    }

    fn grow(&self, bytes: u64) -> Result<()> {
        let mut home = self.volume.home();
        self.check_disks_stay()?;
        let layout = {
            let core = self.volume.core.lock();
            core.check_writable()?;
            core.index().layout()
        };
        let grown = layout.grown(bytes)?;
        self.volume.core.lock().stop_shrinking();
        home.grow(&grown)
    }

    fn take_disk(&self, place: &str) -> Result<()> {
        let uuid = {
            let core = self.volume.core.lock();
            core.check_writable()?;
            core.superblock().uuid
        };
        let disk = self.disk_finder()?.another(place, uuid)?;
        let home = self.volume.home();
        self.check_disks_stay()?;
        let joined = home.disks.big.lock().join(disk, uuid);
        joined.map_err(|error| match error.kind {
            MediaErrorKind::OutOfRange | MediaErrorKind::Invalid => invalid(error.detail),
            _ => from_media("writing the label of the disk", &error),
        })
    }

    fn replacing(&self) -> Option<&dyn Replace> {
        Some(self)
    }

    fn begin_shrinking(&self, bytes: u64) -> Result<()> {
        self.volume.begin_shrinking(bytes)?;
        // Who begins to replace one looks whether it shrinks after that was begun.
        self.check_disks_stay().inspect_err(|_| self.volume.core.lock().stop_shrinking())
    }

    fn shrink_some(&self) -> Result<bool> {
        self.volume.shrink_some()
    }

    fn stop_shrinking(&self) -> Result<()> {
        self.volume.core.lock().stop_shrinking();
        Ok(())
    }
}

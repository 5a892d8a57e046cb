//! A mounted volume that takes up what its big disk has more than it.

use super::TierDevice;
use crate::medium::errors::from_media;
use crate::medium::layout::{BLOCK, LEAST_GROWTH};
use onode_object::Result;
use onode_object::powers::{Extent, Resize};

impl Resize for TierDevice {
    fn extent(&self) -> Result<Extent> {
        let (disks, blocks) = {
            let core = self.volume.core.lock();
            (alloc::sync::Arc::clone(core.disks()), core.index().layout().blocks)
        };
        let most = {
            let mut big = disks.big.lock();
            big.grow(0).map_err(|error| from_media("measuring the big disk", &error))?;
            big.bytes() / BLOCK * BLOCK
        };
        // Behind the volume is a superblock.
        let bytes = (blocks + 1) * BLOCK;
        Ok(Extent {
            bytes,
            most: most.max(bytes),
            least: bytes + LEAST_GROWTH * BLOCK,
            unit: BLOCK,
            fewest: bytes,
            moving: 0,
        })
    }

    fn grow(&self, bytes: u64) -> Result<()> {
        let mut home = self.volume.home();
        let layout = {
            let core = self.volume.core.lock();
            core.check_writable()?;
            core.index().layout()
        };
        home.grow(&layout.grown(bytes)?)
    }
}

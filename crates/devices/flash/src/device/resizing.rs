//! A mounted volume that takes up what its medium has more than it, or gives some of it back.

use super::FlashDevice;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::powers::{Extent, Resize};
use onode_object::{Error, Result};

impl FlashDevice {
    /// The erase blocks of a volume of `bytes`.
    fn blocks_of(bytes: u64, block_bytes: u64) -> Result<u32> {
        let blocks = bytes / block_bytes;
        u32::try_from(blocks).map_err(|_| {
            Error::new(ErrorKind::Invalid, format!("{blocks} erase blocks are more than a volume can have"))
        })
    }
}

impl Resize for FlashDevice {
    fn extent(&self) -> Result<Extent> {
        let mut core = self.core()?;
        let most = core.most_blocks()?;
        let (layout, unit) = (core.log().layout(), core.block_bytes());
        let bytes = |blocks: u32| u64::from(blocks) * unit;
        let blocks = layout.geometry.blocks;
        Ok(Extent {
            bytes: bytes(blocks),
            most: bytes(most.max(blocks)),
            least: bytes(layout.least_growth()),
            unit,
            fewest: bytes(core.fewest_blocks()),
            moving: core.moving_bytes(),
        })
    }

    fn grow(&self, bytes: u64) -> Result<()> {
        // A flush that goes on beside the lock is over before superblocks move.
        let _syncs = self.syncs.lock();
        let mut core = self.core()?;
        let blocks = Self::blocks_of(bytes, core.block_bytes())?;
        core.grow(blocks)
    }

    fn begin_shrinking(&self, bytes: u64) -> Result<()> {
        let mut core = self.core()?;
        let blocks = Self::blocks_of(bytes, core.block_bytes())?;
        core.begin_shrinking(blocks)
    }

    fn shrink_some(&self) -> Result<bool> {
        // As when it grows.
        let _syncs = self.syncs.lock();
        self.core()?.shrink_some()
    }

    fn stop_shrinking(&self) -> Result<()> {
        self.core()?.stop_shrinking();
        Ok(())
    }
}

//! A mounted volume that takes up what its medium has more than it.

use super::FlashDevice;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::powers::{Extent, Grow};
use onode_object::{Error, Result};

impl Grow for FlashDevice {
    fn extent(&self) -> Result<Extent> {
        let mut core = self.core()?;
        let most = core.most_blocks()?;
        let (layout, unit) = (core.log().layout(), core.block_bytes());
        let bytes = |blocks: u32| u64::from(blocks) * unit;
        let blocks = layout.geometry.blocks;
        Ok(Extent { bytes: bytes(blocks), most: bytes(most.max(blocks)), least: bytes(layout.least_growth()), unit })
    }

    fn grow(&self, bytes: u64) -> Result<()> {
        // A flush that goes on beside the lock is over before superblocks move.
        let _syncs = self.syncs.lock();
        let mut core = self.core()?;
        let blocks = bytes / core.block_bytes();
        let blocks = u32::try_from(blocks).map_err(|_| {
            Error::new(ErrorKind::Invalid, format!("{blocks} erase blocks are more than a volume can have"))
        })?;
        core.grow(blocks)
    }
}

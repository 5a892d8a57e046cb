//! More erase blocks on a device that became longer, or in a file that is made longer; or fewer.
//!
//! It keeps true: the labels change one after another, each durable before the next, and whichever
//! of them a power cut leaves tells one of both numbers of blocks; what is programmed stays where
//! it is.

use super::{BlockNand, blocks_that_fit, write_labels};
use crate::blockdev::{BlockDev, SECTOR_BYTES};
use crate::error::Result;
use crate::nand::Geometry;
use crate::real::label::Label;
use alloc::sync::Arc;

impl<S: BlockDev> BlockNand<S> {
    /// How many blocks the device has room for now.
    pub(super) fn blocks_with_room(&mut self) -> Result<u32> {
        self.storage.grow(0)?;
        let Geometry { page_bytes, pages_per_block, blocks, .. } = self.label.geometry;
        let fit = blocks_that_fit(self.storage.bytes(), page_bytes, pages_per_block).unwrap_or(0);
        Ok(fit.min(Geometry::MOST_BLOCKS).max(blocks))
    }

    /// Has `blocks` blocks from now on.
    pub(super) fn grow_to(&mut self, blocks: u32) -> Result<()> {
        if blocks == self.label.geometry.blocks {
            return Ok(());
        }
        self.check_writable()?;
        let geometry = self.label.geometry.grown(blocks, self.storage.name())?;
        let label = Label { geometry, ..self.label };
        self.storage.grow(label.end() + SECTOR_BYTES as u64)?;
        // Nobody reads the blocks that come before he asked for a new shared part.
        self.take_label(label)
    }

    /// Is divided as `label` says from now on.
    fn take_label(&mut self, label: Label) -> Result<()> {
        // All that was programmed is durable before the first label says something new.
        self.flushes.run(|| self.storage.flush())?;
        write_labels(&mut self.storage, &label, |storage| self.flushes.run(|| storage.flush()))?;
        self.order = Arc::new(self.order.of_shape(&label.geometry));
        self.label = label;
        Ok(())
    }

    /// Has the first `blocks` blocks from now on. A file becomes shorter; a device may, up to the
    /// label behind the blocks.
    pub(super) fn shrink_to(&mut self, blocks: u32) -> Result<()> {
        let geometry = self.label.geometry.shrunk(blocks, self.storage.name())?;
        if geometry == self.label.geometry {
            return Ok(());
        }
        self.check_writable()?;
        self.take_label(Label { geometry, ..self.label })?;
        let before = self.storage.bytes();
        self.storage.shrink(self.label.end() + SECTOR_BYTES as u64)?;
        if self.storage.bytes() < before {
            // The one at the end was cut off.
            write_labels(&mut self.storage, &self.label, |storage| self.flushes.run(|| storage.flush()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Forgetful;
    use super::*;
    use crate::error::MediaErrorKind;
    use crate::image::OpenMode;
    use crate::nand::{BlockAddress, Nand, PageAddress};
    use crate::real::block::bytes_for;
    use crate::tag::IoTag;
    use alloc::vec;

    const SHAPE: Geometry = Geometry { page_bytes: 4096, spare_bytes: 0, pages_per_block: 8, blocks: 16, chips: 1 };

    fn larger(blocks: u32) -> Geometry {
        Geometry { blocks, ..SHAPE }
    }

    #[test]
    fn a_longer_device_has_more_blocks_and_all_that_was_there() {
        let mut nand = BlockNand::create_on(Forgetful::new(bytes_for(&SHAPE)), SHAPE, [7; 16]).unwrap();
        nand.program(PageAddress(9 * 8), &[3; 4096], &[], IoTag::Data).unwrap();
        nand.mark_bad(BlockAddress(2)).unwrap();
        assert_eq!(nand.most_blocks(), Ok(16));
        assert_eq!(nand.grow(17).unwrap_err().kind, MediaErrorKind::OutOfRange);
        assert_eq!(nand.geometry().blocks, 16);

        let mut storage = nand.into_storage();
        storage.lengthen(bytes_for(&larger(40)) + 4096);
        let mut nand = BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
        assert_eq!((nand.geometry().blocks, nand.most_blocks()), (16, Ok(40)));
        assert_eq!(nand.grow(8).unwrap_err().kind, MediaErrorKind::OutOfRange);
        nand.grow(40).unwrap();
        nand.erase(BlockAddress(39), IoTag::Data).unwrap();
        nand.program(PageAddress(39 * 8), &[4; 4096], &[], IoTag::Data).unwrap();

        // With both labels at the start damaged, the one at the end counts.
        let mut storage = nand.into_storage();
        for offset in [0, 4096] {
            let mut label = vec![0; 4096];
            storage.read_at(offset, &mut label, IoTag::Check).unwrap();
            label[100] ^= 1;
            storage.write_at(offset, &label, IoTag::Check).unwrap();
        }
        let mut nand = BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
        assert_eq!((nand.geometry(), nand.is_bad(BlockAddress(2))), (larger(40), Ok(true)));
        for (page, byte) in [(9 * 8, 3), (39 * 8, 4)] {
            let mut data = vec![0; 4096];
            nand.read(PageAddress(page), &mut data, &mut [], IoTag::Data).unwrap();
            assert_eq!(data, [byte; 4096]);
        }
    }

    #[test]
    fn a_device_may_be_cut_behind_the_blocks_that_are_left() {
        let mut nand = BlockNand::create_on(Forgetful::new(bytes_for(&larger(40))), larger(40), [7; 16]).unwrap();
        nand.program(PageAddress(9 * 8), &[3; 4096], &[], IoTag::Data).unwrap();
        nand.mark_bad(BlockAddress(2)).unwrap();
        for (blocks, kind) in [(41, MediaErrorKind::OutOfRange), (7, MediaErrorKind::OutOfRange)] {
            assert_eq!(nand.shrink(blocks).unwrap_err().kind, kind);
        }
        nand.shrink(12).unwrap();
        assert_eq!(nand.geometry(), larger(12));
        assert_eq!(nand.erase(BlockAddress(12), IoTag::Data).unwrap_err().kind, MediaErrorKind::OutOfRange);
        let mut storage = nand.into_storage();
        for bytes in [bytes_for(&larger(40)), bytes_for(&larger(12))] {
            storage.lengthen(bytes);
            let mut nand = BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
            assert_eq!((nand.geometry(), nand.is_bad(BlockAddress(2))), (larger(12), Ok(true)));
            let mut data = vec![0; 4096];
            nand.read(PageAddress(9 * 8), &mut data, &mut [], IoTag::Data).unwrap();
            assert_eq!(data, [3; 4096]);
            storage = nand.into_storage();
        }
        let mut nand = BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
        nand.shrink(8).unwrap();
        assert_eq!(nand.most_blocks(), Ok(12), "there is room for those that went");
    }

    #[test]
    fn a_medium_that_is_open_for_reads_does_not_grow() {
        let nand = BlockNand::create_on(Forgetful::new(bytes_for(&larger(40))), SHAPE, [7; 16]).unwrap();
        let mut nand = BlockNand::open_on(nand.into_storage(), OpenMode::ReadOnly).unwrap();
        assert_eq!((nand.most_blocks(), nand.grow(20).unwrap_err().kind), (Ok(40), MediaErrorKind::ReadOnly));
    }
}

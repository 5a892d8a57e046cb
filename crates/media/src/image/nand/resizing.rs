//! More erase blocks in an image, or fewer.
//!
//! It keeps true: all that is new stands behind what the image was, or among blocks that are not
//! needed any more, whole and durable before the header page at the start names it; so whatever is
//! left by a kill or a failure of the host is an image of one of both sizes.

use super::{ImageNand, OpenBlock};
use crate::error::Result;
use crate::image::format::{ENTRY_BYTES, Header, ImageShape, TableEntry};
use crate::image::watermark::Notes;
use crate::nand::Nand;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use zerocopy::IntoBytes;

impl ImageNand {
    /// Has `blocks` blocks from now on.
    pub(super) fn grow_to(&mut self, blocks: u32) -> Result<()> {
        if blocks == self.shape.geometry.blocks {
            return Ok(());
        }
        self.check_writable()?;
        let shape = self.shape.grown(self.shape.geometry.grown(blocks, self.path().display())?)?;
        self.flush()?;
        let (file, layout, end) = (&self.shared.file, &shape.layout, self.shape.layout.end);
        // What a growth that was given up left behind reads as zeros again.
        file.set_bytes(end + Notes::AREA_BYTES)?;
        file.set_bytes(layout.end + Notes::AREA_BYTES)?;
        self.take_shape(shape)
    }

    /// Has the first `blocks` blocks from now on, if the file becomes shorter by that.
    pub(super) fn shrink_to(&mut self, blocks: u32) -> Result<()> {
        let geometry = self.shape.geometry.shrunk(blocks, self.path().display())?;
        if geometry == self.shape.geometry {
            return Ok(());
        }
        self.check_writable()?;
        let Some(shape) = self.shape.shrunk(geometry) else { return Ok(()) };
        self.flush()?;
        self.take_shape(shape)?;
        self.cut_off_rest()
    }

    /// Has this shape from now on: the file has room for it.
    fn take_shape(&mut self, shape: ImageShape) -> Result<()> {
        let (file, blocks) = (&self.shared.file, shape.geometry.blocks);
        let (header, table) = (Header::new(&shape), self.table_of(blocks));
        if shape.layout.table != self.shape.layout.table {
            file.write(shape.layout.table, &table)?;
        }
        if let Some(copies) = shape.layout.copies {
            file.write(copies.table, &table)?;
            file.write(copies.header, header.as_bytes())?;
        }
        let notes = self.notes.moved(file, shape.layout.end, &shape.uuid)?;
        file.sync_all()?;
        file.write(0, header.as_bytes())?;
        file.sync_all()?;
        self.shared = Arc::new(self.shared.of_shape(shape.geometry, shape.layout.clone()));
        self.blocks.resize(blocks as usize, OpenBlock::NEW);
        self.not_copied.clear();
        (self.shape, self.notes) = (shape, notes);
        Ok(())
    }

    /// Cuts off what a file that shrank has behind the image.
    pub(super) fn cut_off_rest(&self) -> Result<()> {
        if !self.shape.has_shrunk() {
            return Ok(());
        }
        self.shared.file.set_bytes(self.shape.layout.end + Notes::AREA_BYTES)
    }

    /// The table of an image of `blocks` blocks.
    fn table_of(&self, blocks: u32) -> Vec<u8> {
        let mut table = vec![0; blocks as usize * ENTRY_BYTES];
        let entries = (0..).zip(&self.blocks).zip(table.chunks_exact_mut(ENTRY_BYTES));
        for ((number, open), entry) in entries {
            // One that is lost has an entry that no checksum fits, as it has now.
            let sound = TableEntry::encode(number, open.state);
            entry.copy_from_slice(sound.as_bytes());
            if open.lost {
                entry.iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::MediaErrorKind;
    use crate::image::{CreateOptions, OpenMode};
    use crate::nand::{BlockAddress, Geometry, PageAddress};
    use crate::tag::IoTag;
    use alloc::format;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 16, pages_per_block: 16, blocks: 64, chips: 1 };

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("onode-nand-resizing-{}-{name}", std::process::id()))
    }

    fn open(path: &Path) -> ImageNand {
        ImageNand::open(path, OpenMode::ReadWrite).unwrap()
    }

    fn put(nand: &mut ImageNand, page: u64, byte: u8) {
        nand.program(PageAddress(page), &[byte; 2048], &[byte; 16], IoTag::Data).unwrap();
    }

    fn get(nand: &mut ImageNand, page: u64) -> (u8, u8) {
        let (mut data, mut spare) = ([0; 2048], [0; 16]);
        nand.read(PageAddress(page), &mut data, &mut spare, IoTag::Data).unwrap();
        (data[2047], spare[15])
    }

    #[test]
    fn an_image_grows_again_and_again_and_keeps_what_it_had() {
        let path = file("again");
        let mut nand = ImageNand::create(&path, SHAPE, CreateOptions { uuid: [7; 16], overwrite: true }).unwrap();
        put(&mut nand, 63 * 16, 1);
        nand.mark_bad(BlockAddress(3)).unwrap();
        nand.set_watermark(40).unwrap();
        let beside = nand.shared().unwrap();
        for (blocks, byte) in [(65, 2), (700, 3)] {
            nand.grow(blocks).unwrap();
            assert_eq!(nand.geometry(), Geometry { blocks, ..SHAPE });
            put(&mut nand, u64::from(blocks - 1) * 16, byte);
        }
        assert_eq!(nand.grow(699).unwrap_err().kind, MediaErrorKind::OutOfRange);
        // Who read before goes on with what there was.
        let mut data = [0; 2048];
        beside.read_run(PageAddress(63 * 16), &mut data, &mut [], IoTag::Data).unwrap();
        assert_eq!(data[0], 1);
        drop((nand, beside));
        for is_wiped in [false, true] {
            if is_wiped {
                let raw = std::fs::File::options().write(true).open(&path).unwrap();
                raw.write_all_at(&[0; 20_480], 0).unwrap();
            }
            let mut nand = open(&path);
            assert_eq!(nand.geometry().blocks, 700);
            assert_eq!([63, 64, 699].map(|block| get(&mut nand, block * 16)), [(1, 1), (2, 2), (3, 3)]);
            assert_eq!(get(&mut nand, 600 * 16), (0xff, 0xff));
            assert_eq!(nand.is_bad(BlockAddress(3)), Ok(true));
            let watermark = nand.watermark().unwrap();
            assert_eq!((watermark.number, watermark.is_damaged), (40, false));
        }
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_growth_that_was_cut_short_leaves_the_image_as_it_was() {
        let path = file("short");
        let mut nand = ImageNand::create(&path, SHAPE, CreateOptions { uuid: [7; 16], overwrite: true }).unwrap();
        put(&mut nand, 0, 1);
        nand.flush().unwrap();
        let mut header = [0; 4096];
        let raw = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        raw.read_exact_at(&mut header, 0).unwrap();
        nand.grow(300).unwrap();
        put(&mut nand, 299 * 16, 9);
        drop(nand);
        // As it was before the last write of the growth; what is behind the image is garbage then.
        raw.write_all_at(&header, 0).unwrap();
        let mut nand = open(&path);
        assert_eq!((nand.geometry(), get(&mut nand, 0)), (SHAPE, (1, 1)));
        put(&mut nand, 1, 2);
        nand.grow(300).unwrap();
        assert_eq!((get(&mut nand, 1), get(&mut nand, 299 * 16)), ((2, 2), (0xff, 0xff)));
        drop(nand);
        assert_eq!(get(&mut open(&path), 299 * 16), (0xff, 0xff));
        let _ = std::fs::remove_file(path);
    }

    /// Puts its number into the last page of each of these blocks, which hold nothing yet.
    fn number(nand: &mut ImageNand, blocks: impl Iterator<Item = u32>) {
        blocks.for_each(|block| put(nand, u64::from(block) * 16 + 15, block as u8));
    }

    fn has_numbers(nand: &mut ImageNand) {
        for block in 0..nand.geometry().blocks {
            assert_eq!(get(nand, u64::from(block) * 16 + 15), (block as u8, block as u8), "block {block}");
        }
    }

    #[test]
    fn an_image_shrinks_and_grows_and_keeps_the_blocks_that_stay() {
        let path = file("shrinks");
        let mut nand = ImageNand::create(&path, SHAPE, CreateOptions { uuid: [7; 16], overwrite: true }).unwrap();
        number(&mut nand, 0..64);
        nand.set_watermark(40).unwrap();
        let bytes = || std::fs::metadata(&path).unwrap().len();
        let mut before = bytes();
        // To the size that it had before it grew, too.
        for blocks in [50, 90, 85, 60, 30, 40, 30, 200, 64, 66, 64, 300, 20, 8] {
            let had = nand.geometry().blocks;
            let grows = blocks > had;
            if grows {
                nand.grow(blocks).unwrap()
            } else {
                nand.shrink(blocks).unwrap()
            }
            assert_eq!((nand.geometry().blocks, bytes() > before), (blocks, grows));
            number(&mut nand, had..blocks);
            has_numbers(&mut nand);
            nand.flush().unwrap();
            drop(nand);
            before = bytes();
            has_numbers(&mut open(&path));
            // What stands at the end is enough.
            let raw = std::fs::File::options().write(true).open(&path).unwrap();
            raw.write_all_at(&[0; 4096], 0).unwrap();
            nand = open(&path);
            has_numbers(&mut nand);
            assert_eq!(nand.watermark().unwrap().number, 40);
        }
        for (blocks, kind) in [(9, MediaErrorKind::OutOfRange), (7, MediaErrorKind::OutOfRange)] {
            assert_eq!(nand.shrink(blocks).unwrap_err().kind, kind);
        }
        nand.grow(60).unwrap();
        let beside = nand.shared().unwrap();
        nand.shrink(8).unwrap();
        // Who read before still finds what stayed.
        let mut data = [0; 2048];
        beside.read_run(PageAddress(7 * 16 + 15), &mut data, &mut [], IoTag::Data).unwrap();
        assert_eq!(data[0], 7);
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn an_image_of_a_few_blocks_less_stays_as_long_as_it_is() {
        let path = file("few");
        let tiny = Geometry { page_bytes: 512, pages_per_block: 4, ..SHAPE };
        let mut nand = ImageNand::create(&path, tiny, CreateOptions { uuid: [7; 16], overwrite: true }).unwrap();
        nand.shrink(62).unwrap();
        assert_eq!(nand.geometry().blocks, 64);
        nand.shrink(50).unwrap();
        assert_eq!(nand.geometry().blocks, 50);
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_shrink_that_was_cut_short_leaves_the_image_as_it_was_or_as_it_is_to_be() {
        let path = file("shrinks-short");
        let mut nand = ImageNand::create(&path, SHAPE, CreateOptions { uuid: [7; 16], overwrite: true }).unwrap();
        number(&mut nand, 0..64);
        nand.flush().unwrap();
        let before = std::fs::read(&path).unwrap();
        nand.shrink(20).unwrap();
        drop(nand);
        let after = std::fs::read(&path).unwrap();
        // All but the header at the start, and all but the file's new length.
        for (header, blocks) in [(&before, 64), (&after, 20)] {
            let mut cut = before.clone();
            cut[..after.len()].copy_from_slice(&after);
            cut[..4096].copy_from_slice(&header[..4096]);
            std::fs::write(&path, &cut).unwrap();
            let mut nand = open(&path);
            assert_eq!(nand.geometry().blocks, blocks);
            for block in 0..20 {
                assert_eq!(get(&mut nand, block * 16 + 15).0, block as u8);
            }
            drop(nand);
            let bytes = std::fs::metadata(&path).unwrap().len();
            assert_eq!(bytes, if blocks == 20 { after.len() as u64 } else { before.len() as u64 });
        }
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_block_whose_entry_is_damaged_stays_lost() {
        let path = file("lost");
        let mut nand = ImageNand::create(&path, SHAPE, CreateOptions { uuid: [7; 16], overwrite: true }).unwrap();
        put(&mut nand, 5 * 16, 1);
        nand.blocks[5].lost = true;
        nand.grow(100).unwrap();
        drop(nand);
        let nand = open(&path);
        assert_eq!(nand.lost_blocks().collect::<std::vec::Vec<_>>(), [BlockAddress(5)]);
        let _ = std::fs::remove_file(path);
    }
}

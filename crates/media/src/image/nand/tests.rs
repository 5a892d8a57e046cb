//! Images over reopening, killed processes, second users, and files that are not what they seem.

use super::*;
use crate::image::format::{Layout, MAGIC, VERSION_SHRUNK};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::string::ToString;

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 16, pages_per_block: 16, blocks: 64, chips: 1 };

/// A file name of this test, removed at the end.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onode-nand-image-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn create(&self) -> ImageNand {
        ImageNand::create(&self.0, SHAPE, CreateOptions { uuid: [7; 16], overwrite: false }).unwrap()
    }

    fn open(&self) -> Result<ImageNand> {
        ImageNand::open(&self.0, OpenMode::ReadWrite)
    }

    fn raw(&self) -> std::fs::File {
        std::fs::File::options().read(true).write(true).open(&self.0).unwrap()
    }

    /// Changes bytes of the header and, if told so, its checksum with them.
    fn patch_header(&self, offset: usize, bytes: &[u8], mend: bool) {
        let mut header = [0; HEADER_BYTES];
        self.raw().read_exact_at(&mut header, 0).unwrap();
        header[offset..offset + bytes.len()].copy_from_slice(bytes);
        if mend {
            let crc = onode_base::checksum::crc32c(&header[..4092]);
            header[4092..].copy_from_slice(&crc.to_le_bytes());
        }
        self.raw().write_all_at(&header, 0).unwrap();
        self.raw().write_all_at(&header, Layout::of(SHAPE).copies.unwrap().header).unwrap();
    }

    /// Changes bytes of the table at both ends.
    fn patch_table(&self, offset: u64, bytes: &[u8]) {
        for table in [HEADER_BYTES as u64, Layout::of(SHAPE).copies.unwrap().table] {
            self.raw().write_all_at(bytes, table + offset).unwrap();
        }
    }

    fn open_kind(&self) -> MediaErrorKind {
        kind(self.open())
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn kind<T>(result: Result<T>) -> MediaErrorKind {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => {
            assert!(!error.detail.is_empty(), "{error:?} tells no detail");
            error.kind
        }
    }
}

fn put(nand: &mut ImageNand, page: u64, byte: u8) {
    nand.program(PageAddress(page), &[byte; 2048], &[byte; 16], IoTag::Data).unwrap();
}

fn get(nand: &mut ImageNand, page: u64) -> (u8, u8) {
    let (mut data, mut spare) = ([0; 2048], [0; 16]);
    nand.read(PageAddress(page), &mut data, &mut spare, IoTag::Data).unwrap();
    assert!(data.iter().all(|byte| *byte == data[0]) && spare.iter().all(|byte| *byte == spare[0]));
    (data[0], spare[0])
}

#[test]
fn content_wear_and_identity_outlive_the_process() {
    let test = TestFile::new("round-trip");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    put(&mut nand, 1, 2);
    nand.program(PageAddress(3), &[4; 2048], &[], IoTag::Data).unwrap();
    put(&mut nand, 16, 5);
    nand.erase(BlockAddress(1), IoTag::Cleaning).unwrap();
    nand.mark_bad(BlockAddress(2)).unwrap();
    nand.flush().unwrap();
    drop(nand);

    let mut nand = test.open().unwrap();
    assert_eq!((nand.geometry(), nand.uuid()), (SHAPE, [7; 16]));
    let found: Vec<_> = [0, 1, 2, 3, 4, 16].map(|page| get(&mut nand, page)).into();
    assert_eq!(found, [(1, 1), (2, 2), (0xff, 0xff), (4, 0xff), (0xff, 0xff), (0xff, 0xff)]);
    assert_eq!((nand.is_bad(BlockAddress(2)), nand.is_bad(BlockAddress(3))), (Ok(true), Ok(false)));
    assert_eq!(nand.erase_count(BlockAddress(1)), Some(1));
    assert_eq!(nand.wear(), Wear { least: 0, most: 1, total: 1 });
    assert_eq!(kind(nand.program(PageAddress(2), &[0; 2048], &[], IoTag::Data)), MediaErrorKind::ProgramOrder);
    assert_eq!(kind(nand.program(PageAddress(32), &[0; 2048], &[], IoTag::Data)), MediaErrorKind::BadBlock);
}

#[test]
fn the_file_is_sparse_and_an_erase_keeps_its_space_for_the_next_write() {
    let test = TestFile::new("sparse");
    let mut nand = test.create();
    let used = || std::fs::metadata(&test.0).unwrap().blocks() * 512;
    assert!(std::fs::metadata(&test.0).unwrap().len() >= SHAPE.bytes());
    assert!(used() <= 64 << 10, "{} bytes when empty", used());
    for block in 0..32u64 {
        let data = vec![block as u8; 16 * 2048];
        nand.program_run(PageAddress(block * 16), &data, &[], IoTag::Data).unwrap();
    }
    nand.flush().unwrap();
    assert!(used() >= 1 << 20, "{} bytes when half full", used());
    for block in 0..32 {
        nand.erase(BlockAddress(block), IoTag::Cleaning).unwrap();
    }
    let full = used();
    for block in 0..32u64 {
        assert_eq!(get(&mut nand, block * 16), (0xff, 0xff));
        let data = vec![block as u8; 16 * 2048];
        nand.program_run(PageAddress(block * 16), &data, &[], IoTag::Data).unwrap();
    }
    nand.flush().unwrap();
    assert!(used() <= full + (64 << 10), "{} bytes after {full}", used());
}

#[test]
fn a_process_killed_within_a_program_leaves_the_page_erased() {
    let test = TestFile::new("killed-program");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    // Data and spare bytes reached the file, the table entry did not.
    let mut entry = [0; ENTRY_BYTES];
    test.raw().read_exact_at(&mut entry, HEADER_BYTES as u64).unwrap();
    put(&mut nand, 1, 2);
    drop(nand);
    test.raw().write_all_at(&entry, HEADER_BYTES as u64).unwrap();

    let mut nand = test.open().unwrap();
    assert_eq!((get(&mut nand, 0), get(&mut nand, 1)), ((1, 1), (0xff, 0xff)));
    // The spare bytes of the killed program do not shine through.
    nand.program(PageAddress(1), &[3; 2048], &[], IoTag::Data).unwrap();
    assert_eq!(get(&mut nand, 1), (3, 0xff));
}

#[test]
fn the_table_entry_is_the_last_write_of_a_program() {
    let test = TestFile::new("order");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    // A host that refuses the data, then one that refuses the spare bytes: offsets past every file.
    let layout = Layout::of(SHAPE);
    let (data, spare) = (layout.data(&SHAPE, 0, 0), layout.spare(&SHAPE, 0, 0));
    let entry_before = nand.blocks[0].state;
    Arc::get_mut(&mut nand.shared).unwrap().layout = layout.with_first_block(u64::MAX - data, spare);
    let refused = nand.program(PageAddress(1), &[2; 2048], &[2; 16], IoTag::Data);
    assert!(refused.is_err());
    Arc::get_mut(&mut nand.shared).unwrap().layout = layout.with_first_block(data, u64::MAX - spare);
    assert!(nand.program(PageAddress(1), &[2; 2048], &[2; 16], IoTag::Data).is_err());
    Arc::get_mut(&mut nand.shared).unwrap().layout = Layout::of(SHAPE);
    assert_eq!(nand.blocks[0].state, entry_before);
    drop(nand);
    let mut nand = test.open().unwrap();
    assert_eq!((get(&mut nand, 0), get(&mut nand, 1)), ((1, 1), (0xff, 0xff)));
    put(&mut nand, 1, 3);
    assert_eq!(get(&mut nand, 1), (3, 3));
}

#[test]
fn old_spare_bytes_never_shine_through() {
    let test = TestFile::new("old-spare");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    nand.erase(BlockAddress(0), IoTag::Cleaning).unwrap();
    nand.program(PageAddress(0), &[2; 2048], &[], IoTag::Data).unwrap();
    assert_eq!(get(&mut nand, 0), (2, 0xff));
    // Data and spare bytes are written, the table entry is refused; the page is programmed again.
    Arc::get_mut(&mut nand.shared).unwrap().layout.table = u64::MAX / 2 + 1;
    assert!(nand.program(PageAddress(1), &[3; 2048], &[3; 16], IoTag::Data).is_err());
    Arc::get_mut(&mut nand.shared).unwrap().layout = Layout::of(SHAPE);
    nand.program(PageAddress(1), &[4; 2048], &[], IoTag::Data).unwrap();
    assert_eq!(get(&mut nand, 1), (4, 0xff));
}

#[test]
fn a_process_killed_within_an_erase_leaves_a_block_to_erase_again() {
    let test = TestFile::new("killed-erase");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    let mut entry = [0; ENTRY_BYTES];
    test.raw().read_exact_at(&mut entry, HEADER_BYTES as u64).unwrap();
    nand.erase(BlockAddress(0), IoTag::Cleaning).unwrap();
    drop(nand);
    test.raw().write_all_at(&entry, HEADER_BYTES as u64).unwrap();

    let mut nand = test.open().unwrap();
    assert_eq!(kind(nand.program(PageAddress(0), &[2; 2048], &[], IoTag::Data)), MediaErrorKind::ProgramOrder);
    nand.erase(BlockAddress(0), IoTag::Cleaning).unwrap();
    put(&mut nand, 0, 2);
    assert_eq!(get(&mut nand, 0), (2, 2));
}

#[test]
fn one_writer_or_many_readers() {
    let test = TestFile::new("lock");
    let nand = test.create();
    assert_eq!(test.open_kind(), MediaErrorKind::Locked);
    assert_eq!(kind(ImageNand::open(&test.0, OpenMode::ReadOnly)), MediaErrorKind::Locked);
    let overwrite = CreateOptions { overwrite: true, ..CreateOptions::default() };
    assert_eq!(kind(ImageNand::create(&test.0, SHAPE, overwrite)), MediaErrorKind::Locked);
    drop(nand);
    let first = ImageNand::open(&test.0, OpenMode::ReadOnly).unwrap();
    let second = ImageNand::open(&test.0, OpenMode::ReadOnly).unwrap();
    assert_eq!(test.open_kind(), MediaErrorKind::Locked);
    drop((first, second));
    test.open().unwrap();
}

#[test]
fn a_read_only_image_refuses_every_change() {
    let test = TestFile::new("read-only");
    put(&mut test.create(), 0, 9);
    let mut nand = ImageNand::open(&test.0, OpenMode::ReadOnly).unwrap();
    assert_eq!(get(&mut nand, 0), (9, 9));
    assert_eq!(kind(nand.program(PageAddress(1), &[0; 2048], &[], IoTag::Data)), MediaErrorKind::ReadOnly);
    assert_eq!(kind(nand.erase(BlockAddress(0), IoTag::Data)), MediaErrorKind::ReadOnly);
    assert_eq!(kind(nand.mark_bad(BlockAddress(0))), MediaErrorKind::ReadOnly);
    nand.flush().unwrap();
}

#[test]
fn create_replaces_only_when_told() {
    let test = TestFile::new("exists");
    put(&mut test.create(), 0, 1);
    assert_eq!(kind(ImageNand::create(&test.0, SHAPE, CreateOptions::default())), MediaErrorKind::Exists);
    let overwrite = CreateOptions { uuid: [8; 16], overwrite: true };
    let mut nand = ImageNand::create(&test.0, SHAPE, overwrite).unwrap();
    assert_eq!((get(&mut nand, 0), nand.uuid()), ((0xff, 0xff), [8; 16]));
    let impossible = Geometry { blocks: u32::MAX, ..SHAPE };
    assert_eq!(kind(ImageNand::create(&test.0, impossible, overwrite)), MediaErrorKind::OutOfRange);
}

#[test]
fn what_is_no_image_is_named_so() {
    let test = TestFile::new("no-image");
    assert_eq!(test.open_kind(), MediaErrorKind::NotFound);
    for content in ["", "ONOD", "This is a letter to my aunt.", &"x".repeat(10_000)] {
        std::fs::write(&test.0, content).unwrap();
        assert_eq!(test.open_kind(), MediaErrorKind::NotAnImage, "{content}");
    }
    assert_eq!(kind(ImageNand::open("/dev/null", OpenMode::ReadWrite)), MediaErrorKind::NotAnImage);
    assert_eq!(kind(ImageNand::open(std::env::temp_dir(), OpenMode::ReadOnly)), MediaErrorKind::NotAnImage);
}

#[test]
fn a_newer_format_is_named_so() {
    let test = TestFile::new("newer");
    drop(test.create());
    test.patch_header(8, &(VERSION_SHRUNK + 1).to_le_bytes(), false);
    assert_eq!(test.open_kind(), MediaErrorKind::NewerFormat);
}

#[test]
fn every_damaged_header_byte_is_found() {
    let test = TestFile::new("header");
    drop(test.create());
    for offset in (MAGIC.len()..HEADER_BYTES).filter(|offset| *offset < 100 || *offset > 4080) {
        let mut byte = [0];
        test.raw().read_exact_at(&mut byte, offset as u64).unwrap();
        test.patch_header(offset, &[byte[0] ^ 0x10], false);
        let found = test.open_kind();
        let wanted = if (8..12).contains(&offset) { MediaErrorKind::NewerFormat } else { MediaErrorKind::Damaged };
        assert_eq!(found, wanted, "byte {offset}");
        test.patch_header(offset, &byte, false);
    }
    test.open().unwrap();
}

#[test]
fn a_header_that_lies_with_a_good_checksum_is_refused() {
    // Page bytes, spare bytes, pages a block, blocks, chips, entry bytes, offsets, file bytes,
    // copies, stride, steps, reserved.
    let lies: [(usize, &[u8]); 12] = [
        (16, &[1, 0, 0, 0]),
        (20, &[255; 4]),
        (24, &[0; 4]),
        (28, &[255; 4]),
        (32, &[0; 4]),
        (36, &[17, 0, 0, 0]),
        (40, &[0; 8]),
        (64, &[0; 8]),
        (88, &[0; 8]),
        (96, &[0; 8]),
        (104, &[1]),
        (2000, &[1]),
    ];
    for (offset, bytes) in lies {
        let test = TestFile::new(&format!("lie-{offset}"));
        drop(test.create());
        test.patch_header(offset, bytes, true);
        assert_eq!(test.open_kind(), MediaErrorKind::Damaged, "byte {offset}");
    }
    // A shape that could be, and a file that is too short for it: refused before anything is read.
    let test = TestFile::new("lie-huge");
    drop(test.create());
    let huge = Geometry { blocks: 1 << 24, pages_per_block: 4096, page_bytes: 65536, ..SHAPE };
    test.raw().write_all_at(Header::new(&ImageShape::of_new(huge, [0; 16])).as_bytes(), 0).unwrap();
    test.raw().write_all_at(&[0; HEADER_BYTES], Layout::of(SHAPE).copies.unwrap().header).unwrap();
    assert_eq!(test.open_kind(), MediaErrorKind::Damaged);
}

#[test]
fn a_truncated_image_says_so() {
    let test = TestFile::new("truncated");
    drop(test.create());
    let full = Layout::of(SHAPE).end;
    for bytes in [full - 1, full / 2, 4096, 4095, 100, 12, 8] {
        test.raw().set_len(bytes).unwrap();
        let error = test.open().err().unwrap();
        assert_eq!(error.kind, MediaErrorKind::Damaged, "{bytes}");
        assert!(error.detail.contains("cut short"), "{error}");
    }
    // Cut short while in use.
    let test = TestFile::new("truncated-in-use");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    test.raw().set_len(8192).unwrap();
    assert_eq!(kind(nand.read(PageAddress(0), &mut [0; 2048], &mut [], IoTag::Data)), MediaErrorKind::Damaged);
}

#[test]
fn a_damaged_table_entry_loses_its_block_and_no_other() {
    let test = TestFile::new("table");
    let mut nand = test.create();
    put(&mut nand, 0, 1);
    put(&mut nand, 16, 2);
    nand.flush().unwrap();
    drop(nand);
    for byte in 0..ENTRY_BYTES as u64 {
        let offset = ENTRY_BYTES as u64 + byte;
        let mut before = [0];
        test.raw().read_exact_at(&mut before, HEADER_BYTES as u64 + offset).unwrap();
        test.patch_table(offset, &[before[0] ^ 0x40]);
        let mut nand = test.open().unwrap();
        assert_eq!(nand.lost_blocks().collect::<Vec<_>>(), [BlockAddress(1)]);
        assert_eq!(get(&mut nand, 0), (1, 1));
        let lost = nand.read(PageAddress(16), &mut [0; 2048], &mut [], IoTag::Data);
        assert_eq!(kind(lost), MediaErrorKind::Uncorrectable);
        drop(nand);
        test.patch_table(offset, &before);
    }
    // An entry of another block is not taken either, and an erase makes the block whole again.
    let mut entry = [0; ENTRY_BYTES];
    test.raw().read_exact_at(&mut entry, HEADER_BYTES as u64).unwrap();
    test.patch_table(ENTRY_BYTES as u64, &entry);
    let mut nand = test.open().unwrap();
    assert_eq!(nand.lost_blocks().count(), 1);
    nand.erase(BlockAddress(1), IoTag::Data).unwrap();
    put(&mut nand, 16, 3);
    assert_eq!((get(&mut nand, 16), nand.lost_blocks().count()), ((3, 3), 0));
}

/// An image whose first bytes were overwritten with zeros was no image any more.
#[test]
fn either_end_of_an_image_may_be_lost() {
    let copies = Layout::of(SHAPE).copies.unwrap();
    let wipe = |test: &TestFile, at_start: bool| {
        let offset = if at_start { 0 } else { copies.table };
        test.raw().write_all_at(&[0; 2 * HEADER_BYTES], offset).unwrap();
    };
    for at_start in [true, false] {
        let test = TestFile::new(&format!("one-end-{at_start}"));
        let mut nand = test.create();
        put(&mut nand, 0, 1);
        nand.erase(BlockAddress(0), IoTag::Cleaning).unwrap();
        put(&mut nand, 0, 2);
        nand.mark_bad(BlockAddress(5)).unwrap();
        nand.flush().unwrap();
        drop(nand);
        let expect = |nand: &mut ImageNand| {
            assert_eq!(
                (nand.geometry(), nand.uuid(), get(nand, 0), get(nand, 1)),
                (SHAPE, [7; 16], (2, 2), (0xff, 0xff))
            );
            assert_eq!((nand.erase_count(BlockAddress(0)), nand.is_bad(BlockAddress(5))), (Some(1), Ok(true)));
        };
        wipe(&test, at_start);
        expect(&mut ImageNand::open(&test.0, OpenMode::ReadOnly).unwrap());
        // Whoever may write heals it, and the other end may be lost then.
        let mut nand = test.open().unwrap();
        nand.flush().unwrap();
        drop(nand);
        wipe(&test, !at_start);
        expect(&mut test.open().unwrap());
        // Something else at the start is something else.
        wipe(&test, at_start);
        test.raw().write_all_at(b"This is a letter to my aunt.", 0).unwrap();
        assert_eq!(test.open_kind(), MediaErrorKind::NotAnImage);
    }
}

#[test]
fn the_watermark_is_kept() {
    let test = TestFile::new("watermark");
    let mut nand = test.create();
    let sound = |number| Ok(Watermark { number, is_damaged: false });
    let damaged = |number| Ok(Watermark { number, is_damaged: true });
    assert_eq!(nand.watermark(), sound(0));
    nand.set_watermark(7).unwrap();
    drop(nand);
    nand = test.open().unwrap();
    assert_eq!(nand.watermark(), sound(7), "the other slot was never written");
    for number in [8, 8, 3] {
        nand.set_watermark(number).unwrap();
        assert_eq!(nand.watermark(), sound(number));
    }
    drop(nand);
    let mut reader = ImageNand::open(&test.0, OpenMode::ReadOnly).unwrap();
    assert_eq!(reader.watermark(), sound(3));
    reader.set_watermark(9).unwrap();
    drop(reader);
    assert_eq!(test.open().unwrap().watermark(), sound(3));
    // The third turn is in slot 1: with it damaged the one before counts, and that is said.
    let end = Layout::of(SHAPE).end;
    test.raw().write_all_at(&[0xee], end + 32 + 9).unwrap();
    assert_eq!(test.open().unwrap().watermark(), damaged(8));
    test.raw().write_all_at(&[0xee], end + 9).unwrap();
    assert_eq!(test.open().unwrap().watermark(), damaged(0));
    // The next note heals both.
    test.open().unwrap().set_watermark(9).unwrap();
    assert_eq!(test.open().unwrap().watermark(), sound(9));
    // An image of a program that knew of no watermark gets one.
    test.raw().set_len(end).unwrap();
    let mut old = test.open().unwrap();
    assert_eq!(old.watermark(), sound(0));
    old.set_watermark(5).unwrap();
    drop(old);
    assert_eq!(test.open().unwrap().watermark(), sound(5));
    // The header at the end is found all the same.
    test.raw().write_all_at(&[0; 2 * HEADER_BYTES], 0).unwrap();
    assert_eq!(test.open().unwrap().watermark(), sound(5));
}

#[test]
fn errors_name_the_file() {
    let test = TestFile::new("named");
    let name = test.0.display().to_string();
    assert!(test.open().err().unwrap().to_string().contains(&name));
    let nand = test.create();
    assert!(test.open().err().unwrap().to_string().contains(&name));
    drop(nand);
    test.patch_header(100, &[1], false);
    assert!(test.open().err().unwrap().to_string().contains(&name));
}

#[test]
fn readers_see_what_the_owner_programs_and_are_counted_with_it() {
    let test = TestFile::new("shared");
    let mut nand = test.create();
    let shared = nand.shared().unwrap();
    let (mut data, mut spare) = (vec![0; 2 * 2048], vec![0; 2 * 16]);
    shared.read_run(PageAddress(3), &mut data, &mut spare, IoTag::Data).unwrap();
    assert!(data.iter().chain(&spare).all(|byte| *byte == 0xff));
    nand.program(PageAddress(3), &[5; 2048], &[6; 16], IoTag::Data).unwrap();
    shared.read_run(PageAddress(3), &mut data, &mut spare, IoTag::Data).unwrap();
    assert_eq!((data[0], data[2048], spare[0], spare[16]), (5, 0xff, 6, 0xff));
    nand.begin_flush().unwrap();
    shared.finish_flush().unwrap();
    nand.erase(BlockAddress(0), IoTag::Data).unwrap();
    shared.read_run(PageAddress(3), &mut data, &mut [], IoTag::Cleaning).unwrap();
    assert!(data.iter().all(|byte| *byte == 0xff));
    let counters = nand.counters().unwrap();
    assert_eq!((counters.of(IoTag::Data).reads, counters.of(IoTag::Cleaning).reads), (4, 2));
    assert!(shared.read_run(PageAddress(15), &mut data, &mut [], IoTag::Data).is_err(), "it leaves its block");
}

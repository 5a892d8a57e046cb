//! The rules of a NAND on a device that knows nothing of them, and what survives reopening.

use super::*;
use crate::PageRun;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::path::PathBuf;

const SHAPE: Geometry = Geometry { page_bytes: 4096, spare_bytes: 0, pages_per_block: 8, blocks: 16, chips: 1 };
const PAGE: usize = 4096;

/// A device in memory that keeps what it held when something is discarded, as many do.
pub(super) struct Forgetful {
    bytes: Vec<u8>,
    unreadable: Option<u64>,
}

impl Forgetful {
    pub(super) fn new(bytes: u64) -> Self {
        // Something was there before.
        Self { bytes: vec![0x5a; bytes as usize], unreadable: None }
    }

    pub(super) fn lengthen(&mut self, bytes: u64) {
        self.bytes.resize(bytes as usize, 0xa5);
    }

    fn range(&self, offset: u64, bytes: u64) -> core::ops::Range<usize> {
        assert!((offset | bytes).is_multiple_of(SECTOR_BYTES as u64), "{offset} and {bytes} are not aligned");
        offset as usize..(offset + bytes) as usize
    }
}

impl BlockDev for Forgetful {
    fn name(&self) -> &str {
        "memory"
    }
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&mut self, offset: u64, out: &mut [u8], _tag: IoTag) -> Result<()> {
        let range = self.range(offset, out.len() as u64);
        if self.unreadable.is_some_and(|at| range.contains(&(at as usize))) {
            return Err(Error::new(MediaErrorKind::Uncorrectable, "sector"));
        }
        out.copy_from_slice(&self.bytes[range]);
        Ok(())
    }
    fn write_at(&mut self, offset: u64, bytes: &[u8], _tag: IoTag) -> Result<()> {
        let range = self.range(offset, bytes.len() as u64);
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }
    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
        let range = self.range(offset, bytes);
        self.bytes[range].fill(0);
        Ok(())
    }
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.range(offset, bytes);
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

fn made() -> BlockNand<Forgetful> {
    BlockNand::create_on(Forgetful::new(bytes_for(&SHAPE)), SHAPE, [7; 16]).unwrap()
}

fn reopened(nand: BlockNand<Forgetful>) -> BlockNand<Forgetful> {
    BlockNand::open_on(nand.into_storage(), OpenMode::ReadWrite).unwrap()
}

fn byte_of(nand: &mut dyn Nand, page: u64) -> u8 {
    let mut data = [1; PAGE];
    nand.read(PageAddress(page), &mut data, &mut [], IoTag::Data).unwrap();
    assert!(data.iter().all(|byte| *byte == data[0]), "page {page} is mixed");
    data[0]
}

fn put(nand: &mut dyn Nand, page: u64, byte: u8) -> Result<()> {
    nand.program(PageAddress(page), &[byte; PAGE], &[], IoTag::Data)
}

#[test]
fn a_new_medium_is_erased_whatever_was_there() {
    let mut nand = made();
    assert_eq!((0..SHAPE.pages()).map(|page| byte_of(&mut nand, page)).max(), Some(0xff));
    assert_eq!(nand.uuid(), [7; 16]);
    assert_eq!(nand.geometry(), SHAPE);
}

#[test]
fn the_rules_of_a_chip_hold() {
    let mut nand = made();
    put(&mut nand, 9, 1).unwrap();
    assert_eq!(put(&mut nand, 9, 2).unwrap_err().kind, MediaErrorKind::ProgramOrder);
    assert_eq!(put(&mut nand, 8, 2).unwrap_err().kind, MediaErrorKind::ProgramOrder);
    put(&mut nand, 12, 0).unwrap();
    assert_eq!([8, 9, 10, 11, 12, 13].map(|page| byte_of(&mut nand, page)), [0xff, 1, 0xff, 0xff, 0, 0xff]);
    nand.program_run(PageAddress(13), &[5; 3 * PAGE], &[], IoTag::Data).unwrap();
    let mut data = vec![0; 8 * PAGE];
    nand.read_run(PageAddress(8), &mut data, &mut [], IoTag::Data).unwrap();
    assert_eq!([8, 9, 12, 13, 15].map(|page| data[(page - 8) * PAGE]), [0xff, 1, 0, 5, 5]);
    nand.erase(BlockAddress(1), IoTag::Data).unwrap();
    assert_eq!((byte_of(&mut nand, 9), byte_of(&mut nand, 15)), (0xff, 0xff));
    put(&mut nand, 8, 3).unwrap();
    let counts = nand.counters().unwrap().of(IoTag::Data);
    assert_eq!((counts.programs, counts.erases), (6, 1));
    let outside = nand.program_run(PageAddress(15), &[5; 2 * PAGE], &[], IoTag::Data);
    assert_eq!(outside.unwrap_err().kind, MediaErrorKind::OutOfRange);
}

#[test]
fn what_an_earlier_life_left_shows_only_after_reopening() {
    let mut nand = made();
    for page in 0..8 {
        put(&mut nand, page, 10 + page as u8).unwrap();
    }
    nand.erase(BlockAddress(0), IoTag::Data).unwrap();
    put(&mut nand, 0, 99).unwrap();
    assert_eq!([0, 1, 7].map(|page| byte_of(&mut nand, page)), [99, 0xff, 0xff]);
    let mut nand = reopened(nand);
    assert_eq!([0, 1, 7].map(|page| byte_of(&mut nand, page)), [99, 11, 17]);
    // Where nobody tells lives apart, zeros are written, and they show as erased.
    nand.erase(BlockAddress(0), IoTag::Anchor).unwrap();
    let mut nand = reopened(nand);
    assert_eq!([0, 1, 7].map(|page| byte_of(&mut nand, page)), [0xff; 3]);
    // A block of an earlier session may be gone on with.
    put(&mut nand, 3, 3).unwrap();
    assert_eq!(put(&mut nand, 2, 2).unwrap_err().kind, MediaErrorKind::ProgramOrder);
}

#[test]
fn bad_blocks_stay_bad() {
    let mut nand = made();
    for block in [3, 5, 5] {
        nand.mark_bad(BlockAddress(block)).unwrap();
    }
    nand = reopened(nand);
    nand.mark_bad(BlockAddress(15)).unwrap();
    nand = reopened(nand);
    let bad: Vec<u32> = (0..16).filter(|block| nand.is_bad(BlockAddress(*block)).unwrap()).collect();
    assert_eq!(bad, [3, 5, 15]);
    assert_eq!(put(&mut nand, 24, 0).unwrap_err().kind, MediaErrorKind::BadBlock);
    assert_eq!(nand.erase(BlockAddress(3), IoTag::Data).unwrap_err().kind, MediaErrorKind::BadBlock);
    // The newest list is torn: the one before it counts.
    let mut storage = nand.into_storage();
    let newest = BadBlocks { generation: 3, ..BadBlocks::default() }.offset() as usize;
    storage.bytes[newest + 100] ^= 1;
    let mut nand = BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
    assert_eq!([5, 15].map(|block| nand.is_bad(BlockAddress(block))), [Ok(true), Ok(false)]);
    // One of another volume is none.
    let mut nand = BlockNand::create_on(nand.into_storage(), SHAPE, [8; 16]).unwrap();
    assert_eq!(nand.is_bad(BlockAddress(5)), Ok(false));
}

#[test]
fn a_damaged_label_has_a_copy_and_a_foreign_one_has_not() {
    let kind = |storage| BlockNand::open_on(storage, OpenMode::ReadOnly).map(drop).map_err(|error| error.kind);
    let fresh = || made().into_storage();
    let mut torn = fresh();
    torn.bytes[100] ^= 1;
    assert_eq!(kind(torn), Ok(()));
    let mut unreadable = fresh();
    unreadable.unreadable = Some(0);
    assert_eq!(kind(unreadable), Ok(()));
    let mut both = fresh();
    both.bytes[100] ^= 1;
    both.bytes[4096 + 100] ^= 1;
    assert_eq!(kind(both), Ok(()));
    let mut all = fresh();
    let end = all.bytes.len() - 4096;
    for label in [0, 4096, end] {
        all.bytes[label + 100] ^= 1;
    }
    assert_eq!(kind(all), Err(MediaErrorKind::Damaged));
    let mut foreign = fresh();
    foreign.bytes[..8].fill(0);
    assert_eq!(kind(foreign), Err(MediaErrorKind::NotAnImage));
    let mut short = fresh();
    short.bytes.truncate(short.bytes.len() - 2 * 4096);
    assert_eq!(kind(short), Err(MediaErrorKind::Damaged));
    assert_eq!(kind(Forgetful::new(4096)), Err(MediaErrorKind::NotAnImage));
}

/// Zeros over the start of a device were the end of the volume.
#[test]
fn a_wiped_start_has_a_copy_at_the_end() {
    let mut nand = made();
    put(&mut nand, 96, 7).unwrap();
    nand.flush().unwrap();
    let mut storage = nand.into_storage();
    storage.bytes[..DATA_OFFSET as usize].fill(0);
    let mut nand = BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
    assert_eq!((nand.geometry(), nand.uuid(), byte_of(&mut nand, 96)), (SHAPE, [7; 16], 7));
    // Whoever may write heals it.
    let mut storage = nand.into_storage();
    let end = storage.bytes.len() - 4096;
    storage.bytes[end..].fill(0);
    BlockNand::open_on(storage, OpenMode::ReadWrite).unwrap();
    // Another file system begins with zeros, too.
    let mut storage = made().into_storage();
    storage.bytes[..DATA_OFFSET as usize].fill(0);
    storage.bytes[0x438] = 0x53;
    let refused = BlockNand::open_on(storage, OpenMode::ReadOnly).map(drop).map_err(|error| error.kind);
    assert_eq!(refused, Err(MediaErrorKind::NotAnImage));
}

#[test]
fn shapes_that_no_block_device_has_are_refused() {
    let kind = |shape| {
        let storage = Forgetful::new(bytes_for(&SHAPE));
        BlockNand::create_on(storage, shape, [0; 16]).map(drop).map_err(|error| error.kind)
    };
    assert_eq!(kind(SHAPE), Ok(()));
    for shape in [
        Geometry { blocks: 17, ..SHAPE },
        Geometry { page_bytes: 2048, ..SHAPE },
        Geometry { spare_bytes: 16, ..SHAPE },
        Geometry { chips: 2, ..SHAPE },
    ] {
        assert_eq!(kind(shape), Err(MediaErrorKind::OutOfRange), "{shape:?}");
    }
    assert_eq!(blocks_that_fit(bytes_for(&SHAPE), 4096, 8), Some(16));
    assert_eq!(blocks_that_fit(bytes_for(&SHAPE) - 1, 4096, 8), Some(15));
    assert_eq!(blocks_that_fit(1000, 4096, 8), None);
}

/// A file of the host that is gone at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onode-block-{}-{name}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Not worth failing for.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_is_a_device_for_one_user_alone() {
    let file = Temporary::new("alone");
    let mut nand = BlockNand::create(&file.0, SHAPE, [1; 16]).unwrap();
    nand.program_run(PageAddress(0), &[5; 8 * PAGE], &[], IoTag::Data).unwrap();
    nand.program(PageAddress(8), &[6; PAGE], &[], IoTag::Data).unwrap();
    nand.flush().unwrap();
    for mode in [OpenMode::ReadWrite, OpenMode::ReadOnly] {
        let second = BlockNand::open(&file.0, mode).map(drop).unwrap_err();
        assert_eq!(second.kind, MediaErrorKind::Locked);
        assert!(second.detail.contains(&file.0.display().to_string()), "{second}");
    }
    drop(nand);
    let mut first = BlockNand::open(&file.0, OpenMode::ReadOnly).unwrap();
    let mut second = BlockNand::open(&file.0, OpenMode::ReadOnly).unwrap();
    assert_eq!([0, 7, 8, 9].map(|page| byte_of(&mut first, page)), [5, 5, 6, 0xff]);
    // Into a buffer that direct I/O cannot use as it is.
    let mut data = vec![0; 2 * PAGE + 1];
    second.read_run(PageAddress(6), &mut data[1..], &mut [], IoTag::Data).unwrap();
    assert!(data[1..].iter().all(|byte| *byte == 5));
    assert_eq!(put(&mut first, 10, 1).unwrap_err().kind, MediaErrorKind::ReadOnly);
    assert_eq!(first.erase(BlockAddress(0), IoTag::Data).unwrap_err().kind, MediaErrorKind::ReadOnly);
    assert_eq!(BlockNand::open(&file.0, OpenMode::ReadWrite).map(drop).unwrap_err().kind, MediaErrorKind::Locked);
}

#[test]
fn things_that_are_no_device_are_told_apart() {
    let kind = |path: &str| BlockNand::open(path, OpenMode::ReadOnly).map(drop).unwrap_err().kind;
    assert_eq!(kind("/dev/null"), MediaErrorKind::NotAnImage);
    assert_eq!(kind("/"), MediaErrorKind::NotAnImage);
    assert_eq!(kind("/no/such/device"), MediaErrorKind::NotFound);
    let file = Temporary::new("foreign");
    std::fs::write(&file.0, "x".repeat(2 << 20)).unwrap();
    assert_eq!(kind(&file.0.display().to_string()), MediaErrorKind::NotAnImage);
    let words = String::from("not an Onode image: ");
    let error = BlockNand::open(&file.0, OpenMode::ReadOnly).map(drop).unwrap_err().to_string();
    assert!(error.starts_with(&words), "{error}");
}

#[test]
fn readers_of_a_file_see_what_the_owner_programs_and_are_counted_with_it() {
    let path = std::env::temp_dir().join(format!("onode-block-shared-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    std::fs::File::create(&path).unwrap();
    let mut nand = BlockNand::create(&path, SHAPE, [1; 16]).unwrap();
    let shared = nand.shared().unwrap();
    nand.program_run(PageAddress(9), &[7; 2 * PAGE], &[], IoTag::Data).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // Aligned or not.
                let mut data = vec![0; 3 * PAGE + 1];
                shared.read_run(PageAddress(9), &mut data[1..], &mut [], IoTag::Data).unwrap();
                assert_eq!((data[1], data[2 * PAGE], data[1 + 2 * PAGE]), (7, 7, 0xff));
            });
        }
    });
    assert_eq!(nand.counters().unwrap().of(IoTag::Data).reads, 9);
    nand.begin_flush().unwrap();
    shared.finish_flush().unwrap();
    drop(nand);
    let _ = std::fs::remove_file(&path);
    assert!(BlockNand::create_on(Forgetful::new(2 << 20), SHAPE, [1; 16]).unwrap().shared().is_none());
}

#[test]
fn runs_that_are_asked_for_together_are_read_as_each_alone_is() {
    let file = Temporary::new("together");
    std::fs::File::create(&file.0).unwrap();
    let mut nand = BlockNand::create(&file.0, SHAPE, [1; 16]).unwrap();
    let shared = nand.shared().unwrap();
    let pages = SHAPE.pages_per_block * 12;
    for page in 0..pages {
        if page % SHAPE.pages_per_block != SHAPE.pages_per_block - 1 {
            nand.program(PageAddress(page.into()), &[page as u8 + 1; PAGE], &[], IoTag::Data).unwrap();
        }
    }
    // More than are made at once, backwards; one that does not exist, and one that the file lost.
    let firsts: Vec<u64> = (0..u64::from(pages)).rev().chain([SHAPE.pages()]).collect();
    let last = u64::from(pages - 2);
    nand.flush().unwrap();
    let handle = std::fs::OpenOptions::new().write(true).open(&file.0).unwrap();
    handle.set_len(DATA_OFFSET + last * PAGE as u64).unwrap();
    let read = || {
        let mut data = vec![0; firsts.len() * PAGE];
        let mut runs: Vec<_> = firsts
            .iter()
            .zip(data.chunks_mut(PAGE))
            .map(|(first, data)| PageRun::new(PageAddress(*first), data, &mut []))
            .collect();
        shared.read_runs(&mut runs, IoTag::Data);
        for run in runs {
            let page = run.first.0;
            let mut alone = [0; PAGE];
            let right = shared.read_run(run.first, &mut alone, &mut [], IoTag::Data);
            assert_eq!(run.result.is_ok(), page != SHAPE.pages() && page != last, "page {page}: {:?}", run.result);
            assert_eq!(run.result, right, "page {page}");
            assert!(right.is_err() || *run.data == alone, "page {page}");
        }
    };
    std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(read))));
    assert_eq!(nand.counters().unwrap().of(IoTag::Data).reads, 2 * 3 * u64::from(pages));
}

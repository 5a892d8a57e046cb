//! What a fence writes and what it leaves, on a file in place of a device; `tests/qemu/run beside`
//! has devices.

use super::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;

struct Place(PathBuf);

impl Place {
    fn with(bytes: &[u8]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onode-mtd-ram-test-{}-{number}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn open(&self, read_only: bool) -> Result<MtdRam> {
        let file = OpenOptions::new().read(true).write(!read_only).open(&self.0).unwrap();
        let length = file.metadata().unwrap().len();
        MtdRam::of_file(file, "memory".to_string(), length, read_only)
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_fence_writes_the_lines_that_were_flushed_and_no_others() {
    let place = Place::with(&[0xff; 4096]);
    let memory = place.open(false).unwrap();
    assert_eq!((memory.length(), memory.load(8), memory.domain()), (4096, u64::MAX, Domain::Flush));
    memory.write(60, &[1; 8]);
    memory.store(1024, 7);
    memory.zero(2048, 128);
    memory.flush(2048, 128);
    assert_eq!(place.bytes(), [0xff; 4096], "nothing is written before a fence");
    memory.flush(67, 1);
    memory.flush(0, 0);
    memory.fence().unwrap();
    let mut expected = [0xff; 4096];
    // The line before the one that was flushed, and the word that was not, stay in the copy.
    expected[64..68].fill(1);
    expected[2048..2176].fill(0);
    assert_eq!(place.bytes(), expected);
    assert_eq!(memory.load(1024), 7);
    memory.write_through(60, &[2; 4]);
    memory.fence().unwrap();
    expected[60..64].fill(2);
    assert_eq!(place.bytes(), expected);
    assert_eq!(memory.compare_exchange(1024, 7, 9), Ok(7));
    memory.flush(1024, 8);
    memory.fence().unwrap();
    drop(memory);
    let memory = place.open(false).unwrap();
    assert_eq!((memory.load(1024), memory.words(1024, 1).is_some()), (9, true));
}

#[test]
fn lines_are_written_once_however_often_they_were_flushed() {
    assert_eq!(merged(vec![(128, 192), (0, 64), (64, 128), (0, 64)]), [(0, 192)]);
    assert_eq!(merged(vec![(0, 256), (64, 128), (320, 384)]), [(0, 256), (320, 384)]);
    assert_eq!(merged(Vec::new()), []);
}

#[test]
fn what_cannot_be_written_is_refused_from_then_on() {
    let place = Place::with(&[0; 128]);
    let memory = place.open(true).unwrap();
    memory.store(0, 1);
    memory.flush(0, 8);
    assert_eq!(memory.fence().unwrap_err().kind, MediaErrorKind::ReadOnly);
    assert_eq!(memory.grow(256).unwrap_err().kind, MediaErrorKind::ReadOnly);
    assert_eq!((memory.load(0), place.bytes()), (1, vec![0; 128]));
    // A file that was opened for reading, said to be writable: writes fail, as on a device that
    // broke.
    let file = File::open(&place.0).unwrap();
    let broken = MtdRam::of_file(file, "memory".to_string(), 128, false).unwrap();
    broken.fence().unwrap();
    broken.flush(0, 8);
    for _ in 0..2 {
        assert_eq!(broken.fence().unwrap_err().kind, MediaErrorKind::Host);
    }
    assert_eq!(broken.grow(256).unwrap_err().kind, MediaErrorKind::OutOfRange);
    broken.grow(128).unwrap();
    for length in [0, 100] {
        assert_eq!(Place::with(&vec![0; length]).open(false).map(drop).unwrap_err().kind, MediaErrorKind::OutOfRange);
    }
}

#[test]
fn only_what_is_written_byte_by_byte_is_memory() {
    const NOR: u32 = 0x400 | 0x800;
    assert!(is_memory(RAM, 0x1c00) && is_memory(3, NOR | 0x1000), "MRAM behind the driver of serial flash is memory");
    for (kind, flags) in [(0, 0), (2, 0), (3, NOR), (4, 0x400), (6, 0x400), (7, 0x400), (8, 0x400)] {
        assert!(!is_memory(kind, flags), "{}", type_name(kind));
    }
    assert_eq!([type_name(0), type_name(4), type_name(99)], ["absent", "NAND flash", "unknown type 99"]);
    let kind = |path| MtdRam::open(path, OpenMode::ReadOnly).map(drop).unwrap_err().kind;
    assert_eq!(kind("/dev/null"), MediaErrorKind::NotAnImage);
    assert_eq!(kind("/no/such/memory"), MediaErrorKind::NotFound);
}

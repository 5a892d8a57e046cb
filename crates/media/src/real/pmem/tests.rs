//! What is stored in real files is there, in every kind of file that this machine has.
#![allow(unsafe_code, reason = "code is executed where it lies")]

use super::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::vec::Vec;

/// A path that nobody else uses, in memory or on a disk; what is there is removed in the end.
struct Place(PathBuf);

impl Place {
    fn new(folder: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(folder.join(format!("onode-pmem-test-{}-{number}", std::process::id())))
    }

    fn in_memory() -> Self {
        Self::new(Path::new("/dev/shm"))
    }

    fn all() -> [Self; 2] {
        [Self::in_memory(), Self::new(&std::env::temp_dir())]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn options(opening: Opening) -> MappedOptions {
    MappedOptions { opening, ..MappedOptions::default() }
}

fn kind_of(path: &Path, opening: Opening) -> MediaErrorKind {
    MappedPmem::open(path, &options(opening)).map(|_| ()).unwrap_err().kind
}

/// Cuts a file short under its mapping.
fn cut(path: &Path, length: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no signals")]
fn memory_that_is_cut_short_is_told_and_ends_nobody() {
    for place in Place::all() {
        let memory = MappedPmem::open(&place.0, &options(Opening::New(1 << 20))).unwrap();
        let other = MappedPmem::anonymous(1 << 20, &options(Opening::New(1 << 20))).unwrap();
        memory.write_through(0, &[7; 100]);
        memory.store(600_000, 5);
        memory.flush(600_000, 8);
        memory.fence().unwrap();
        assert_eq!(memory.failure(), None);
        cut(&place.0, 512 << 10);
        // What is left is as it was.
        let mut there = [0; 100];
        memory.read(0, &mut there);
        assert_eq!((there, memory.failure()), ([7; 100], None));
        // What is gone reads as zeros and may be stored to, in every way, by every thread.
        assert_eq!(memory.load(600_000), 0);
        assert!(memory.failure().unwrap().detail.contains("gone"));
        std::thread::scope(|threads| {
            for part in 0..4_u64 {
                let memory = &memory;
                threads.spawn(move || {
                    let at = (512 << 10) + part * (128 << 10);
                    memory.store(at, 1);
                    memory.write_through(at + 4096, &[1; 8000]);
                    memory.zero(at + 16_384, 4096);
                    assert_eq!(memory.compare_exchange(at + 32_768, 0, 9), Ok(0));
                    memory.flush(at, 64 << 10);
                });
            }
        });
        assert_eq!(memory.load(512 << 10), 1);
        // Nothing is durable any more, and nothing reaches the file.
        assert_eq!(memory.fence().unwrap_err().kind, MediaErrorKind::Host);
        memory.read(0, &mut there);
        assert_eq!(there, [7; 100]);
        assert_eq!(other.failure(), None);
        other.store(0, 1);
        other.fence().unwrap();
        drop(memory);
        let left = std::fs::read(&place.0).unwrap();
        assert_eq!((left.len(), &left[..100]), (512 << 10, &[7; 100][..]));
        // The next one is what it is.
        let memory = MappedPmem::open(&place.0, &options(Opening::Existing)).unwrap();
        assert_eq!((memory.load(0), memory.failure()), (0x0707_0707_0707_0707, None));
        memory.fence().unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no signals")]
fn a_view_of_memory_that_is_cut_short_ends_nobody() {
    let place = Place::in_memory();
    let memory = MappedPmem::open(&place.0, &options(Opening::New(64 << 10))).unwrap();
    memory.write(8192, &[3; 4096]);
    let stitched = memory.stitched(&[(8192, 4096), (0, 4096)]).unwrap();
    cut(&place.0, 0);
    // SAFETY: mapped as long as the value lives.
    assert_eq!(unsafe { stitched.address().as_ptr().read_volatile() }, 0);
}

/// A fault that is nobody's here ends the process as it would have; run in a process of its own.
#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn a_fault_elsewhere_ends_the_process() {
    const CHILD: &str = "ONODE_TEST_FAULT_ELSEWHERE";
    let place = Place::in_memory();
    if let Some(path) = std::env::var_os(CHILD) {
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).unwrap();
        file.set_len(8192).unwrap();
        let _guarded = MappedPmem::anonymous(4096, &options(Opening::New(4096))).unwrap();
        let how = range::How { protection: libc::PROT_READ, flags: libc::MAP_SHARED };
        let foreign = range::Range::of_file(8192, how, &file, 0).unwrap();
        file.set_len(0).unwrap();
        // SAFETY: mapped; that the file is gone is what is tested.
        let read = unsafe { foreign.start().as_ptr().read_volatile() };
        panic!("it read {read}");
    }
    let name = "real::pmem::tests::a_fault_elsewhere_ends_the_process";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, &place.0)
        .output()
        .unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(libc::SIGBUS), "{}", std::string::String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_stored_is_there_when_opened_again() {
    for place in Place::all() {
        let bytes: Vec<u8> = (0..30_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
        {
            let memory = MappedPmem::open(&place.0, &options(Opening::New(1 << 20))).unwrap();
            memory.write_through(13, &bytes);
            memory.store(65_536, 0x0102_0304_0506_0708);
            assert_eq!(memory.compare_exchange(65_536, 1, 2), Err(0x0102_0304_0506_0708));
            assert_eq!(memory.compare_exchange(65_544, 0, 9), Ok(0));
            memory.flush(65_536, 16);
            memory.zero(20, 5);
            memory.flush(20, 5);
            memory.fence().unwrap();
        }
        let file = std::fs::read(&place.0).unwrap();
        assert_eq!((&file[13..20], &file[20..25], &file[25..30_013]), (&bytes[..7], &[0; 5][..], &bytes[12..]));
        let memory = MappedPmem::open(&place.0, &options(Opening::ExistingOrNew(64))).unwrap();
        assert_eq!((memory.length(), memory.load(65_536), memory.load(65_544)), (1 << 20, 0x0102_0304_0506_0708, 9));
        let mut back = [0; 8];
        memory.read(65_536, &mut back);
        assert_eq!(back, [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}

#[test]
fn a_medium_tells_what_it_needs() {
    let [in_memory, on_disk] = Place::all();
    let memory = MappedPmem::open(&in_memory.0, &options(Opening::New(4096))).unwrap();
    assert_eq!(memory.domain(), Domain::Fence);
    assert_eq!(memory.describe(), "file in memory; nothing to flush; lives as long as the host is up");
    drop(memory);
    let always = MappedOptions { flushing: Flushing::Always, ..MappedOptions::default() };
    assert_eq!(MappedPmem::open(&in_memory.0, &always).unwrap().domain(), Domain::Flush);
    let memory = MappedPmem::open(&on_disk.0, &options(Opening::New(4096))).unwrap();
    assert_ne!(memory.domain(), Domain::Flush, "{}", memory.describe());
    assert_eq!(MappedPmem::anonymous(100, &always).unwrap().length(), 128);
}

#[test]
fn writes_past_the_caches_write_what_writes_write() {
    let always = MappedOptions { flushing: Flushing::Always, ..MappedOptions::default() };
    let memory = MappedPmem::anonymous(65_536, &always).unwrap();
    let source: Vec<u8> = (0..9000_u32).map(|i| (i % 251) as u8 + 1).collect();
    for (at, length) in [(0, 2048), (64, 4096), (1, 2048), (63, 2049), (65, 8191), (128, 2047), (7, 0), (56_536, 9000)]
    {
        memory.zero(0, 65_536);
        memory.write_through(at, &source[..length]);
        memory.fence().unwrap();
        let mut image = std::vec![0xff; 65_536];
        memory.read(0, &mut image);
        let mut expected = std::vec![0; 65_536];
        expected[at as usize..][..length].copy_from_slice(&source[..length]);
        assert!(image == expected, "{length} bytes at {at}");
    }
    memory.flush(65_535, 1);
    memory.flush(65_536, 0);
}

#[test]
fn growth_never_moves_the_memory() {
    for place in Place::all() {
        let memory = MappedPmem::open(&place.0, &options(Opening::New(192))).unwrap();
        let base = memory.address().unwrap();
        assert!(base.addr().get().is_multiple_of(2 << 20));
        memory.store(184, 5);
        for length in [4096, 8192, 8256, 5 << 20] {
            memory.grow(length).unwrap();
            assert_eq!((memory.length(), memory.load(184), memory.load(length - 8)), (length, 5, 0));
            memory.store(length - 8, 0);
        }
        memory.grow(64).unwrap();
        assert_eq!((memory.length(), memory.address()), (5 << 20, Some(base)));
        let metadata = std::fs::metadata(&place.0).unwrap();
        let allocated = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
        assert!(allocated >= 5 << 20, "a store would need {} more bytes", (5 << 20) - allocated);
        assert_eq!(memory.grow(1 << 62).unwrap_err().kind, MediaErrorKind::OutOfRange);
    }
}

#[test]
fn whoever_changes_a_file_waits_for_those_who_read_it_for_a_moment() {
    let place = Place::in_memory();
    drop(MappedPmem::open(&place.0, &options(Opening::New(8192))).unwrap());
    for shared in [true, false] {
        let reader = MappedPmem::open(&place.0, &options(Opening::ReadOnly)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                drop(reader);
            });
            let writing = MappedOptions { shared, ..MappedOptions::default() };
            let writer = MappedPmem::open(&place.0, &writing).unwrap();
            assert!(writer.is_first(), "it has the file alone until it lets others in");
        });
    }
}

#[test]
fn a_file_has_one_user_unless_all_share() {
    let place = Place::in_memory();
    let shared = MappedOptions { shared: true, ..MappedOptions::default() };
    let alone = MappedPmem::open(&place.0, &options(Opening::New(8192))).unwrap();
    for opening in [Opening::Existing, Opening::ReadOnly] {
        assert_eq!(kind_of(&place.0, opening), MediaErrorKind::Locked);
    }
    assert_eq!(MappedPmem::open(&place.0, &shared).map(|_| ()).unwrap_err().kind, MediaErrorKind::Locked);
    drop(alone);
    let one = MappedPmem::open(&place.0, &shared).unwrap();
    one.let_in().unwrap();
    let two = MappedPmem::open(&place.0, &shared).unwrap();
    two.let_in().unwrap();
    assert_eq!((one.is_first(), two.is_first()), (true, false));
    for opening in [Opening::Existing, Opening::ReadOnly] {
        assert_eq!(kind_of(&place.0, opening), MediaErrorKind::Locked);
    }
    let seats = [one.take_seat().unwrap(), two.take_seat().unwrap()];
    assert!(seats[0] != seats[1] && one.is_seat_taken(seats[1]) && two.is_seat_taken(seats[0]));
    assert!(!one.is_seat_taken(seats[0]), "one's own seat keeps only others out");
    assert!(one.claim(7).unwrap() && one.claim(7).unwrap() && two.claim(8).unwrap());
    assert!(!two.claim(7).unwrap() && !one.claim(8).unwrap(), "a claim has one owner");
    one.disclaim(7).unwrap();
    assert!(two.claim(7).unwrap());
    std::thread::scope(|scope| {
        for memory in [&one, &two] {
            scope.spawn(move || {
                for _ in 0..10_000 {
                    let mut value = memory.load(64);
                    while let Err(found) = memory.compare_exchange(64, value, value + 1) {
                        value = found;
                    }
                }
            });
        }
    });
    assert_eq!((one.load(64), two.load(64)), (20_000, 20_000));
    one.grow(1 << 20).unwrap();
    one.store((1 << 20) - 8, 7);
    assert_eq!(two.length(), 8192);
    assert_eq!(two.refresh(), Ok(1 << 20));
    assert_eq!(two.load((1 << 20) - 8), 7);
}

#[test]
fn what_cannot_be_memory_is_refused_in_words() {
    let place = Place::in_memory();
    assert_eq!(kind_of(&place.0, Opening::Existing), MediaErrorKind::NotFound);
    assert_eq!(kind_of(&place.0.join("below"), Opening::New(64)), MediaErrorKind::NotFound);
    assert_eq!(kind_of(Path::new("/dev/null"), Opening::Existing), MediaErrorKind::NotAnImage);
    assert_eq!(kind_of(Path::new("/dev/shm"), Opening::Existing), MediaErrorKind::NotAnImage);
    assert_eq!(kind_of(Path::new("/dev/shm"), Opening::ReadOnly), MediaErrorKind::NotAnImage);
    for (length, kind) in [(0, MediaErrorKind::NotAnImage), (100, MediaErrorKind::NotAnImage)] {
        std::fs::write(&place.0, std::vec![1; length]).unwrap();
        assert_eq!(kind_of(&place.0, Opening::Existing), kind, "{length} bytes");
        assert_eq!(kind_of(&place.0, Opening::New(64)), MediaErrorKind::Exists);
    }
    assert_eq!(std::fs::read(&place.0).unwrap(), [1; 100], "a refused file stays as it is");
}

#[test]
fn a_full_host_is_an_error_and_leaves_nothing() {
    for place in Place::all() {
        assert_eq!(kind_of(&place.0, Opening::New(1 << 60)), MediaErrorKind::HostFull);
        assert!(!place.0.exists());
    }
    let place = Place::in_memory();
    let huge = MappedOptions { reserve: 1 << 46, ..options(Opening::New(4096)) };
    let memory = MappedPmem::open(&place.0, &huge).unwrap();
    memory.store(8, 3);
    assert_eq!(memory.grow(1 << 45).unwrap_err().kind, MediaErrorKind::HostFull);
    assert_eq!((memory.length(), memory.load(8)), (4096, 3));
    assert_eq!(std::fs::metadata(&place.0).unwrap().len(), 4096);
}

#[test]
fn holes_are_filled_when_a_file_is_opened() {
    let place = Place::in_memory();
    std::fs::File::create(&place.0).unwrap().set_len(1 << 20).unwrap();
    let memory = MappedPmem::open(&place.0, &options(Opening::Existing)).unwrap();
    let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&place.0).unwrap());
    assert_eq!((blocks, memory.load(4096)), (2048, 0));
}

#[test]
fn readers_change_nothing_but_may_look_as_if() {
    let place = Place::in_memory();
    MappedPmem::open(&place.0, &options(Opening::New(4096))).unwrap().store(0, 1);
    let memory = MappedPmem::open(&place.0, &options(Opening::ReadOnly)).unwrap();
    let other = MappedPmem::open(&place.0, &options(Opening::ReadOnly)).unwrap();
    memory.store(0, 2);
    assert!(memory.is_read_only());
    assert_eq!((memory.load(0), other.load(0)), (2, 1));
    assert_eq!(memory.fence().unwrap_err().kind, MediaErrorKind::ReadOnly);
    assert_eq!(memory.grow(8192).unwrap_err().kind, MediaErrorKind::ReadOnly);
}

#[test]
#[should_panic(expected = "of 4096")]
fn one_past_the_end_panics() {
    MappedPmem::anonymous(4096, &MappedOptions::default()).unwrap().write(4095, &[0; 2]);
}

#[test]
fn parts_are_one_range_without_a_copy() {
    let place = Place::in_memory();
    let memory = MappedPmem::open(&place.0, &options(Opening::New(64 << 10))).unwrap();
    for page in 0..16_u64 {
        memory.write(page * 4096, &[page as u8; 4096]);
    }
    let stitched = memory.stitched(&[(9 * 4096, 8192), (0, 4096), (4 * 4096, 4096)]).unwrap();
    assert_eq!(stitched.length(), 4 * 4096);
    let byte = |at: usize| {
        // SAFETY: within the length, and nobody stores meanwhile.
        unsafe { stitched.address().add(at).read_volatile() }
    };
    assert_eq!([0, 4096, 8192, 3 * 4096].map(byte), [9, 10, 0, 4]);
    memory.write(4096 - 1, &[77]);
    assert_eq!(byte(3 * 4096 - 1), 77, "it is the same memory");
    for parts in [&[][..], &[(1, 4096)], &[(0, 100)], &[(0, 0)], &[(15 * 4096, 8192)], &[(u64::MAX - 4095, 4096)]] {
        assert_eq!(memory.stitched(parts).map(|_| ()).unwrap_err().kind, MediaErrorKind::OutOfRange, "{parts:?}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
#[cfg_attr(miri, ignore = "Miri executes no machine code")]
fn code_is_executed_where_it_lies() {
    // mov eax, 42; ret
    const FUNCTION: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];
    const AT: u64 = 8192;
    // Where the host has its temporary files programs may run; memory may be mounted without that.
    let place = Place::new(&std::env::temp_dir());
    let memory = MappedPmem::open(&place.0, &options(Opening::New(65_536))).unwrap();
    memory.write_through(AT, &FUNCTION);
    memory.fence().unwrap();
    drop(memory);
    let memory = MappedPmem::open(&place.0, &options(Opening::Existing)).unwrap();
    for (at, length) in [(AT, 100), (AT + 1, 4096), (AT, 0), (65_536, 4096)] {
        let refused = memory.executable(at, length).map(|_| ()).unwrap_err();
        assert_eq!(refused.kind, MediaErrorKind::OutOfRange, "{at} and {length}");
    }
    let code = memory.executable(AT, 4096).unwrap();
    assert_eq!(code.length(), 4096);
    // SAFETY: the bytes at the address are the function above, which is mapped for execution until
    // `code` is dropped.
    let function = unsafe { core::mem::transmute::<*mut u8, extern "C" fn() -> i32>(code.address().as_ptr()) };
    assert_eq!(function(), 42);
}

//! Full volumes of flash, with and without a memory beside it: what was accepted is there after an
//! orderly end, byte for byte; what frees or replaces is never refused; and what is emptied can be
//! filled again.
//!
//! `ONODE_FULL_ROUNDS` sets the rounds on each volume, and has all of them be of 16 MiB: without
//! it, those of tiny files, which hold the most of them, are of 2 MiB and are filled once.

use onode_base::clock::ManualClock;
use onode_base::{ErrorKind, Prng, Timestamp};
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions};
use onode_fs::{Caller, FileSystem, InodeNumber, Options};
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{BlockAddress, Counters, Geometry, IoTag, Nand, PageAddress, SimNand, SimOptions, SimPmem};
use std::sync::{Arc, Mutex};

const ROOT: InodeNumber = InodeNumber::ROOT;
const CALLER: Caller = Caller::root();
const SECOND: u64 = 1_000_000_000;

/// A chip that outlives the device on it.
#[derive(Clone)]
struct Chip(Arc<Mutex<SimNand>>);

impl Chip {
    fn with<T>(&self, with: impl FnOnce(&mut SimNand) -> T) -> T {
        with(&mut self.0.lock().unwrap())
    }
}

impl Nand for Chip {
    fn geometry(&self) -> Geometry {
        self.with(|nand| nand.geometry())
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> onode_media::Result<()> {
        self.with(|nand| nand.read(page, data, spare, tag))
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> onode_media::Result<()> {
        self.with(|nand| nand.program(page, data, spare, tag))
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> onode_media::Result<()> {
        self.with(|nand| nand.erase(block, tag))
    }
    fn is_bad(&mut self, block: BlockAddress) -> onode_media::Result<bool> {
        self.with(|nand| nand.is_bad(block))
    }
    fn mark_bad(&mut self, block: BlockAddress) -> onode_media::Result<()> {
        self.with(|nand| nand.mark_bad(block))
    }
    fn flush(&mut self) -> onode_media::Result<()> {
        self.with(|nand| nand.flush())
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
}

/// What the memory beside a chip is like.
#[derive(Clone, Copy)]
struct Beside {
    bytes: u64,
    options: MemoryOptions,
}

const SPILL: MemoryOptions = MemoryOptions { rebuild: false, spill: true, buffer: false, log_bytes: None };
const REFUSE: MemoryOptions = MemoryOptions { spill: false, ..SPILL };
const BUFFER: MemoryOptions = MemoryOptions { buffer: true, ..SPILL };
const BUFFER_REFUSE: MemoryOptions = MemoryOptions { spill: false, ..BUFFER };

/// In which order files are removed.
#[derive(Clone, Copy, Debug)]
enum Order {
    Made,
    Backwards,
    Random,
}

/// A file as it must be.
struct File {
    name: String,
    number: InodeNumber,
    /// Where its content begins in the noise.
    from: usize,
    length: usize,
}

struct Volume {
    name: &'static str,
    chip: Chip,
    beside: Option<(Arc<SimPmem>, MemoryOptions)>,
    files: Option<FileSystem>,
    clock: Arc<ManualClock>,
    draw: Prng,
    noise: Vec<u8>,
    made: Vec<File>,
    count: u64,
    /// Now and then there is time for the cleaner.
    idles: bool,
}

impl Volume {
    fn new(name: &'static str, geometry: Geometry, beside: Option<Beside>) -> Self {
        let chip = Chip(Arc::new(Mutex::new(SimNand::new(geometry, SimOptions::default()).unwrap())));
        let (format, mount) = (FormatOptions::default(), MountOptions::default());
        let beside = beside.map(|one| (Arc::new(SimPmem::new(one.bytes, PmemOptions::default())), one.options));
        let device = match &beside {
            None => FlashDevice::format(chip.clone(), &format, &mount),
            Some((memory, options)) => {
                FlashDevice::format_beside(chip.clone(), memory.clone(), &format, &mount, options)
            }
        };
        let device = device.unwrap();
        let start = Timestamp { seconds: 1_790_000_000, nanoseconds: 0 };
        onode_fs::format(&device, &onode_fs::FormatOptions::default(), start).unwrap();
        onode_object::ObjectDevice::close(&device).unwrap();
        drop(device);
        let clock = Arc::new(ManualClock::at(start.seconds as u64 * SECOND));
        let mut draw = Prng::new(7);
        let mut noise = vec![0; 2 << 20];
        draw.fill(&mut noise);
        let mut volume =
            Self { name, chip, beside, files: None, clock, draw, noise, made: Vec::new(), count: 0, idles: false };
        volume.mount();
        volume
    }

    fn mount(&mut self) {
        let mount = MountOptions::default();
        let device = match &self.beside {
            None => FlashDevice::mount(self.chip.clone(), &mount).unwrap(),
            Some((memory, options)) => {
                let mount = |rebuild| {
                    let options = MemoryOptions { rebuild, ..*options };
                    let (chip, memory) = (self.chip.clone(), memory.clone());
                    let mounted = FlashDevice::mount_beside(chip, memory, &mount, &options, &mut |_| {});
                    mounted.and_then(|(device, _)| device.confirm().map(|()| device))
                };
                // One that was given up is filled again.
                match mount(false) {
                    Err(error) if error.kind == ErrorKind::Stale => mount(true).unwrap(),
                    mounted => mounted.unwrap(),
                }
            }
        };
        let options = Options { opens_are_counted: false, ..Options::default() };
        self.files = Some(FileSystem::mount(Arc::new(device), self.clock.clone(), options).unwrap());
        for file in &mut self.made {
            file.number = self.files.as_ref().unwrap().lookup(ROOT, file.name.as_bytes()).unwrap().inode;
        }
    }

    /// An orderly end and a new beginning.
    fn remount(&mut self) {
        let files = self.files.take().unwrap();
        files.unmount().unwrap_or_else(|error| panic!("{}: unmount: {error}", self.name));
        drop(files);
        self.mount();
    }

    fn files(&self) -> &FileSystem {
        self.files.as_ref().unwrap()
    }

    fn free(&self) -> u64 {
        self.files().sync().unwrap_or_else(|error| panic!("{}: sync: {error}", self.name));
        let statfs = self.files().statfs();
        statfs.blocks_free * u64::from(statfs.block_bytes)
    }

    fn tick(&mut self) {
        self.clock.advance(self.draw.below(SECOND / 4000));
        if self.count.is_multiple_of(1024) {
            self.files().tick();
        }
        if self.idles && self.draw.chance(1, 512) {
            self.pause();
        }
    }

    /// A program that waits gives the volume time.
    fn pause(&mut self) {
        self.clock.advance(self.draw.below(10 * SECOND));
        for _ in 0..self.draw.below(40) {
            self.files().tick();
            if !self.files().maintain(8).unwrap().more {
                break;
            }
        }
    }

    /// Makes files of these sizes by turns until there is no room for one; how many bytes they
    /// took.
    fn fill(&mut self, sizes: &[usize]) -> u64 {
        let mut bytes = 0;
        loop {
            self.tick();
            self.count += 1;
            let name = format!("f{}", self.count);
            let wanted = sizes[self.count as usize % sizes.len()];
            let number = match self.files().create(&CALLER, ROOT, name.as_bytes(), 0o644) {
                Ok(made) => made.inode,
                Err(error) if error.kind == ErrorKind::NoSpace => return bytes,
                Err(error) => panic!("{}: create: {error}", self.name),
            };
            let from = self.draw.below((self.noise.len() / 2) as u64) as usize;
            let mut length = 0;
            let ended = loop {
                if length == wanted {
                    break false;
                }
                let piece = (wanted - length).min(64 << 10);
                // A long file repeats itself.
                let at = from + length % (self.noise.len() / 2 - (64 << 10));
                match self.files().write(&CALLER, number, length as u64, &self.noise[at..at + piece]) {
                    Ok(0) => break true,
                    Ok(written) => {
                        length += written;
                        if written < piece {
                            break true;
                        }
                    }
                    Err(error) if error.kind == ErrorKind::NoSpace => break true,
                    Err(error) => panic!("{}: write: {error}", self.name),
                }
            };
            self.files().flush_file(number).unwrap_or_else(|error| panic!("{}: close of {name}: {error}", self.name));
            bytes += length as u64;
            self.made.push(File { name, number, from, length });
            if ended {
                return bytes;
            }
        }
    }

    /// Compares everything with what was accepted.
    fn verify(&self, when: &str) {
        let mut wrong = Vec::new();
        let mut bytes = Vec::new();
        for file in &self.made {
            bytes.resize(file.length + 1, 0);
            let mut got = 0;
            while got < file.length {
                match self.files().read(file.number, got as u64, &mut bytes[got..]) {
                    Ok(0) => break,
                    Ok(more) => got += more,
                    Err(error) => panic!("{} {when}: read of {}: {error}", self.name, file.name),
                }
            }
            let part = self.noise.len() / 2 - (64 << 10);
            let sound = got == file.length
                && (0..file.length).step_by(64 << 10).all(|start| {
                    let end = (start + (64 << 10)).min(file.length);
                    let at = file.from + start % part;
                    bytes[start..end] == self.noise[at..at + end - start]
                });
            if !sound {
                wrong.push((file.name.clone(), file.length, got));
            }
        }
        let some: Vec<_> = wrong.iter().take(5).collect();
        assert!(wrong.is_empty(), "{} {when}: {} of {} wrong: {some:?}", self.name, wrong.len(), self.made.len());
    }

    /// What must work at 100 %: replacing bytes in place, and making it durable.
    fn overwrite(&mut self) {
        let (mut replaced, mut refused) = (0, 0);
        for _ in 0..200 {
            let which = self.draw.below(self.made.len() as u64) as usize;
            let file = &self.made[which];
            if file.length == 0 {
                continue;
            }
            let number = file.number;
            let length = file.length.min(4096);
            let bytes = self.noise[file.from..file.from + length].to_vec();
            match self.files().write(&CALLER, number, 0, &bytes) {
                Ok(written) => assert_eq!(written, length, "{}: overwrite in place", self.name),
                // Only for want of memory; what was taken is not refused afterwards.
                Err(error) if error.kind == ErrorKind::NoSpace && self.beside.is_some() => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{}: overwrite in place: {error}", self.name),
            }
            let synced = self.files().fsync(number, None, false);
            synced.unwrap_or_else(|error| panic!("{}: fsync of an overwrite: {error}", self.name));
            replaced += 1;
        }
        println!("{}: {replaced} overwritten, {refused} refused", self.name);
    }

    fn empty(&mut self, order: Order) {
        match order {
            Order::Made => {}
            Order::Backwards => self.made.reverse(),
            Order::Random => {
                for at in (1..self.made.len()).rev() {
                    let other = self.draw.below(at as u64 + 1) as usize;
                    self.made.swap(at, other);
                }
            }
        }
        let all = self.made.len();
        for (done, file) in std::mem::take(&mut self.made).into_iter().enumerate() {
            self.clock.advance(SECOND / 8000);
            if done.is_multiple_of(1024) {
                self.files().tick();
            }
            let unlinked = self.files().unlink(ROOT, file.name.as_bytes());
            unlinked.unwrap_or_else(|error| panic!("{}: unlink {done} of {all}: {error}", self.name));
            self.files().forget(file.number, 1);
        }
    }
}

/// Rounds that somebody asked for who has the time.
fn asked_rounds() -> Option<u64> {
    std::env::var("ONODE_FULL_ROUNDS").ok().map(|count| count.parse().unwrap())
}

fn rounds(mut volume: Volume, sizes: &[usize], default: u64) {
    let count = asked_rounds().unwrap_or(default);
    let name = volume.name;
    let first = volume.free();
    for round in 0..count {
        let bytes = volume.fill(sizes);
        // All that was accepted fits.
        volume.files().sync().unwrap_or_else(|error| panic!("{name}, round {round}: sync at 100 %: {error}"));
        println!(
            "{name}, round {round}: {} files of {sizes:?}, {bytes} bytes of {first} ({} %), {} left",
            volume.made.len(),
            bytes * 100 / first,
            volume.free()
        );
        volume.overwrite();
        volume.verify("full");
        volume.remount();
        volume.verify("after a mount");
        let order = [Order::Made, Order::Random, Order::Backwards][round as usize % 3];
        volume.empty(order);
        let free = volume.free();
        // What a memory that limits the volume has room for is an estimate as long as it holds
        // little.
        let limits = volume.beside.as_ref().is_some_and(|(_, options)| !options.spill);
        let least = if limits { first / 16 } else { 64 << 10 };
        assert!(free.abs_diff(first) <= least, "{name}, round {round}: {free} bytes are free of {first}");
    }
}

const fn shape(blocks: u32) -> Geometry {
    Geometry { page_bytes: 4096, spare_bytes: 32, pages_per_block: 64, blocks, chips: 1 }
}

/// Many small erase blocks, for tiny files: 2 MiB, unless somebody has the time for more.
fn small() -> Geometry {
    let blocks = if asked_rounds().is_some() { 512 } else { 64 };
    Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 16, blocks, chips: 1 }
}

fn tiny(name: &'static str, sizes: &[usize]) {
    rounds(Volume::new(name, small(), None), sizes, 1);
}

/// As the command makes them of 16 MiB.
fn flash(name: &'static str, sizes: &[usize]) {
    rounds(Volume::new(name, shape(64), None), sizes, 2);
}

fn pair(name: &'static str, options: MemoryOptions, sizes: &[usize]) {
    rounds(Volume::new(name, shape(64), Some(Beside { bytes: 32 << 10, options })), sizes, 2);
}

#[test]
fn empty_files() {
    tiny("flash, 0", &[0]);
}

#[test]
fn files_of_100_bytes() {
    tiny("flash, 100", &[100]);
}

#[test]
fn files_of_300_bytes() {
    tiny("flash, 300", &[300]);
}

#[test]
fn files_of_900_bytes() {
    flash("flash, 900", &[900]);
}

#[test]
fn files_of_4_kib() {
    flash("flash, 4096", &[4096]);
}

#[test]
fn files_of_64_kib() {
    flash("flash, 65536", &[65536]);
}

#[test]
fn one_big_file() {
    flash("flash, one", &[1 << 30]);
}

#[test]
fn mixed_files() {
    flash("flash, mixed", &[0, 100, 300, 900, 4096, 65536, 12_345]);
}

/// Full of tiny files on few segments, with time for the cleaner at any moment: what was accepted
/// was refused at the unmount.
#[test]
fn tiny_files_with_pauses() {
    // 35 is one with which it happened.
    let seeds = asked_rounds().map_or(34..37, |count| 0..20 * count);
    for seed in seeds {
        let mut volume = Volume::new("flash, 300, pauses", shape(32), None);
        (volume.draw, volume.idles) = (Prng::new(seed), true);
        let bytes = volume.fill(&[300]);
        println!("seed {seed}: {} files, {bytes} bytes", volume.made.len());
        for _ in 0..50 {
            let which = volume.draw.below(volume.made.len() as u64) as usize;
            volume.files().fsync(volume.made[which].number, None, false).unwrap();
            if volume.draw.chance(1, 16) {
                volume.pause();
            }
        }
        volume.pause();
        volume.remount();
        volume.verify("after a mount");
    }
}

#[test]
fn spill_900() {
    pair("spill, 900", SPILL, &[900]);
}

#[test]
fn refuse_900() {
    let beside = Beside { bytes: 12 << 10, options: REFUSE };
    rounds(Volume::new("refuse, 900", shape(64), Some(beside)), &[900], 2);
}

#[test]
fn buffer_900() {
    pair("buffer, 900", BUFFER, &[900]);
}

#[test]
fn buffer_refuse_300() {
    let beside = Beside { bytes: 16 << 10, options: BUFFER_REFUSE };
    rounds(Volume::new("buffer refuse, 300", small(), Some(beside)), &[300], 1);
}

#[test]
fn buffer_mixed() {
    pair("buffer, mixed", BUFFER, &[0, 100, 300, 900, 4096, 65536, 12_345]);
}

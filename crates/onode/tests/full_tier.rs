//! A tiered volume filled with files of every size through the write cache: what `write` and
//! `close` accepted is there after an orderly unmount, every byte of it; what is there can be
//! overwritten and removed on the full volume, and the space comes back without another mount (N7).
//!
//! `FILL_ROUNDS` sets the rounds on each shape.

use crate::content::content;
use onode_base::clock::ManualClock;
use onode_base::{ErrorKind, Prng, Timestamp};
use onode_fs::{Caller, FileSystem, InodeNumber, Options};
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::powers::Inspect as _;
use onode_tier::fast::FastOptions;
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};
use std::sync::Arc;

const ROOT: InodeNumber = InodeNumber::ROOT;
const CALLER: Caller = Caller::root();
const MIB: u64 = 1 << 20;
const SECONDS: i64 = 1_790_000_000;

/// Both disks, and what is mounted on them.
struct Volume {
    big: SimDisk,
    fast: SimDisk,
    files: FileSystem,
    device: Arc<TierDevice>,
    draw: Prng,
}

/// A file that was made: its name, what its bytes follow from, how many there are.
#[derive(Clone, Debug)]
struct Made {
    name: String,
    seed: u64,
    length: usize,
}

fn mounted(device: TierDevice) -> (FileSystem, Arc<TierDevice>) {
    let device = Arc::new(device);
    let clock = Arc::new(ManualClock::at(SECONDS as u64 * 1_000_000_000));
    let options = Options { opens_are_counted: false, ..Options::default() };
    (FileSystem::mount(device.clone(), clock, options).unwrap(), device)
}

impl Volume {
    fn new(big: u64, fast: u64, seed: u64) -> Self {
        let (big, fast) = (SimDisk::new("big", big), SimDisk::new("fast", fast));
        let new = NewFast { disk: Box::new(fast.clone()), uuid: [3; 16], options: FastOptions::for_disk(fast.bytes()) };
        let format = FormatOptions::default();
        let device = TierDevice::format(Box::new(big.clone()), Some(new), &format, &MountOptions::default()).unwrap();
        let start = Timestamp { seconds: SECONDS, nanoseconds: 0 };
        onode_fs::format(&device, &onode_fs::FormatOptions::default(), start).unwrap();
        let (files, device) = mounted(device);
        Self { big, fast, files, device, draw: Prng::new(seed) }
    }

    /// An orderly unmount, and another mount.
    fn remount(&mut self) {
        self.files.unmount().unwrap();
        let (big, fast) = (Box::new(self.big.clone()), Box::new(self.fast.clone()));
        let device = TierDevice::mount(big, Some(fast), &MountOptions::default()).unwrap();
        assert_eq!(device.reports(), Vec::<String>::new());
        device.verify().unwrap();
        (self.files, self.device) = mounted(device);
    }

    fn checkpoints(&self) -> u64 {
        let counters = self.device.counters();
        counters.iter().find(|(name, _)| name == "checkpoints").map_or(0, |(_, count)| *count)
    }

    fn free(&self) -> u64 {
        self.files.sync().unwrap();
        let statfs = self.files.statfs();
        statfs.blocks_free * u64::from(statfs.block_bytes)
    }

    /// Writes a file from front to back; how much of it was taken.
    fn write(&mut self, number: InodeNumber, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let piece = &bytes[done..bytes.len().min(done + (128 << 10))];
            match self.files.write(&CALLER, number, done as u64, piece) {
                Ok(written) => done += written,
                Err(error) if error.kind == ErrorKind::NoSpace => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.files.flush_file(number).unwrap_or_else(|error| panic!("close after a write that was taken: {error}"));
        done
    }

    /// Makes files until nothing fits.
    fn fill(&mut self, sizes: &[usize]) -> Vec<Made> {
        let mut made = Vec::new();
        let mut refused = 0;
        loop {
            let (name, seed) = (format!("f{}", made.len() + refused), made.len() as u64);
            let length = sizes[self.draw.below(sizes.len() as u64) as usize];
            match self.files.create(&CALLER, ROOT, name.as_bytes(), 0o644) {
                Ok(file) => {
                    let taken = self.write(file.inode, &content(seed, length));
                    self.files.forget(file.inode, 1);
                    made.push(Made { name, seed, length: taken });
                    if taken < length {
                        return made;
                    }
                }
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    refused += 1;
                    if refused > 3 {
                        return made;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Every file, from the device, is what was accepted.
    fn verify(&self, made: &[Made]) {
        let mut wrong = 0;
        for file in made {
            let found = self.files.lookup(ROOT, file.name.as_bytes()).unwrap();
            let mut bytes = vec![0; file.length + 1];
            let got = self.files.read(found.inode, 0, &mut bytes).unwrap();
            // The last one may have been cut short: what was taken of it counts.
            let expected = content(file.seed, file.length.max(got));
            wrong += usize::from(got != file.length || bytes[..got] != expected[..got]);
            self.files.forget(found.inode, 1);
        }
        assert_eq!(wrong, 0, "of {} files that were accepted so many are wrong", made.len());
    }

    /// Fsyncs and overwrites some files in place; all of it was accepted before.
    fn overwrite(&mut self, made: &mut [Made]) {
        let count = made.len() as u64;
        for turn in 0..40.min(count) {
            let file = &mut made[self.draw.below(count) as usize];
            let number = self.files.lookup(ROOT, file.name.as_bytes()).unwrap().inode;
            self.files.fsync(number, None, false).unwrap_or_else(|error| panic!("fsync of {file:?}: {error}"));
            let length = file.length.min(256 << 10);
            if length == file.length {
                file.seed = 1_000_000 + turn;
                let (bytes, mut done) = (content(file.seed, length), 0);
                while done < length {
                    let written = self.files.write(&CALLER, number, done as u64, &bytes[done..]);
                    done += written.unwrap_or_else(|error| panic!("overwrite of {file:?} at {done}: {error}"));
                }
                self.files.fsync(number, None, false).unwrap();
            }
            self.files.forget(number, 1);
        }
    }

    /// Removes all, in one of three orders; how many checkpoints that took.
    fn empty(&mut self, mut made: Vec<Made>, order: u64) -> u64 {
        match order % 3 {
            0 => made.sort_by_key(|file| onode_base::checksum::crc32c(file.name.as_bytes())),
            1 => {}
            _ => (1..made.len()).rev().for_each(|at| made.swap(at, self.draw.below(at as u64 + 1) as usize)),
        }
        let before = self.checkpoints();
        for file in &made {
            let removed = self.files.unlink(ROOT, file.name.as_bytes());
            removed.unwrap_or_else(|error| panic!("unlink of {} on a full volume: {error}", file.name));
        }
        self.checkpoints() - before
    }
}

/// Fills, closes, verifies, overwrites, verifies, empties, again and again.
fn rounds(big: u64, fast: u64, sizes: &[usize]) {
    let count: u64 = std::env::var("FILL_ROUNDS").map_or(3, |count| count.parse().unwrap());
    let mut volume = Volume::new(big, fast, sizes.len() as u64 + sizes[0] as u64);
    let mut free = Vec::new();
    for round in 0..count {
        free.push(volume.free());
        let mut made = volume.fill(sizes);
        let bytes: u64 = made.iter().map(|file| file.length as u64).sum();
        let left = volume.free();
        if round % 2 == 1 {
            volume.overwrite(&mut made);
        } else {
            volume.remount();
        }
        volume.verify(&made);
        let files = made.len() as u64;
        let checkpoints = volume.empty(made, round);
        println!(
            "{sizes:?}: round {round}: {files} files, {bytes} bytes, {} % of what was free, {left} bytes left; {checkpoints} checkpoints to empty",
            bytes * 100 / free[round as usize]
        );
        assert!(left <= free[0] / 10, "full for files of {sizes:?} with {left} bytes free");
        assert!(checkpoints <= 64 + files / 16, "{checkpoints} checkpoints to remove {files} files");
    }
    free.push(volume.free());
    let (least, most) = (free.iter().min().unwrap(), free.iter().max().unwrap());
    assert!(most - least <= 256 << 10, "free space wanders: {free:?}");
    volume.remount();
    let statfs = volume.files.statfs();
    let again = statfs.blocks_free * u64::from(statfs.block_bytes);
    assert!(again.abs_diff(free[0]) <= 256 << 10, "{again} bytes are free after another mount, {} at first", free[0]);
}

#[test]
fn empty_files() {
    rounds(4 * MIB, 4 * MIB, &[0]);
}

#[test]
fn files_of_100_bytes() {
    rounds(8 * MIB, 8 * MIB, &[100]);
}

#[test]
fn files_of_150_bytes() {
    rounds(8 * MIB, 8 * MIB, &[150]);
}

#[test]
fn files_of_300_bytes() {
    rounds(8 * MIB, 8 * MIB, &[300]);
}

#[test]
fn files_of_1000_bytes() {
    rounds(16 * MIB, 8 * MIB, &[1000]);
}

#[test]
fn files_of_1100_bytes() {
    rounds(16 * MIB, 8 * MIB, &[1100]);
}

#[test]
fn files_of_a_block() {
    rounds(16 * MIB, 8 * MIB, &[4096]);
}

#[test]
fn files_of_20000_bytes() {
    rounds(32 * MIB, 16 * MIB, &[20_000]);
}

#[test]
fn files_of_64_kib() {
    rounds(32 * MIB, 16 * MIB, &[64 << 10]);
}

#[test]
fn one_big_file() {
    rounds(48 * MIB, 24 * MIB, &[64 << 20]);
}

#[test]
fn mixed_files() {
    rounds(48 * MIB, 24 * MIB, &[0, 100, 300, 900, 1000, 1100, 4096, 9000, 20_000, 65_536, 300_000]);
}

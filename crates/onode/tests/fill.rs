//! Round after round a volume is filled to the last byte and emptied, as tests/apps/fill.sh does it
//! through the kernel: what frees space is never refused (N7), 99 % of what `statfs` promises can
//! be written, and no space is lost.
//!
//! `FILL_ROUNDS` sets the rounds on each shape.

use onode_base::clock::ManualClock;
use onode_base::{ErrorKind, Prng, Timestamp};
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_fs::{Caller, FileSystem, InodeNumber, Options};
use onode_media::{Geometry, SimNand, SimOptions};
use std::collections::VecDeque;
use std::sync::Arc;

const ROOT: InodeNumber = InodeNumber::ROOT;
const CALLER: Caller = Caller::root();
const KIB: usize = 1 << 10;

/// What the kernel does: it knows every file it has seen, and forgets one some time after its end.
struct Kernel {
    files: FileSystem,
    clock: Arc<ManualClock>,
    draw: Prng,
    bytes: Vec<u8>,
    forgets: VecDeque<InodeNumber>,
}

impl Kernel {
    fn new(geometry: Geometry, segment: Option<u16>, mount: MountOptions, seed: u64) -> Self {
        let nand = SimNand::new(geometry, SimOptions::default()).unwrap();
        let format = FormatOptions { blocks_per_segment: segment, ..FormatOptions::default() };
        let device = Arc::new(FlashDevice::format(nand, &format, &mount).unwrap());
        let start = Timestamp { seconds: 1_790_000_000, nanoseconds: 0 };
        onode_fs::format(device.as_ref(), &onode_fs::FormatOptions::default(), start).unwrap();
        let clock = Arc::new(ManualClock::at(start.seconds as u64 * 1_000_000_000));
        let options = Options { opens_are_counted: false, ..Options::default() };
        let files = FileSystem::mount(device, clock.clone(), options).unwrap();
        let mut draw = Prng::new(seed);
        let mut bytes = vec![0; 64 * KIB];
        draw.fill(&mut bytes);
        Self { files, clock, draw, bytes, forgets: VecDeque::new() }
    }

    /// Time goes on; now and then a file that has no name is forgotten, or the owner ticks.
    fn pass(&mut self) {
        self.clock.advance(self.draw.below(3_000_000));
        while self.forgets.len() > 64 || (!self.forgets.is_empty() && self.draw.chance(1, 2)) {
            self.forget();
        }
        if self.draw.chance(1, 64) {
            self.files.tick();
        }
    }

    fn forget(&mut self) -> bool {
        let Some(number) = self.forgets.pop_front() else { return false };
        self.files.forget(number, 1);
        true
    }

    fn free(&mut self) -> u64 {
        while self.forget() {}
        self.files.sync().unwrap();
        let statfs = self.files.statfs();
        statfs.blocks_free * u64::from(statfs.block_bytes)
    }

    /// Makes a file of `length` bytes; tells its number and how many bytes found no room.
    fn make(&mut self, name: &str, length: usize) -> Result<(InodeNumber, usize), onode_fs::Error> {
        self.pass();
        let number = self.files.create(&CALLER, ROOT, name.as_bytes(), 0o644)?.inode;
        let mut left = length;
        while left > 0 {
            let from = self.draw.below(KIB as u64) as usize;
            let piece = &self.bytes[from..self.bytes.len().min(from + left)];
            match self.files.write(&CALLER, number, (length - left) as u64, piece) {
                Ok(written) => left -= written,
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    // The server's patience: what is gone gives its space back once it is
                    // forgotten.
                    if !self.forget() {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.files.flush_file(number)?;
        Ok((number, left))
    }

    fn fill(&mut self, sizes: &[usize]) -> Vec<(String, InodeNumber)> {
        let mut made = Vec::new();
        loop {
            let name = made.len().to_string();
            let length = sizes[self.draw.below(sizes.len() as u64) as usize];
            match self.make(&name, length) {
                Ok((number, left)) => {
                    made.push((name, number));
                    if left > 0 {
                        return made;
                    }
                }
                Err(error) if error.kind == ErrorKind::NoSpace => return made,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn unlink(&mut self, name: &str, number: InodeNumber) {
        self.pass();
        self.files.unlink(ROOT, name.as_bytes()).unwrap_or_else(|error| panic!("unlink of {name}: {error}"));
        self.forgets.push_back(number);
    }
}

fn rounds(shape: &str, mut kernel: Kernel) {
    let count: u64 = std::env::var("FILL_ROUNDS").map_or(40, |count| count.parse().unwrap());
    let kinds: [&[usize]; 5] = [&[256 * KIB], &[4096], &[500, 3000, 9000], &[100, 12_500, 75_000], &[64 * KIB]];
    let mut figures = Vec::new();
    for round in 0..count {
        let mut made = kernel.fill(kinds[round as usize % kinds.len()]);
        while !made.is_empty() {
            let which = kernel.draw.below(made.len() as u64) as usize;
            let (name, number) = made.swap_remove(which);
            kernel.unlink(&name, number);
        }
        let promise = kernel.free();
        let wanted = (promise * 99 / 100) as usize;
        let (number, left) = kernel.make("promise", wanted).unwrap();
        assert_eq!(left, 0, "{shape}, round {round}: not all of the promised {promise} bytes could be written");
        kernel.files.fsync(number, None, false).unwrap();
        kernel.unlink("promise", number);
        figures.push(kernel.free());
    }
    let (least, most) = (figures.iter().min().unwrap(), figures.iter().max().unwrap());
    println!(
        "{shape}: {} bytes free after the first round, {} after the last, from {least} to {most}",
        figures[0],
        figures[figures.len() - 1]
    );
    assert!(most - least <= 64 * KIB as u64, "{shape}: free space wanders: {figures:?}");
    assert_eq!(kernel.files.device().space().objects, 2, "{shape}: only the volume and its root are left");
}

fn shape(page_bytes: u32, spare_bytes: u32, pages_per_block: u32, blocks: u32) -> Geometry {
    Geometry { page_bytes, spare_bytes, pages_per_block, blocks, chips: 1 }
}

fn run(name: &str, geometry: Geometry, segment: Option<u16>, checkpoint_pages: Option<u32>) {
    let mount = MountOptions { checkpoint_pages, ..MountOptions::default() };
    rounds(name, Kernel::new(geometry, segment, mount, 1));
}

#[test]
fn pages_of_2_kib() {
    run("2 KiB pages", shape(2048, 64, 64, 32), None, None);
}

#[test]
fn pages_without_spare() {
    run("2 KiB pages, no spare", shape(2048, 0, 16, 64), None, None);
}

#[test]
fn segments_of_4_blocks() {
    run("2 KiB pages, segments of 4 blocks", shape(2048, 64, 8, 128), Some(4), None);
}

#[test]
fn pages_of_4_kib() {
    run("4 KiB pages", shape(4096, 64, 16, 64), None, None);
}

#[test]
fn tiny() {
    run("tiny", shape(512, 0, 8, 64), None, None);
}

#[test]
fn tiny_with_a_long_journal() {
    run("tiny, 32 journal pages", shape(512, 0, 8, 64), None, Some(32));
}

#[test]
fn small_with_a_long_journal() {
    run("small, 32 journal pages", shape(512, 16, 8, 256), None, Some(32));
}

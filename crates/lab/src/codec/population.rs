//! The eight populations: 128 MiB of NAND filled in eight ways, each by a seeded generator.

use super::chip::{Chip, File, PAGE_BYTES, ROOT};
use crate::codec::compared::cmfs::Block;
use onode_base::Prng;

/// What a population is made on: a simulated chip, or a device.
pub trait Files {
    /// Pages of the medium.
    fn pages(&self) -> u64;
    /// Pages in use: content, and one for each object.
    fn used(&self) -> u64;
    /// Makes an object in `parent` and returns its number.
    fn create(&mut self, parent: u32, kind: u8) -> u32;
    /// The id of an object, its pages and bytes.
    fn look(&self, object: u32) -> (u32, u64, u64);
    /// Writes pages of a file from `page` on, counted from 0.
    fn write_pages(&mut self, object: u32, page: u32, count: u32);
    /// Closes a file, which has `bytes` then.
    fn close(&mut self, object: u32, bytes: u64);
    /// Removes a file.
    fn remove(&mut self, object: u32);

    /// Files of a sixteenth of the medium that it takes.
    fn large_files(&self) -> u32 {
        15
    }

    /// A file of `bytes` made, written and closed.
    fn create_file(&mut self, parent: u32, bytes: u64) -> u32 {
        let object = self.create(parent, 1);
        self.write_pages(object, 0, bytes.div_ceil(PAGE_BYTES) as u32);
        self.close(object, bytes);
        object
    }
}

/// A way to fill the NAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// Mail: 11,310 files of 0.5 to 10 KiB; each was removed and another made three times over.
    Small,
    /// Files of 100 KiB one after the other.
    Medium,
    /// Files of 8 MiB one after the other.
    Sequential,
    /// Files of 8 MiB, four written at a time in pieces of 32 KiB.
    Interleaved,
    /// One file, rewritten twice over in pieces of 2 KiB anywhere.
    RandomPages,
    /// The same in pieces of 4 KiB.
    RandomPairs,
    /// Files of all sizes, median 4 KiB, mean 45 KiB, that came, changed and went.
    AgedSmall,
    /// The same with median 64 KiB, mean 189 KiB.
    AgedLarge,
}

/// Files of 8 MiB are so many on 128 MiB, and as many smaller ones on less.
const LARGE_PART: u64 = 16;

/// Sizes and chances of an aged population.
struct Ages {
    median: f64,
    sigma: f64,
}

impl Population {
    /// All, in the order of the figures.
    pub const ALL: [Self; 8] = [
        Self::Small,
        Self::Medium,
        Self::Sequential,
        Self::Interleaved,
        Self::RandomPages,
        Self::RandomPairs,
        Self::AgedSmall,
        Self::AgedLarge,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small files",
            Self::Medium => "100K files",
            Self::Sequential => "8M files",
            Self::Interleaved => "4 writers",
            Self::RandomPages => "random 2K",
            Self::RandomPairs => "random 4K",
            Self::AgedSmall => "aged 4K",
            Self::AgedLarge => "aged 64K",
        }
    }

    /// The word for it on a command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "100k",
            Self::Sequential => "8m",
            Self::Interleaved => "4-writers",
            Self::RandomPages => "random-2k",
            Self::RandomPairs => "random-4k",
            Self::AgedSmall => "aged-4k",
            Self::AgedLarge => "aged-64k",
        }
    }

    /// The population of that [`word`](Self::word).
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|population| population.word() == word)
    }

    /// What a chip of `blocks` blocks holds then.
    pub fn generate(self, blocks: u32, seed: u64) -> Volume {
        Volume::of(&self.fill(blocks, seed))
    }

    /// Fills a chip of `blocks` blocks.
    pub fn fill(self, blocks: u32, seed: u64) -> Chip {
        let mut chip = Chip::new(blocks);
        self.make(&mut chip, seed);
        chip
    }

    /// Makes it on `files`.
    pub fn make(self, files: &mut impl Files, seed: u64) {
        let mut random = Prng::new(seed ^ (self as u64) << 32);
        let pages = files.pages();
        match self {
            Self::Small => small(files, &mut random),
            Self::Medium => {
                while files.used() < pages * 85 / 100 {
                    files.create_file(ROOT, 100 << 10);
                }
            }
            Self::Sequential => {
                for _ in 0..files.large_files() {
                    files.create_file(ROOT, pages / LARGE_PART * PAGE_BYTES);
                }
            }
            Self::Interleaved => interleaved(files, &mut random),
            Self::RandomPages => scattered(files, &mut random, 1),
            Self::RandomPairs => scattered(files, &mut random, 2),
            Self::AgedSmall => aged(files, &mut random, &Ages { median: 4096.0, sigma: 2.2 }),
            Self::AgedLarge => aged(files, &mut random, &Ages { median: 65536.0, sigma: 1.47 }),
        }
    }
}

/// What lies on a NAND.
#[derive(Clone, Debug)]
pub struct Volume {
    /// The objects by id.
    pub files: Vec<File>,
    /// The erase blocks.
    pub blocks: Vec<Block>,
}

impl Volume {
    /// What `chip` holds.
    pub fn of(chip: &Chip) -> Self {
        Self { files: chip.objects.iter().flatten().cloned().collect(), blocks: chip.blocks.clone() }
    }

    /// Bytes of the NAND.
    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * u64::from(super::chip::PAGES_PER_BLOCK) * PAGE_BYTES
    }
}

fn small(chip: &mut impl Files, random: &mut Prng) {
    let count = chip.pages() * 11_310 / 65536;
    let mut directories = Vec::new();
    for _ in 0..20 {
        let number = chip.create(ROOT, 3);
        directories.push(chip.look(number).0);
    }
    let mut make = |random: &mut Prng, gone: Option<u32>| {
        if let Some(gone) = gone {
            chip.remove(gone);
        }
        let parent = directories[random.below(20) as usize];
        chip.create_file(parent, 512 + random.below(10_240 - 512 + 1))
    };
    let mut files: Vec<u32> = (0..count).map(|_| make(random, None)).collect();
    for _ in 0..3 * count {
        let index = random.below(count) as usize;
        files[index] = make(random, Some(files[index]));
    }
}

fn interleaved(chip: &mut impl Files, random: &mut Prng) {
    const PIECE: u32 = 16;
    let file_pages = (chip.pages() / LARGE_PART) as u32;
    for _ in 0..3 {
        let mut writers: Vec<(u32, u32)> = (0..4).map(|_| (chip.create(ROOT, 1), 0)).collect();
        while !writers.is_empty() {
            let index = random.below(writers.len() as u64) as usize;
            let (object, page) = &mut writers[index];
            chip.write_pages(*object, *page, PIECE);
            *page += PIECE;
            if *page == file_pages {
                chip.close(*object, u64::from(file_pages) * PAGE_BYTES);
                writers.swap_remove(index);
            }
        }
    }
}

fn scattered(chip: &mut impl Files, random: &mut Prng, unit: u32) {
    let pages = (chip.pages() * 60 / 100) as u32;
    let file = chip.create_file(ROOT, u64::from(pages) * PAGE_BYTES);
    for _ in 0..2 * pages / unit {
        chip.write_pages(file, random.below(u64::from(pages / unit)) as u32 * unit, unit);
    }
    chip.close(file, u64::from(pages) * PAGE_BYTES);
}

/// Fills to 80 % and lets three times the capacity come and go: new files, longer files, rewritten
/// parts. Where no room is, files chosen at random make it.
fn aged(chip: &mut impl Files, random: &mut Prng, ages: &Ages) {
    let mut files: Vec<u32> = Vec::new();
    let mut written = 0;
    let full = chip.pages() * 80 / 100;
    while written < 3 * chip.pages() {
        let roll = random.below(100);
        let bytes = log_normal(random, ages);
        let (pages, count) = (bytes.div_ceil(PAGE_BYTES), 1 + random.below(16));
        while chip.used() + pages.max(count) + 2 > full {
            let index = random.below(files.len() as u64) as usize;
            chip.remove(files.swap_remove(index));
        }
        if roll < 70 || files.len() < 20 {
            files.push(chip.create_file(ROOT, bytes));
            written += pages + 2;
            continue;
        }
        let file = files[random.below(files.len() as u64) as usize];
        let (_, pages, size) = chip.look(file);
        if roll < 85 {
            chip.write_pages(file, pages as u32, count as u32);
            chip.close(file, size.next_multiple_of(PAGE_BYTES) + count * PAGE_BYTES - random.below(PAGE_BYTES));
        } else {
            let count = count.min(pages);
            chip.write_pages(file, random.below(pages - count + 1) as u32, count as u32);
            chip.close(file, size);
        }
        written += count + 1;
    }
}

/// A size from a log-normal distribution, at most 4 MiB.
fn log_normal(random: &mut Prng, ages: &Ages) -> u64 {
    // The sum of twelve even numbers is nearly normal, and needs no functions that differ between
    // machines.
    let sum: f64 = (0..12).map(|_| random.below(1 << 32) as f64 / (1u64 << 32) as f64).sum();
    let bytes = ages.median * exponential((sum - 6.0) * ages.sigma);
    (bytes as u64).clamp(1, 4 << 20)
}

/// e to the power of `x`, by multiplications and additions alone: equal on every machine.
fn exponential(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    let small = x / 64.0;
    for n in 1..20 {
        term *= small / f64::from(n);
        sum += term;
    }
    (0..6).fold(sum, |power, _| power * power)
}

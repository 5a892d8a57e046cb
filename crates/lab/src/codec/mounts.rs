//! What a mount of `flash+scm` reads and how long it takes, after an orderly end and after a power
//! cut.

use super::figures::Measuring;
use crate::bench::{Bench, Caches, Durability};
use crate::chip::Chip;
use crate::figures::fill::{Churn, fill, write_file};
use onode::{Class, Error, Result, Spec, Volume};
use onode_base::Prng;
use onode_media::{PmemOptions, SimNand, SimPmem, Survival};
use std::sync::Arc;

/// Journal pages between two checkpoints of the volumes that are cut.
const CHECKPOINT_PAGES: u32 = 64;
/// Pages of either kind between two checkpoints, and what it takes to find the superblock and the
/// journal's end.
const REACH_CUT_READS: u64 = 2 * CHECKPOINT_PAGES as u64 + 24;
/// Small files on a gibibyte.
const MANY_FILES: u64 = 90_000;
/// Operations before a cut, at most.
const BETWEEN: u64 = 400;
/// Milliseconds of virtual time to mount.
const REACH_CLEAN_MS: f64 = 30.0;
const REACH_CUT_MS: f64 = 60.0;
/// What other file systems do to mount, counted on 128 MiB of simulated NAND that small files fill
/// to 90 %, and not by this program.
const ELSEWHERE: [Peer; 4] = [
    // Its checkpoint grows with the objects, of which there were 12,600.
    Peer { name: "YAFFS2 with a checkpoint", reads: 1309, per: (MANY_FILES, 12_600), fixed: (0, 0, 0) },
    // Three reads of the spare area a block.
    Peer { name: "YAFFS2 scan", reads: 4142, per: (8, 1), fixed: (0, 0, 0) },
    // Two headers a block. What UBIFS reads beside that does not grow with the medium.
    Peer { name: "UBI attach + UBIFS mount, clean", reads: 2048, per: (8, 1), fixed: (22 + 280, 2, 0) },
    Peer {
        name: "UBI attach + UBIFS mount, after a cut, the best of nine",
        reads: 2048,
        per: (8, 1),
        fixed: (22 + 3392, 83, 3),
    },
];

/// A mount of another file system.
struct Peer {
    name: &'static str,
    /// Reads that grow with the medium or what is on it, and how much more of that 1 GiB has.
    reads: u64,
    per: (u64, u64),
    /// Reads, programs and erases that do not.
    fixed: (u64, u64, u64),
}

impl Peer {
    /// With 15 us for a read, 200 us for a program and 2 ms for an erase, and nothing for what goes
    /// over the bus.
    fn milliseconds(&self) -> f64 {
        let (reads, programs, erases) = self.fixed;
        let reads = reads + self.reads * self.per.0 / self.per.1;
        (reads * 15 + programs * 200 + erases * 2000) as f64 / 1e3
    }
}

/// What a mount took.
#[derive(Clone, Copy, Debug)]
pub struct Mount {
    /// Pages of flash that the device read.
    pub reads: u64,
    /// Virtual time of the device's mount, and of the file system's with it.
    milliseconds: f64,
    whole_milliseconds: f64,
}

/// What both media hold.
struct Image {
    nand: SimNand,
    memory: Vec<u8>,
}

fn caches() -> Caches {
    Caches { checkpoint_pages: Some(CHECKPOINT_PAGES), ..Caches::default() }
}

impl Image {
    /// What a power cut would leave now, with nothing in the memory that was not fenced.
    fn of(bench: &Bench) -> Result<Self> {
        match (bench.chip(), bench.memory()) {
            (Some(chip), Some(memory)) => {
                Ok(Self { nand: chip.image(), memory: memory.crash_image(Survival::Nothing) })
            }
            _ => Err(Error::new(Class::Bug, "cannot measure mounts", "the device has no memory")),
        }
    }

    fn mount(&self, spec: &Spec) -> Result<(Bench, Mount)> {
        let chip = Chip::holding(self.nand.clone());
        chip.reset_counters();
        let memory = Arc::new(SimPmem::from_image(self.memory.clone(), PmemOptions::default()));
        let (device, reads, nanoseconds) = Bench::device_beside(spec, &chip, &memory, caches())?;
        let bench = Bench::of_device(device, chip, memory, Durability::Natural)?;
        let of = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let whole_milliseconds = of(bench.nanoseconds());
        Ok((bench, Mount { reads, milliseconds: of(nanoseconds), whole_milliseconds }))
    }
}

/// A volume so full that ended, mounted again.
pub fn after_an_end(spec: &str, percent: u64) -> Result<Mount> {
    let spec = Spec::parse(spec)?;
    let bench = Bench::new(&spec, Durability::Natural, caches())?;
    fill(&bench, percent, 40_000, &mut 0)?;
    bench.files.unmount().map_err(|error| Volume::error("cannot end the measured volume", &error))?;
    Image::of(&bench)?.mount(&spec).map(|(_, mount)| mount)
}

/// The most that a mount takes after one of `cuts` power cuts under synced operations.
fn after_cuts(image: &Image, spec: &Spec, cuts: u64) -> Result<Mount> {
    let mut worst = Mount { reads: 0, milliseconds: 0.0, whole_milliseconds: 0.0 };
    let mut prng = Prng::new(cuts);
    let (bench, _) = image.mount(spec)?;
    let mut churn = Churn::new(cuts, 0, 1);
    for _ in 0..cuts {
        for _ in 0..1 + prng.below(BETWEEN) {
            churn.step(&bench).map_err(|error| Volume::error("cannot work on the measured volume", &error))?;
        }
        let (_, mount) = Image::of(&bench)?.mount(spec)?;
        worst.reads = worst.reads.max(mount.reads);
        worst.milliseconds = worst.milliseconds.max(mount.milliseconds);
        worst.whole_milliseconds = worst.whole_milliseconds.max(mount.whole_milliseconds);
    }
    Ok(worst)
}

/// All rows of mounts.
pub fn measure(rows: &mut Measuring<'_>) -> Result<()> {
    let quick = rows.options.quick;
    let sizes: &[&str] = if quick { &["16M"] } else { &["16M", "128M"] };
    for size in sizes {
        for percent in [10, 90] {
            rows.say(&format!("mounting {size}, {percent} % full"));
            let mount = after_an_end(&format!("flash+scm:sim,size={size},page=2K,spare=64,memory=512K"), percent)?;
            let name = format!("flash+scm: page reads to mount, clean, {size}, {percent} % full");
            rows.at_most(name, mount.reads, "pages", 0_u64);
        }
    }
    for buffer in ["off", "on"] {
        many_files(rows, quick, buffer)?;
    }
    for peer in &ELSEWHERE {
        let name = format!("to mount: {}, counts of 128 MiB scaled to 1G with {MANY_FILES} small files", peer.name);
        rows.shown(name, peer.milliseconds(), "virtual ms");
    }
    Ok(())
}

/// A gibibyte with 90 thousand small files.
fn many_files(rows: &mut Measuring<'_>, quick: bool, buffer: &str) -> Result<()> {
    let (size, memory, files, cuts) = if quick { ("32M", "256K", 1500, 3) } else { ("1G", "2M", MANY_FILES, 12) };
    let spec = format!("flash+scm:sim,size={size},page=2K,spare=64,memory={memory},buffer={buffer}");
    let spec = Spec::parse(&spec)?;
    rows.say(&format!("filling {spec} with {files} files"));
    let bench = Bench::new(&spec, Durability::Natural, caches())?;
    let mut prng = Prng::new(rows.options.seed);
    for file in 0..files {
        let content = vec![file as u8; 512 + prng.below(10_240 - 512 + 1) as usize];
        write_file(&bench, &format!("file{file}"), &content)
            .map_err(|error| Volume::error("cannot fill the measured volume", &error))?;
    }
    bench.files.unmount().map_err(|error| Volume::error("cannot end the measured volume", &error))?;
    let image = Image::of(&bench)?;
    drop(bench);
    rows.say(&format!("mounting {spec}"));
    let what = format!("{size}, {files} small files, buffer={buffer}");
    let (_, clean) = image.mount(&spec)?;
    rows.at_most(format!("flash+scm: page reads to mount, clean, {what}"), clean.reads, "pages", 0_u64);
    let name = format!("flash+scm: to mount, clean, {what}");
    rows.at_most(name, clean.milliseconds, "virtual ms", REACH_CLEAN_MS);
    rows.shown(format!("the same with the file system on it, {what}"), clean.whole_milliseconds, "virtual ms");
    let worst = after_cuts(&image, &spec, cuts)?;
    let name = format!("flash+scm: page reads to mount, worst of {cuts} cuts, {what}, a checkpoint every 64 pages");
    rows.at_most(name, worst.reads, "pages", REACH_CUT_READS);
    let name = format!("flash+scm: to mount, worst of {cuts} cuts, {what}");
    rows.at_most(name, worst.milliseconds, "virtual ms", REACH_CUT_MS);
    Ok(())
}

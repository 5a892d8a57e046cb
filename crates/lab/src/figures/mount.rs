//! What a mount reads: after an orderly end and after power cuts, at several fills, on a small and
//! a large medium; and what the first synced write after it costs.
//!
//! The cuts hit a volume under synced operations, half of them between two operations and half
//! within the program of a page. The figure is the worst of them.

use super::fill::{Churn, fill, rewrite};
use super::{Measuring, spec};
use crate::bench::{Bench, Durability};
use crate::chip::Chip;
use onode::{Class, Error, Result, Volume};
use onode_base::Prng;
use onode_media::SimNand;

const FILLS: [u64; 3] = [10, 50, 90];
/// Operations between two cuts, at most.
const BETWEEN: u64 = 500;
/// Programs from the end of an operation to a cut, at most.
const PROGRAMS: u64 = 12;
/// Memory of the device: a fixed part, and this for each segment.
const RAM_BYTES: u64 = 384 << 10;
const RAM_BYTES_PER_SEGMENT: u64 = 16;

/// Mounts of the usual medium.
pub(super) fn of_medium(run: &mut Measuring<'_>) -> Result<()> {
    measure(run, run.scale().medium, run.scale().file_bytes)
}

/// Mounts of one that is many times as large.
pub(super) fn of_large_medium(run: &mut Measuring<'_>) -> Result<()> {
    measure(run, run.scale().large_medium, run.scale().large_file_bytes)
}

fn measure(run: &mut Measuring<'_>, size: &'static str, file_bytes: usize) -> Result<()> {
    let bench = Bench::new(&spec(size, "")?, Durability::Natural, run.caches())?;
    let mut chip = chip_of(&bench)?;
    let mut bench = Some(bench);
    let (mut names, mut most_ram) = (0, 0);
    for percent in FILLS {
        run.say(&format!("mount of {size}, {percent} % full"));
        let mounted = match bench.take() {
            Some(bench) => bench,
            None => Bench::mount(chip.clone(), Durability::Natural, run.caches())?,
        };
        fill(&mounted, percent, file_bytes, &mut names)?;
        most_ram = most_ram.max(mounted.ram_bytes());
        mounted.files.unmount().map_err(|error| Volume::error("cannot end the measured volume", &error))?;
        drop(mounted);
        let image = chip.image();
        let at = format!("{size}, {percent} % full");
        let (reads, clean) = mount(run, image.clone())?;
        run.at_most(format!("page reads to mount, clean, {at}"), reads, "pages", 20_u64);
        if size == run.scale().medium && percent == 90 {
            first_write(run, &clean)?;
        }
        drop(clean);
        let (worst, ram) = worst_cut(run, image.clone(), percent, names, file_bytes)?;
        run.at_most(format!("page reads to mount, worst of {} cuts, {at}", run.scale().cuts), worst, "pages", 64_u64);
        most_ram = most_ram.max(ram);
        chip = Chip::holding(image);
    }
    let bench = Bench::mount(chip, Durability::Natural, run.caches())?;
    let segments = bench.files.device().inspect().map_or(0, |inspect| inspect.segments().len() as u64);
    let allowed = RAM_BYTES + if size == run.scale().medium { 0 } else { RAM_BYTES_PER_SEGMENT * segments };
    run.at_most(format!("RAM of the device at most, {size}, {segments} segments"), most_ram, "bytes", allowed);
    Ok(())
}

fn chip_of(bench: &Bench) -> Result<Chip> {
    let missing = || Error::new(Class::Bug, "cannot measure mounts", "the device has no NAND");
    bench.chip().cloned().ok_or_else(missing)
}

/// Mounts what is on a NAND; the pages that took.
fn mount(run: &Measuring<'_>, image: SimNand) -> Result<(u64, Bench)> {
    let chip = Chip::holding(image);
    chip.reset_counters();
    let bench = Bench::mount(chip, Durability::Natural, run.caches())?;
    Ok((bench.counters().total().reads, bench))
}

fn first_write(run: &mut Measuring<'_>, bench: &Bench) -> Result<()> {
    let before = bench.counters().total();
    rewrite(bench, "fill3", 4096, 0xa5).map_err(|error| Volume::error("the first write failed", &error))?;
    let after = bench.counters().total();
    run.at_most("first 4 KB synced write after a mount: reads", after.reads - before.reads, "pages", 8_u64);
    run.at_most("first 4 KB synced write after a mount: programs", after.programs - before.programs, "pages", 3_u64);
    Ok(())
}

/// The most pages that a mount reads after one of the cuts, and the most memory in use before them.
fn worst_cut(run: &Measuring<'_>, image: SimNand, seed: u64, names: u64, file_bytes: usize) -> Result<(u64, u64)> {
    let failed = |error: &onode_fs::Error| Volume::error("cannot work on the measured volume", error);
    let chip = Chip::holding(image);
    let bench = Bench::mount(chip.clone(), Durability::Natural, run.caches())?;
    let mut churn = Churn::new(seed, names, file_bytes);
    let mut prng = Prng::new(seed);
    let (mut worst, mut ram) = (0, 0);
    for cut in 0..run.scale().cuts {
        for _ in 0..1 + prng.below(BETWEEN) {
            churn.step(&bench).map_err(|error| failed(&error))?;
            ram = ram.max(bench.ram_bytes());
        }
        let left = if cut % 2 == 0 {
            chip.image()
        } else {
            chip.cut_later(prng.below(PROGRAMS));
            loop {
                churn.step(&bench).map_err(|error| failed(&error))?;
                if let Some(left) = chip.left_behind() {
                    break left;
                }
            }
        };
        worst = worst.max(mount(run, left)?.0);
    }
    Ok((worst, ram))
}

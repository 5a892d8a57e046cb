//! Figures 10, 13, 15 and 16 of paper 3, in virtual time on the volume that keeps its metadata the
//! paper's way, each judged by its shape. Figures 9, 11, 12 and 14 need no volume.

use super::chip::{PAGE_BYTES, PAGES_PER_BLOCK, ROOT};
use super::cmfs_volume::{CmfsVolume, Mounted, Way};
use super::figures::Measuring;
use super::population::{Files, Population};
use onode_base::Prng;

/// Blocks of the paper's 128 MB and of its partition of 50 MB.
const CHIP_BLOCKS: u32 = 1024;
const PARTITION_BLOCKS: u32 = 400;

/// All of them. `None` if a mount does not find what there is.
pub fn measure(rows: &mut Measuring<'_>) -> Option<()> {
    mount_by_fill(rows)?;
    recovery_by_size(rows)?;
    files_a_second(rows)?;
    writes_a_second(rows)?;
    mounts_agree(rows)
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// A mount that went the way it should and found everything.
fn mount(volume: &CmfsVolume, way: Way) -> Option<Mounted> {
    let mounted = volume.mount();
    (mounted.way == way && volume.agrees(&mounted)).then_some(mounted)
}

/// Figure 10: a mount from a valid RAM stays short while that of YAFFS grows with the fill.
fn mount_by_fill(rows: &mut Measuring<'_>) -> Option<()> {
    let mut volume = CmfsVolume::new(CHIP_BLOCKS, true);
    let mut plain = Vec::new();
    let mut slowest = 0.0f64;
    let mut reads = 0;
    for percent in [20, 40, 60, 80] {
        while volume.used() < volume.pages() * percent / 100 {
            volume.create_file(ROOT, 100 << 10);
        }
        volume.update();
        let ours = mount(&volume, Way::Valid)?;
        volume.tear(true);
        let scan = milliseconds(mount(&volume, Way::Scanned)?.spent.sum());
        volume.update();
        rows.shown(format!("figure 10: mount at {percent} %"), milliseconds(ours.spent.sum()), "ms");
        rows.shown(format!("figure 10: scan in the manner of YAFFS at {percent} %"), scan, "ms");
        slowest = slowest.max(milliseconds(ours.spent.sum()) / scan);
        reads = ours.reads;
        plain.push(scan);
    }
    rows.at_least("figure 10: scan at 80 % by that at 20 %", plain.last()? / plain.first()?, "by", 3.0);
    rows.at_most("figure 10: mount by scan, at worst", slowest, "by", 0.2);
    rows.at_most("figure 10: pages of NAND that a mount reads", reads as f64, "pages", 1.0);
    Some(())
}

/// Figure 13: what a recovery is made of, by what changed since the last update.
fn recovery_by_size(rows: &mut Measuring<'_>) -> Option<()> {
    let mut all = Vec::new();
    let (mut memory, mut nand) = (0.0f64, 1.0f64);
    for mib in [2, 4, 6, 8, 10] {
        let mut volume = CmfsVolume::new(PARTITION_BLOCKS, true);
        for _ in 0..500 {
            volume.create_file(ROOT, 1 << 10);
        }
        volume.update();
        let file = volume.create(ROOT, 1);
        volume.write_pages(file, 0, (mib << 20) / PAGE_BYTES as u32);
        let recovery = mount(&volume, Way::Recovered)?;
        let sum = recovery.spent.sum() as f64;
        rows.shown(format!("figure 13: recovery of {mib} MiB"), milliseconds(recovery.spent.sum()), "ms");
        rows.shown(format!("figure 13: blocks scanned for {mib} MiB"), recovery.blocks as f64, "blocks");
        memory = memory.max((recovery.spent.memory_read + recovery.spent.memory_write) as f64 / sum);
        nand = nand.min(recovery.spent.nand as f64 / sum);
        if mib == 10 {
            volume.tear(true);
            let scan = milliseconds(mount(&volume, Way::Scanned)?.spent.sum());
            rows.at_most("figure 13: recovery of 10 MiB by a scan", milliseconds(sum as u64) / scan, "by", 1.0);
        }
        all.push(sum);
    }
    rows.at_least("figure 13: recovery of 10 MiB by that of 2 MiB", all.last()? / all.first()?, "by", 2.0);
    rows.at_most("figure 13: part of the persistent RAM, at most", memory, "of all", 0.01);
    rows.at_least("figure 13: part of NAND, at least", nand, "of all", 0.5);
    Some(())
}

/// Figure 15: files made and removed a second, with the updates every five seconds and without.
fn files_a_second(rows: &mut Measuring<'_>) -> Option<()> {
    const FILES: u32 = 5000;
    for kib in [0, 1, 4, 10] {
        let [ours, plain] = [true, false].map(|has_memory| {
            let mut volume = CmfsVolume::new(CHIP_BLOCKS, has_memory);
            let files: Vec<u32> = (0..FILES).map(|_| volume.create_file(ROOT, kib << 10)).collect();
            volume.update();
            let made = volume.clock;
            files.into_iter().for_each(|file| volume.remove(file));
            volume.update();
            let a_second = |nanoseconds: u64| f64::from(FILES) * 1e9 / nanoseconds as f64;
            (a_second(made), a_second(volume.clock - made))
        });
        rows.shown(format!("figure 15: files of {kib} KiB made"), ours.0, "files/s");
        rows.at_least(format!("figure 15: files of {kib} KiB made, by those without"), ours.0 / plain.0, "by", 0.9);
        rows.at_least(format!("figure 15: files of {kib} KiB removed, by those without"), ours.1 / plain.1, "by", 0.9);
    }
    Some(())
}

/// Figure 16: a file written once and once more, with the updates and without.
fn writes_a_second(rows: &mut Measuring<'_>) -> Option<()> {
    for mib in [4, 8, 16, 32] {
        let [ours, plain] = [true, false].map(|has_memory| {
            let mut volume = CmfsVolume::new(CHIP_BLOCKS, has_memory);
            let file = volume.create(ROOT, 1);
            for _ in 0..2 {
                volume.write_pages(file, 0, (mib << 20) / PAGE_BYTES as u32);
                volume.close(file, u64::from(mib) << 20);
            }
            volume.update();
            2.0 * f64::from(mib << 20) * 1e3 / volume.clock as f64
        });
        rows.shown(format!("figure 16: file of {mib} MiB written and rewritten"), ours, "MB/s");
        rows.at_least(format!("figure 16: file of {mib} MiB, by that without"), ours / plain, "by", 0.95);
    }
    Some(())
}

/// A mount finds what was there, whenever the power goes.
fn mounts_agree(rows: &mut Measuring<'_>) -> Option<()> {
    let mut volume = CmfsVolume::new(PARTITION_BLOCKS / PAGES_PER_BLOCK * PAGES_PER_BLOCK / 2, true);
    let (mut agreed, mut mounts) = (0, 0);
    for seed in 0..4 {
        let mut part = Part { volume: &mut volume, random: Prng::new(seed), agreed: &mut agreed, mounts: &mut mounts };
        Population::AgedSmall.make(&mut part, rows.options.seed + seed);
        let files: Vec<u32> = (0u32..)
            .zip(&volume.chip.objects)
            .filter(|(_, file)| file.as_ref().is_some_and(|file| !file.object.pages.is_empty()))
            .map(|(number, _)| number)
            .collect();
        files.into_iter().for_each(|file| volume.remove(file));
    }
    rows.at_least("mounts that found what was there, of all at cuts", agreed, "mounts", mounts);
    (mounts > 0).then_some(())
}

/// A volume that is cut and looked at again and again while it is filled.
struct Part<'a> {
    volume: &'a mut CmfsVolume,
    random: Prng,
    agreed: &'a mut u64,
    mounts: &'a mut u64,
}

impl Part<'_> {
    fn step(&mut self) {
        if self.random.chance(1, 100) {
            let mounted = self.volume.mount();
            *self.mounts += 1;
            *self.agreed += u64::from(self.volume.agrees(&mounted));
        }
    }
}

impl Files for Part<'_> {
    fn pages(&self) -> u64 {
        self.volume.pages()
    }

    fn used(&self) -> u64 {
        self.volume.used()
    }

    fn create(&mut self, parent: u32, kind: u8) -> u32 {
        self.step();
        self.volume.create(parent, kind)
    }

    fn look(&self, object: u32) -> (u32, u64, u64) {
        self.volume.look(object)
    }

    fn write_pages(&mut self, object: u32, page: u32, count: u32) {
        self.volume.write_pages(object, page, count);
        self.step();
    }

    fn close(&mut self, object: u32, bytes: u64) {
        self.volume.close(object, bytes);
        self.step();
    }

    fn remove(&mut self, object: u32) {
        self.volume.remove(object);
        self.step();
    }
}

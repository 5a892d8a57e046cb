//! The figures of paper 3 that codecs alone decide (9, 11, 12 and 14), as counts; times stand
//! beside them.
//!
//! Figures 10, 13, 15 and 16 need a volume (`paper`).

use super::chip::{Chip, PAGE_BYTES, ROOT};
use super::coders::Codec;
use super::figures::Measuring;
use super::population::{Files as _, Population, Volume};
use crate::codec::compared::bytewise::ByteCoder;
use crate::codec::compared::cmfs::{Device, Hybrid, Object};
use crate::replay::processor_seconds;
use onode_base::Prng;

/// Sizes of figure 9 in KiB; the paper's claim is about those above 16 KiB.
const SIZES_KIB: [u64; 7] = [4, 16, 32, 64, 256, 1024, 4096];
const CLAIM_ABOVE_KIB: u64 = 16;
/// Blocks that hold all of them, even if it is quick.
const BLOCKS_MIN: u32 = 1024;
/// Files of each size.
const FILES: u64 = 10;

/// All of them.
pub fn measure(rows: &mut Measuring<'_>) -> Option<()> {
    compression_by_size(rows)?;
    device_by_capacity(rows)?;
    mount_by_files(rows)?;
    update_by_data(rows)
}

/// Figure 9: how small objects become, by size of file. Ten files of each size on an aged medium.
fn compression_by_size(rows: &mut Measuring<'_>) -> Option<()> {
    let mut chip = Population::AgedSmall.fill(rows.options.blocks().max(BLOCKS_MIN), rows.options.seed);
    make_room(&mut chip, rows.options.seed, FILES * SIZES_KIB.iter().sum::<u64>() * 1024 / PAGE_BYTES * 5 / 4);
    let (mut best, mut claimed) = (0u64, 0u64);
    let (mut smallest, mut largest) = (0.0, 0.0);
    for kib in SIZES_KIB {
        let files: Vec<u32> = (0..FILES).map(|_| chip.create_file(ROOT, kib << 10)).collect();
        let objects: Vec<Object> =
            files.iter().filter_map(|&file| Some(chip.objects.get(file as usize)?.as_ref()?.object.clone())).collect();
        let raw: usize = objects.iter().map(Object::raw_bytes).sum();
        let rate = |bytes: Option<usize>| bytes.map(|bytes| bytes as f64 / raw as f64);
        let hybrid = rate(objects.iter().map(|one| Hybrid::Coded.encode(one).map(|bytes| bytes.len())).sum())?;
        let mut others = f64::INFINITY;
        for coder in ByteCoder::ALL {
            let bytes = objects.iter().map(|one| one.encode().map(|raw| coder.encode(&raw).len())).sum();
            let rate = rate(bytes)?;
            rows.shown(format!("figure 9: {} of {kib} KiB files", coder.name()), rate, "of raw");
            others = others.min(rate);
        }
        rows.shown(format!("figure 9: hybrid of {kib} KiB files"), hybrid, "of raw");
        if kib > CLAIM_ABOVE_KIB {
            claimed += 1;
            best += u64::from(hybrid <= others);
            smallest = if claimed == 1 { hybrid } else { smallest };
            largest = hybrid;
        }
    }
    rows.at_least("figure 9: sizes above 16 KiB where hybrid is the best", best, "of 5 sizes", claimed);
    rows.at_least("figure 9: hybrid of the largest by that of the smallest of these", largest / smallest, "by", 1.0);
    Some(())
}

/// Removes files until so many pages are free beyond the aged population's share.
fn make_room(chip: &mut Chip, seed: u64, pages: u64) {
    let mut files: Vec<u32> = (0u32..)
        .zip(&chip.objects)
        .filter(|(_, file)| file.as_ref().is_some_and(|file| !file.object.pages.is_empty()))
        .map(|(number, _)| number)
        .collect();
    let mut random = Prng::new(seed);
    let goal = (chip.pages() * 80 / 100).saturating_sub(pages);
    while chip.used > goal && !files.is_empty() {
        let index = random.below(files.len() as u64) as usize;
        chip.remove(files.swap_remove(index));
    }
}

/// Figure 11: the device record grows with the partition, and so does the time of LZO for it.
fn device_by_capacity(rows: &mut Measuring<'_>) -> Option<()> {
    let mut bytes = Vec::new();
    for blocks in [256, 512, 1024] {
        let volume = Population::Medium.generate(blocks, rows.options.seed);
        let raw = Device { partition: [0; 10], blocks: volume.blocks }.encode();
        let started = processor_seconds();
        let coded = ByteCoder::Lzo.encode(&raw);
        let us = (processor_seconds() - started) * 1e6;
        (ByteCoder::Lzo.decode(&coded, raw.len())? == raw).then_some(())?;
        let mib = blocks / 8;
        rows.shown(format!("figure 11: device record of {mib} MiB through LZO"), us, "CPU us");
        bytes.push(raw.len() as f64);
    }
    let growth = bytes.last()? / bytes.first()?;
    rows.at_most("figure 11: device record, 128 MiB by 32 MiB", growth, "by", 4.0);
    Some(())
}

/// Figure 12: a mount decodes in proportion to the files of 100 KiB.
fn mount_by_files(rows: &mut Measuring<'_>) -> Option<()> {
    let mut bytes = Vec::new();
    for files in [100, 200, 300, 400, 500] {
        let mut chip = Chip::new(512);
        for _ in 0..files {
            chip.create_file(ROOT, 100 << 10);
        }
        let measured = Codec::Hybrid(Hybrid::Plain).measure("files", &Volume::of(&chip)).ok()?;
        let ms = measured.cpu_decode_ms_per_gib / 16.0;
        rows.shown(format!("figure 12: decoding {files} files of 100 KiB"), ms, "CPU ms");
        bytes.push(measured.bytes.objects as f64);
    }
    let growth = bytes.last()? / bytes.first()?;
    rows.at_most("figure 12: bytes to decode, 500 files by 100", growth, "by", 5.2);
    rows.at_least("figure 12: the same, at least", growth, "by", 4.8);
    Some(())
}

/// Figure 14: what the update every five seconds codes and writes, by the data modified meanwhile.
fn update_by_data(rows: &mut Measuring<'_>) -> Option<()> {
    let mut bytes = Vec::new();
    for mib in [3, 6, 12] {
        let mut chip = Chip::new(512);
        let files: Vec<u32> = (0..16).map(|_| chip.create_file(ROOT, 1 << 20)).collect();
        for &file in files.iter().take(mib) {
            chip.write_pages(file, 0, (1u64 << 20).div_ceil(PAGE_BYTES) as u32);
            chip.close(file, 1 << 20);
        }
        let started = processor_seconds();
        let coded = files.iter().take(mib).map(|&file| {
            let object = &chip.objects.get(file as usize)?.as_ref()?.object;
            Some(Hybrid::Plain.encode(object)?.len())
        });
        let written: usize = coded.sum::<Option<usize>>()?;
        let device = Device { partition: [0; 10], blocks: chip.blocks.clone() }.encode();
        ByteCoder::Lzo.encode(&device);
        let ms = (processor_seconds() - started) * 1e3;
        rows.shown(format!("figure 14: update after {mib} MiB were modified"), ms, "CPU ms");
        rows.shown(format!("figure 14: objects written after {mib} MiB"), written as f64, "B");
        bytes.push(written as f64);
    }
    let growth = bytes.last()? / bytes.first()?;
    rows.at_most("figure 14: bytes of objects, 12 MiB by 3 MiB", growth, "by", 4.2);
    rows.at_least("figure 14: the same, at least", growth, "by", 3.8);
    Some(())
}

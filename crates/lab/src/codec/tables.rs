//! Makes the static tables of the codec: counts symbols on populations with seeds of their own, so
//! that what is measured is not what was learnt from.

use super::chip::PAGE_BYTES;
use super::coders::records_of;
use super::on_device::DeviceFiles;
use super::population::Population;
use onode_codec::{BUCKET_BYTES_MAX, SymbolCounts, count_symbols, exact, pack_buckets};
use onode_object::Result;
use std::fmt::Write;

/// Which populations make a set of tables for records.
const RECORD_SETS: [&[Population]; 4] = [
    &[Population::Small],
    LARGE_FILES,
    &[Population::RandomPages, Population::RandomPairs],
    &[Population::AgedSmall, Population::AgedLarge],
];
/// The same for entries to the byte: what is alike in a volume costs least where little else is in
/// the set.
const EXACT_SETS: [&[Population]; 6] = [
    &[Population::Small],
    LARGE_FILES,
    &[Population::RandomPages],
    &[Population::RandomPairs],
    &[Population::AgedSmall],
    &[Population::AgedLarge],
];
const LARGE_FILES: &[Population] = &[Population::Medium, Population::Sequential, Population::Interleaved];
/// Seeds that nothing is measured with unless somebody asks for it.
const SEEDS: [u64; 2] = [7001, 7002];
const SCALE: u64 = 1 << 14;
/// Entries to the byte that are counted as one bucket.
const EXACT_ENTRIES: usize = 160;

/// The tables as source.
///
/// # Errors
/// A population that the device does not take.
pub fn source() -> Result<String> {
    let mut out = String::from(
        "//! Static tables of the rANS coder, made by `onode-lab codec --tables`. Buckets that exist depend on them: a set\n\
         //! may be added, none may change.\n\n\
         use crate::rans::Frequencies;\nuse crate::tokens::CLASSES;\nuse core::ops::Range;\n\n\
         /// How many sets there are.\n",
    );
    let records = RECORD_SETS.len();
    let all = records + EXACT_SETS.len();
    let _ = writeln!(out, "pub const SETS: usize = {all};");
    out.push_str("/// The sets for records: small files, large files, pages without order, aged volumes.\n");
    let _ = writeln!(out, "pub const RECORD_SETS: Range<usize> = 0..{records};");
    out.push_str(
        "/// Those for entries to the byte: the same, with pages and pairs of pages, small and large files apart.\n",
    );
    let _ = writeln!(out, "pub const EXACT_SETS: Range<usize> = {records}..{all};\n");
    out.push_str("/// The frequencies of each class.\n");
    out.push_str("#[rustfmt::skip]\npub static TABLES: [[Frequencies; CLASSES]; SETS] = [\n");
    for exact in [false, true] {
        let sets: &[&[Population]] = if exact { &EXACT_SETS } else { &RECORD_SETS };
        for populations in sets {
            let mut counts: SymbolCounts = [[0; _]; _];
            for population in *populations {
                for seed in SEEDS {
                    if exact {
                        add_exact(&mut counts, *population, seed)?;
                    } else {
                        add(&mut counts, *population, seed);
                    }
                }
            }
            put_set(&mut out, &counts);
        }
    }
    out.push_str("];\n");
    Ok(out)
}

fn put_set(out: &mut String, counts: &SymbolCounts) {
    out.push_str("    [\n");
    for class in counts {
        out.push_str("        [");
        for (index, frequency) in frequencies(class).into_iter().enumerate() {
            let _ = write!(out, "{}{frequency}", if index == 0 { "" } else { ", " });
        }
        out.push_str("],\n");
    }
    out.push_str("    ],\n");
}

/// Counts what the device beside a memory knows of a population.
fn add_exact(counts: &mut SymbolCounts, population: Population, seed: u64) -> Result<()> {
    let entries = DeviceFiles::filled(population, 1024, seed)?.device().memory_entries()?;
    for bucket in entries.chunks(EXACT_ENTRIES) {
        let begin = bucket.first().map_or((0, None), exact::Entry::key);
        // What the device wrote can be counted.
        exact::count_symbols(begin, bucket, PAGE_BYTES as u32, counts);
    }
    Ok(())
}

fn add(counts: &mut SymbolCounts, population: Population, seed: u64) {
    let volume = population.generate(1024, seed);
    for with_sizes in [false, true] {
        let packed = pack_buckets(records_of(&volume, with_sizes), BUCKET_BYTES_MAX).unwrap_or_default();
        for bucket in packed {
            // What was packed can be counted.
            let _ = count_symbols(&bucket, counts);
        }
    }
}

/// Counts as parts of [`SCALE`], each at least 1. A little of a falling line is mixed in for what
/// was never seen.
fn frequencies(counts: &[u64]) -> Vec<u64> {
    let falling: Vec<u64> = (0..counts.len() as u64).map(|symbol| SCALE / ((symbol + 1) * (symbol + 2))).collect();
    let seen: u64 = counts.iter().sum();
    let spread = if seen == 0 { SCALE } else { SCALE / 128 };
    let of_seen = |count: u64| ((SCALE - spread) * count).checked_div(seen).unwrap_or(0);
    let wanted: Vec<u64> =
        counts.iter().zip(&falling).map(|(&count, &falling)| of_seen(count) + falling * spread / SCALE).collect();
    let sum: u64 = wanted.iter().sum::<u64>().max(1);
    let room = SCALE - counts.len() as u64;
    let mut out: Vec<u64> = wanted.iter().map(|&one| 1 + one * room / sum).collect();
    let rest = SCALE - out.iter().sum::<u64>();
    if let Some(most) = out.iter_mut().max() {
        *most += rest;
    }
    out
}

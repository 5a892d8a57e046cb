//! Makes the static tables of the codec: counts symbols on populations with seeds of their own, so that what is measured
//! is not what was learnt from.

use super::coders::records_of;
use super::population::Population;
use onode_codec::{BUCKET_BYTES_MAX, SymbolCounts, count_symbols, pack_buckets};
use std::fmt::Write;

/// Which populations make a set of tables.
const SETS: [&[Population]; 4] = [
    &[Population::Small],
    &[Population::Medium, Population::Sequential, Population::Interleaved],
    &[Population::RandomPages, Population::RandomPairs],
    &[Population::AgedSmall, Population::AgedLarge],
];
/// Seeds that nothing is measured with unless somebody asks for it.
const SEEDS: [u64; 2] = [7001, 7002];
const SCALE: u64 = 1 << 14;

/// The tables as source.
pub fn source() -> String {
    let mut out = String::from(
        "//! Static tables of the rANS coder, made by `onode lab codec --tables`. Buckets that exist depend on them: a set\n\
         //! may be added, none may change.\n\n\
         use crate::rans::Frequencies;\nuse crate::tokens::CLASSES;\n\n\
         /// How many sets there are.\n",
    );
    let _ = writeln!(out, "pub const SETS: usize = {};\n", SETS.len());
    out.push_str(
        "/// For small files, large files, pages without order, aged volumes: the frequencies of each class.\n",
    );
    out.push_str("#[rustfmt::skip]\npub static TABLES: [[Frequencies; CLASSES]; SETS] = [\n");
    for populations in SETS {
        let mut counts: SymbolCounts = [[0; _]; _];
        for population in populations {
            for seed in SEEDS {
                add(&mut counts, *population, seed);
            }
        }
        out.push_str("    [\n");
        for class in counts {
            out.push_str("        [");
            for (index, frequency) in frequencies(&class).into_iter().enumerate() {
                let _ = write!(out, "{}{frequency}", if index == 0 { "" } else { ", " });
            }
            out.push_str("],\n");
        }
        out.push_str("    ],\n");
    }
    out.push_str("];\n");
    out
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

/// Counts as parts of [`SCALE`], each at least 1. A little of a falling line is mixed in for what was never seen.
fn frequencies(counts: &[u64]) -> Vec<u64> {
    let falling: Vec<u64> = (0..counts.len() as u64).map(|symbol| SCALE / ((symbol + 1) * (symbol + 2))).collect();
    let seen: u64 = counts.iter().sum();
    let spread = if seen == 0 { SCALE } else { SCALE / 64 };
    let left = SCALE - spread - counts.len() as u64;
    let of_seen = |count: u64| ((SCALE - spread) * count).checked_div(seen).unwrap_or(0);
    let wanted: Vec<u64> =
        counts.iter().zip(&falling).map(|(&count, &falling)| of_seen(count) + falling * spread / SCALE).collect();
    let sum: u64 = wanted.iter().sum::<u64>().max(1);
    let room = left + spread;
    let mut out: Vec<u64> = wanted.iter().map(|&one| 1 + one * room / sum).collect();
    let rest = SCALE - out.iter().sum::<u64>();
    if let Some(most) = out.iter_mut().max() {
        *most += rest;
    }
    out
}

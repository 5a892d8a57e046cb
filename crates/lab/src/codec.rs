//! What the metadata of a flash takes in a small persistent RAM (paper 3), codec by codec on eight
//! populations.
//!
//! The populations are what a flash file system in the manner of YAFFS leaves on 128 MiB of NAND
//! with pages of 2 KiB: exactly what the 16-bit page numbers of the paper can name. Every byte is
//! counted, every object is decoded again and compared. Bytes follow from the seed; times are
//! processor time of this machine.

mod chip;
mod cmfs_volume;
mod coders;
pub mod compared;
mod device;
mod figures;
mod mounts;
mod on_device;
mod paper;
mod population;
mod shapes;
mod tables;
#[cfg(test)]
mod tests;
mod updates;

pub use coders::{Codec, Measured, Parts};
pub use figures::{figures, groups};
pub use population::Population;
pub use tables::source as table_source;

use onode::Result;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where randomness comes from.
    pub seed: u64,
    /// The populations.
    pub populations: Vec<Population>,
    /// Where the PostMark stream of the figures is.
    pub traces: Option<PathBuf>,
    /// Of the figures, only the group of this name.
    pub only: Option<String>,
    /// Small media, to see that it works; nothing is judged.
    pub quick: bool,
}

/// All codecs on some populations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodecReport {
    /// Bytes of the NAND.
    pub nand_bytes: u64,
    /// Where randomness came from.
    pub seed: u64,
    /// One row for each codec and population.
    pub rows: Vec<Measured>,
}

impl Options {
    const fn blocks(&self) -> u32 {
        if self.quick { 128 } else { 1024 }
    }
}

/// Measures every codec; `progress` hears what is being done.
///
/// # Errors
/// A codec that does not give back what it was given.
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<CodecReport> {
    let mut report = CodecReport { nand_bytes: 0, seed: options.seed, rows: Vec::new() };
    for population in &options.populations {
        progress(&format!("filling a NAND with {}", population.name()));
        let volume = population.generate(options.blocks(), options.seed);
        report.nand_bytes = volume.bytes();
        for codec in Codec::all() {
            progress(&format!("{} with {}", population.name(), codec.name()));
            report.rows.push(codec.measure(population.name(), &volume)?);
        }
    }
    Ok(report)
}

impl fmt::Display for CodecReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "MiB of persistent RAM for each GiB of NAND, NAND of {} MiB", self.nand_bytes >> 20)?;
        write!(
            f,
            "{:<12} {:<20} {:>8} {:>9} {:>8} {:>8}",
            "population", "codec", "MiB/GiB", "objects", "blocks", "others"
        )?;
        write!(f, " {:>10} {:>10}", "encode ms", "decode ms")?;
        for row in &self.rows {
            let Parts { objects, blocks, .. } = row.bytes;
            write!(f, "\n{:<12} {:<20} {:>8.3}", row.population, row.codec, row.mib_per_gib)?;
            write!(f, " {objects:>9} {blocks:>8} {:>8}", row.bytes.sum() - objects - blocks)?;
            write!(f, " {:>10.1} {:>10.1}", row.cpu_encode_ms_per_gib, row.cpu_decode_ms_per_gib)?;
        }
        Ok(())
    }
}

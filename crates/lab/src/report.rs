//! What a run tells, as one JSON object or as lines for people.

use onode::human_size;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Operations on the NAND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nand {
    /// Page reads.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

/// Erases of the least, the average and the most erased block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WearSpread {
    /// Of the least erased block.
    pub min: u32,
    /// Of all blocks on average.
    pub mean: f64,
    /// Of the most erased block.
    pub max: u32,
}

/// Virtual time of single operations, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Half of them took at most this.
    pub p50: u64,
    /// 99 of 100 took at most this.
    pub p99: u64,
    /// 999 of 1,000 took at most this.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// Virtual time for which commits waited for the cleaner, in microseconds, since the device was
/// made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// Half of them waited at most so long.
    pub p50: u64,
    /// 99 of 100 waited at most so long.
    pub p99: u64,
    /// The longest wait.
    pub max: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The trace or generator.
    pub trace: String,
    /// The device spec.
    pub device: String,
    /// When operations are made durable: `op`, `natural` or `lazy`.
    pub durability: &'static str,
    /// Operations measured.
    pub ops: u64,
    /// Bytes that the operations wrote.
    pub user_bytes_written: u64,
    /// All operations on the NAND.
    pub nand: Nand,
    /// The same by what they were for; what never happened is left out.
    pub by_tag: BTreeMap<&'static str, Nand>,
    /// Segments the cleaner emptied.
    pub segments_cleaned: u64,
    /// Bytes of content that the cleaner moved.
    pub bytes_moved: u64,
    /// Bytes of tree nodes that it had written elsewhere.
    pub node_bytes_moved: u64,
    /// Virtual time of the NAND, in seconds.
    pub virtual_s: f64,
    /// Bytes programmed for each byte that the operations wrote.
    pub write_amplification: f64,
    /// Erases of blocks since the NAND was new.
    pub wear: WearSpread,
    /// Erases of segments since the NAND was new: the same without the blocks that hold
    /// superblocks.
    pub segment_wear: WearSpread,
    /// The most memory that the device said it held, in bytes.
    pub ram_peak_bytes: u64,
    /// Processor time of the run, in seconds; the one figure that differs between equal runs.
    pub cpu_s: f64,
    /// How long the operations took.
    pub latency_us: Latency,
    /// How long commits waited for the cleaner.
    pub stall_us: Stall,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {}, durability {}", self.trace, self.device, self.durability)?;
        writeln!(f, "{} operations, {} written", self.ops, human_size(self.user_bytes_written))?;
        writeln!(f, "{:<10} {:>12} {:>12} {:>9}", "pages", "reads", "programs", "erases")?;
        let mut line = |name: &str, nand: &Nand| {
            writeln!(f, "{name:<10} {:>12} {:>12} {:>9}", nand.reads, nand.programs, nand.erases)
        };
        line("all", &self.nand)?;
        for (name, nand) in &self.by_tag {
            line(name, nand)?;
        }
        writeln!(f, "write amplification {:.3}, virtual time {:.3} s", self.write_amplification, self.virtual_s)?;
        writeln!(f, "segments cleaned {}, {} moved", self.segments_cleaned, human_size(self.bytes_moved))?;
        for (what, wear) in [("blocks", self.wear), ("segments", self.segment_wear)] {
            writeln!(f, "wear of {what} {} / {:.2} / {} erases (least, mean, most)", wear.min, wear.mean, wear.max)?;
        }
        let Latency { p50, p99, p999, max } = self.latency_us;
        writeln!(f, "latency {p50} us half, {p99} us 99 %, {p999} us 99.9 %, {max} us longest")?;
        let Stall { p50, p99, max } = self.stall_us;
        writeln!(f, "waits for the cleaner {p50} us half, {p99} us 99 %, {max} us longest")?;
        write!(f, "device memory {} at most, {:.2} s of processor time", human_size(self.ram_peak_bytes), self.cpu_s)
    }
}

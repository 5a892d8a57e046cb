//! Virtual time: what several chips bring, and how long an operation waits at worst on a nearly
//! full volume.

use super::{Measuring, device, spec};
use crate::bench::{Bench, Durability};
use crate::replay::{Settings, replay};
use crate::report::Report;
use crate::stream::Operation;
use crate::stream::generate::{LargeFile, Rewrite};
use crate::stream::pattern::Pattern;
use onode::{Result, Spec};
use onode_flash::FormatOptions;
use onode_fs::AccessTimes;
use onode_media::SimOptions;

/// Of the usable space, so many percent are filled.
const FILL: u64 = 90;

/// A large file written on one and on eight chips.
pub(super) fn chips(run: &mut Measuring<'_>) -> Result<()> {
    run.say("sequential write on 1 and 8 chips");
    let file = LargeFile { bytes: run.scale().sequential_bytes, ..LargeFile::default() }.operations();
    let medium = run.scale().chips_medium;
    let one = on(run, medium, "", Durability::Natural, &file)?;
    let eight = on(run, medium, ",chips=8", Durability::Natural, &file)?;
    let size = onode::exact_size(run.scale().sequential_bytes);
    run.at_least(format!("{size} sequential write, 8 chips against 1"), one.virtual_s / eight.virtual_s, "times", 7.0);
    Ok(())
}

/// Pieces of 4 KB are rewritten at random, each durable before the next; the figure is how long
/// single operations took, cleaning and checkpoints included.
pub(super) fn stall(run: &mut Measuring<'_>) -> Result<()> {
    run.say("latency of synced rewrites at 90 % full");
    let small = spec(run.scale().medium, "")?;
    let usable = Bench::new(&small, Durability::Operation, run.caches())?.files.device().space().total;
    let work = Rewrite {
        pattern: Pattern::Uniform,
        bytes: usable / 100 * FILL,
        seed: 42,
        operations: Some(run.scale().churn),
    };
    let report = on(run, run.scale().medium, "", Durability::Operation, &work.operations())?;
    let name = |part: &str| format!("synced 4 KB rewrites at {FILL} % full, uniform: {part}");
    run.shown(name("half take at most"), report.latency_us.p50, "us");
    run.shown(name("99 % take at most"), report.latency_us.p99, "us");
    run.at_most(name("the longest takes"), report.latency_us.max, "us", segment_microseconds(&small)?);
    run.shown(name("write amplification"), report.write_amplification, "times");
    run.shown(name("segments cleaned"), report.segments_cleaned, "segments");
    let mean = report.wear.mean.max(1.0);
    run.shown(name("wear of the most erased block to the mean"), f64::from(report.wear.max) / mean, "times");
    Ok(())
}

/// The time to copy and erase one segment.
fn segment_microseconds(spec: &Spec) -> Result<u64> {
    let Spec::Flash(flash) = spec else { return Ok(0) };
    let geometry = flash.shape.geometry()?;
    let blocks = u64::from(FormatOptions::default().blocks_per_segment(&geometry));
    let latency = SimOptions::default().latency;
    let copy = u64::from(geometry.pages_per_block) * (latency.read_nanoseconds + latency.program_nanoseconds);
    Ok(blocks * (copy + latency.erase_nanoseconds) / 1000)
}

fn on(run: &Measuring<'_>, size: &str, more: &str, durability: Durability, all: &[Operation]) -> Result<Report> {
    let what = if durability == Durability::Operation { "synced rewrites" } else { "sequential write" };
    let settings = Settings {
        trace: format!("{what} on {}", device(size, more)),
        device: spec(size, more)?,
        durability,
        caches: run.caches(),
        access_times: AccessTimes::Never,
    };
    replay(&settings, all)
}

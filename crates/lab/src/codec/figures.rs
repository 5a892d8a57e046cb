//! Every figure of the codecs and of the device with a memory, beside the one to reach.

use super::coders::{Codec, Measured};
use super::{Options, Population, device, mounts, paper, shapes, updates};
use crate::codec::compared::cmfs::Hybrid;
use crate::figures::FigureReport;
use crate::groups::{self, Group};
use onode::{Class, Error, Result};

/// MiB of memory for each GiB of NAND to reach, in the order of the populations.
pub(super) const REACH: [f64; 8] = [0.64, 0.04, 0.02, 0.06, 0.67, 0.36, 0.15, 0.11];
/// What the small-file population may take when every object was updated twice.
const REACH_UPDATED: f64 = 0.90;
/// Bytes and microseconds of one update.
const REACH_UPDATE_BYTES: f64 = 512.0;
const REACH_UPDATE_US: f64 = 100.0;
/// Milliseconds to decode all metadata of a GiB.
const REACH_DECODE_MS: f64 = 30.0;

/// A run of all groups under way.
pub(super) type Measuring<'a> = groups::Measuring<'a, Options>;

/// The groups in the order of the report.
const GROUPS: [Group<Options>; 8] = [
    ("codecs", codecs),
    ("codec-updates", codec_updates),
    ("shapes", |run| shapes::measure(run).ok_or_else(|| failed("an object does not fit the paper's records"))),
    ("paper", |run| {
        paper::measure(run).ok_or_else(|| failed("a mount of the paper's volume did not find what was there"))
    }),
    ("populations", device::populations),
    ("updates", device::updates),
    ("mounts", mounts::measure),
    ("postmark", device::postmark),
];

/// The names of the groups.
#[must_use]
pub fn groups() -> Vec<&'static str> {
    groups::names(&GROUPS)
}

/// Measures all of them, or one group; `progress` hears what is being done. What cannot be measured
/// is named in the report.
pub fn figures(options: &Options, progress: &mut dyn FnMut(&str)) -> FigureReport {
    let mib = u64::from(options.blocks()) / 8;
    let device = format!("metadata of {mib} MiB of NAND with 2 KiB pages, seed {}", options.seed);
    let mut measuring = Measuring::new(options, options.quick, progress);
    if options.traces.is_none() && options.only.as_deref().is_none_or(|only| only == "postmark") {
        // Whoever wants it hears so before the minutes that the rest takes.
        measuring.say("PostMark will not be run: --traces names the directory with its stream");
        measuring.notes.push("PostMark was not run: --traces names the directory with its stream".to_owned());
    }
    measuring.run_all(&GROUPS, options.only.as_deref(), &device)
}

fn failed(why: &str) -> Error {
    Error::new(Class::Bug, "cannot measure the codecs", why)
}

/// The codecs by themselves.
fn codecs(run: &mut Measuring<'_>) -> Result<()> {
    let mut decode_ms = 0.0f64;
    for (population, reach) in Population::ALL.into_iter().zip(REACH) {
        run.say(&format!("filling a NAND with {}", population.name()));
        let volume = population.generate(run.options.blocks(), run.options.seed);
        let name = population.name();
        let Measured { mib_per_gib, cpu_decode_ms_per_gib, .. } = Codec::Buckets.measure(name, &volume)?;
        run.at_most(format!("{name}: buckets, directory, block table, log"), mib_per_gib, "MiB/GiB", reach);
        decode_ms = decode_ms.max(cpu_decode_ms_per_gib);
        let measured = Codec::BucketsWithSizes.measure(name, &volume)?;
        run.shown(format!("{name}: the same with sizes of files"), measured.mib_per_gib, "MiB/GiB");
        let measured = Codec::Hybrid(Hybrid::Plain).measure(name, &volume)?;
        run.shown(format!("{name}: the paper's hybrid coding, no allocator"), measured.mib_per_gib, "MiB/GiB");
    }
    run.at_most("decoding all metadata, the slowest of these", decode_ms, "CPU ms/GiB", REACH_DECODE_MS);
    Ok(())
}

/// Updates of what they coded.
fn codec_updates(run: &mut Measuring<'_>) -> Result<()> {
    run.say("updating every object twice");
    let updates = updates::measure(Population::Small, run.options.blocks(), run.options.seed)
        .ok_or_else(|| failed("the buckets do not hold what was updated"))?;
    let name = "small files: all of it after two updates of every object";
    run.at_most(name, updates.mib_per_gib, "MiB/GiB", REACH_UPDATED);
    let name = "small files: an update of an object, without a log";
    run.at_most(name, updates.bytes_mean, "B", REACH_UPDATE_BYTES);
    run.shown("small files: the dearest of them (a split or a merge)", updates.bytes_max as f64, "B");
    run.shown("small files: objects moved by cleaning for each", updates.moved, "objects");
    run.at_most("small files: time of an update", updates.cpu_us, "CPU us", REACH_UPDATE_US);
    Ok(())
}

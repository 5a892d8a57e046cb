//! Every figure of the codecs and of the device with a memory, beside the one to reach.

use super::coders::{Codec, Measured};
use super::{Options, Population, device, mounts, paper, shapes, updates};
use crate::figures::{FigureReport, Row, Value};
use onode_codec::cmfs::Hybrid;

/// MiB of memory for each GiB of NAND to reach, in the order of the populations.
const REACH: [f64; 8] = [0.64, 0.04, 0.02, 0.06, 0.67, 0.36, 0.15, 0.11];
/// What the small-file population may take when every object was updated twice.
const REACH_UPDATED: f64 = 0.90;
/// Bytes and microseconds of one update.
const REACH_UPDATE_BYTES: f64 = 512.0;
const REACH_UPDATE_US: f64 = 100.0;
/// Milliseconds to decode all metadata of a GiB.
const REACH_DECODE_MS: f64 = 30.0;

/// Rows on their way into a report.
pub struct Rows<'a> {
    options: &'a Options,
    /// Those so far.
    pub rows: Vec<Row>,
}

/// Measures all of them; `progress` hears what is being done. What cannot be measured is named in the report.
pub fn figures(options: &Options, progress: &mut dyn FnMut(&str)) -> FigureReport {
    let mut rows = Rows::new(options);
    let mut failures = Vec::new();
    let mut decode_ms = 0.0f64;
    for (population, reach) in Population::ALL.into_iter().zip(REACH) {
        progress(&format!("filling a NAND with {}", population.name()));
        let volume = population.generate(options.blocks(), options.seed);
        let name = population.name();
        let mut of = |codec: Codec| codec.measure(name, &volume).map_err(|error| failures.push(error.to_string())).ok();
        if let Some(Measured { mib_per_gib, cpu_decode_ms_per_gib, .. }) = of(Codec::Buckets) {
            rows.at_most(format!("{name}: buckets, directory, block table, log"), mib_per_gib, "MiB/GiB", reach);
            decode_ms = decode_ms.max(cpu_decode_ms_per_gib);
        }
        if let Some(measured) = of(Codec::BucketsWithSizes) {
            rows.shown(format!("{name}: the same with sizes of files"), measured.mib_per_gib, "MiB/GiB");
        }
        if let Some(measured) = of(Codec::Hybrid(Hybrid::Plain)) {
            rows.shown(format!("{name}: the paper's hybrid coding, no allocator"), measured.mib_per_gib, "MiB/GiB");
        }
    }
    rows.at_most("decoding all metadata, the slowest of these".into(), decode_ms, "CPU ms/GiB", REACH_DECODE_MS);
    progress("updating every object twice");
    match updates::measure(Population::Small, options.blocks(), options.seed) {
        Some(updates) => {
            let name = "small files: all of it after two updates of every object";
            rows.at_most(name.into(), updates.mib_per_gib, "MiB/GiB", REACH_UPDATED);
            let name = "small files: an update of an object, without a log";
            rows.at_most(name.into(), updates.bytes_mean, "B", REACH_UPDATE_BYTES);
            rows.shown("small files: the dearest of them (a split or a merge)".into(), updates.bytes_max as f64, "B");
            rows.shown("small files: objects moved by cleaning for each".into(), updates.moved, "objects");
            rows.at_most("small files: time of an update".into(), updates.cpu_us, "CPU us", REACH_UPDATE_US);
        }
        None => failures.push("the buckets do not hold what was updated".to_owned()),
    }
    progress("the figures of the paper");
    if shapes::measure(&mut rows).is_none() {
        failures.push("an object does not fit the paper's records".to_owned());
    }
    if paper::measure(&mut rows).is_none() {
        failures.push("a mount of the paper's volume did not find what was there".to_owned());
    }
    failures.extend(device::populations(&mut rows, &REACH, progress));
    let mut of_device = |measured: onode::Result<()>| failures.extend(measured.err().map(|error| error.to_string()));
    of_device(device::updates(&mut rows, progress));
    of_device(mounts::measure(&mut rows, options.quick, progress));
    of_device(device::postmark(&mut rows, options, progress));
    let mut notes = Vec::new();
    if options.traces.is_none() {
        notes.push("PostMark was not run: --traces names the directory with its stream".to_owned());
    }
    let mib = u64::from(options.blocks()) / 8;
    let device = format!("metadata of {mib} MiB of NAND with 2 KiB pages, seed {}", options.seed);
    FigureReport { device, quick: options.quick, rows: rows.rows, failures, notes }
}

impl<'a> Rows<'a> {
    /// None so far.
    pub const fn new(options: &'a Options) -> Self {
        Self { options, rows: Vec::new() }
    }
    pub const fn blocks(&self) -> u32 {
        self.options.blocks()
    }

    pub const fn seed(&self) -> u64 {
        self.options.seed
    }

    pub fn at_most(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.push(Row::at_most(name, Value::Ratio(value), unit, Value::Ratio(reach)));
    }

    pub fn at_least(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.push(Row::at_least(name, Value::Ratio(value), unit, Value::Ratio(reach)));
    }

    pub fn at_most_count(&mut self, name: String, value: u64, unit: &'static str, reach: u64) {
        self.push(Row::at_most(name, Value::Count(value), unit, Value::Count(reach)));
    }

    pub fn shown_count(&mut self, name: String, value: u64, unit: &'static str) {
        self.push(Row::shown(name, Value::Count(value), unit));
    }

    pub fn at_least_count(&mut self, name: String, value: u64, unit: &'static str, reach: u64) {
        self.push(Row::at_least(name, Value::Count(value), unit, Value::Count(reach)));
    }

    pub fn shown(&mut self, name: String, value: f64, unit: &'static str) {
        self.push(Row::shown(name, Value::Ratio(value), unit));
    }

    fn push(&mut self, row: Row) {
        self.rows.push(if self.options.quick { row.unjudged() } else { row });
    }
}

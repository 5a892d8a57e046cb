//! Figures 5 and 6 of paper 1: what the placements of the paper and the thresholds of its cleaner
//! are worth on a device that is nearly full.
//!
//! Files that nobody touches fill most of the device; then PostMark runs with access times that
//! every read renews. A segment that holds nothing any more is free without being cleaned, so only
//! segments count off which something had to be moved. Moved are bytes of content and of tree
//! nodes.

use super::streams::{Mix, mixed};
use super::{Measuring, spec};
use crate::bench::{Bench, Durability};
use crate::replay::{Settings, replay};
use crate::report::Report;
use crate::stream::Operation;
use onode::{Result, Spec};
use onode_flash::policy::{Placement, Thresholds, VictimPolicy};
use onode_fs::AccessTimes;

/// Share of the usable space that untouched files take, in percent.
const COLD_PERCENT: u64 = 84;
const COLD_BYTES: u64 = 256 << 10;

const PLACEMENTS: [Placement; 3] = [Placement::Combined, Placement::Split, Placement::SplitAtime];

/// The thresholds that are compared: of data, of metadata.
const THRESHOLDS: [(u8, u8); 5] = [(100, 100), (80, 60), (80, 100), (60, 80), (60, 60)];

/// Runs `mix` on a nearly full device.
fn on_full(run: &Measuring<'_>, placement: Placement, thresholds: Thresholds, stream: &[Operation]) -> Result<Report> {
    let mut device = spec(run.scale().medium, "")?;
    if let Spec::Flash(flash) = &mut device {
        flash.policies.placement = Some(placement);
        flash.policies.victim = Some(VictimPolicy::Thresholds(thresholds));
    }
    let settings = Settings {
        trace: "a stream on a nearly full device".into(),
        device,
        durability: Durability::Natural,
        caches: run.caches(),
        access_times: AccessTimes::Strict,
    };
    replay(&settings, stream)
}

/// PostMark behind the files that fill the device, the same for every placement.
fn behind_cold(run: &Measuring<'_>, mix: Mix) -> Result<(Vec<Operation>, &'static str)> {
    // The one that leaves least to users.
    let least = spec(run.scale().medium, ",placement=combined")?;
    let total = Bench::new(&least, Durability::Natural, run.caches())?.files.device().space().total;
    let (stream, made) = mixed(run, mix)?;
    let cold =
        (0..total / 100 * COLD_PERCENT / COLD_BYTES).map(|one| Operation::Create(format!("cold{one}"), COLD_BYTES));
    Ok((cold.chain([Operation::Measure]).chain(stream).collect(), made))
}

const fn moved(report: &Report) -> u64 {
    report.bytes_moved + report.node_bytes_moved
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { f64::from(u8::from(part > 0)) } else { part as f64 / whole as f64 }
}

/// Figure 6: the three placements under PostMark.
pub(super) fn placements(run: &mut Measuring<'_>) -> Result<()> {
    for (mix, name) in [(Mix::Read, "read"), (Mix::Write, "write")] {
        let (stream, made) = behind_cold(run, mix)?;
        let mut reports = Vec::new();
        for placement in PLACEMENTS {
            run.say(&format!("PostMark {name}, {}", placement.name()));
            let report = on_full(run, placement, Thresholds::default(), &stream)?;
            let name = format!("PostMark {name}{made}, nearly full, strictatime, {}", placement.name());
            run.shown(format!("{name}: segments cleaned"), report.segments_cleaned, "segments");
            run.shown(format!("{name}: moved by the cleaner"), moved(&report), "bytes");
            run.shown(format!("{name}: programs"), report.nand.programs, "pages");
            reports.push(report);
        }
        let [combined, split, atime] = &reports[..] else { continue };
        let name = format!("PostMark {name}{made}, nearly full, strictatime (Figure 6)");
        for (what, of) in [("segments cleaned", (|one| one.segments_cleaned) as fn(&Report) -> u64), ("moved", moved)] {
            run.at_most(format!("{name}: {what}, split / combined"), ratio(of(split), of(combined)), "", 1.0);
            let pair = format!("{name}: {what}, split+atime / split");
            match mix {
                Mix::Read => run.at_most(pair, ratio(of(atime), of(split)), "", 1.0),
                Mix::Write | Mix::TableTwo => run.shown(pair, ratio(of(atime), of(split)), ""),
            }
        }
    }
    Ok(())
}

/// Figure 5: thresholds for victims among segments of data and of metadata.
pub(super) fn thresholds(run: &mut Measuring<'_>) -> Result<()> {
    let (stream, made) = behind_cold(run, Mix::TableTwo)?;
    let mut all = Vec::new();
    for (data, metadata) in THRESHOLDS {
        run.say(&format!("thresholds {data} and {metadata}"));
        let report = on_full(run, Placement::Split, Thresholds { data, metadata }, &stream)?;
        let name = format!("PostMark table2{made}, nearly full, victims up to {data} % data, {metadata} % metadata");
        run.shown(format!("{name}: segments cleaned"), report.segments_cleaned, "segments");
        run.shown(format!("{name}: moved by the cleaner"), moved(&report), "bytes");
        all.push(moved(&report));
    }
    let [greedy, lower, ..] = all[..] else { return Ok(()) };
    let name = format!("PostMark table2{made}, nearly full: moved, thresholds 80 and 60 / greedy (Figure 5)");
    run.at_most(name, ratio(lower, greedy), "", 1.0);
    Ok(())
}

//! Whether the device over files does what the page-level laboratory says of its policies: the same streams,
//! the same share of spare space, and how far the write amplifications of content lie apart.
//!
//! The device has an index as well; what it programs is not counted here, and what it keeps from the content is no
//! spare space: the share is that of the space which users can fill. Journal pages count: on the measured media the
//! spare area takes the records of synced writes, and their content lies there.

use super::{Measuring, device, spec};
use crate::bench::{Bench, Durability};
use crate::generate::Rewrite;
use crate::pattern::Pattern;
use crate::policy::{Decider, PolicySettings, simulate};
use crate::replay::{Settings, replay};
use onode::{Class, Error, Result};
use onode_flash::options::Policies;
use onode_flash::policy::WearPolicy;
use onode_fs::AccessTimes;

/// What is written at once.
const PIECE_BYTES: u64 = 4096;
/// A page of every measured NAND.
const PAGE_BYTES: f64 = 2048.0;
const FILLS: u32 = 8;
const REACH_PERCENT: f64 = 10.0;

/// All streams that are not uniform.
pub(super) fn measure(run: &mut Measuring<'_>) -> Result<()> {
    for pattern in [Pattern::HotCold, Pattern::Zipf, Pattern::MovingHot] {
        let spare = run.scale.spare;
        let name = format!("{}, {spare} % spare", pattern.name());
        run.say(&format!("files against pages, {name}"));
        let (settings, bytes) = settings(run, pattern)?;
        let pages = simulate(&settings)?.write_amplification;
        let files = of_files(run, &settings, bytes)?;
        run.shown(format!("{name}: write amplification of content, pages"), pages, "times");
        run.shown(format!("{name}: write amplification of content, files"), files, "times");
        let distance = (files / pages - 1.0).abs() * 100.0;
        run.at_most(format!("{name}: distance of files to pages"), distance, "%", REACH_PERCENT);
    }
    Ok(())
}

/// The page-level device that corresponds to the one over files, and how many bytes of files fill it.
fn settings(run: &Measuring<'_>, pattern: Pattern) -> Result<(PolicySettings, u64)> {
    let bench = Bench::new(&spec(run.scale.medium, "")?, Durability::Operation, run.caches)?;
    let usable = bench.files.device().space().total;
    let segments = bench.files.device().inspect().map(|inspect| inspect.segments()).unwrap_or_default();
    let missing = || Error::new(Class::Bug, "cannot compare files with pages", "the device has no segments");
    let segment_bytes = segments.first().ok_or_else(missing)?.capacity_bytes;
    let policies = Policies::default();
    let settings = PolicySettings {
        pattern,
        decider: Decider::Device(policies.placement()),
        victim: policies.victim(),
        wear: WearPolicy::Dynamic,
        segments: (usable / segment_bytes) as u32,
        segment_pages: (segment_bytes / PIECE_BYTES) as u32,
        spare: run.scale.spare,
        fills: FILLS,
        seed: 42,
    };
    let pages = u64::from(settings.segments) * u64::from(settings.segment_pages);
    Ok((settings, pages * u64::from(100 - settings.spare) / 100 * PIECE_BYTES))
}

fn of_files(run: &Measuring<'_>, settings: &PolicySettings, bytes: u64) -> Result<f64> {
    let PolicySettings { pattern, seed, .. } = *settings;
    let operations = Rewrite { pattern, bytes, seed, operations: Some(u64::from(FILLS) * bytes / PIECE_BYTES) };
    let report = replay(
        &Settings {
            trace: format!("{} over files on {}", pattern.name(), device(run.scale.medium, "")),
            device: spec(run.scale.medium, "")?,
            durability: Durability::Operation,
            caches: run.caches,
            access_times: AccessTimes::Never,
        },
        &operations.operations(),
    )?;
    // Where the spare area takes the records, synced content lies in journal pages.
    let programs: u64 =
        ["data", "journal", "cleaning"].iter().filter_map(|tag| report.by_tag.get(tag)).map(|nand| nand.programs).sum();
    let content = report.user_bytes_written.max(1);
    Ok(programs as f64 * PAGE_BYTES / content as f64)
}

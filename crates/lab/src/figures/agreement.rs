//! Whether the device over files does what the page-level laboratory says of its policies: the same
//! streams, the same space for content, and how far the write amplifications of content lie apart.
//!
//! The device has a journal and an index as well; what it programs for them is not counted here,
//! and the segments that they take are no spare space: the simulator gets as many segments as have
//! content on the device at the end, and those that it keeps free itself. The files leave the named
//! share of what users can fill. The medium's spare area takes a trailer and no records, so that
//! synced pages go where the placement says, and not to the journal.

use super::{Measuring, device, spec};
use crate::bench::{Bench, Durability};
use crate::policy::{Decider, PolicySettings, simulate_in};
use crate::replay::{Settings, replay_and};
use crate::stream::generate::Rewrite;
use crate::stream::pattern::Pattern;
use onode::{Class, Error, Result};
use onode_flash::options::Policies;
use onode_flash::policy::{Stream, WearPolicy};
use onode_fs::AccessTimes;

/// What is written at once.
const PIECE_BYTES: u64 = 4096;
/// A page of every measured NAND.
const PAGE_BYTES: f64 = 2048.0;
const FILLS: u32 = 8;
const REACH_PERCENT: f64 = 10.0;
/// No room for records in the spare area.
const SPARE: &str = ",spare=16";

/// All streams that are not uniform.
pub(super) fn measure(run: &mut Measuring<'_>) -> Result<()> {
    for pattern in [Pattern::HotCold, Pattern::Zipf, Pattern::MovingHot] {
        let spare = run.scale().spare;
        let name = format!("{}, {spare} % spare", pattern.name());
        run.say(&format!("files against pages, {name}"));
        let (settings, bytes) = settings(run, pattern)?;
        let (files, segments) = of_files(run, &settings, bytes)?;
        let kept_free = u32::from(Policies::default().placement().classes()) + 1;
        let pages = simulate_in(&settings, segments + kept_free)?.write_amplification;
        run.shown(format!("{name}: segments with content on the device"), u64::from(segments), "segments");
        run.shown(format!("{name}: write amplification of content, pages"), pages, "times");
        run.shown(format!("{name}: write amplification of content, files"), files, "times");
        let distance = (files / pages - 1.0).abs() * 100.0;
        run.at_most(format!("{name}: distance of files to pages"), distance, "%", REACH_PERCENT);
    }
    Ok(())
}

/// The page-level device that corresponds to the one over files, and how many bytes of files fill
/// it.
fn settings(run: &Measuring<'_>, pattern: Pattern) -> Result<(PolicySettings, u64)> {
    let bench = Bench::new(&spec(run.scale().medium, SPARE)?, Durability::Operation, run.caches())?;
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
        spare: run.scale().spare,
        fills: FILLS,
        seed: 42,
    };
    let pages = u64::from(settings.segments) * u64::from(settings.segment_pages);
    Ok((settings, pages * u64::from(100 - settings.spare) / 100 * PIECE_BYTES))
}

/// The write amplification of content over files, and the segments that hold content at the end.
fn of_files(run: &Measuring<'_>, settings: &PolicySettings, bytes: u64) -> Result<(f64, u32)> {
    let PolicySettings { pattern, seed, .. } = *settings;
    let operations = Rewrite { pattern, bytes, seed, operations: Some(u64::from(FILLS) * bytes / PIECE_BYTES) };
    let (report, segments) = replay_and(
        &Settings {
            trace: format!("{} over files on {}", pattern.name(), device(run.scale().medium, SPARE)),
            device: spec(run.scale().medium, SPARE)?,
            durability: Durability::Operation,
            caches: run.caches(),
            access_times: AccessTimes::Never,
        },
        &operations.operations(),
        content_segments,
    )?;
    let programs: u64 =
        ["data", "cleaning"].iter().filter_map(|tag| report.by_tag.get(tag)).map(|nand| nand.programs).sum();
    let content = report.user_bytes_written.max(1);
    Ok((programs as f64 * PAGE_BYTES / content as f64, segments))
}

/// Segments of the streams that hold whole pages of content.
fn content_segments(bench: &Bench) -> u32 {
    let names = Stream::CONTENT.map(Stream::name);
    let segments = bench.files.device().inspect().map(|inspect| inspect.segments()).unwrap_or_default();
    segments.iter().filter(|one| names.contains(&one.stream.as_str())).count() as u32
}

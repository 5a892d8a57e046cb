//! The shape of the paper's own findings: what parts of the device are worth, by going without one.

use super::Measuring;
use super::streams::{replay_on, table_two};
use crate::bench::{Caches, Durability};
use crate::generate::{LargeFile, Phase};
use crate::report::Report;
use crate::stream::Operation;
use onode::Result;
use onode_media::IoTag;

/// Runs `all` with `caches` instead of those of the other figures.
fn with(run: &mut Measuring<'_>, caches: Caches, durability: Durability, all: &[Operation]) -> Result<Report> {
    let usual = core::mem::replace(&mut run.caches, caches);
    let report = replay_on(run, "", durability, all);
    run.caches = usual;
    report
}

fn index_operations(report: &Report) -> u64 {
    report.by_tag.get(IoTag::Index.name()).map_or(0, |counts| counts.programs + counts.reads)
}

/// Part of `more` that is saved by `less`.
fn saved(more: u64, less: u64) -> f64 {
    if more == 0 { 0.0 } else { 1.0 - less as f64 / more as f64 }
}

/// Figure 7: page operations of the index with extents and without.
pub(super) fn extents(run: &mut Measuring<'_>) -> Result<()> {
    let without = Caches { without_extents: true, ..run.caches };
    let bytes = run.scale.sequential_bytes;
    let large = LargeFile { phase: Phase::Rewrite, bytes, ..LargeFile::default() }.operations();
    let (postmark, made) = table_two(run)?;
    for (name, operations, least) in
        [("large file, random rewrite".to_owned(), large, 0.5), (format!("PostMark table2{made}"), postmark, 0.05)]
    {
        run.say(&format!("extents: {name}"));
        let usual = with(run, run.caches, Durability::Natural, &operations)?;
        let paged = with(run, without, Durability::Natural, &operations)?;
        let (usual, paged) = (index_operations(&usual), index_operations(&paged));
        run.shown(format!("{name}, natural: index page operations with extents"), usual, "pages");
        run.shown(format!("{name}, natural: index page operations without extents"), paged, "pages");
        run.at_least(format!("{name}: saved by extents (Figure 7)"), saved(paged, usual), "", least);
    }
    Ok(())
}

/// Table II: page writes with the small-object buffer and without.
pub(super) fn small_object_buffer(run: &mut Measuring<'_>) -> Result<()> {
    let (postmark, made) = table_two(run)?;
    run.say("small-object buffer");
    let without = Caches { without_small_object_buffer: true, ..run.caches };
    let usual = with(run, run.caches, Durability::Natural, &postmark)?;
    let padded = with(run, without, Durability::Natural, &postmark)?;
    let name = format!("PostMark table2{made}, natural");
    run.shown(format!("{name}: programs without small-object buffer"), padded.nand.programs, "pages");
    let part = saved(padded.nand.programs, usual.nand.programs);
    run.at_least(format!("{name}: programs saved by the small-object buffer (Table II)"), part, "", 0.27);
    let part = saved(padded.nand.erases, usual.nand.erases);
    run.shown(format!("{name}: erases saved by the small-object buffer"), part, "");
    Ok(())
}

//! The shape of the paper's own findings: what parts of the device are worth, by going without one.

use super::Measuring;
use super::streams::{replay_on, replay_with, table_two};
use crate::bench::{Caches, Durability};
use crate::report::Report;
use crate::stream::generate::{LargeFile, Phase};
use onode::Result;
use onode_media::IoTag;

fn index_operations(report: &Report) -> u64 {
    report.by_tag.get(IoTag::Index.name()).map_or(0, |counts| counts.programs + counts.reads)
}

/// Part of `more` that is saved by `less`.
fn saved(more: u64, less: u64) -> f64 {
    if more == 0 { 0.0 } else { 1.0 - less as f64 / more as f64 }
}

/// Figure 7: page operations of the index with extents and without.
pub(super) fn extents(run: &mut Measuring<'_>) -> Result<()> {
    let without = Caches { without_extents: true, ..run.caches() };
    let bytes = run.scale().sequential_bytes;
    let large = LargeFile { phase: Phase::Rewrite, bytes, ..LargeFile::default() }.operations();
    let (postmark, made) = table_two(run)?;
    for (name, operations, least) in
        [("large file, random rewrite".to_owned(), large, 0.5), (format!("PostMark table2{made}"), postmark, 0.05)]
    {
        run.say(&format!("extents: {name}"));
        let usual = replay_on(run, "", Durability::Natural, &operations)?;
        let paged = replay_with(run.scale().medium, "", without, Durability::Natural, &operations)?;
        let (usual, paged) = (index_operations(&usual), index_operations(&paged));
        run.shown(format!("{name}, natural: index page operations with extents"), usual, "pages");
        run.shown(format!("{name}, natural: index page operations without extents"), paged, "pages");
        run.at_least(format!("{name}: saved by extents (Figure 7)"), saved(paged, usual), "", least);
    }
    Ok(())
}

/// Table II: what embedded inodes and the small-object buffer save, each against a volume without
/// it.
///
/// The paper's medium is filled once by what the stream writes, and nothing has to be cleaned on it
/// whatever is missing. What cleaning is saved is judged on half of it and shown on a quarter.
pub(super) fn informed_placement(run: &mut Measuring<'_>) -> Result<()> {
    let (postmark, made) = table_two(run)?;
    let all = run.caches();
    let without_embedding = Caches { without_inode_embedding: true, ..all };
    let without_buffer = Caches { without_small_object_buffer: true, ..all };
    let missing = [
        ("inode embedding", without_embedding),
        ("small-object buffer", without_buffer),
        ("either", Caches { without_inode_embedding: true, ..without_buffer }),
    ];
    let [half, quarter] = run.scale().smaller_media;
    for (size, of_paper, missing) in [
        (run.scale().medium, "the paper's medium", &missing[..]),
        (half, "half of it", &missing[..2]),
        (quarter, "a quarter of it", &missing[..2]),
    ] {
        let name = format!("PostMark table2{made}, natural, {size} ({of_paper})");
        run.say(&name);
        let measure = |caches| replay_with(size, "", caches, Durability::Natural, &postmark);
        let with_all = measure(all)?;
        show(run, &name, "with inode embedding and small-object buffer", &with_all);
        for (part, caches) in missing {
            let without = measure(*caches)?;
            show(run, &name, &format!("without {part}"), &without);
            let programs = saved(without.nand.programs, with_all.nand.programs);
            let cleaned = saved(without.segments_cleaned, with_all.segments_cleaned);
            let against = format!("saved against no {part} (Table II)");
            if size == run.scale().medium && *part != "either" {
                run.at_least(format!("{name}: programs {against}"), programs, "", 0.27);
            } else if size == half {
                run.at_least(format!("{name}: segments cleaned {against}"), cleaned, "", 0.72);
            } else if size == quarter {
                run.shown(format!("{name}: segments cleaned {against}"), cleaned, "");
            }
        }
    }
    Ok(())
}

fn show(run: &mut Measuring<'_>, name: &str, what: &str, report: &Report) {
    run.shown(format!("{name}: programs {what}"), report.nand.programs, "pages");
    run.shown(format!("{name}: segments cleaned {what}"), report.segments_cleaned, "segments");
}

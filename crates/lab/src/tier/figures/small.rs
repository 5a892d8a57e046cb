//! Small files: PostMark with every change durable, by one program and by several at a time, and
//! with a sync for each MiB.

use super::Measuring;
use crate::tier::PEERS;
use crate::tier::devices::{Against, Ours};
use crate::tier::model::{Disk, Phase};
use crate::tier::workload::{FILES, PROGRAMS};
use onode::Result;

const ALL: [Disk; 3] = [Disk::PageMapped, Disk::LogBlock, Disk::Hdd];

/// A way to make changes durable: how rows call it, and the beginning of the names of its
/// workloads.
struct Way {
    name: &'static str,
    workload: &'static str,
}

pub(super) fn postmark(measuring: &mut Measuring<'_>) -> Result<()> {
    let ways = [Way { name: "fsync", workload: "postmark" }, Way { name: "-o sync", workload: "sync-postmark" }];
    let ours: Vec<Against> = Ours::durable();
    for files in FILES {
        compare(measuring, &format!("PostMark, {files} files, each change durable"), &ways, &ours, files)?;
    }
    Ok(())
}

pub(super) fn together(measuring: &mut Measuring<'_>) -> Result<()> {
    let ways = [Way { name: "fsync", workload: "together" }];
    let ours: Vec<Against> = Ours::durable();
    for files in FILES {
        let row = format!("PostMark, {files} files, {PROGRAMS} programs, each change durable");
        compare(measuring, &row, &ways, &ours, files)?;
    }
    Ok(())
}

pub(super) fn natural(measuring: &mut Measuring<'_>) -> Result<()> {
    let ways = [Way { name: "syncfs", workload: "natural" }];
    let ours: Vec<Against> = Ours::natural();
    for files in FILES {
        compare(measuring, &format!("PostMark, {files} files, a sync for each MiB"), &ways, &ours, files)?;
    }
    Ok(())
}

/// The rows of one stream: the peers on all disks, ours, and ours against the faster peer in each
/// way.
fn compare(measuring: &mut Measuring<'_>, row: &str, ways: &[Way], ours: &[Against], files: u64) -> Result<()> {
    let mut best = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        for peer in PEERS {
            for (disk, phases) in measuring.played(peer, &format!("{}-{files}", way.workload), &ALL)? {
                let Some(phase) = phases.first() else { continue };
                if disk == ALL[0] {
                    requests(measuring, &format!("{row}: {peer} {}", way.name), phase);
                }
                measuring.shown(format!("{row}: {peer} {}, {}", way.name, disk.name()), phase.rate(), "/s");
                best.push((number, disk, phase.rate()));
            }
        }
    }
    let mut seen: Vec<(Ours, Phase)> = Vec::new();
    for (one, disk, reach) in ours {
        if !seen.iter().any(|(other, _)| other == one) {
            // Ours asks for the same however programs say it, so one run is enough for all ways.
            let Some(phase) = measuring.run(*one, &format!("{}-{files}", ways[0].workload)).into_iter().next() else {
                continue;
            };
            requests(measuring, &format!("{row}: {}", one.name()), &phase);
            measuring.shown(format!("{row}: {}", one.name()), phase.rate(), "/s");
            seen.push((*one, phase));
        }
        let Some((_, phase)) = seen.iter().find(|(other, _)| other == one) else { continue };
        for (number, way) in ways.iter().enumerate() {
            let rates = best.iter().filter(|(of, on, _)| *of == number && on == disk).map(|(_, _, rate)| *rate);
            let Some(fastest) = rates.reduce(f64::max) else { continue };
            let name =
                format!("{row}: {} against the faster of ext2 and xfs, {}, {}", one.name(), way.name, disk.name());
            match reach {
                Some(reach) => measuring.at_least(name, phase.rate() / fastest, "times", *reach),
                None => measuring.shown(name, phase.rate() / fastest, "times"),
            }
        }
    }
    Ok(())
}

/// What the disks are asked for a change.
fn requests(measuring: &mut Measuring<'_>, row: &str, phase: &Phase) {
    let each = phase.done.operations.max(1) as f64;
    let names: &[&str] = if phase.disks.len() == 2 { &["fast disk", "big disk"] } else { &["disk"] };
    for (disk, name) in phase.disks.iter().zip(names) {
        measuring.shown(format!("{row}, {name}, writes a change"), disk.writes as f64 / each, "writes");
        measuring.shown(format!("{row}, {name}, flushes a change"), disk.flushes as f64 / each, "flushes");
    }
}

//! Small files: PostMark with every change durable, and with a sync for each MiB.

use super::Measuring;
use crate::tier::PEERS;
use crate::tier::model::Disk;
use crate::tier::workload::FILES;
use onode::Result;

const ALL: [Disk; 3] = [Disk::PageMapped, Disk::LogBlock, Disk::Hdd];

/// What the rows of a way to be durable are called, and the workload.
const WAYS: [(&str, &str); 2] = [("fsync", "postmark"), ("-o sync", "sync-postmark")];

pub(super) fn postmark(measuring: &mut Measuring<'_>) -> Result<()> {
    for files in FILES {
        for (way, workload) in WAYS {
            for peer in PEERS {
                for (disk, phases) in measuring.played(peer, &format!("{workload}-{files}"), &ALL)? {
                    let Some(phase) = phases.first() else { continue };
                    let row = format!("PostMark, {files} files, each change durable: {peer} {way}");
                    let (disk_did, each) = (phase.disks[0], phase.done.operations.max(1) as f64);
                    if disk == ALL[0] {
                        measuring.shown(format!("{row}, writes a change"), disk_did.writes as f64 / each, "writes");
                        measuring.shown(format!("{row}, flushes a change"), disk_did.flushes as f64 / each, "flushes");
                    }
                    measuring.shown(format!("{row}, {}", disk.name()), phase.rate(), "/s");
                }
            }
        }
    }
    Ok(())
}

pub(super) fn natural(measuring: &mut Measuring<'_>) -> Result<()> {
    for files in FILES {
        for peer in PEERS {
            for (disk, phases) in measuring.played(peer, &format!("natural-{files}"), &ALL)? {
                let Some(phase) = phases.first() else { continue };
                let row = format!("PostMark, {files} files, a sync for each MiB: {peer}, {}", disk.name());
                measuring.shown(row, phase.rate(), "/s");
            }
        }
    }
    Ok(())
}

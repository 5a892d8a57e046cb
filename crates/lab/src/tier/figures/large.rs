//! One large file: in order, and block by block.

use super::Measuring;
use crate::tier::PEERS;
use crate::tier::devices::Ours;
use crate::tier::model::{Disk, Phase};
use onode::Result;

const ALL: [Disk; 3] = [Disk::PageMapped, Disk::LogBlock, Disk::Hdd];

pub(super) fn sequential(measuring: &mut Measuring<'_>) -> Result<()> {
    let mut theirs = Vec::new();
    for peer in PEERS {
        for (disk, phases) in measuring.played(peer, "sequential", &ALL)? {
            for phase in phases {
                let row = format!("256 MB, sequential {}: {peer}, {}", phase.name, disk.name());
                measuring.shown(row, phase.megabytes_a_second(), "MB/s");
                if peer == "xfs" {
                    theirs.push((disk, phase));
                }
            }
        }
    }
    let mut seen: Vec<(Ours, Vec<Phase>)> = Vec::new();
    for (ours, disk, reach) in Ours::sequential() {
        if !seen.iter().any(|(one, _)| *one == ours) {
            let phases = measuring.run(ours, "sequential");
            for phase in &phases {
                let row = format!("256 MB, sequential {}: {}", phase.name, ours.name());
                measuring.shown(row, phase.megabytes_a_second(), "MB/s");
            }
            seen.push((ours, phases));
        }
        let Some((_, phases)) = seen.iter().find(|(one, _)| *one == ours) else { continue };
        for phase in phases {
            let other = theirs.iter().find(|(on, other)| *on == disk && other.name == phase.name);
            let Some((_, other)) = other else { continue };
            let times = phase.megabytes_a_second() / other.megabytes_a_second();
            let row = format!("256 MB, sequential {}: {} against xfs, {}", phase.name, ours.name(), disk.name());
            match reach {
                Some(reach) => measuring.at_least(row, times, "times", reach),
                None => measuring.shown(row, times, "times"),
            }
        }
    }
    Ok(())
}

pub(super) fn random(measuring: &mut Measuring<'_>) -> Result<()> {
    for peer in PEERS {
        for (disk, phases) in measuring.played(peer, "random-write", &ALL)? {
            let Some(phase) = phases.first() else { continue };
            let row = format!("random 4 KB writes, each durable: {peer}, {}", disk.name());
            if disk != Disk::Hdd {
                measuring.shown(format!("{row}, write amplification"), phase.disks[0].amplification(), "times");
            }
            measuring.shown(row, phase.rate(), "/s");
        }
    }
    for (ours, flash, reach) in Ours::random() {
        let Some(phase) = measuring.run(ours, "random-write").into_iter().next() else { continue };
        let row = format!("random 4 KB writes, each durable: {}", ours.name());
        // The fast disk is the first.
        if let (Some(flash), Some(disk)) = (flash, phase.disks.first()) {
            let name = format!("{row}, write amplification of the {}", flash.name());
            match reach {
                Some(reach) => measuring.at_most(name, disk.amplification(), "times", reach),
                None => measuring.shown(name, disk.amplification(), "times"),
            }
        }
        measuring.shown(row, phase.rate(), "/s");
    }
    Ok(())
}

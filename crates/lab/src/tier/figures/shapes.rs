//! The shapes of Figures 7 to 9 and 13 to 15 of paper 4, as far as its words give them, with files
//! of 256 MB.
//!
//! Those of the random template (10 to 12, 16 to 18) take minutes each, and are drawn by
//! `--figure`.

use super::Measuring;
use crate::tier::PEERS;
use crate::tier::devices::Ours;
use crate::tier::model::{Disk, Phase};
use onode::Result;

const FLASH: Disk = Disk::LogBlock;
/// The figure with peers, the one by extents, the phase, what it should be of the disks of the
/// peers (the hard disk, the solid-state one), and what extents of 512 KB should give of those of
/// 16 KB. "Almost four times" is 3.5, "almost the same" and "no significant difference" 0.9.
const SHAPES: [(u32, u32, &str, f64, f64, f64); 3] =
    [(7, 13, "write", 3.5, 0.9, 1.23), (8, 14, "rewrite", 1.0, 0.9, 1.0), (9, 15, "read", 0.9, 0.9, 0.9)];

fn rate(phases: &[Phase], phase: &str) -> Option<f64> {
    let name = format!("{phase} 262144K");
    phases.iter().find(|phase| phase.name == name).map(Phase::megabytes_a_second)
}

pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let mut theirs = Vec::new();
    for peer in PEERS {
        theirs.extend(measuring.played(peer, "iozone", &[Disk::Hdd, FLASH])?);
    }
    let of_extents = Ours::of_extents();
    let ends = [of_extents.first(), of_extents.last()].into_iter().flatten();
    let ours: Vec<Vec<Phase>> = ends.map(|(_, ours)| measuring.run(*ours, "iozone")).collect();
    let [small, large] = &ours[..] else { return Ok(()) };
    for (figure, by_extent, phase, of_hdd, of_flash, of_small) in SHAPES {
        let Some(own) = rate(small, phase) else { continue };
        for (disk, reach) in [(Disk::Hdd, of_hdd), (FLASH, of_flash)] {
            let rates = theirs.iter().filter(|(on, _)| *on == disk).filter_map(|(_, phases)| rate(phases, phase));
            let Some(best) = rates.reduce(f64::max) else { continue };
            let row = format!(
                "Figure {figure}, {phase} of 256 MB: onode, either, against the faster of ext2 and xfs, {}",
                disk.name()
            );
            measuring.at_least(row, own / best, "times", reach);
        }
        let Some(large) = rate(large, phase) else { continue };
        let row = format!("Figure {by_extent}, {phase} of 256 MB: extents of 512 KB against 16 KB");
        measuring.at_least(row, large / own, "times", of_small);
    }
    Ok(())
}

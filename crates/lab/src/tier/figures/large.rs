//! One large file: in order, and block by block.

use super::Measuring;
use crate::tier::PEERS;
use crate::tier::model::Disk;
use onode::Result;

pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    for peer in PEERS {
        for (disk, phases) in measuring.played(peer, "sequential", &[Disk::PageMapped, Disk::LogBlock, Disk::Hdd])? {
            for phase in phases {
                let row = format!("256 MB, sequential {}: {peer}, {}", phase.name, disk.name());
                measuring.shown(row, phase.megabytes_a_second(), "MB/s");
            }
        }
    }
    for peer in PEERS {
        for (disk, phases) in measuring.played(peer, "random-write", &Disk::FLASH)? {
            let Some(phase) = phases.first() else { continue };
            let row = format!("random 4 KB writes, each durable: {peer}, {}", disk.name());
            measuring.shown(format!("{row}, write amplification"), phase.disks[0].amplification(), "times");
            measuring.shown(row, phase.rate(), "/s");
        }
    }
    Ok(())
}

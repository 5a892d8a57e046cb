//! A hot set: four of five reads go to a tenth of the data, and the fast disk is a tenth of the big one. And what it costs to
//! map all of that to another section.

use super::Measuring;
use crate::tier::devices::{alone, both};
use crate::tier::files::Files;
use crate::tier::model::Disk;
use crate::tier::own::Own;
use onode::{Result, Volume};
use onode_base::Prng;
use onode_fs::InodeNumber;
use onode_object::{Acknowledge, Placement, Target};

const MEBIBYTE: u64 = 1 << 20;
const BIG_BYTES: u64 = 1280 * MEBIBYTE;
/// Files of a mebibyte: of the big disk, 60 and 80 %.
const FILES: [u64; 2] = [768, 1024];
/// A read.
const PIECE: u64 = 16 << 10;
/// Reads before anything counts: each hot piece some eight times.
const WARM_UP: u64 = 64_000;
const READS: u64 = 10_000;

/// Reads that went to the hot set.
#[derive(Default)]
struct Hot {
    reads: u64,
    nanoseconds: u64,
    /// Those of them for which the big disk had to be read.
    from_big: u64,
}

fn fill(own: &mut Own, files: u64) -> Result<()> {
    for number in 0..files {
        own.create(&number.to_string(), MEBIBYTE, MEBIBYTE, false)?;
    }
    own.sync()?;
    own.remount()
}

fn read(own: &mut Own, files: u64) -> Result<Hot> {
    let (mut prng, mut hot) = (Prng::new(3), Hot::default());
    for number in 0..WARM_UP + READS {
        let is_hot = prng.chance(4, 5);
        // The hot files lie everywhere.
        let file = if is_hot { prng.below(files / 10) * 10 } else { prng.below(files) };
        let offset = prng.below(MEBIBYTE / PIECE) * PIECE;
        let (begin, before) = (own.now(), own.requests());
        own.read(&file.to_string(), offset, PIECE, PIECE)?;
        if is_hot && number >= WARM_UP {
            hot.reads += 1;
            hot.nanoseconds += own.now() - begin;
            let big = own.requests().last().map(|big| big.reads);
            hot.from_big += u64::from(big > before.last().map(|big| big.reads));
        }
    }
    Ok(hot)
}

pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    for files in FILES {
        let mut own = compare(measuring, files)?;
        if files == FILES[1] {
            remap(measuring, &mut own, files)?;
        }
    }
    Ok(())
}

/// Reads with everything on the SSD and with two disks; hands over the latter.
fn compare(measuring: &mut Measuring<'_>, files: u64) -> Result<Own> {
    measuring.say("a hot set, everything on the SSD");
    let mut flash = alone(Disk::PageMapped, BIG_BYTES)?;
    fill(&mut flash, files)?;
    let there = read(&mut flash, files)?;
    drop(flash);
    measuring.say("a hot set on two disks");
    let mut own = both(Disk::PageMapped, BIG_BYTES / 10, BIG_BYTES, Acknowledge::Safe, 64 << 10)?;
    fill(&mut own, files)?;
    let here = read(&mut own, files)?;
    let full = files * MEBIBYTE * 100 / BIG_BYTES;
    let row = format!("hot set, 80 % of reads on 10 % of the data, big disk {full} % full, fast disk 10 % of it");
    let rate = |hot: &Hot| hot.reads as f64 * 1e9 / hot.nanoseconds.max(1) as f64;
    measuring.shown(format!("{row}: hot reads with everything on the SSD"), rate(&there), "/s");
    measuring.shown(format!("{row}: hot reads"), rate(&here), "/s");
    measuring.at_least(format!("{row}: throughput of hot reads against it"), rate(&here) / rate(&there), "times", 0.9);
    let ratio = 1.0 - here.from_big as f64 / here.reads.max(1) as f64;
    measuring.shown(format!("{row}: hot reads from the fast disk"), ratio * 100.0, "%");
    Ok(own)
}

/// Every file gets another placement, durably.
fn remap(measuring: &mut Measuring<'_>, own: &mut Own, files: u64) -> Result<()> {
    let went = |error: onode_fs::Error| Volume::error("a call of the file system failed", &error);
    measuring.say("another placement");
    let elsewhere = Placement { target: Target::Bypass, ..Placement::default() };
    let (begin, before) = (own.now(), own.requests());
    for number in 0..files {
        let found = own.files().lookup(InodeNumber::ROOT, number.to_string().as_bytes()).map_err(went)?;
        own.files().set_placement(found.inode, elsewhere).map_err(went)?;
        own.files().forget(found.inode, 1);
    }
    own.sync()?;
    let written: Vec<u64> =
        own.requests().iter().zip(&before).map(|(now, then)| now.bytes_written - then.bytes_written).collect();
    let row = "remap of 1,024 files of 1 MiB to another place, durably";
    measuring.at_most(row.to_owned(), (own.now() - begin) as f64 / 1e9, "s", 1.0);
    for (disk, written) in ["fast", "big"].into_iter().zip(written) {
        measuring.shown(format!("{row}: written to the {disk} disk"), written as f64 / 1024.0, "KB");
    }
    Ok(())
}

//! A hot set: four of five reads go to a tenth of the data, and the fast disk is a tenth of the big
//! one. And what it costs to map all of that to another section.

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
/// Files of a mebibyte that get another placement: ten gibibytes.
const REMAPPED: u64 = 10 << 10;
const BLOCK: u64 = 4096;
/// A read.
const PIECE: u64 = 16 << 10;
const READS: u64 = 10_000;
/// Nothing counts until a round, in which each hot piece is read so often in the mean, finds no
/// more of them on the fast disk than the round before; so many rounds at most.
const READS_A_ROUND: u64 = 2;
const MOST_ROUNDS: u64 = 30;

/// Reads that went to the hot set.
#[derive(Default)]
struct Hot {
    reads: u64,
    nanoseconds: u64,
    /// Those of them for which the big disk had to be read.
    from_big: u64,
}

impl Hot {
    fn rate(&self) -> f64 {
        self.reads as f64 * 1e9 / self.nanoseconds.max(1) as f64
    }

    /// The share of reads that the fast disk served.
    fn ratio(&self) -> f64 {
        1.0 - self.from_big as f64 / self.reads.max(1) as f64
    }
}

fn fill(own: &mut Own, files: u64) -> Result<()> {
    for number in 0..files {
        own.create(&number.to_string(), MEBIBYTE, MEBIBYTE, false)?;
    }
    own.sync()?;
    own.remount()
}

/// Reads anywhere, four of five in the hot set.
fn read(own: &mut Own, files: u64, reads: u64, prng: &mut Prng) -> Result<Hot> {
    let mut hot = Hot::default();
    for _ in 0..reads {
        let is_hot = prng.chance(4, 5);
        // The hot files lie everywhere.
        let file = if is_hot { prng.below(files / 10) * 10 } else { prng.below(files) };
        let offset = prng.below(MEBIBYTE / PIECE) * PIECE;
        let (begin, before) = (own.now(), own.requests());
        own.read(&file.to_string(), offset, PIECE, PIECE)?;
        if is_hot {
            hot.reads += 1;
            hot.nanoseconds += own.now() - begin;
            let big = own.requests().last().map(|big| big.reads);
            hot.from_big += u64::from(big > before.last().map(|big| big.reads));
        }
    }
    Ok(hot)
}

/// Reads until that gets no better; then what counts, and after how many rounds.
fn read_warm(own: &mut Own, files: u64) -> Result<(Hot, u64)> {
    let (mut prng, mut best, mut rounds) = (Prng::new(3), -1.0, 0);
    let hot_pieces = files / 10 * (MEBIBYTE / PIECE);
    while rounds < MOST_ROUNDS {
        rounds += 1;
        let ratio = read(own, files, hot_pieces * READS_A_ROUND * 5 / 4, &mut prng)?.ratio();
        if ratio <= best {
            break;
        }
        best = ratio;
    }
    Ok((read(own, files, READS, &mut prng)?, rounds))
}

pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    for files in FILES {
        compare(measuring, files)?;
    }
    remap(measuring)
}

/// Reads with everything on the SSD and with two disks.
fn compare(measuring: &mut Measuring<'_>, files: u64) -> Result<()> {
    measuring.say("a hot set, everything on the SSD");
    let mut flash = alone(Disk::PageMapped, BIG_BYTES)?;
    fill(&mut flash, files)?;
    let (there, _) = read_warm(&mut flash, files)?;
    drop(flash);
    measuring.say("a hot set on two disks");
    let mut own = both(Disk::PageMapped, BIG_BYTES / 10, BIG_BYTES, Acknowledge::Safe, 64 << 10)?;
    fill(&mut own, files)?;
    let (here, rounds) = read_warm(&mut own, files)?;
    let full = files * MEBIBYTE * 100 / BIG_BYTES;
    let row = format!("hot set, 80 % of reads on 10 % of the data, big disk {full} % full, fast disk 10 % of it");
    measuring.shown(format!("{row}: hot reads with everything on the SSD"), there.rate(), "/s");
    measuring.shown(format!("{row}: hot reads"), here.rate(), "/s");
    let times = here.rate() / there.rate();
    measuring.at_least(format!("{row}: throughput of hot reads against it"), times, "times", 0.9);
    measuring.shown(format!("{row}: hot reads from the fast disk"), here.ratio() * 100.0, "%");
    let warm = (rounds * READS_A_ROUND) as f64;
    measuring.shown(format!("{row}: read of the hot set before that, until it got no better"), warm, "times its size");
    Ok(())
}

/// Every file of 10 GB gets another placement, durably. Nothing of a file is touched but what says
/// where it belongs, so all but the last block of each is a hole: the disks are in memory.
fn remap(measuring: &mut Measuring<'_>) -> Result<()> {
    let went = |error: onode_fs::Error| Volume::error("a call of the file system failed", &error);
    measuring.say("another placement");
    let mut own = both(Disk::PageMapped, BIG_BYTES / 10, BIG_BYTES, Acknowledge::Safe, 64 << 10)?;
    for number in 0..REMAPPED {
        let name = number.to_string();
        own.create(&name, 0, MEBIBYTE, false)?;
        own.write(&name, MEBIBYTE - BLOCK, BLOCK, BLOCK, false)?;
    }
    own.sync()?;
    let elsewhere = Placement { target: Target::Bypass, ..Placement::default() };
    let (begin, before) = (own.now(), own.requests());
    for number in 0..REMAPPED {
        let found = own.files().lookup(InodeNumber::ROOT, number.to_string().as_bytes()).map_err(went)?;
        own.files().set_placement(found.inode, elsewhere).map_err(went)?;
        own.files().forget(found.inode, 1);
    }
    own.sync()?;
    let written: Vec<u64> =
        own.requests().iter().zip(&before).map(|(now, then)| now.bytes_written - then.bytes_written).collect();
    let row = "remap of 10,240 files of 1 MiB (a block and a hole) to another place, durably";
    measuring.at_most(row.to_owned(), (own.now() - begin) as f64 / 1e9, "s", 1.0);
    for (disk, written) in ["fast", "big"].into_iter().zip(written) {
        measuring.shown(format!("{row}: written to the {disk} disk"), written as f64 / 1024.0, "KB");
    }
    Ok(())
}

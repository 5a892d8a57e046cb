//! What the fast disk costs and gains, in the models of disks.

use onode_base::Prng;
use onode_media::blockdev::BlockDev;
use onode_media::sim::disk::ftl::LogBlock;
use onode_media::sim::disk::hdd::{Hdd, HddOptions};
use onode_media::sim::disk::ssd::{Ssd, SsdOptions};
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_media::tag::IoTag;
use onode_tier::fast::{Fast, FastOptions, FastSettings, Identity, Offered, Piece, SectionOptions};

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;
const IDENTITY: Identity = Identity { volume: [7; 16], own: [9; 16], session: 1 };

/// A solid-state disk with a layer that maps blocks, all of it written once before.
fn used_ssd(bytes: u64, clock: &HostClock) -> SimDisk {
    let layer = LogBlock::new(bytes / BLOCK, 64, 3);
    let mut disk = SimDisk::with_model("ssd", bytes, Box::new(Ssd::new(SsdOptions::iodrive(), Box::new(layer))), clock);
    disk.zero(0, bytes).expect("no fault");
    disk.flush().expect("no fault");
    disk
}

fn model_count(disk: &SimDisk, name: &str) -> u64 {
    disk.model_counters().into_iter().find(|(own, _)| *own == name).map(|(_, count)| count).expect("a count")
}

fn options(ring: u64) -> FastOptions {
    FastOptions { ring_bytes: ring, sections: vec![SectionOptions::new("all", 1, 64 << 10)], ..FastOptions::default() }
}

#[test]
fn synced_writes_of_4_kib_at_random_are_copied_hardly_at_all_inside_the_disk() {
    let disk = used_ssd(64 * MIB, &HostClock::default());
    let mut fast =
        Fast::format(Box::new(disk.clone()), &IDENTITY, &options(2 * MIB), &FastSettings::default()).expect("format");
    let (ring, ring_blocks) = fast.ring();
    let before = (model_count(&disk, "pages written"), model_count(&disk, "pages programmed"));
    let mut prng = Prng::new(1);
    let (mut dirty, mut born) = (std::collections::BTreeMap::new(), 1);
    let writes = 12_000;
    for number in 0..writes {
        // The log: a block with its heading and one with the content, and a flush.
        let at = ring + number * 2 % ring_blocks;
        fast.disk().write_at(at * BLOCK, &[1; 8192], IoTag::Journal).expect("no fault");
        fast.disk().flush().expect("no fault");
        dirty.insert(prng.below(32 * MIB / BLOCK), ());
        if (number + 1) * 2 % (ring_blocks / 2) == 0 {
            born += 1;
            for (block, ()) in std::mem::take(&mut dirty) {
                fast.forget(block, 1);
                let piece = Piece { block, born, blocks: 1, object: 1, index: block, class: 0 };
                assert_eq!(fast.write_back(&piece, &[2; 4096]).expect("no fault"), Offered::Taken);
            }
        }
    }
    let written = model_count(&disk, "pages written") - before.0;
    let programmed = model_count(&disk, "pages programmed") - before.1;
    assert!(programmed * 100 <= written * 110, "{programmed} pages programmed for {written}");
    // The log writes two blocks a write; the copy, maps and moves together no more than those.
    assert!(written <= writes * 4, "{written} pages for {writes} writes");
}

/// A big disk of which a part is filled, a tenth of which is hot; the fast disk is a tenth of the
/// big one.
struct HotSet {
    clock: HostClock,
    big: SimDisk,
    prng: Prng,
    pieces: u64,
}

const BIG: u64 = 640 * MIB;
const PIECE_BLOCKS: u32 = 4;

impl HotSet {
    fn new() -> Self {
        let clock = HostClock::default();
        let big = SimDisk::with_model("hdd", BIG, Box::new(Hdd::new(HddOptions::seagate_750())), &clock);
        Self { clock, big, prng: Prng::new(2), pieces: BIG * 7 / 10 / BLOCK / u64::from(PIECE_BLOCKS) }
    }

    /// The next piece, and whether it is a hot one: eight of ten reads go to a tenth of the data,
    /// all over the disk.
    fn next(&mut self) -> (Piece, bool) {
        let is_hot = self.prng.chance(8, 10);
        let number = self.prng.below(self.pieces / 10) * 10;
        let number = if is_hot { number } else { number + 1 + self.prng.below(9) };
        let block = number * u64::from(PIECE_BLOCKS);
        (Piece { block, born: 1, blocks: PIECE_BLOCKS, object: number, index: 0, class: 0 }, is_hot)
    }

    fn read(&mut self, fast: &mut Fast, piece: &Piece) -> bool {
        let mut data = vec![0; (u64::from(piece.blocks) * BLOCK) as usize];
        if fast.read_collected(piece.block, piece.born, &mut data) {
            return true;
        }
        let mut block = piece.block;
        let mut reads: Vec<(u64, u64)> = Vec::new();
        while block < piece.end()
            && let Some((first, blocks)) = fast.lookup(block, piece.born)
        {
            let blocks = u64::from(blocks).min(piece.end() - block);
            match reads.last_mut() {
                Some((at, count)) if *at + *count == first => *count += blocks,
                _ => reads.push((first, blocks)),
            }
            block += blocks;
        }
        if block == piece.end() {
            for (first, blocks) in reads {
                fast.disk().read_at(first * BLOCK, &mut data[..(blocks * BLOCK) as usize], IoTag::Data).expect("read");
            }
            return true;
        }
        self.big.read_at(piece.block * BLOCK, &mut data, IoTag::Data).expect("read");
        if fast.missed(piece).is_ok() {
            let _ = fast.promote(piece, &data, false).expect("no fault");
        }
        false
    }
}

#[test]
fn a_hot_set_is_read_nearly_as_fast_as_from_the_solid_state_disk() {
    let mut set = HotSet::new();
    let clock = set.clock.clone();
    let disk = used_ssd(BIG / 10, &clock);
    let mut fast =
        Fast::format(Box::new(disk.clone()), &IDENTITY, &options(4 * MIB), &FastSettings::default()).expect("format");
    for _ in 0..120_000 {
        let (piece, _) = set.next();
        set.read(&mut fast, &piece);
    }
    let (mut nanoseconds, mut hot, mut hits, mut all_hits) = (0, 0, 0, 0);
    let reads = 60_000;
    for _ in 0..reads {
        let (piece, is_hot) = set.next();
        let before = clock.now();
        let hit = set.read(&mut fast, &piece);
        all_hits += u64::from(hit);
        if is_hot {
            hot += 1;
            hits += u64::from(hit);
            nanoseconds += clock.now() - before;
        }
    }
    // The same reads with everything on the solid-state disk.
    let alone_clock = HostClock::default();
    let mut alone = used_ssd(BIG / 10, &alone_clock);
    let begin = alone_clock.now();
    let mut data = vec![0; (u64::from(PIECE_BLOCKS) * BLOCK) as usize];
    for number in 0..hot {
        let at = number * 7919 % (BIG / 10 / data.len() as u64);
        alone.read_at(at * data.len() as u64, &mut data, IoTag::Data).expect("read");
    }
    let wanted = alone_clock.now() - begin;
    let (percent, hot_hits, ratio) = (wanted * 100 / nanoseconds, hits * 10_000 / hot, all_hits * 10_000 / reads);
    assert!(percent >= 90, "{percent} % of the throughput; {hot_hits} hits of 10,000 hot reads");
    assert!(ratio >= 7900, "{ratio} hits of 10,000");
}

//! The fast disk after power cuts at any request, and with hostile content.

use onode_base::Prng;
use onode_base::checksum::crc32c;
use onode_media::blockdev::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_media::sim::disk::log::DiskLog;
use onode_media::tag::IoTag;
use onode_object::{ErrorKind, Placement, Target};
use onode_tier::fast::extent::Scheme;
use onode_tier::fast::{Fast, FastOptions, FastSettings, Identity, Offered, Piece, SectionOptions};
use onode_tier::policy::{Build, Policy, usual};
use std::collections::BTreeMap;

const BLOCK: u64 = 4096;
const DISK: u64 = 8 << 20;
/// Lets anything go, in an order that follows from the key and `N` alone: no copy may be wrong
/// whatever a policy names.
struct Any<const N: u64>(BTreeMap<u64, (u64, u64)>);

fn any<const N: u64>(_: u64) -> Box<dyn Policy> {
    Box::new(Any::<N>(BTreeMap::new()))
}

impl<const N: u64> Any<N> {
    fn place(key: u64) -> u64 {
        Prng::new(key << 3 | N).next_u64()
    }
}

impl<const N: u64> Policy for Any<N> {
    fn contains(&self, key: u64) -> bool {
        self.0.contains_key(&Self::place(key))
    }

    fn used(&self) -> u64 {
        self.0.values().map(|(_, size)| size).sum()
    }

    fn hit(&mut self, _key: u64, _now: u64) {}

    fn insert(&mut self, key: u64, size: u64, _now: u64) {
        self.0.insert(Self::place(key), (key, size));
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        self.0.pop_first().map(|(_, (key, _))| key)
    }

    fn remove(&mut self, key: u64) {
        self.0.remove(&Self::place(key));
    }

    fn is_hot(&self, key: u64) -> bool {
        self.contains(key) && key % 6 < N
    }
}

const IDENTITY: Identity = Identity { volume: [7; 16], own: [9; 16], session: 1 };

fn options() -> FastOptions {
    let mut segments = SectionOptions::new("segments", 1, 64 << 10);
    segments.scheme = Scheme::Paper;
    FastOptions {
        ring_bytes: 128 << 10,
        stripe_bytes: 64 << 10,
        sections: vec![SectionOptions::new("small", 2, 16 << 10), segments],
    }
}

fn settings() -> FastSettings {
    FastSettings { collect_bytes: 512 << 10, ..FastSettings::default() }
}

/// What a block of the big disk holds follows from its number and birth.
fn content(block: u64, born: u64, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; (u64::from(blocks) * BLOCK) as usize];
    for (block, bytes) in (block..).zip(bytes.chunks_mut(BLOCK as usize)) {
        Prng::new(block << 20 ^ born).fill(&mut bytes[..64]);
        bytes[4090] = born as u8;
    }
    bytes
}

fn read(disk: &mut dyn BlockDev, first: u64, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; (u64::from(blocks) * BLOCK) as usize];
    disk.read_at(first * BLOCK, &mut bytes, IoTag::Data).expect("read");
    bytes
}

/// A big disk whose blocks are born again and again.
struct Big {
    born: Vec<u64>,
    checkpoint: u64,
}

impl Big {
    fn piece(&self, block: u64, blocks: u32, class: u16) -> Piece {
        let born = self.born[block as usize];
        Piece { block, born, blocks, object: block / 64, index: block % 64, class }
    }
}

fn step(fast: &mut Fast, big: &mut Big, prng: &mut Prng) {
    let block = prng.below(big.born.len() as u64 / 8) * 8;
    let blocks = 1 + prng.below(8) as u32;
    let class = prng.below(3) as u16 | if prng.chance(1, 50) { 1 << 10 } else { 0 };
    match prng.below(20) {
        0..9 => {
            // New content in its place: the blocks were freed, and are handed out after a
            // checkpoint.
            fast.forget(block, 8);
            big.checkpoint += 1;
            big.born[block as usize..block as usize + 8].fill(big.checkpoint);
            let piece = big.piece(block, blocks, class);
            let _ = fast.write_back(&piece, &content(block, piece.born, blocks)).expect("no fault");
        }
        9..14 => {
            let piece = big.piece(block, blocks, class);
            let _ = fast.promote(&piece, &content(block, piece.born, blocks), true).expect("no fault");
        }
        14..17 => {
            let born = big.born[block as usize];
            let mut out = vec![0; BLOCK as usize];
            if fast.read_collected(block, born, &mut out) {
                assert_eq!(out, content(block, born, 1));
            } else if let Some((first, _)) = fast.lookup(block, born) {
                assert_eq!(read(fast.disk(), first, 1), content(block, born, 1));
            }
        }
        // As the log does, and what was written over what an old snapshot names is durable then,
        // too.
        17 if prng.chance(3, 4) => fast.disk().flush().expect("no fault"),
        17 => fast.forget(block + 2, 3),
        18 => fast.snapshot().expect("no fault"),
        _ => match prng.below(6) {
            0 => _ = fast.demote(block / 64),
            1 => fast.pin(block / 64, prng.chance(1, 4)),
            2 => fast.close().expect("no fault"),
            3 => fast.reconfigure(&sections(prng)).expect("a division"),
            _ => _ = fast.maintain(4).expect("no fault"),
        },
    }
}

fn sections(prng: &mut Prng) -> Vec<SectionOptions> {
    let mut sections = options().sections;
    sections[0].weight = 1 + prng.below(3) as u32;
    sections
}

/// Copies that do not hold what they should.
fn wrong(fast: &mut Fast) -> Vec<u64> {
    let copies: Vec<_> = fast.copies().collect();
    let is_wrong = |copy: &&onode_tier::fast::Copied| {
        !copy.is_collected && read(fast.disk(), copy.fast, copy.blocks) != content(copy.block, copy.born, copy.blocks)
    };
    copies.iter().filter(is_wrong).map(|copy| copy.block).collect()
}

#[test]
fn after_a_cut_every_copy_holds_what_it_should_or_is_found_out() {
    let (mut copies_seen, mut wrong_seen, mut flushed_cuts) = (0, 0, 0);
    for seed in 0..2 {
        let disk = SimDisk::new("fast", DISK);
        let mut fast = Fast::format(Box::new(disk.clone()), &IDENTITY, &options(), &settings()).expect("format");
        let start = disk.content().settled();
        let log = DiskLog::default();
        disk.record(&log, 0);
        let mut prng = Prng::new(seed);
        let mut big = Big { born: vec![1; 4096], checkpoint: 1 };
        for _ in 0..1500 {
            step(&mut fast, &mut big, &mut prng);
        }
        assert_eq!(wrong(&mut fast), [], "no copy is written over while it counts");
        let events = log.events();
        for _ in 0..40 {
            let upto = prng.below(events.len() as u64 + 1) as usize;
            let mut held: Cached = start.clone();
            events[..upto].iter().for_each(|event| event.operation.apply(&mut held));
            // Lost is all that was not flushed, or any of it.
            let loses_all = prng.chance(1, 2);
            let left = held.after_cut(|_, _| !loses_all && prng.chance(1, 2));
            let disk = SimDisk::from_content("fast", DISK, left);
            let policies: [Build; 6] = [any::<0>, any::<1>, any::<2>, any::<3>, any::<4>, usual];
            let policy = policies[prng.below(6) as usize];
            let settings = FastSettings { policy, ..settings() };
            let mut fast = Fast::open(Box::new(disk), IDENTITY.volume, &settings).expect("the superblock is there");
            let wrong_now = wrong(&mut fast);
            copies_seen += fast.copies().count();
            wrong_seen += wrong_now.len();
            flushed_cuts += usize::from(loses_all);
            assert!(!loses_all || wrong_now.is_empty(), "cut at {upto}: {wrong_now:?} are wrong");
            for block in wrong_now {
                fast.damaged(block);
            }
            assert_eq!(wrong(&mut fast), []);
            // And it goes on.
            let mut big = Big { born: vec![1 << 40; 4096], checkpoint: 1 << 40 };
            (0..200).for_each(|_| step(&mut fast, &mut big, &mut prng));
            assert_eq!(wrong(&mut fast), []);
        }
    }
    assert!(copies_seen > 1000 && flushed_cuts > 20, "{copies_seen} copies, {wrong_seen} wrong, {flushed_cuts} cuts");
}

fn formatted() -> SimDisk {
    let disk = SimDisk::new("fast", DISK);
    let mut fast = Fast::format(Box::new(disk.clone()), &IDENTITY, &options(), &settings()).expect("format");
    for number in 0..60 {
        let piece = Piece { block: number * 8, born: 3, blocks: 8, object: number, index: 0, class: 0 };
        assert_eq!(fast.write_back(&piece, &content(piece.block, 3, 8)).expect("no fault"), Offered::Taken);
    }
    fast.close().expect("close");
    disk
}

fn kind_of(disk: SimDisk, volume: [u8; 16]) -> (ErrorKind, String) {
    let error = Fast::open(Box::new(disk), volume, &settings()).err().expect("refused");
    (error.kind, error.detail)
}

#[test]
fn disks_that_are_not_this_volumes_are_refused_with_advice() {
    let (kind, advice) = kind_of(SimDisk::new("blank", DISK), [7; 16]);
    assert!(
        kind == ErrorKind::WrongPart && advice.contains("no fast disk") && advice.contains("without it"),
        "{advice}"
    );
    let (kind, advice) = kind_of(formatted(), [8; 16]);
    assert!(kind == ErrorKind::WrongPart && advice.contains("another volume"), "{advice}");
    let mut disk = formatted();
    for slot in 0..2 {
        let mut block = read(&mut disk, slot, 1);
        block[100] ^= 1;
        disk.write_at(slot * BLOCK, &block, IoTag::Data).expect("write");
    }
    let (kind, advice) = kind_of(disk, [7; 16]);
    assert!(kind == ErrorKind::Corrupt || advice.contains("no fast disk"), "{kind:?}: {advice}");
    assert_eq!(Fast::identify(&mut SimDisk::new("blank", DISK)).expect("read"), None);
    assert_eq!(Fast::identify(&mut formatted()).expect("read"), Some(IDENTITY));
}

/// Writes a block with its checksum put right: at its end for a superblock, behind 48 bytes for a
/// snapshot's head.
fn write_sound(disk: &mut SimDisk, at: u64, mut block: Vec<u8>, sum_at: usize) {
    let sum = crc32c(&block[..sum_at]);
    block[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    disk.write_at(at * BLOCK, &block, IoTag::Data).expect("write");
}

#[test]
fn hostile_superblocks_and_snapshots_are_errors_or_dropped() {
    let mut prng = Prng::new(5);
    let (slot, entries) = (0..DISK / BLOCK)
        .find_map(|at| {
            let block = read(&mut formatted(), at, 1);
            let count = u64::from_le_bytes(block[40..48].try_into().expect("eight bytes"));
            (block.starts_with(b"ONODFMAP") && count > 0).then_some((at, count))
        })
        .expect("a snapshot");
    let (mut refused, mut dropped) = (0, 0);
    for round in 0..300 {
        let mut disk = formatted();
        if round % 2 == 0 {
            for at in 0..2 {
                let mut block = read(&mut disk, at, 1);
                for _ in 0..1 + prng.below(3) {
                    let place = 44 + prng.below(180) as usize;
                    block[place] = prng.next_u64() as u8;
                }
                write_sound(&mut disk, at, block, 4092);
            }
        } else {
            let mut head = read(&mut disk, slot, 1);
            let mut body = read(&mut disk, slot + 1, (entries * 32).div_ceil(BLOCK) as u32);
            for _ in 0..1 + prng.below(40) {
                let place = prng.below(entries * 32) as usize;
                body[place] = prng.next_u64() as u8;
            }
            if prng.chance(1, 4) {
                head[40..48].copy_from_slice(&prng.next_u64().to_le_bytes());
            }
            head[12..16].copy_from_slice(&crc32c(&body[..(entries * 32) as usize]).to_le_bytes());
            disk.write_at((slot + 1) * BLOCK, &body, IoTag::Data).expect("write");
            write_sound(&mut disk, slot, head, 48);
        }
        match Fast::open(Box::new(disk), [7; 16], &settings()) {
            Err(error) => {
                refused += 1;
                assert!(!error.detail.is_empty());
            }
            Ok(mut fast) => {
                for block in wrong(&mut fast) {
                    dropped += 1;
                    fast.damaged(block);
                }
                let mut big = Big { born: vec![1; 4096], checkpoint: 1 << 40 };
                (0..30).for_each(|_| step(&mut fast, &mut big, &mut prng));
            }
        }
    }
    assert!(refused > 10 && dropped > 10, "{refused} refused, {dropped} dropped");
}

#[test]
fn a_disk_that_fails_says_so_and_frees_nothing() {
    let disk = formatted();
    let mut fast = Fast::open(Box::new(disk.clone()), [7; 16], &settings()).expect("open");
    fast.forget(0, 64);
    let room =
        |fast: &Fast| fast.counters().into_iter().filter(|(name, _)| name.ends_with(".room")).map(|(_, n)| n).sum();
    let before: u64 = room(&fast);
    disk.fail_flush_after(0);
    assert_eq!(fast.snapshot().expect_err("the flush fails").kind, ErrorKind::Media);
    assert_eq!(room(&fast), before, "what was given up is not free");
    fast.snapshot().expect("the next flush works");
    assert!(room(&fast) > before);
    disk.fail_write_after(0);
    let class = Placement { target: Target::Section(0), ..Placement::default() }.to_class();
    let piece = Piece { block: 9000, born: 4, blocks: 64, object: 1, index: 0, class };
    assert_eq!(fast.write_back(&piece, &content(9000, 4, 64)).expect_err("a write fails").kind, ErrorKind::Media);
}

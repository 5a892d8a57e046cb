//! Sections lend each other the room that they do not use.

use onode_media::sim::disk::SimDisk;
use onode_object::{Acknowledge, Placement, Target};
use onode_tier::fast::{Fast, FastOptions, FastSettings, Identity, Offered, Piece, Refusal, SectionOptions};

const IDENTITY: Identity = Identity { volume: [7; 16], own: [9; 16], session: 1 };
/// Blocks of a piece.
const PIECE: u32 = 16;

fn fast() -> (SimDisk, Fast) {
    let disk = SimDisk::new("fast", 128 << 20);
    let options = FastOptions {
        ring_bytes: 256 << 10,
        stripe_bytes: 64 << 10,
        sections: vec![SectionOptions::new("small", 1, 16 << 10), SectionOptions::new("large", 3, 1 << 20)],
    };
    let fast = Fast::format(Box::new(disk.clone()), &IDENTITY, &options, &FastSettings::default()).expect("a division");
    (disk, fast)
}

fn in_section(number: u8) -> u16 {
    Placement { target: Target::Section(number), acknowledge: Acknowledge::Volume, pinned: false }.to_class()
}

/// The piece of that number, of those that lie behind `from`.
fn piece(from: u64, number: u64, class: u16) -> Piece {
    Piece { block: from + number * u64::from(PIECE), born: 5, blocks: PIECE, object: from + number, index: 0, class }
}

fn write(fast: &mut Fast, piece: &Piece) -> Offered {
    let data = vec![piece.object as u8; piece.blocks as usize * 4096];
    fast.write_back(piece, &data).expect("no fault")
}

fn count(fast: &Fast, name: &str) -> u64 {
    fast.counters().into_iter().find(|(own, _)| own == name).map(|(_, count)| count).expect("a counter")
}

/// Asks for all of a piece, which is there.
fn ask(fast: &mut Fast, piece: &Piece) {
    let mut block = piece.block;
    while block < piece.end() {
        let mut collected = [0; 4096];
        block += match fast.lookup(block, piece.born) {
            Some((_, blocks)) => u64::from(blocks),
            None if fast.read_collected(block, piece.born, &mut collected) => 1,
            None => panic!("block {block} has no copy"),
        };
    }
}

/// Of so many pieces those that have a copy.
fn copied(fast: &Fast, from: u64, pieces: u64) -> u64 {
    (0..pieces).filter(|number| fast.copied(&piece(from, *number, 0)) == u64::from(PIECE)).count() as u64
}

#[test]
fn what_nobody_placed_fills_all_sections_those_that_suit_it_first() {
    let (_, mut fast) = fast();
    assert_eq!(write(&mut fast, &piece(0, 0, 0)), Offered::Taken);
    assert!(fast.why(0).contains("section `small`"), "{}", fast.why(0));
    let large = Piece { blocks: 256, ..piece(1 << 20, 0, 0) };
    assert_eq!(write(&mut fast, &large), Offered::Taken);
    assert!(fast.why(1 << 20).contains("section `large`"), "{}", fast.why(1 << 20));
    let all = count(&fast, "section.small.blocks") + count(&fast, "section.large.blocks");
    let pieces = all * 9 / 10 / u64::from(PIECE);
    for number in 0..pieces {
        assert_eq!(write(&mut fast, &piece(1 << 21, number, 0)), Offered::Taken);
    }
    let there = copied(&fast, 1 << 21, pieces);
    assert!(there * 100 >= pieces * 99, "{there} of {pieces} pieces, which fill nine tenths of the disk");
    assert_eq!(
        count(&fast, "section.large.lent") + count(&fast, "section.small.lent"),
        count(&fast, "fast.blocks_copied")
    );
}

#[test]
fn what_was_placed_has_its_section_back_and_stays_there() {
    let (_, mut fast) = fast();
    let small = count(&fast, "section.small.blocks");
    // Others have all of it by now.
    for number in 0..3000 {
        assert_eq!(write(&mut fast, &piece(1 << 21, number, 0)), Offered::Taken);
    }
    let pieces = small * 8 / 10 / u64::from(PIECE);
    for number in 0..pieces {
        assert_eq!(write(&mut fast, &piece(1 << 24, number, in_section(0))), Offered::Taken);
    }
    assert_eq!(copied(&fast, 1 << 24, pieces), pieces, "what was placed drives out what was not");
    for number in 0..6000 {
        let offered = write(&mut fast, &piece(1 << 25, number, 0));
        assert!(matches!(offered, Offered::Taken | Offered::Refused(Refusal::Full)), "{offered:?}");
    }
    assert_eq!(copied(&fast, 1 << 24, pieces), pieces, "what was not placed drives out nothing that was");
}

#[test]
fn what_was_placed_is_known_after_a_mount_and_after_a_division() {
    let (disk, mut fast) = fast();
    let pieces = count(&fast, "section.small.blocks") / 2 / u64::from(PIECE);
    for number in 0..pieces {
        assert_eq!(write(&mut fast, &piece(1 << 24, number, in_section(0))), Offered::Taken);
    }
    fast.close().expect("no fault");
    let mut fast = Fast::open(Box::new(disk), IDENTITY.volume, &FastSettings::default()).expect("its own");
    assert_eq!(count(&fast, "section.small.lent"), 0);
    let names = [SectionOptions::new("small", 1, 16 << 10), SectionOptions::new("large", 2, 1 << 20)];
    fast.reconfigure(&names).expect("a division");
    assert_eq!((count(&fast, "section.small.lent"), count(&fast, "section.large.lent")), (0, 0));
    let names = [SectionOptions::new("other", 1, 16 << 10), SectionOptions::new("large", 2, 1 << 20)];
    fast.reconfigure(&names).expect("a division");
    assert_eq!(count(&fast, "section.other.lent"), count(&fast, "fast.blocks_copied"));
}

#[test]
fn what_was_asked_for_often_stays_after_a_mount() {
    let (disk, mut fast) = fast();
    let all = count(&fast, "section.small.blocks") + count(&fast, "section.large.blocks");
    let pieces = all * 8 / 10 / u64::from(PIECE);
    let hot = pieces / 5;
    for number in 0..pieces {
        assert_eq!(write(&mut fast, &piece(1 << 21, number, 0)), Offered::Taken);
    }
    fast.close().expect("no fault");
    for _ in 0..5 {
        (0..hot).for_each(|number| ask(&mut fast, &piece(1 << 21, number, 0)));
    }
    // Heat alone is no reason for a snapshot; anything else is.
    assert_eq!(write(&mut fast, &piece(1 << 22, 0, 0)), Offered::Taken);
    fast.close().expect("no fault");
    let mut fast = Fast::open(Box::new(disk), IDENTITY.volume, &FastSettings::default()).expect("its own");
    for number in 0..2 * pieces {
        assert_eq!(write(&mut fast, &piece(1 << 24, number, 0)), Offered::Taken);
    }
    let there = copied(&fast, 1 << 21, hot);
    assert!(there * 10 >= hot * 9, "{there} of {hot} pieces that were hot before the mount");
    let cold = copied(&fast, piece(1 << 21, hot, 0).block, pieces - hot);
    assert!(cold * 10 <= pieces - hot, "{cold} of {} pieces that were not", pieces - hot);
}

#[test]
fn a_long_read_drives_out_nothing_before_it_comes_a_third_time() {
    let (_, mut fast) = fast();
    for number in 0..3000 {
        assert_eq!(write(&mut fast, &piece(1 << 21, number, 0)), Offered::Taken);
        ask(&mut fast, &piece(1 << 21, number, 0));
    }
    let long = |fast: &mut Fast| {
        let parts =
            (0..256).map(|number| Piece { object: 3, index: number * u64::from(PIECE), ..piece(1 << 24, number, 0) });
        parts.map(|piece| fast.missed(&piece)).filter(|asked| *asked == Err(Refusal::Sequential)).count()
    };
    // The first 4 MiB of it are as good as any other read.
    assert_eq!((long(&mut fast), long(&mut fast), long(&mut fast)), (192, 192, 0));
}

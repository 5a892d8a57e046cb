//! The fast disk at work: what is copied, what is refused and why, and what a remap costs.

use onode_base::clock::ManualClock;
use onode_media::blockdev::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::{Acknowledge, Placement, Target};
use onode_tier::fast::mover::{Move, Mover};
use onode_tier::fast::{Fast, FastOptions, FastSettings, Identity, Offered, Piece, Refusal, SectionOptions};
use std::sync::Arc;

const DISK: u64 = 16 << 20;
const IDENTITY: Identity = Identity { volume: [7; 16], own: [9; 16], session: 1 };
const DAY: u64 = 86_400_000_000_000;

fn fast_with(settings: FastSettings) -> (SimDisk, Fast) {
    let disk = SimDisk::new("fast", DISK);
    let options = FastOptions {
        ring_bytes: 256 << 10,
        stripe_bytes: 64 << 10,
        sections: vec![SectionOptions::new("small", 3, 16 << 10), SectionOptions::new("large", 1, 256 << 10)],
    };
    let fast = Fast::format(Box::new(disk.clone()), &IDENTITY, &options, &settings).expect("format");
    disk.reset_counters();
    (disk, fast)
}

fn fast() -> (SimDisk, Fast) {
    fast_with(FastSettings::default())
}

fn class(target: Target, pinned: bool) -> u16 {
    Placement { target, acknowledge: Acknowledge::Volume, pinned }.to_class()
}

fn piece(block: u64, blocks: u32, class: u16) -> Piece {
    Piece { block, born: 5, blocks, object: block / 256, index: block % 256, class }
}

fn data(piece: &Piece) -> Vec<u8> {
    (piece.block..piece.end()).flat_map(|block| [block as u8; 4096]).collect()
}

fn count(fast: &Fast, name: &str) -> u64 {
    fast.counters().into_iter().find(|(own, _)| own == name).map(|(_, count)| count).expect("a counter")
}

#[test]
fn a_second_read_within_the_window_brings_a_copy() {
    let (_, mut fast) = fast();
    let piece = piece(100, 4, 0);
    assert_eq!(fast.missed(&piece), Err(Refusal::FirstHit));
    assert!(fast.why(100).contains("often enough"), "{}", fast.why(100));
    assert_eq!(fast.missed(&piece), Ok(()));
    assert_eq!(fast.promote(&piece, &data(&piece), false).expect("no fault"), Offered::Taken);
    assert_eq!(fast.missed(&piece), Err(Refusal::Held));
    let mut out = vec![0; 2 * 4096];
    assert!(fast.read_collected(101, 5, &mut out));
    assert_eq!((out[0], out[4096]), (101, 102));
    assert!(!fast.read_collected(103, 5, &mut out), "the copy ends there");
    fast.close().expect("no fault");
    let (first, blocks) = fast.lookup(101, 5).expect("a copy");
    fast.disk().read_at(first * 4096, &mut out, onode_media::tag::IoTag::Data).expect("read");
    assert_eq!((out[0], blocks), (101, 3));
    assert!(fast.why(101).contains("section `small`"), "{}", fast.why(101));
    // Born again, it is something else.
    assert_eq!(fast.lookup(101, 6), None);
    assert_eq!(fast.lookup(101, 5), None);
}

/// The request at which content comes is the owner's choice, and with 0 reads bring nothing.
#[test]
fn content_comes_at_the_request_that_was_chosen() {
    for admit in [0, 1, 3] {
        let (_, mut fast) = fast_with(FastSettings { admit, ..FastSettings::default() });
        let piece = piece(100, 4, 0);
        let refusals: Vec<_> = (0..4).map_while(|_| fast.missed(&piece).err()).collect();
        let expected = match admit {
            0 => vec![Refusal::Unasked; 4],
            _ => vec![Refusal::FirstHit; admit as usize - 1],
        };
        assert_eq!(refusals, expected, "fast-admit={admit}");
        assert_eq!(fast.why(100).contains("fast-admit=0"), admit == 0, "{}", fast.why(100));
        // What was written, or asked for by name, comes all the same.
        assert_eq!(fast.promote(&piece, &data(&piece), true).expect("no fault"), Offered::Taken);
    }
}

#[test]
fn every_refusal_has_a_reason_that_is_counted() {
    let settings = FastSettings { daily_bytes: Some(1 << 20), sequential_bytes: 512 << 10, ..FastSettings::default() };
    let (_, mut fast) = fast_with(settings);
    let bypass = piece(0, 1, class(Target::Bypass, false));
    assert_eq!(fast.missed(&bypass), Err(Refusal::Bypass));
    assert_eq!(fast.write_back(&bypass, &data(&bypass)).expect("no fault"), Offered::Refused(Refusal::Bypass));
    assert_eq!(fast.missed(&piece(0, 300, 0)), Err(Refusal::TooLarge));
    // A long sequential read, twice: while there is room to spare it may come as other content.
    let mut refused = [0, 0];
    for round in &mut refused {
        for number in 0..64 {
            let piece = Piece { object: 77, index: number * 8, ..piece(5000 + number * 8, 8, 0) };
            *round += usize::from(fast.missed(&piece) == Err(Refusal::Sequential));
        }
    }
    assert_eq!(refused, [48, 0]);
    // The day's budget; somebody who insists may go beyond it.
    let mut taken = 0;
    for number in 0..32 {
        let piece = piece(20_000 + number * 16, 16, 0);
        taken += usize::from(fast.write_back(&piece, &data(&piece)).expect("no fault").is_taken());
    }
    assert_eq!(taken, 16);
    let late = piece(30_000, 16, 0);
    assert_eq!(fast.promote(&late, &data(&late), false).expect("no fault"), Offered::Refused(Refusal::Budget));
    assert_eq!(fast.promote(&late, &data(&late), true).expect("no fault"), Offered::Taken);
    fast.set_time(DAY);
    let next = piece(31_000, 16, 0);
    assert_eq!(fast.promote(&next, &data(&next), false).expect("no fault"), Offered::Taken);
    let counted: Vec<u64> = ["bypass", "too_large", "sequential", "budget"]
        .map(|reason| count(&fast, &format!("fast.refused.{reason}")))
        .to_vec();
    assert_eq!(counted, [2, 1, 48, 17]);
}

#[test]
fn the_budget_is_that_of_a_day_of_the_clock() {
    let (_, mut fast) = fast_with(FastSettings { daily_bytes: Some(128 << 10), ..FastSettings::default() });
    let clock = Arc::new(ManualClock::at(DAY * 20_000 + 5));
    fast.set_clock(clock.clone());
    let mut write = |number: u64| {
        let piece = piece(number * 16, 16, 0);
        fast.write_back(&piece, &data(&piece)).expect("no fault")
    };
    assert_eq!([write(0), write(1), write(2)], [Offered::Taken, Offered::Taken, Offered::Refused(Refusal::Budget)]);
    clock.advance(DAY - 6);
    assert_eq!(write(3), Offered::Refused(Refusal::Budget), "the day is not over");
    clock.advance(1);
    assert_eq!(write(4), Offered::Taken);
}

#[test]
fn pinned_copies_stay_and_may_not_fill_a_section() {
    let (_, mut fast) = fast();
    let pinned = class(Target::Section(0), true);
    let mut taken = Vec::new();
    for number in 0..400 {
        let piece = piece(number * 16, 16, pinned);
        match fast.write_back(&piece, &data(&piece)).expect("no fault") {
            Offered::Taken => taken.push(piece),
            Offered::Refused(refusal) => assert_eq!(refusal, Refusal::Pinned),
        }
    }
    let blocks = count(&fast, "section.small.blocks");
    assert!(taken.len() as u64 * 16 <= blocks / 2 && taken.len() as u64 * 16 + 16 > blocks / 2);
    // Much more than fits, several times over.
    for number in 0..1000 {
        let piece = piece(100_000 + number * 16, 16, 0);
        assert_eq!(fast.write_back(&piece, &data(&piece)).expect("no fault"), Offered::Taken);
    }
    for piece in &taken {
        assert_eq!(fast.copied(piece), 16);
    }
    assert!(count(&fast, "fast.copies_evicted") > 0);
    // Let go, they go.
    taken.iter().for_each(|piece| fast.pin(piece.object, false));
    for number in 0..1000 {
        let piece = piece(200_000 + number * 16, 16, class(Target::Section(0), false));
        assert_eq!(fast.write_back(&piece, &data(&piece)).expect("no fault"), Offered::Taken);
    }
    let left: u64 = taken.iter().map(|piece| fast.copied(piece)).sum();
    assert!(left < taken.len() as u64 * 8, "{left} blocks of {}", taken.len() * 16);
    assert_eq!(count(&fast, "section.small.pinned"), 0);
}

#[test]
fn writes_are_whole_stripes_at_their_borders() {
    let (disk, mut fast) = fast();
    for number in 0..512 {
        let piece = piece(number * 7 % 512, 1, 0);
        assert_eq!(fast.write_back(&piece, &data(&piece)).expect("no fault"), Offered::Taken);
    }
    let counters = disk.counters().expect("it counts");
    assert_eq!(counters.total().bytes_written, 512 * 4096);
    assert_eq!(counters.total().writes, 512 / 16, "one write a stripe");
    // What does not fill a stripe waits, until its time is over.
    let last = piece(1000, 1, 0);
    assert_eq!(fast.write_back(&last, &data(&last)).expect("no fault"), Offered::Taken);
    assert_eq!(fast.lookup(1000, 5), None);
    fast.set_time(FastSettings::default().collect_nanoseconds + 1);
    fast.maintain(1).expect("no fault");
    assert!(fast.lookup(1000, 5).is_some());
}

#[test]
fn a_remap_copies_nothing_and_old_copies_go_on_being_read() {
    let (disk, mut fast) = fast();
    let pieces: Vec<Piece> = (0..64).map(|number| piece(number * 16, 16, class(Target::Section(0), false))).collect();
    for piece in &pieces {
        assert_eq!(fast.write_back(piece, &data(piece)).expect("no fault"), Offered::Taken);
    }
    fast.close().expect("no fault");
    disk.reset_counters();
    // The directory goes to the other section: a new class, and nothing else.
    let remapped = |piece: &Piece| Piece { class: class(Target::Section(1), false), ..*piece };
    for piece in &pieces {
        assert_eq!(fast.missed(&remapped(piece)), Err(Refusal::Held));
        assert!(fast.lookup(piece.block, 5).is_some());
    }
    let total = disk.counters().expect("it counts").total();
    assert_eq!((total.bytes_read, total.bytes_written), (0, 0));
    let new = Piece { born: 6, ..remapped(&pieces[0]) };
    fast.forget(new.block, new.blocks.into());
    assert_eq!(fast.write_back(&new, &data(&new)).expect("no fault"), Offered::Taken);
    assert!(fast.why(new.block).contains("section `large`"), "{}", fast.why(new.block));
    assert!(fast.why(pieces[1].block).contains("section `small`"));
}

#[test]
fn sections_are_divided_anew_without_copying() {
    let (disk, mut fast) = fast();
    for number in 0..100 {
        let piece = piece(number * 16, 16, class(Target::Section(number as u8 % 2), false));
        assert_eq!(fast.write_back(&piece, &data(&piece)).expect("no fault"), Offered::Taken);
    }
    fast.close().expect("no fault");
    let before = fast.copies().count();
    disk.reset_counters();
    let wanted = [
        SectionOptions::new("small", 1, 16 << 10),
        SectionOptions::new("middle", 1, 64 << 10),
        SectionOptions::new("large", 2, 256 << 10),
    ];
    fast.reconfigure(&wanted).expect("a division");
    assert_eq!(fast.section_names(), ["small", "middle", "large"]);
    let written = disk.counters().expect("it counts").total().bytes_written;
    assert!(written <= 64 << 10, "{written} bytes: a superblock and a map");
    let kept = fast.copies().count();
    assert!(kept * 10 >= before * 9, "{kept} of {before} copies are kept");
    assert!(fast.reconfigure(&[]).is_err());
    assert!(fast.reconfigure(&[SectionOptions::new("odd", 1, 24 << 10)]).is_err());
    let reopened = Fast::open(Box::new(disk.clone()), IDENTITY.volume, &FastSettings::default()).expect("open");
    assert_eq!((reopened.section_names().len(), reopened.copies().count()), (3, kept));
}

#[test]
fn a_hopeless_move_is_not_tried_again_until_something_changes() {
    let mut mover = Mover::default();
    assert_eq!((mover.push(1), mover.push(2), mover.push(1)), (Ok(()), Ok(()), Ok(())));
    let first = mover.pop(0).expect("one waits");
    assert_eq!(first, Move { object: 1, index: 0 });
    mover.refused(first, Refusal::Full, 0);
    assert_eq!(mover.push(1), Err(Refusal::Full));
    // A budget that is used up stops the list until the next day, and nothing is lost.
    let second = mover.pop(0).expect("one waits");
    mover.refused(second, Refusal::Budget, 0);
    assert_eq!((mover.pop(0), mover.pop(1)), (None, Some(second)));
    mover.goes_on(Move { object: 2, index: 64 });
    mover.changed();
    assert_eq!(mover.push(1), Ok(()));
    assert_eq!(mover.pop(1), Some(Move { object: 2, index: 64 }));
    let accepted = (10..10_000).filter(|object| mover.push(*object).is_ok()).count();
    assert!(accepted < 5000 && mover.len() < 5000, "the list is bounded");
    mover.forget(1);
    assert_ne!(mover.pop(1).map(|next| next.object), Some(1));
}

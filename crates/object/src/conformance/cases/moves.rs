//! Content that moves between an object and its versions.

use super::versions::version;
use crate::conformance::subject::{Subject, key, pattern};
use crate::conformance::{Maker, suite};
use crate::error::ErrorKind;
use crate::hints::{Hints, ObjectKind};
use crate::id::ObjectId;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::Prng;

suite! { "moves":
    Bare a_device_that_moves_nothing_refuses,
    Moves all_content_changes_its_object,
    Moves a_part_changes_its_object,
    Moves holes_move_too,
    Moves the_end_of_the_object_is_the_end,
    Moves an_empty_range_moves_nothing,
    Moves ranges_of_any_kind,
    Moves several_in_one_transaction,
    Moves writes_before_and_after,
    Moves what_is_removed_or_cut_later,
    Moves nothing_else_changes,
    Moves allocated_bytes_follow,
    Moves what_does_not_fit_is_refused,
    Moves content_of_many_pieces,
}

/// An object and two versions of it on a device, and what they hold.
struct Family {
    it: Subject,
    ids: [ObjectId; 3],
    bytes: [Vec<u8>; 3],
    unit: usize,
}

impl Family {
    fn new(make: Maker<'_>, bytes: [Vec<u8>; 3]) -> Self {
        let it = Subject::new(make);
        let object = it.object_of(&bytes[0]);
        let ids = [object, version(object, 3), version(object, 4)];
        for (id, bytes) in ids.iter().zip(&bytes).skip(1) {
            it.commit(|t| t.create(*id, Hints::default()).write(*id, 0, bytes.clone()));
        }
        let unit = it.device().move_unit().map_or(1, |unit| unit as usize);
        Self { it, ids, bytes, unit }
    }

    /// `range` in units that the device moves.
    fn units(&self, range: Range<usize>) -> Range<usize> {
        range.start / self.unit * self.unit..range.end.next_multiple_of(self.unit)
    }

    /// Notes that content moves.
    fn note(&mut self, from: usize, range: &Range<usize>, to: usize) {
        let end = range.end.min(self.bytes[from].len());
        if range.start < end {
            let moved = self.bytes[from][range.start..end].to_vec();
            self.bytes[from][range.start..end].fill(0);
            let length = self.bytes[to].len().max(end);
            self.bytes[to].resize(length, 0);
            self.bytes[to][range.start..end].copy_from_slice(&moved);
        }
    }

    /// Moves content, here and on the device.
    #[track_caller]
    fn give(&mut self, from: usize, range: Range<usize>, to: usize) {
        self.note(from, &range, to);
        let (object, other) = (self.ids[from], self.ids[to]);
        self.it.commit(|t| t.move_content(object, range.start as u64..range.end as u64, other));
    }

    #[track_caller]
    fn compare(&self) {
        for (id, bytes) in self.ids.iter().zip(&self.bytes) {
            self.it.expect(*id, bytes);
        }
    }

    /// Compares, closes, and compares again.
    #[track_caller]
    fn expect(&mut self) {
        self.compare();
        self.it.harness.reopen();
        self.compare();
    }
}

fn a_device_that_moves_nothing_refuses(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    let other = version(object, 0);
    it.commit(|t| t.create(other, Hints::default()));
    if it.device().move_unit().is_none() {
        it.refuse(ErrorKind::Invalid, |t| t.write(object, 0, vec![1]).move_content(object, 0..3, other));
        it.refuse(ErrorKind::Invalid, |t| t.move_content(object, 0..0, other));
    }
    it.expect(object, b"abc");
}

fn all_content_changes_its_object(make: Maker<'_>) {
    for length in [1, 300, 4_096, 50_000] {
        let mut family = Family::new(make, [pattern(1, length), vec![], vec![]]);
        family.give(0, 0..usize::MAX / 2 + 1, 1);
        assert_eq!(family.bytes[1], pattern(1, length));
        family.expect();
        family.give(1, family.units(0..length), 2);
        family.expect();
        family.give(2, 0..family.units(0..length).end, 0);
        assert_eq!(family.bytes[0], pattern(1, length));
        family.expect();
    }
}

fn a_part_changes_its_object(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 60_000), pattern(2, 60_000), pattern(3, 20_000)]);
    for range in [0..4_096, 8_192..16_384, 10_000..12_345, 19_000..33_000, 59_000..60_000] {
        family.give(0, family.units(range.clone()), 1);
        family.compare();
        family.give(1, family.units(range.start + 500..range.end + 500), 2);
        family.expect();
    }
}

fn holes_move_too(make: Maker<'_>) {
    let mut family = Family::new(make, [vec![], pattern(2, 300_000), vec![]]);
    family.it.commit(|t| t.write(family.ids[0], 100_000, pattern(1, 9_000)).truncate(family.ids[0], 250_000));
    family.bytes[0].resize(250_000, 0);
    family.bytes[0][100_000..109_000].copy_from_slice(&pattern(1, 9_000));
    family.expect();
    family.give(0, family.units(50_000..200_000), 1);
    family.expect();
    let coarse = 2 * family.it.harness.extent_bytes();
    let extents = family.it.device().extents(family.ids[1], 0, 99).unwrap();
    let is_hole = |at: u64| extents.iter().all(|(start, length)| at < *start || at >= start + length);
    assert!(coarse > 40_000 || is_hole(75_000) && is_hole(150_000), "{extents:?}");
    // Nothing but a hole, into a larger object and into an empty one.
    family.give(0, family.units(0..40_000), 1);
    family.give(0, family.units(0..250_000), 2);
    family.expect();
}

fn the_end_of_the_object_is_the_end(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 10_001), pattern(2, 30_000), vec![]]);
    family.give(0, family.units(8_000..20_000), 1);
    family.expect();
    family.give(1, family.units(29_999..900_000), 2);
    assert_eq!(family.bytes[2].len(), 30_000);
    family.expect();
    family.give(0, family.units(4_000..9_000).start..10_001, 2);
    family.expect();
}

fn an_empty_range_moves_nothing(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 5_000), pattern(2, 900), vec![]]);
    let far = family.units(6_000..70_000);
    family.give(0, far.clone(), 1);
    family.give(0, 0..0, 2);
    family.give(2, 0..far.end, 1);
    assert_eq!((family.bytes[1].len(), family.bytes[2].len()), (900, 0));
    family.expect();
}

fn ranges_of_any_kind(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 70_000), vec![], pattern(3, 30_000)]);
    let mut prng = Prng::new(77);
    for round in 0..150 {
        let from = prng.below(3) as usize;
        let to = (from + 1 + prng.below(2) as usize) % 3;
        let start = prng.below(75_000) as usize;
        let length = if prng.chance(1, 4) { prng.below(40_000) } else { prng.below(3_000) } as usize;
        family.give(from, family.units(start..start + length), to);
        if prng.chance(1, 2) {
            let (one, offset) = (prng.below(3) as usize, prng.below(70_000) as usize);
            let data = pattern(round, 1 + prng.below(5_000) as usize);
            let end = offset + data.len();
            let longer = family.bytes[one].len().max(end);
            family.bytes[one].resize(longer, 0);
            family.bytes[one][offset..end].copy_from_slice(&data);
            family.it.commit(|t| t.write(family.ids[one], offset as u64, data));
        }
        match round % 30 {
            29 => family.expect(),
            9 => _ = family.it.device().maintain(8).expect("maintenance works"),
            _ => {}
        }
    }
    family.expect();
}

fn several_in_one_transaction(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 40_000), pattern(2, 40_000), vec![]]);
    let steps = [(0, 0..20_000, 1), (1, 10_000..30_000, 2), (2, 12_000..14_000, 0), (0, 12_000..13_000, 1)];
    let steps = steps.map(|(from, range, to)| (from, family.units(range), to));
    for (from, range, to) in &steps {
        family.note(*from, range, *to);
    }
    let ids = family.ids;
    family.it.commit(|t| {
        steps
            .iter()
            .fold(t, |t, (from, range, to)| t.move_content(ids[*from], range.start as u64..range.end as u64, ids[*to]))
    });
    family.expect();
    // An object that is made for it.
    let new = version(ids[0], 9);
    let whole = family.bytes[1].clone();
    family.it.commit(|t| t.create(new, Hints::default()).move_content(ids[1], 0..u64::MAX, new).remove(ids[1]));
    family.it.expect_missing(ids[1]);
    family.it.expect(new, &whole);
    family.it.harness.reopen();
    family.it.expect(new, &whole);
    family.it.expect(ids[0], &family.bytes[0]);
}

fn writes_before_and_after(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 30_000), vec![], vec![]]);
    let range = family.units(4_000..12_000);
    let (object, first, second) = (family.ids[0], family.ids[1], family.ids[2]);
    let moved = range.start as u64..range.end as u64;
    // What is overwritten is kept.
    family.note(0, &range, 1);
    family.bytes[0][5_000..9_000].copy_from_slice(&pattern(8, 4_000));
    family.it.commit(|t| t.move_content(object, moved.clone(), first).write(object, 5_000, pattern(8, 4_000)));
    family.expect();
    // What was just written moves.
    family.bytes[0][7_000..15_000].copy_from_slice(&pattern(9, 8_000));
    family.note(0, &range, 2);
    family.it.commit(|t| t.write(object, 7_000, pattern(9, 8_000)).move_content(object, moved.clone(), second));
    family.expect();
    // Into what was just written, and over that again.
    family.bytes[0][..20_000].copy_from_slice(&pattern(10, 20_000));
    family.note(1, &range, 0);
    family.bytes[0][6_000..6_100].copy_from_slice(&pattern(11, 100));
    family.it.commit(|t| {
        t.write(object, 0, pattern(10, 20_000)).move_content(first, moved.clone(), object);
        t.write(object, 6_000, pattern(11, 100))
    });
    family.expect();
}

fn what_is_removed_or_cut_later(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 30_000), pattern(2, 10_000), vec![]]);
    family.give(0, family.units(0..20_000), 1);
    family.give(1, family.units(8_000..16_000), 2);
    let ids = family.ids;
    family.it.commit(|t| t.truncate(ids[1], 9_000).punch(ids[2], 8_500, 1_000).truncate(ids[0], 25_000));
    family.bytes[1].truncate(9_000);
    family.bytes[2][8_500..9_500].fill(0);
    family.bytes[0].truncate(25_000);
    family.expect();
    family.it.commit(|t| t.remove(ids[0]));
    for _ in 0..2 {
        family.it.expect_missing(ids[0]);
        family.it.expect(ids[1], &family.bytes[1]);
        family.it.expect(ids[2], &family.bytes[2]);
        family.it.harness.reopen();
    }
    let range = family.units(0..9_000);
    family.note(1, &range, 2);
    family.it.commit(|t| t.move_content(ids[1], 0..range.end as u64, ids[2]).remove(ids[1]));
    for _ in 0..2 {
        family.it.expect(ids[2], &family.bytes[2]);
        assert_eq!(family.it.device().list(ObjectId(0), 9), Ok(vec![ids[2]]));
        family.it.harness.reopen();
    }
}

fn nothing_else_changes(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 9_000), pattern(2, 500), vec![]]);
    let (object, other) = (family.ids[0], family.ids[1]);
    let hints = |kind| Hints { kind, expected_size: 77, ..Hints::default() };
    family.it.commit(|t| {
        t.set_attribute(object, key(1), vec![1; 30]).set_hints(object, hints(ObjectKind::Data));
        t.set_attribute(other, key(2), vec![2; 40]).set_hints(other, hints(ObjectKind::Memory));
        t.set_access_time(object, 11).set_access_time(other, 12)
    });
    family.give(0, 0..family.units(0..9_000).end, 1);
    for _ in 0..2 {
        family.compare();
        assert_eq!(family.it.attributes(object, 9), [(key(1), vec![1; 30])]);
        assert_eq!(family.it.attributes(other, 9), [(key(2), vec![2; 40])]);
        let stats = [object, other].map(|one| family.it.device().stat(one).unwrap());
        assert_eq!(stats.map(|stat| stat.hints.kind), [ObjectKind::Data, ObjectKind::Memory]);
        assert_eq!(stats.map(|stat| (stat.hints.expected_size, stat.accessed)), [(77, 11), (77, 12)]);
        family.it.harness.reopen();
    }
}

fn allocated_bytes_follow(make: Maker<'_>) {
    let mut family = Family::new(make, [pattern(1, 400_000), vec![], vec![]]);
    let allocated = |family: &Family| family.ids.map(|id| family.it.device().stat(id).unwrap().allocated);
    let before = allocated(&family);
    family.give(0, 0..family.units(0..400_000).end, 1);
    let after = allocated(&family);
    assert_eq!((after[0], after[1]), (before[1], before[0]));
    family.give(1, family.units(0..200_000), 2);
    let parts = allocated(&family);
    let slack = 2 * family.it.harness.extent_bytes();
    assert!(parts[1] + parts[2] <= before[0] + slack && parts[1].abs_diff(parts[2]) <= slack, "{before:?} {parts:?}");
    family.expect();
    assert_eq!(allocated(&family), parts);
    let ids = family.ids;
    family.it.commit(|t| t.truncate(ids[1], 0).truncate(ids[2], 0));
    assert_eq!(allocated(&family), [before[1]; 3]);
}

fn what_does_not_fit_is_refused(make: Maker<'_>) {
    let family = Family::new(make, [pattern(1, 9_000), pattern(2, 500), vec![]]);
    let (it, [object, first, second]) = (&family.it, family.ids);
    let stranger = it.object_of(b"abc");
    let other = version(stranger, 3);
    it.commit(|t| t.create(other, Hints::default()));
    it.refuse(ErrorKind::Invalid, |t| t.move_content(object, 0..9_000, object));
    it.refuse(ErrorKind::Invalid, |t| t.write(object, 0, vec![1; 99]).move_content(object, 0..9_000, stranger));
    it.refuse(ErrorKind::Invalid, |t| t.move_content(object, 0..9_000, other));
    it.refuse(ErrorKind::Invalid, |t| t.move_content(first, 0..500, other));
    it.refuse(ErrorKind::NotFound, |t| t.move_content(object, 0..9_000, version(object, 5)));
    it.refuse(ErrorKind::NotFound, |t| t.move_content(version(object, 5), 0..9_000, object));
    it.refuse(ErrorKind::NotFound, |t| {
        t.move_content(object, 0..9_000, first).remove(second).move_content(first, 0..9_000, second)
    });
    if family.unit > 1 {
        it.refuse(ErrorKind::Invalid, |t| t.move_content(object, 1..9_000, first));
    }
    family.compare();
}

fn content_of_many_pieces(make: Maker<'_>) {
    let mut family = Family::new(make, [vec![0; 200_000], vec![], vec![]]);
    let object = family.ids[0];
    for (round, start) in (0..200).map(|round| (round, (round * 71 % 200) * 1_000)) {
        let bytes = pattern(round as u64, 300);
        family.bytes[0][start..start + 300].copy_from_slice(&bytes);
        family.it.commit(|t| t.write(object, start as u64, bytes));
    }
    // A device may refuse to move them at once, and must not refuse parts.
    let mut ranges = Vec::from([family.units(0..200_000)]);
    while let Some(range) = ranges.pop() {
        let moved = range.start as u64..range.end as u64;
        match family.it.try_commit(|t| t.move_content(object, moved, family.ids[1])) {
            Ok(()) => family.note(0, &range, 1),
            Err(error) => {
                assert!(error.kind == ErrorKind::NoSpace && range.len() > 8_000, "{error} for {range:?}");
                let half = family.units(0..range.start.midpoint(range.end)).end;
                ranges.extend([range.start..half, half..range.end]);
            }
        }
    }
    family.expect();
}

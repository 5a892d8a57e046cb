//! Bytes of objects: writes, sizes, holes and extents.

use crate::conformance::subject::{Subject, pattern};
use crate::conformance::{Maker, suite};
use crate::error::ErrorKind;
use crate::id::ObjectId;
use crate::transaction::Transaction;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

const MAX: u64 = Transaction::MAX_OBJECT_BYTES;

suite! { "content":
    Nothing write_grows_the_object,
    Nothing write_of_nothing_changes_nothing,
    Nothing write_past_the_end_leaves_a_hole,
    Nothing write_inside_keeps_the_rest,
    Nothing overlapping_writes_of_one_transaction_apply_in_order,
    Nothing unaligned_overwrites_everywhere,
    Nothing append_byte_by_byte,
    Nothing write_refuses_ends_past_the_largest_size,
    Nothing write_at_the_very_end_of_the_range,
    Nothing truncate_down_and_up_reads_zeros,
    Nothing truncate_in_every_position_of_a_page,
    Nothing truncate_up_makes_a_hole,
    Nothing truncate_refuses_sizes_past_the_largest,
    Nothing truncate_to_the_largest_size,
    Nothing punch_zeroes_exactly_its_range,
    Nothing punch_past_the_end_keeps_the_size,
    Nothing punch_everything_keeps_the_size,
    Nothing punch_of_nothing_changes_nothing,
    Nothing punch_then_write_into_the_hole,
    Nothing punch_with_overflowing_end,
    Nothing read_at_and_past_the_end,
    Nothing read_into_an_empty_buffer,
    Nothing extents_cover_all_data,
    Nothing extents_show_large_holes,
    Nothing extents_respect_offset_and_limit,
    Nothing extents_end_at_the_size,
    Nothing holes_occupy_next_to_nothing,
}

fn write_grows_the_object(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let bytes = pattern(1, 10_000);
    for end in [1, 511, 512, 513, 4095, 4096, 4097, 10_000] {
        it.commit(|t| t.write(object, 0, bytes[..end].to_vec()));
        it.expect(object, &bytes[..end]);
    }
}

fn write_of_nothing_changes_nothing(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.write(object, 0, vec![]).write(object, 3, vec![]).write(object, 1 << 40, vec![]));
    it.expect(object, b"abc");
}

fn write_past_the_end_leaves_a_hole(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.write(object, 9_001, b"xyz".to_vec()));
    let mut expected = vec![0; 9_004];
    expected[..3].copy_from_slice(b"abc");
    expected[9_001..].copy_from_slice(b"xyz");
    it.expect(object, &expected);
}

fn write_inside_keeps_the_rest(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(2, 20_000);
    let object = it.object_of(&expected);
    it.commit(|t| t.write(object, 4_090, vec![9; 12]));
    expected[4_090..4_102].fill(9);
    it.expect(object, &expected);
}

fn overlapping_writes_of_one_transaction_apply_in_order(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    it.commit(|t| {
        t.write(object, 0, vec![1; 100]).write(object, 50, vec![2; 100]).truncate(object, 120);
        t.write(object, 90, vec![3; 10]).punch(object, 95, 10).write(object, 130, vec![4; 2])
    });
    let mut expected = vec![1; 50];
    expected.extend([2; 40]);
    expected.extend([3; 5]);
    expected.extend([0; 10]);
    expected.extend([2; 15]);
    expected.extend([0; 10]);
    expected.extend([4; 2]);
    it.expect(object, &expected);
}

fn unaligned_overwrites_everywhere(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(3, 70_000);
    let object = it.object_of(&expected);
    let mut prng = Prng::new(3);
    for round in 0..200 {
        let offset = prng.below(70_000) as usize;
        let bytes = pattern(round, prng.below(9_000) as usize);
        let end = offset + bytes.len();
        expected.resize(expected.len().max(end), 0);
        expected[offset..end].copy_from_slice(&bytes);
        it.commit(|t| t.write(object, offset as u64, bytes));
    }
    it.expect(object, &expected);
}

fn append_byte_by_byte(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let bytes = pattern(4, 1_500);
    for (offset, byte) in bytes.iter().enumerate() {
        it.commit(|t| t.write(object, offset as u64, vec![*byte]));
    }
    it.expect(object, &bytes);
}

fn write_refuses_ends_past_the_largest_size(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    for offset in [MAX - 1, MAX, 1 << 63, u64::MAX - 1, u64::MAX] {
        it.refuse(ErrorKind::Invalid, |t| t.write(object, offset, vec![1, 2]));
    }
}

fn write_at_the_very_end_of_the_range(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.write(object, MAX - 5, b"12345".to_vec()));
    assert_eq!(it.size(object), MAX);
    assert_eq!(it.read(object, MAX - 7, 100), b"\0\x0012345");
    assert_eq!(it.read(object, 0, 5), b"abc\0\0");
    it.commit(|t| t.truncate(object, 3));
    it.expect(object, b"abc");
}

fn truncate_down_and_up_reads_zeros(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(5, 30_000);
    let object = it.object_of(&expected);
    for (down, up) in [(25_000, 25_100), (12_289, 40_000), (4_096, 4_097), (1, 9_000), (0, 5_000)] {
        it.commit(|t| t.truncate(object, down as u64));
        expected.truncate(down);
        it.expect(object, &expected);
        it.commit(|t| t.truncate(object, up as u64));
        expected.resize(up, 0);
        it.expect(object, &expected);
    }
}

fn truncate_in_every_position_of_a_page(make: Maker<'_>) {
    let it = Subject::new(make);
    let bytes = pattern(6, 9_000);
    for size in (8_100..8_300).chain([0, 1, 511, 512, 513, 2_047, 2_048, 2_049, 4_095, 4_096, 4_097]) {
        let object = it.object_of(&bytes);
        it.commit(|t| t.truncate(object, size as u64).truncate(object, 9_000));
        let mut expected = bytes[..size].to_vec();
        expected.resize(9_000, 0);
        it.expect(object, &expected);
        it.commit(|t| t.remove(object));
    }
}

fn truncate_up_makes_a_hole(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.truncate(object, 1 << 40));
    assert_eq!(it.size(object), 1 << 40);
    assert_eq!(it.read(object, 0, 6), b"abc\0\0\0");
    assert_eq!(it.read(object, (1 << 40) - 4, 100), vec![0; 4]);
}

fn truncate_refuses_sizes_past_the_largest(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    for size in [MAX + 1, u64::MAX] {
        it.refuse(ErrorKind::Invalid, |t| t.truncate(object, size));
    }
}

fn truncate_to_the_largest_size(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abc");
    it.commit(|t| t.truncate(object, MAX));
    assert_eq!(it.read(object, MAX - 3, 10), vec![0; 3]);
    it.refuse(ErrorKind::Invalid, |t| t.write(object, MAX, vec![1]));
}

fn punch_zeroes_exactly_its_range(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(7, 50_000);
    let object = it.object_of(&expected);
    for (start, length) in [(0, 1), (4_095, 2), (8_192, 4_096), (16_383, 4_098), (30_000, 15_001), (49_999, 1)] {
        it.commit(|t| t.punch(object, start as u64, length as u64));
        expected[start..start + length].fill(0);
        it.expect(object, &expected);
    }
}

fn punch_past_the_end_keeps_the_size(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(8, 10_000);
    let object = it.object_of(&expected);
    it.commit(|t| t.punch(object, 9_000, 50_000).punch(object, 20_000, 10));
    expected[9_000..].fill(0);
    it.expect(object, &expected);
    it.commit(|t| t.truncate(object, 30_000));
    expected.resize(30_000, 0);
    it.expect(object, &expected);
}

fn punch_everything_keeps_the_size(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(&pattern(9, 100_000));
    it.commit(|t| t.punch(object, 0, 100_000));
    it.expect(object, &vec![0; 100_000]);
    assert_eq!(data_bytes(&it, object), 0);
}

fn punch_of_nothing_changes_nothing(make: Maker<'_>) {
    let it = Subject::new(make);
    let bytes = pattern(10, 5_000);
    let object = it.object_of(&bytes);
    it.commit(|t| t.punch(object, 100, 0).punch(object, 5_000, 1).punch(object, u64::MAX, 0));
    it.expect(object, &bytes);
}

fn punch_then_write_into_the_hole(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(11, 40_000);
    let object = it.object_of(&expected);
    it.commit(|t| t.punch(object, 1_000, 30_000));
    it.commit(|t| t.write(object, 15_001, vec![5; 3]));
    expected[1_000..31_000].fill(0);
    expected[15_001..15_004].fill(5);
    it.expect(object, &expected);
}

fn punch_with_overflowing_end(make: Maker<'_>) {
    let it = Subject::new(make);
    let mut expected = pattern(12, 10_000);
    let object = it.object_of(&expected);
    it.commit(|t| t.punch(object, u64::MAX, u64::MAX).punch(object, 6_000, u64::MAX));
    expected[6_000..].fill(0);
    it.expect(object, &expected);
}

fn read_at_and_past_the_end(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abcdef");
    assert_eq!(it.read(object, 4, 10), b"ef");
    for offset in [6, 7, 4_096, MAX, u64::MAX] {
        assert_eq!(it.read(object, offset, 10), b"", "offset {offset}");
    }
}

fn read_into_an_empty_buffer(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(b"abcdef");
    for offset in [0, 3, 6, u64::MAX] {
        assert_eq!(it.read(object, offset, 0), b"");
    }
}

/// All extents, checked for order, and fetched two at a time.
fn extents(it: &Subject, object: ObjectId) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    loop {
        let offset = all.last().map_or(0, |(start, length)| start + length);
        let some = it.device().extents(object, offset, 2).unwrap();
        assert!(some.len() <= 2, "more extents than asked for");
        if some.is_empty() {
            return all;
        }
        for (start, length) in some {
            let end = all.last().map_or(0, |(start, length)| start + length);
            assert!(start >= end && length > 0, "extent {start}+{length} after {end}");
            all.push((start, length));
        }
    }
}

fn data_bytes(it: &Subject, object: ObjectId) -> u64 {
    extents(it, object).iter().map(|(_, length)| length).sum()
}

fn extents_cover_all_data(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let mut prng = Prng::new(13);
    let mut written = Vec::new();
    for _ in 0..60 {
        let (offset, length) = (prng.below(3 << 20), 1 + prng.below(5_000));
        it.commit(|t| t.write(object, offset, vec![1; length as usize]));
        written.push((offset, length));
    }
    let extents = extents(&it, object);
    for (offset, length) in written {
        let mut at = offset;
        for (start, size) in &extents {
            if *start <= at && at < start + size {
                at = start + size;
            }
        }
        assert!(at >= offset + length, "{offset}+{length} is not covered: {extents:?}");
    }
}

fn extents_show_large_holes(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object();
    let gap = it.harness.extent_bytes() * 8;
    for number in 0..4 {
        it.commit(|t| t.write(object, number * gap, pattern(number, 5_000)));
    }
    let slack = it.harness.extent_bytes() * 2;
    assert!(data_bytes(&it, object) <= 4 * (5_000 + slack), "{:?}", extents(&it, object));
    for number in 0..3 {
        let next = it.device().extents(object, number * gap + 5_000 + slack, 1).unwrap();
        assert!(next[0].0 + slack > (number + 1) * gap, "hole after {} is not shown: {next:?}", number * gap);
    }
}

fn extents_respect_offset_and_limit(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(&pattern(14, 100_000));
    assert_eq!(it.device().extents(object, 0, 0), Ok(vec![]));
    let first = it.device().extents(object, 50_001, 1).unwrap();
    assert_eq!((first.len(), first[0].0), (1, 50_001), "an extent before the offset is cut: {first:?}");
    for offset in [100_000, 1 << 40, u64::MAX] {
        assert_eq!(it.device().extents(object, offset, 5), Ok(vec![]));
    }
}

fn extents_end_at_the_size(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(&pattern(15, 5_001));
    assert_eq!(data_bytes(&it, object), 5_001);
    it.commit(|t| t.truncate(object, 4_500));
    assert_eq!(data_bytes(&it, object), 4_500);
}

fn holes_occupy_next_to_nothing(make: Maker<'_>) {
    let it = Subject::new(make);
    let object = it.object_of(&pattern(16, 200_000));
    it.device().sync(crate::SyncScope::All).unwrap();
    let full = it.device().stat(object).unwrap().allocated;
    assert!(full >= 200_000, "200,000 bytes that do not compress occupy {full}");
    it.commit(|t| t.punch(object, 0, 200_000).truncate(object, 1 << 50));
    it.device().sync(crate::SyncScope::All).unwrap();
    let hollow = it.device().stat(object).unwrap().allocated;
    assert!(hollow <= 64 << 10, "a hole occupies {hollow}");
}

//! Buckets: what goes in comes out, whatever the records are, and no bytes harm a decoder.

mod common;

use common::{Wildness, records, round_trip, survive};
use onode_base::Prng;
use onode_codec::{BUCKET_BYTES_MAX, EncodeError, Head, Key, Record, Run, bucket_bytes, decode_bucket, encode_bucket};
use onode_codec::{DecodeError, find_in_bucket, pack_buckets, peek_bucket};

fn file(object: u64, at: u64, pages: u32) -> Record {
    let runs = if pages == 0 { Vec::new() } else { vec![Run { page: 0, pages, at }] };
    let home = Some(at + u64::from(pages));
    Record { object, page: 0, head: Some(Head { parent: 1, home, ..Head::default() }), runs }
}

#[test]
fn any_records_round_trip() {
    let mut random = Prng::new(1);
    let mut buckets = Vec::new();
    for page_bits in [10, 16, 19, 32, 48, 64] {
        for scattered in [0, 5, 50, 100] {
            for heads in [false, true] {
                let records = records(&mut random, 150, Wildness { page_bits, scattered, heads });
                buckets.extend(round_trip(&records, BUCKET_BYTES_MAX).unwrap());
                buckets.extend(round_trip(&records, 300).unwrap());
            }
        }
    }
    let golomb = buckets.iter().filter(|bucket| bucket[6] == 1).count();
    assert!(golomb > 100 && buckets.len() - golomb > 80, "{golomb} of {} buckets are Exp-Golomb", buckets.len());
}

#[test]
fn files_written_in_one_go_cost_almost_nothing() {
    let files: Vec<Record> = (0..200).map(|i| file(300 + i, 1000 + 5 * i, 4)).collect();
    let bytes = bucket_bytes(&files).unwrap();
    assert!(bytes < 200, "{bytes} bytes for 200 files");
    assert_eq!(encode_bucket(&files, 0).unwrap().len(), bytes);
}

#[test]
fn pages_without_order_take_their_own_bits() {
    let mut random = Prng::new(5);
    let runs = (0..200).map(|page| Run { page, pages: 1, at: random.below(1 << 16) & !1 | (page & 1) << 15 }).collect();
    let record = Record { object: 9, page: 0, head: None, runs };
    assert!(bucket_bytes(core::slice::from_ref(&record)).unwrap() <= 200 * 2 + 32);
    round_trip(&[record], BUCKET_BYTES_MAX).unwrap();
}

#[test]
fn a_piece_too_large_for_a_bucket_is_cut() {
    let mut random = Prng::new(6);
    let runs = (0..256).map(|page| Run { page, pages: 1, at: random.next_u64() >> 1 }).collect();
    let record = Record { object: 9, page: 0, head: Some(Head::default()), runs };
    assert!(
        matches!(encode_bucket(core::slice::from_ref(&record), 0), Err(EncodeError::TooLarge { bytes }) if bytes > 2000)
    );
    assert!(round_trip(&[record], BUCKET_BYTES_MAX).unwrap().len() >= 4);
}

#[test]
fn an_overflowing_bucket_becomes_two_even_ones_and_they_merge_again() {
    let mut random = Prng::new(8);
    let mut records = Vec::new();
    while bucket_bytes(&records).is_ok_and(|bytes| bytes <= BUCKET_BYTES_MAX) || records.is_empty() {
        records.push(file(5 + records.len() as u64, random.below(1 << 16), 3));
    }
    let two = pack_buckets(records.clone(), BUCKET_BYTES_MAX).unwrap();
    assert_eq!(two.len(), 2);
    let sizes: Vec<usize> = two.iter().map(|bucket| bucket_bytes(bucket).unwrap()).collect();
    assert!(sizes[0].abs_diff(sizes[1]) < 40, "{sizes:?}");
    records.truncate(records.len() - 2);
    let one = pack_buckets(records, BUCKET_BYTES_MAX).unwrap();
    assert_eq!(one.len(), 1);
}

#[test]
fn what_is_no_bucket_is_refused() {
    let good = encode_bucket(&[file(5, 100, 3), file(6, 200, 9)], 77).unwrap();
    for cut in 0..good.len() {
        assert_eq!(decode_bucket(&good[..cut]), Err(DecodeError::Truncated));
    }
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_bucket(&bad).is_err(), "bit {bit}");
        assert!(peek_bucket(&bad).is_err(), "bit {bit}");
    }
    let mut longer = good.clone();
    longer.extend([0xa5; 100]);
    assert_eq!(decode_bucket(&longer), decode_bucket(&good));
    assert_eq!(encode_bucket(&[file(5, 1, 1)], 1 << 48), Err(EncodeError::Generation));
    assert_eq!(encode_bucket(&[], 0), Err(EncodeError::Unsound));
    assert_eq!(encode_bucket(&[file(6, 1, 1), file(5, 9, 1)], 0), Err(EncodeError::Unsound));
    let overlapping = Record { object: 5, page: 2, ..Record::default() };
    assert_eq!(encode_bucket(&[file(5, 1, 3), overlapping], 0), Err(EncodeError::Unsound));
    assert_eq!(find_in_bucket(&good, Key { object: 7, page: 0 }), Ok(None));
    assert_eq!(find_in_bucket(&good, Key { object: 4, page: 0 }), Ok(None));
}

#[test]
fn hostile_bytes_are_survived() {
    let mut random = Prng::new(3);
    let mut seeds = Vec::new();
    for (page_bits, scattered, heads) in [(16, 10, false), (19, 90, false), (64, 30, true)] {
        let records = records(&mut random, 60, Wildness { page_bits, scattered, heads });
        seeds.extend(round_trip(&records, BUCKET_BYTES_MAX).unwrap());
    }
    for round in 0..20_000 {
        let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
        for _ in 0..=random.below(4) {
            let at = 4 + random.below(bytes.len() as u64 - 4) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        if round % 4 == 0 {
            random.fill(&mut bytes[14..]);
        }
        if round % 7 == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        survive(&bytes);
    }
}

/// Buckets of the first version of the format, which has to be read for good.
#[test]
fn buckets_of_the_first_version_are_read() {
    let mut random = Prng::new(77);
    let ordered: Vec<Record> = (0..40).map(|i| file(300 + i, 1000 + 5 * i, 4)).collect();
    let scattered: Vec<Record> = (0..12).map(|i| file(90 + 900 * i, random.below(1 << 40), i as u32)).collect();
    for (records, golden) in [(ordered, GOLDEN_RANS), (scattered, GOLDEN_GOLOMB)] {
        let bytes: Vec<u8> =
            (0..golden.len()).step_by(2).map(|at| u8::from_str_radix(&golden[at..at + 2], 16).unwrap()).collect();
        assert_eq!(decode_bucket(&bytes).as_ref(), Ok(&records));
        let hex: String = encode_bucket(&records, 5).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden);
    }
}

const GOLDEN_RANS: &str = "5f62447b2b000127050000000000ac02000b1084000002f093f4471f000000000000000000000000000000";
const GOLDEN_GOLOMB: &str = "a893b9837c00010b0500000000005a002830810004000250440000d29fc724bf0e2ec2f85382bb317420c2f8eb54599c\
    2929c2f8cbab1b4feb2dc2f81f8347dbf38208e3f7e1da686529228cdffc2d632e2289307e193692ebd326c2f8b9fcc5\
    9d1aa308e3d7d5f4cf44ab228cff354e4ab03e8b307e3b43829e900e";

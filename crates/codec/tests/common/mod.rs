//! Records for tests, and what has to hold for any bytes; the fuzz target uses it too.
#![allow(dead_code, reason = "every test takes what it needs")]

use onode_base::Prng;
use onode_base::checksum::crc32c;
use onode_codec::exact::{self, Entry, Item};
use onode_codec::{BUCKET_BYTES_MAX, EncodeError, Head, Key, PIECE_PAGES, Record, Run, decode_bucket, encode_bucket};
use onode_codec::{encode_buckets, find_in_bucket, pack_buckets, peek_bucket};

/// How wild records are.
#[derive(Clone, Copy, Debug)]
pub struct Wildness {
    /// Page numbers of the medium have so many bits.
    pub page_bits: u32,
    /// So many of 100 runs lie anywhere, the others follow the run before.
    pub scattered: u64,
    /// Heads hold numbers of any size.
    pub heads: bool,
}

/// `count` sound records in order.
pub fn records(random: &mut Prng, count: usize, wild: Wildness) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::new();
    let mut key = Key { object: if wild.heads { random.next_u64() >> random.below(64) } else { 257 }, page: 0 };
    let mut cursor = 1u64;
    let reach = 1u64 << (wild.page_bits - 1);
    for _ in 0..count {
        let mut record = Record { object: key.object, page: key.page, ..Record::default() };
        if (key.page == 0) != random.chance(1, 50) {
            record.head = Some(head(random, wild, cursor));
        }
        let mut page = key.page;
        let runs_max = if random.chance(1, 10) { 60 } else { 4 };
        for _ in 0..random.below(runs_max) {
            page += if random.chance(1, 10) { random.below(20) } else { 0 };
            let pages_max = if random.chance(1, 4) { 64 } else { 4 };
            let pages = 1 + random.below(pages_max);
            if page + pages > record.piece_end() {
                break;
            }
            let at = if random.chance(wild.scattered, 100) || cursor + pages >= reach {
                random.next_u64() % (reach - PIECE_PAGES)
            } else {
                cursor
            };
            let run = Run { page, pages: pages as u32, at };
            page = run.end();
            cursor = run.end_at();
            match record.runs.last_mut() {
                Some(last) if last.continues_in(&run) => last.pages += run.pages,
                _ => record.runs.push(run),
            }
        }
        let next = if random.chance(1, 3) { Some(record.piece_end()) } else { None };
        key = match next.filter(|&page| page < u64::MAX / 2) {
            Some(page) => Key { object: key.object, page: page + PIECE_PAGES * random.below(2) * random.below(9) },
            None => match key.object.checked_add(1 + random.below(3)) {
                Some(object) => Key { object, page: 0 },
                None => {
                    out.push(record);
                    return out;
                }
            },
        };
        out.push(record);
    }
    out
}

fn head(random: &mut Prng, wild: Wildness, cursor: u64) -> Head {
    if !wild.heads {
        return Head { parent: 1 + random.below(9), home: Some(cursor), size: None, ..Head::default() };
    }
    let mut any = || random.next_u64() >> random.below(64);
    let (parent, kind, flags, serial, time) = (any(), any() as u8, any() as u8, any() as u32, any());
    let mut maybe = |value: u64| random.chance(1, 2).then_some(value);
    let home = maybe(cursor);
    let size = maybe(parent ^ time);
    let mut extra = vec![0; random.below(20) as usize];
    random.fill(&mut extra);
    Head { parent, kind, flags, serial, home, size, time, extra }
}

/// Packs, encodes, decodes and looks up `records`, which have to come back; the encoded buckets.
pub fn round_trip(records: &[Record], bytes_max: usize) -> Result<Vec<Vec<u8>>, EncodeError> {
    let packed = pack_buckets(records.to_vec(), bytes_max)?;
    let mut encoded = Vec::new();
    for (generation, bucket) in packed.iter().enumerate() {
        let bytes = encode_bucket(bucket, generation as u64)?;
        assert!(bytes.len() <= bytes_max.min(BUCKET_BYTES_MAX));
        let header = peek_bucket(&bytes).unwrap();
        assert_eq!((header.bytes, header.records), (bytes.len(), bucket.len()));
        assert_eq!((header.generation, header.first), (generation as u64, bucket[0].key()));
        assert_eq!(decode_bucket(&bytes).as_deref(), Ok(&bucket[..]));
        encoded.push(bytes);
    }
    assert_eq!(encode_buckets(records.to_vec(), 0, bytes_max)?.len(), encoded.len());
    // Every page is found where it was said to be, whatever was cut.
    for record in records {
        let pages = record.runs.iter().flat_map(|run| [(run.page, run.at), (run.end() - 1, run.end_at() - 1)]);
        for (page, at) in pages {
            let key = Key { object: record.object, page };
            let index = packed.partition_point(|bucket| bucket[0].key() <= key) - 1;
            let found = find_in_bucket(&encoded[index], key).unwrap().unwrap();
            assert_eq!(found.lookup(page), Some(at), "{key:?} in {found:?}");
        }
        let index = packed.partition_point(|bucket| bucket[0].key() <= record.key()) - 1;
        assert_eq!(find_in_bucket(&encoded[index], record.key()).unwrap().unwrap().head, record.head);
    }
    Ok(encoded)
}

/// Decodes `bytes` as they are and with a right checksum: nothing may panic, and what decodes must
/// be what encodes.
pub fn survive(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    for _ in 0..2 {
        if let Ok(records) = decode_bucket(&bytes) {
            match encode_bucket(&records, 0) {
                Ok(again) => assert_eq!(decode_bucket(&again), Ok(records)),
                // Another writer may have chosen better how to write the runs.
                Err(EncodeError::TooLarge { .. }) => {}
                Err(error) => panic!("what was decoded does not encode: {error}"),
            }
        }
        let _ = find_in_bucket(&bytes, Key { object: u64::MAX, page: u64::MAX });
        let length = bytes.len().min(BUCKET_BYTES_MAX);
        if length < 14 {
            return;
        }
        bytes[4..6].copy_from_slice(&(length as u16).to_le_bytes());
        let checksum = crc32c(&bytes[4..length]).to_le_bytes();
        bytes[..4].copy_from_slice(&checksum);
    }
}

/// About `count` entries of the byte-exact mode in order; the wilder the more of them are unusual.
pub fn exact_entries(random: &mut Prng, count: usize, unit: u32, wild: u32) -> Vec<Entry> {
    let unit = u64::from(unit);
    let odd = |random: &mut Prng| random.chance(u64::from(wild), 12);
    let mut out = Vec::new();
    let (mut object, mut pages, mut part) = (random.next_u64() >> (1 + random.below(63)), 0u64, 1u64 << 20);
    while out.len() < count {
        object += 1 + if random.chance(1, 2) { random.below(5) } else { 0 };
        if random.chance(1, 40) {
            let value = vec![object as u8; random.below(40) as usize];
            out.push(Entry { object, item: Item::Raw { offset: None, value: value.clone() } });
            out.push(Entry { object, item: Item::Raw { offset: Some(random.next_u64()), value } });
            continue;
        }
        let small = random.below(5) * unit + random.below(unit);
        let size = if odd(random) { random.next_u64() >> random.below(64) } else { small };
        let is_headed = !out.is_empty() || random.chance(1, 2);
        if is_headed {
            let allocated = if odd(random) { random.next_u64() >> random.below(64) } else { size };
            let accessed = if odd(random) { random.next_u64() >> random.below(64) } else { 0 };
            let hints = vec![7; if odd(random) { random.below(256) as usize } else { 0 }];
            out.push(Entry { object, item: Item::Object { size, allocated, accessed, hints } });
        }
        let mut offset = 0u64;
        let is_hole = is_headed && random.chance(1, 20);
        let end = if is_hole { 0 } else { size.min(1 << 62) };
        while offset < end {
            let left = end - offset;
            let length = if left >= unit { left / unit * unit } else { left };
            let length = if odd(random) { 1 + random.below(length) } else { length }.min(u64::from(u32::MAX));
            let hole = if odd(random) { random.below(left) } else { 0 };
            let cursor = if length >= unit { &mut pages } else { &mut part };
            if odd(random) {
                *cursor = random.next_u64() >> random.below(64);
            }
            out.push(Entry {
                object,
                item: Item::Extent { offset: offset + hole, length: length as u32, location: *cursor },
            });
            *cursor = cursor.wrapping_add(length);
            offset += hole + length;
            if random.chance(1, 9) {
                break;
            }
        }
        if !is_headed && offset == 0 {
            out.push(Entry { object, item: Item::Extent { offset, length: 1, location: part } });
        }
    }
    out
}

/// Decodes `bytes` in the byte-exact mode: nothing may panic, and what decodes must be what
/// encodes.
pub fn survive_exact(bytes: &[u8]) {
    for begin in [(0, None), (1 << 40, Some(1 << 62)), (u64::MAX, Some(u64::MAX))] {
        for unit in [2048, 4080] {
            let Some(entries) = exact::decode(begin, bytes, unit) else { continue };
            assert!(entries.len() <= exact::ENTRIES_MAX);
            // What two objects of a hostile run share is nothing that a writer may write.
            if let Some(again) = exact::encode(begin, &entries, unit) {
                assert_eq!(exact::decode(begin, &again, unit).as_ref(), Some(&entries));
            }
        }
    }
}

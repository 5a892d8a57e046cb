//! The byte-exact mode: what goes in comes out, what is usual costs little, and no bytes harm a
//! decoder.

mod common;

use common::{exact_entries, survive_exact};
use onode_base::Prng;
use onode_codec::exact::{Draft, Entry, Item, decode, encode};

fn object(object: u64, size: u64) -> Entry {
    Entry { object, item: Item::Object { size, allocated: size, accessed: 0, hints: Vec::new() } }
}

fn extent(object: u64, offset: u64, length: u32, location: u64) -> Entry {
    Entry { object, item: Item::Extent { offset, length, location } }
}

fn bytes(entries: &[Entry], unit: u32) -> usize {
    let begin = entries.first().map_or((0, None), Entry::key);
    let bytes = encode(begin, entries, unit).unwrap();
    assert_eq!(decode(begin, &bytes, unit).as_deref(), Some(entries));
    bytes.len()
}

#[test]
fn any_entries_round_trip() {
    let mut random = Prng::new(1);
    let mut coders = [0u32; 2];
    for round in 0..600 {
        let unit = [512, 2048, 4080, 16384, 1, u32::MAX][round % 6];
        let wild = random.below(4) as u32;
        let entries = exact_entries(&mut random, 1 + round / 4, unit, wild);
        let (object, offset) = entries[0].key();
        let begin = match random.below(4) {
            0 => (object, offset),
            1 => (object, offset.map(|offset| random.below(offset + 1))),
            _ => (object - random.below(3).min(object), None),
        };
        let bytes = encode(begin, &entries, unit).unwrap();
        assert_eq!(decode(begin, &bytes, unit).as_ref(), Some(&entries), "{round}");
        coders[usize::from(bytes[0] != 1)] += 1;
    }
    assert!(coders[0] > 30, "{coders:?}");
}

#[test]
fn nothing_is_little() {
    assert_eq!(bytes(&[], 2048), 6);
}

#[test]
fn files_one_after_the_other_cost_their_sizes() {
    let mut random = Prng::new(2);
    let mut exact = Vec::new();
    let mut pages = Vec::new();
    let (mut at, mut end) = (1 << 20, 5 << 20);
    for number in 0..150 {
        let size = 2048 * (1 + random.below(4)) + 1 + random.below(2047);
        let whole = size / 2048 * 2048;
        let rest = (size - whole) as u32;
        exact.extend([object(number, size), extent(number, 0, whole as u32, at), extent(number, whole, rest, end)]);
        pages.extend([object(number, whole), extent(number, 0, whole as u32, at)]);
        (at, end) = (at + whole, end + u64::from(rest));
    }
    let (exact, pages) = (bytes(&exact, 2048), bytes(&pages, 2048));
    // Two bits say how many pages, eleven how long the rest is. That it lies behind the one before
    // costs nothing.
    assert!(pages < 150 * 4 / 8 + 40, "{pages} bytes for 150 files");
    assert!(exact < 150 * 17 / 8 + 40, "{exact} bytes for 150 files");
}

#[test]
fn advice_and_access_times_cost_when_they_change() {
    let of = |hints: &dyn Fn(u64) -> Vec<u8>, accessed: &dyn Fn(u64) -> u64| {
        let entry = |number: u64| {
            let (hints, accessed) = (hints(number), accessed(number));
            Entry { object: number, item: Item::Object { size: 0, allocated: 0, accessed, hints } }
        };
        bytes(&(1..=100).map(entry).collect::<Vec<_>>(), 4096)
    };
    let plain = of(&|_| Vec::new(), &|_| 0);
    let equal = of(&|_| vec![1, 2, 3], &|_| 1 << 40);
    let changing = of(&|number| vec![1, 2, number as u8], &|_| 0);
    assert!(equal < plain + 40, "{equal} instead of {plain}");
    assert!(changing > plain + 300, "{changing} instead of {plain}");
}

#[test]
fn pages_anywhere_cost_the_bits_of_a_page() {
    let mut random = Prng::new(3);
    let entries: Vec<Entry> = (0..220).map(|n| extent(9, n * 2048, 2048, random.below(1 << 16) * 2048)).collect();
    let taken = bytes(&entries, 2048);
    assert!(taken <= 220 * 18 / 8 + 20, "{taken} bytes for 220 pages");
}

#[test]
fn what_is_not_in_order_is_refused() {
    for entries in [
        vec![object(2, 0), object(1, 0)],
        vec![extent(1, 0, 1, 0), object(1, 0)],
        vec![extent(1, 5, 1, 0), extent(1, 5, 1, 9)],
        vec![extent(1, 0, 6, 0), extent(1, 5, 1, 9)],
        vec![extent(1, 0, 0, 0)],
        vec![extent(1, u64::MAX, 1, 0)],
    ] {
        assert_eq!(encode((0, None), &entries, 2048), None, "{entries:?}");
    }
    assert_eq!(encode((5, None), &[object(4, 0)], 2048), None);
    assert_eq!(encode((0, None), &[object(4, 0)], 0), None);
}

#[test]
fn hostile_bytes_are_survived() {
    let mut random = Prng::new(4);
    for round in 0..30_000 {
        let mut bytes = if round % 2 == 0 {
            let mut bytes = vec![0; 1 + random.below(64) as usize];
            random.fill(&mut bytes);
            bytes[0] = [1, 0x14][round / 2 % 2];
            bytes
        } else {
            let entries = exact_entries(&mut random, 8, 2048, 2);
            encode(entries[0].key(), &entries, 2048).unwrap()
        };
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        if random.chance(1, 8) {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        survive_exact(&bytes);
    }
}

#[test]
fn a_draft_codes_any_part_as_if_that_were_all() {
    let mut random = Prng::new(7);
    for round in 0..160 {
        let unit = [512, 2048, 4080, 16384][round % 4];
        let wild = random.below(4) as u32;
        let entries = exact_entries(&mut random, 1 + round / 2, unit, wild);
        let begin = entries[0].key();
        let mut draft = Draft::new(begin, &entries, unit).unwrap();
        if random.below(2) == 0 {
            assert_eq!(draft.about_ends().len(), entries.len());
        }
        let count = entries.len();
        let froms = (0..8).map(|_| random.below(count as u64) as usize).collect::<Vec<_>>();
        for (from, to) in froms.iter().flat_map(|&from| (from..=count).map(move |to| (from, to))).rev() {
            let key = entries[from].key();
            // Where the part begins, where its object does, and a little before that.
            for begin in [key, (key.0, None), (key.0.saturating_sub(1), Some(9))] {
                let expected = encode(begin, &entries[from..to], unit);
                assert_eq!(draft.encode_some(begin, from..to), expected, "{round}: {begin:?} {from}..{to}");
            }
        }
        assert_eq!(draft.encode_some(begin, 0..count + 1), None);
        assert_eq!(draft.encode_some((begin.0, Some(u64::MAX)), 0..count), None);
    }
}

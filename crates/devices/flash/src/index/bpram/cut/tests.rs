//! Whatever the entries are, all of them come out, in order, in parts that fit.

use super::super::entries::decode;
use super::*;
use onode_base::prng::Prng;
use onode_codec::exact::Item;

const UNIT: u32 = 2048;

/// Files, some in pieces, some with a value that makes no sense; of all lengths.
fn entries(random: &mut Prng, count: u64) -> Vec<Entry> {
    let mut all = Vec::new();
    for number in 0..count {
        let object = 3 * number + random.below(3);
        let size = random.below(1 << 20);
        let longest = [4, 40, 700, 2000, 70_000][random.below(5) as usize];
        let value = |random: &mut Prng| (0..random.below(longest)).map(|_| random.below(256) as u8).collect();
        let is_odd = random.below(40) == 0;
        all.push(Entry {
            object,
            item: match is_odd {
                true => Item::Raw { offset: None, value: value(random) },
                false => Item::Object { size, allocated: size, accessed: random.below(2), hints: Vec::new() },
            },
        });
        let mut offset = 0;
        while offset < size && !is_odd {
            let length = 1 + random.below(1 << 18) as u32;
            let location = random.below(1 << 34);
            all.push(Entry { object, item: Item::Extent { offset, length, location } });
            offset += u64::from(length) + random.below(2) * u64::from(UNIT);
        }
    }
    all
}

#[test]
fn every_entry_is_in_a_part_that_fits() {
    let mut random = Prng::new(1);
    for round in 0..150 {
        let count = [1, 2, 3, 6, 30, 300][round % 6];
        let items = entries(&mut random, count);
        let first = Key { object: 0, kind: Key::ONODE, index: 0 };
        for even in 1..=6 {
            let parts = cut_into(first, &items, UNIT, even);
            let whole: Vec<Entry> = parts.iter().flat_map(|part| part.items.to_vec()).collect();
            assert!(whole == items, "round {round}: {} of {} entries", whole.len(), items.len());
            for part in &parts {
                let is_alone = part.items.len() == 1;
                assert!(part.bytes.len() <= CONTENT_BYTES_MAX || is_alone, "{} bytes", part.bytes.len());
                // Nothing at all stands for an entry that no bucket can hold.
                let found = decode(&part.bytes, UNIT);
                let is_whole =
                    found.is_some_and(|(first, found)| first == part.first && found.len() == part.items.len());
                assert!(is_whole || is_alone && part.bytes.is_empty(), "round {round}");
            }
            assert_eq!(parts[0].first, first);
            let follow = parts.windows(2).all(|two| two[0].first < two[1].first);
            assert!(follow && parts.iter().skip(1).all(|part| part.first == key_of(&part.items[0])));
        }
    }
}

#[test]
fn parts_that_hold_many_entries_are_full() {
    let mut random = Prng::new(2);
    let size = |random: &mut Prng| 1 + random.below(60_000);
    let objects = (0..20_000).map(|object| {
        let size = size(&mut random);
        Entry { object, item: Item::Object { size, allocated: size, accessed: 0, hints: Vec::new() } }
    });
    let objects: Vec<Entry> = objects.collect();
    let parts = cut(Key { object: 0, kind: Key::ONODE, index: 0 }, &objects, UNIT);
    let bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
    assert!(bytes > parts.len() * CONTENT_BYTES_MAX * 97 / 100, "{} of {}", bytes / parts.len(), CONTENT_BYTES_MAX);
}

#[test]
fn parts_of_many_equal_objects_hold_as_many_as_a_bucket_may() {
    let object = Item::Object { size: 2048, allocated: 2048, accessed: 0, hints: Vec::new() };
    let extent = |object| Item::Extent { offset: 0, length: 2048, location: (1 << 20) + object * 2048 };
    let files =
        (0..5000).flat_map(|number| [object.clone(), extent(number)].map(|item| Entry { object: number, item }));
    let files: Vec<Entry> = files.collect();
    for count in [ENTRIES_MAX, ENTRIES_MAX + 2, 1200, files.len()] {
        let parts = cut(Key { object: 0, kind: Key::ONODE, index: 0 }, &files[..count], UNIT);
        assert_eq!(parts.len(), count.div_ceil(ENTRIES_MAX), "{count} entries");
        assert!(parts.iter().all(|part| part.items.len() <= ENTRIES_MAX), "{count} entries");
    }
}

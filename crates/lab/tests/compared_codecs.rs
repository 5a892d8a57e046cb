//! The paper's records and coders: what goes in comes out, and no bytes harm a decoder.

use onode_base::Prng;
use onode_lab::codec::compared::bytewise::ByteCoder;
use onode_lab::codec::compared::cmfs::{
    Block, BlockState, Device, Hybrid, OBJECT_BYTES, Object, PAT_BYTES, PageTree, ValidityMarker,
};

fn object(random: &mut Prng) -> Object {
    let mut page = random.below(60_000) as u32 + 1;
    let pages_max = if random.chance(1, 20) { 3000 } else { 40 };
    let mut pages: Vec<u32> = (0..random.below(pages_max))
        .map(|_| {
            page = if random.chance(1, 20) { random.below(65_535) as u32 + 1 } else { page % 65_535 + 1 };
            if random.chance(1, 30) { 0 } else { page }
        })
        .collect();
    while pages.last() == Some(&0) {
        pages.pop();
    }
    Object {
        id: random.next_u64() as u32,
        parent: random.below(300) as u32,
        header: page,
        kind: random.below(8) as u8,
        flags: random.below(64) as u8,
        serial: random.next_u64() as u8,
        pages,
    }
}

#[test]
fn objects_round_trip_raw_hybrid_and_through_the_tree() {
    let mut random = Prng::new(1);
    for _ in 0..400 {
        let object = object(&mut random);
        let raw = object.encode().unwrap();
        assert_eq!(raw.len(), object.raw_bytes());
        assert_eq!((raw.len() - OBJECT_BYTES) % PAT_BYTES, 0);
        assert_eq!(Object::decode(&raw).as_ref(), Some(&object));
        for hybrid in [Hybrid::Plain, Hybrid::Coded] {
            let coded = hybrid.encode(&object).unwrap();
            assert_eq!(hybrid.decode(&coded).as_ref(), Some(&object), "{hybrid:?}");
        }
        let tree = PageTree::of(&object);
        assert_eq!(tree.pages(), object.pages);
        for (page, &at) in (1..).zip(&object.pages) {
            assert_eq!(tree.get(page).unwrap_or(0), at);
        }
        assert_eq!(tree.get(object.pages.len() as u32 + 1), None);
        assert_eq!(tree.get(u32::MAX), None);
    }
    let large = Object { pages: vec![65_536], ..Object::default() };
    assert_eq!(large.encode(), None);
    assert_eq!(Hybrid::Plain.encode(&large), None);
}

#[test]
fn the_tree_reaches_the_page_of_figure_2() {
    let mut tree = PageTree::default();
    tree.set(2762, 77);
    assert_eq!((tree.get(2762), tree.levels()), (Some(77), 3));
    tree.set(5, 78);
    tree.set(u32::MAX, 79);
    assert_eq!((tree.get(2762), tree.get(5), tree.get(u32::MAX), tree.get(2763)), (Some(77), Some(78), Some(79), None));
}

#[test]
fn device_and_marker_round_trip() {
    let mut random = Prng::new(2);
    let states = [BlockState::Empty, BlockState::Allocating, BlockState::Full];
    let blocks = (0..1024)
        .map(|_| Block {
            state: states[random.below(3) as usize],
            pages_in_use: random.below(65) as u16,
            soft_deletions: random.below(65) as u16,
            sequence: random.next_u64() as u32,
        })
        .collect();
    let device = Device { partition: [7; 10], blocks };
    let bytes = device.encode();
    assert_eq!(bytes.len(), 40 + 8 * 1024);
    assert_eq!(Device::decode(&bytes), Some(device));
    assert_eq!(Device::decode(&bytes[..bytes.len() - 1]), None);
    for (records, data) in [(false, false), (true, false), (false, true), (true, true)] {
        let marker = ValidityMarker { records, data };
        assert_eq!(ValidityMarker::decode(marker.encode()), Some(marker));
    }
    assert_eq!(ValidityMarker::decode([2; 8]), None);
}

/// Inputs of all kinds: nothing, one byte, runs, words, noise, text that repeats from afar.
fn inputs(random: &mut Prng) -> Vec<Vec<u8>> {
    let mut inputs = vec![Vec::new(), vec![7], vec![0; 5000], (0..=255).collect()];
    for length in [2, 3, 17, 238, 239, 256, 1000, 70_001] {
        let mut noise = vec![0; length];
        random.fill(&mut noise);
        inputs.push(noise.iter().map(|byte| byte & 3).collect());
        inputs.push(noise.iter().map(|byte| byte.trailing_zeros() as u8).collect());
        let mut far = noise.clone();
        for at in (600..length).step_by(600) {
            let from = random.below(at as u64 - 500) as usize;
            let piece = far[from..from + 3 + random.below(400) as usize].to_vec();
            let to = (at + piece.len()).min(length);
            far[at..to].copy_from_slice(&piece[..to - at]);
        }
        inputs.extend([noise, far]);
    }
    inputs.extend((0..20).map(|_| object(random).encode().unwrap()));
    inputs
}

#[test]
fn bytes_round_trip() {
    let inputs = inputs(&mut Prng::new(3));
    for coder in ByteCoder::ALL {
        for input in &inputs {
            let coded = coder.encode(input);
            assert!(coded.len() <= input.len() + input.len() / 16 + 330, "{} {}", coder.name(), input.len());
            assert_eq!(coder.decode(&coded, input.len()).as_ref(), Some(input), "{} {}", coder.name(), input.len());
        }
        let zeros = coder.encode(&[0; 5000]).len();
        assert!(zeros < 1000, "{} needs {zeros}", coder.name());
    }
}

#[test]
fn lzo_reads_streams_of_other_encoders() {
    let lzo = ByteCoder::Lzo;
    // Literals, a copy of four bytes, end.
    let stream = [17 + 4, b'a', b'b', b'c', b'd', 0x20 | 2, 3 << 2, 0, 0x11, 0, 0];
    assert_eq!(lzo.decode(&stream, 8).as_deref(), Some(&b"abcdabcd"[..]));
    // One literal behind a copy, and then a copy of two bytes whose distance stands in four and
    // eight bits.
    let stream = [17 + 4, b'a', b'b', b'c', b'd', 0x20 | 2, 3 << 2 | 1, 0, b'x', 2 << 2, 0, 0x11, 0, 0];
    assert_eq!(lzo.decode(&stream, 11).as_deref(), Some(&b"abcdabcdxcd"[..]));
    // Behind four literals and more the same code copies three bytes from beyond 2048.
    let mut stream = vec![0];
    stream.extend([0; 8]);
    stream.push(2100u32.wrapping_sub(18 + 8 * 255) as u8);
    stream.extend((0..2100u32).map(|at| at as u8));
    stream.extend([1 << 2, 0, 0x11, 0, 0]);
    let mut expected: Vec<u8> = (0..2100u32).map(|at| at as u8).collect();
    expected.extend([(2100 - 2050) as u8, (2100 - 2049) as u8, (2100 - 2048) as u8]);
    assert_eq!(lzo.decode(&stream, 2103), Some(expected));
}

#[test]
fn hostile_bytes_are_survived() {
    let mut random = Prng::new(4);
    let seeds: Vec<Vec<u8>> = (0..30).map(|_| object(&mut random).encode().unwrap()).collect();
    for round in 0..4000 {
        let seed = &seeds[random.below(30) as usize];
        let mut spoil = |mut bytes: Vec<u8>| {
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            if round % 5 == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            bytes
        };
        for coder in ByteCoder::ALL {
            let decoded = coder.decode(&spoil(coder.encode(seed)), seed.len());
            assert!(decoded.is_none_or(|bytes| bytes.len() == seed.len()));
        }
        if let Some(object) = Object::decode(&spoil(seed.clone())) {
            assert_eq!(Object::decode(&object.encode().unwrap()), Some(object));
        }
        for hybrid in [Hybrid::Plain, Hybrid::Coded] {
            let coded = hybrid.encode(&Object::decode(seed).unwrap()).unwrap();
            if let Some(object) = hybrid.decode(&spoil(coded)) {
                assert_eq!(hybrid.decode(&hybrid.encode(&object).unwrap()), Some(object));
            }
        }
        let _ = Device::decode(&spoil(seed.clone()));
    }
}

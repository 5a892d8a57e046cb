//! Nonsense in place of what the wrapper stored: every call answers, none panics. The fuzz target
//! `compressed` looks for more.

use crate::common::hostile::survive;
use onode_base::Prng;
use onode_object::RamDevice;
use onode_object::{AttributeKey, AttributeKind, Compression, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_services::Compressed;
use std::sync::Arc;

/// What `survive` takes, with these parts.
fn input(parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| [&(part.len() as u16).to_le_bytes()[..], part].concat()).collect()
}

/// A map and frames as the wrapper makes them.
fn sound() -> Vec<Vec<u8>> {
    let inner = Arc::new(RamDevice::new(64 << 20));
    let device = Compressed::new(Arc::clone(&inner), Compression::Small).in_units(256);
    let object = ObjectId(5);
    let content: Vec<u8> = (0..150_000).map(|at| b"some words"[at % 10] ^ (at / 999) as u8).collect();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, content);
    device.commit(transaction, Durability::Buffered).unwrap();
    let mut transaction = Transaction::new();
    transaction.punch(object, 70, 1000).punch(object, 65_000, 4000);
    device.commit(transaction, Durability::Buffered).unwrap();
    let attribute =
        |index| inner.attribute(object, AttributeKey::new(AttributeKind::SERVICE, index)).unwrap().unwrap_or_default();
    let mut parts: Vec<Vec<u8>> =
        [0, 1, 1 << 62, (1 << 62) + 511, (1 << 62) + 512, 1 << 63].into_iter().map(attribute).collect();
    for chunk in 0..3 {
        let mut frame = vec![0; 3000];
        inner.read(object, chunk << 16, &mut frame).unwrap();
        parts.push(frame);
    }
    parts
}

#[test]
fn damaged_maps_and_frames_are_answered() {
    let sound = sound();
    assert!(!sound[0].is_empty() && !sound[2].is_empty(), "there is a map, and holes");
    let mut prng = Prng::new(5);
    for _ in 0..1500 {
        let mut parts = sound.clone();
        for _ in 0..1 + prng.below(4) {
            let part = &mut parts[prng.below(sound.len() as u64) as usize];
            match prng.below(3) {
                0 => part.truncate(prng.below(part.len() as u64 + 1) as usize),
                1 => part.extend((0..prng.below(9)).map(|at| at as u8 * 31)),
                _ if part.is_empty() => part.push(prng.below(256) as u8),
                _ => {
                    let at = prng.below(part.len() as u64) as usize;
                    part[at] = prng.below(256) as u8;
                }
            }
        }
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        survive(&input(&parts));
    }
}

#[test]
fn anything_is_answered() {
    let mut prng = Prng::new(6);
    for _ in 0..1500 {
        let mut bytes = vec![0; prng.below(3000) as usize];
        prng.fill(&mut bytes);
        // A head of the right form lets more of the rest count.
        let head = [&[1, 16, 0, 0, 0][..], &bytes[..bytes.len().min(30)]].concat();
        let parts: Vec<&[u8]> = bytes.chunks(60).collect();
        survive(&input(&[&[&head[..]], &parts[..]].concat()));
        survive(&bytes);
    }
}

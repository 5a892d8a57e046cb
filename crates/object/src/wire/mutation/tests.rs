//! Known bytes, one form only, and random lists there and back.

use super::*;
use crate::hints::{Compression, Hints, Lifetime, ObjectKind, Temperature};
use alloc::vec;
use onode_base::Prng;

fn bytes_of(mutation: &Mutation) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, mutation);
    out
}

/// Hints with every field drawn, defaults often.
pub(crate) fn random_hints(prng: &mut Prng) -> Hints {
    let mut byte = |bound| if prng.chance(1, 2) { 0 } else { prng.below(bound) };
    Hints {
        kind: ObjectKind::from_byte(byte(7) as u8).unwrap_or_default(),
        expected_size: byte(u64::MAX),
        lifetime: Lifetime::from_byte(byte(4) as u8).unwrap_or_default(),
        temperature: Temperature::from_byte(byte(4) as u8).unwrap_or_default(),
        locality: (byte(2) == 1).then_some(ObjectId(byte(u64::MAX))),
        embed: byte(2) == 1,
        compression: Compression::from_byte(byte(3) as u8).unwrap_or_default(),
        parity_pages: byte(256) as u8,
        encryption_key: byte(1 << 32) as u32,
        placement_class: byte(1 << 16) as u16,
    }
}

/// A mutation with every field drawn; not one that need apply.
pub(crate) fn random_mutation(prng: &mut Prng) -> Mutation {
    let width = prng.below(64);
    let object = ObjectId(prng.next_u64() >> width);
    let offset = prng.next_u64() >> prng.below(64);
    let length = prng.next_u64() >> prng.below(64);
    let key = AttributeKey::new(AttributeKind(prng.below(256) as u8), length);
    let mut bytes = vec![0; prng.below(50) as usize];
    prng.fill(&mut bytes);
    match prng.below(10) {
        0 => Mutation::Create { object, hints: random_hints(prng) },
        1 => Mutation::Remove { object },
        2 => Mutation::Write { object, offset, data: bytes },
        3 => Mutation::Truncate { object, size: length },
        4 => Mutation::Punch { object, offset, length },
        5 => Mutation::SetAttribute { object, key, value: bytes },
        6 => Mutation::RemoveAttribute { object, key },
        7 => Mutation::SetAccessTime { object, time: length },
        8 => Mutation::Move { object, offset, length, to: ObjectId(prng.next_u64() >> width) },
        _ => Mutation::SetHints { object, hints: random_hints(prng) },
    }
}

#[test]
fn known_bytes() {
    let object = ObjectId(64);
    assert_eq!(bytes_of(&Mutation::Create { object, hints: Hints::default() }), [1, 64, 0]);
    assert_eq!(bytes_of(&Mutation::Write { object, offset: 300, data: vec![9, 8] }), [3, 64, 0xac, 2, 2, 9, 8]);
    let hints = Hints { kind: ObjectKind::Data, locality: Some(ObjectId(2)), embed: true, ..Hints::default() };
    assert_eq!(bytes_of(&Mutation::SetHints { object, hints }), [8, 64, 1 | 8 | 16, 1, 2]);
    assert_eq!(bytes_of(&Mutation::SetAccessTime { object, time: 300 }), [9, 64, 0xac, 2]);
    let moved = Mutation::Move { object, offset: 300, length: 7, to: ObjectId(65) };
    assert_eq!(bytes_of(&moved), [10, 64, 0xac, 2, 7, 65]);
}

#[test]
fn random_lists_there_and_back() {
    let mut prng = Prng::new(11);
    for _ in 0..2000 {
        let list: Vec<Mutation> = (0..prng.below(8)).map(|_| random_mutation(&mut prng)).collect();
        let mut bytes = Vec::new();
        put_list(&mut bytes, &list);
        let mut input = &bytes[..];
        assert_eq!(take_list(&mut input).as_ref(), Some(&list));
        assert!(input.is_empty());
        for cut in 0..bytes.len() {
            assert_eq!(take_list(&mut &bytes[..cut]), None, "cut at {cut}");
        }
    }
}

#[test]
fn every_accepted_input_is_the_one_form() {
    let mut prng = Prng::new(12);
    let mut accepted = 0;
    for _ in 0..200_000 {
        let mut bytes = vec![0; 1 + prng.below(12) as usize];
        prng.fill(&mut bytes);
        bytes[0] = prng.below(11) as u8;
        let mut input = &bytes[..];
        if let Some(mutation) = take(&mut input) {
            accepted += 1;
            let taken = bytes.len() - input.len();
            assert_eq!(bytes_of(&mutation), &bytes[..taken]);
        }
    }
    assert!(accepted > 10_000, "only {accepted} inputs were accepted");
}

#[test]
fn refuses_unknown_values_and_second_forms() {
    let refused: [&[u8]; 9] = [
        &[0, 64],
        &[9, 64],
        &[1, 64, 1, 0],
        &[1, 64, 1, 7],
        &[1, 64, 4, 0x50],
        &[1, 64, 4, 0x40],
        &[1, 64, 2, 0],
        &[1, 64, 64, 0xff, 0xff, 0xff, 0xff, 0x1f],
        &[2, 0x80, 0],
    ];
    for bytes in refused {
        assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
    }
    let mut endless = Vec::new();
    varint::put(&mut endless, u64::MAX);
    assert_eq!(take_list(&mut &endless[..]), None);
}

//! Signatures are the sums that the definition names, follow the pages, and notice changes.

use super::super::{RowParity, RowSignature, Signature};
use super::{SIZES, cut, page, pages, reference};
use alloc::vec::Vec;
use onode_base::Prng;

fn symbols(signature: Signature) -> Vec<u16> {
    reference::symbols(&signature.to_bytes())
}

#[test]
fn signatures_are_what_the_definition_says() {
    let mut random = Prng::new(10);
    for bytes in SIZES.into_iter().chain(0..140) {
        let page = page(&mut random, bytes);
        let signature = Signature::of(&page);
        assert_eq!(symbols(signature), reference::signature(&page), "{bytes} bytes");
        assert_eq!(Signature::from_bytes(signature.to_bytes()), signature);
    }
}

#[test]
fn parts_and_zeros_behind_change_nothing() {
    let mut random = Prng::new(11);
    for round in 0..2000 {
        let bytes = if round % 2 == 0 { SIZES[round / 2 % 5] } else { random.below(200) as usize };
        let mut page = page(&mut random, bytes);
        let signature = Signature::of(&page);
        assert_eq!(Signature::of_parts(&cut(&mut random, &page)), signature, "{bytes} bytes");
        page.resize(bytes + random.below(100) as usize, 0);
        assert_eq!(Signature::of(&page), signature, "{bytes} bytes and zeros");
    }
    // An odd part is as if a zero followed.
    let page = page(&mut random, 201);
    for at in (1..201).step_by(2) {
        let (head, tail) = page.split_at(at);
        let even = [head, &[0], tail].concat();
        assert_eq!(Signature::of_parts(&[head, tail]), Signature::of(&even), "{at}");
    }
}

#[test]
fn signatures_are_linear() {
    let mut random = Prng::new(12);
    let powers = reference::powers();
    for bytes in SIZES {
        let [a, b] = [(); 2].map(|()| page(&mut random, bytes));
        assert_eq!(Signature::of(&reference::sum(&a, &b)), Signature::of(&a) ^ Signature::of(&b));
        for exponent in [0, 1, 2, 77, 65534] {
            let scaled = Signature::of(&reference::scaled(&a, powers[exponent]));
            let expected = reference::scaled(&Signature::of(&a).to_bytes(), powers[exponent]);
            assert_eq!(scaled.to_bytes().as_slice(), expected);
        }
    }
    assert_eq!(Signature::of(&[0; 4096]), Signature::default());
}

#[test]
fn the_parity_of_the_signatures_is_the_signature_of_the_parity() {
    let mut random = Prng::new(13);
    let mut signatures = RowSignature::default();
    for columns in [1, 2, 15, 64] {
        for bytes in [2, 30, 512, 2096, 4208] {
            signatures.clear();
            let mut row = RowParity::new(3, bytes);
            for _ in 0..columns {
                let length = if random.chance(1, 4) { random.below(bytes as u64 + 1) as usize } else { bytes };
                let page = page(&mut random, length);
                if random.chance(1, 8) {
                    row.push_missing();
                    signatures.push_missing();
                } else {
                    row.push_parts(&cut(&mut random, &page[..length / 2 * 2]));
                    signatures.push(Signature::of(&page[..length / 2 * 2]));
                }
                for j in 0..3 {
                    assert_eq!(Signature::of(row.parity(j)), signatures.parity(j), "{bytes} bytes, parity {j}");
                }
            }
            assert_eq!((signatures.columns(), row.columns()), (columns, columns));
        }
    }
    assert_eq!(signatures.parity(3), Signature::default());
}

#[test]
fn pages_that_changed_places_are_noticed() {
    let mut random = Prng::new(14);
    let pages = pages(&mut random, 15, 512);
    let row = |order: &[Vec<u8>]| {
        let mut row = RowSignature::default();
        order.iter().for_each(|page| row.push(Signature::of(page)));
        row
    };
    let right = row(&pages);
    for a in 0..15 {
        for b in 0..a {
            let mut swapped = pages.clone();
            swapped.swap(a, b);
            let wrong = row(&swapped);
            // Plain XOR does not know the order; the others do.
            assert_eq!(wrong.parity(0), right.parity(0));
            assert!((1..3).all(|j| wrong.parity(j) != right.parity(j)), "{a} and {b}");
        }
    }
    // Within a page the same holds: S_0 is plain XOR.
    let mut page = pages[0].clone();
    page.copy_within(2.., 0);
    assert_ne!(Signature::of(&page), Signature::of(&pages[0]));
}

#[test]
fn every_change_of_a_symbol_is_noticed() {
    let mut random = Prng::new(15);
    // Every place of a page, and every change at some places.
    let mut page = page(&mut random, 131_070);
    let right = Signature::of(&page);
    for place in (0..65535).step_by(61).chain([0, 1, 65533, 65534]) {
        page[2 * place + place % 2] ^= 1 << (place % 8);
        assert_ne!(Signature::of(&page), right, "{place}");
        page[2 * place + place % 2] ^= 1 << (place % 8);
    }
    let mut page = super::page(&mut random, 2096);
    let right = Signature::of(&page);
    for place in 0..1048 {
        let change = (1 + random.below(65535)) as u16;
        for part in 0..2 {
            page[2 * place + part] ^= (change >> (8 * part)) as u8;
        }
        let wrong = Signature::of(&page);
        assert!(symbols(wrong).iter().zip(symbols(right)).all(|(wrong, right)| *wrong != right), "{place}");
        for part in 0..2 {
            page[2 * place + part] ^= (change >> (8 * part)) as u8;
        }
    }
    for change in 1..=u16::MAX {
        let mut page = [0; 32];
        page[14] = change as u8;
        page[15] = (change >> 8) as u8;
        assert!(symbols(Signature::of(&page)).iter().all(|symbol| *symbol != 0));
    }
}

#[test]
fn changes_of_up_to_four_symbols_are_noticed() {
    let mut random = Prng::new(16);
    for round in 0..20_000 {
        let bytes = [32, 512, 2096, 4208][round % 4];
        let mut change = alloc::vec![0; bytes];
        for _ in 0..1 + random.below(4) {
            let place = random.below(bytes as u64 / 2) as usize;
            change[2 * place] = random.next_u64() as u8;
            change[2 * place + 1] = 1 + random.below(255) as u8;
        }
        // A page that changes so has its own signature added.
        assert_ne!(Signature::of(&change), Signature::default(), "{change:?}");
    }
}

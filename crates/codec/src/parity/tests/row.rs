//! Running parities are the sums that the definition names.

use super::super::{PARITY_PAGES_MAX, RowParity};
use super::{SIZES, cut, page, pages, reference};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

fn row_of(pages: &[Vec<u8>], parity_pages: usize, page_bytes: usize) -> RowParity {
    let mut row = RowParity::new(parity_pages, page_bytes);
    pages.iter().for_each(|page| row.push(page));
    row
}

#[test]
fn parities_are_what_the_definition_says() {
    let mut random = Prng::new(3);
    for bytes in SIZES {
        for columns in [1, 2, 5, 16] {
            let pages = pages(&mut random, if bytes > 8192 { columns.min(5) } else { columns }, bytes);
            let expected: Vec<_> = (0..PARITY_PAGES_MAX).map(|j| reference::parity(&pages, j, bytes)).collect();
            for parity_pages in 1..=PARITY_PAGES_MAX {
                let row = row_of(&pages, parity_pages, bytes);
                assert_eq!((row.columns() as usize, row.parity_pages()), (pages.len(), parity_pages));
                for (j, expected) in expected.iter().enumerate() {
                    let expected = if j < parity_pages { expected.as_slice() } else { &[] };
                    assert!(row.parity(j) == expected, "{bytes} bytes, {columns} columns, parity {j}");
                }
            }
        }
    }
}

#[test]
fn shorter_pages_and_pages_in_parts_are_as_if_zeros_followed_and_as_in_one_piece() {
    let mut random = Prng::new(4);
    for round in 0..300 {
        let bytes = SIZES[round % 5];
        let lengths: Vec<usize> = (0..6).map(|_| random.below(bytes as u64 + 1) as usize).collect();
        let short: Vec<_> = lengths.iter().map(|length| page(&mut random, *length)).collect();
        let mut whole = short.clone();
        whole.iter_mut().for_each(|page| page.resize(bytes, 0));
        let mut in_parts = RowParity::new(3, bytes);
        whole.iter().for_each(|page| in_parts.push_parts(&cut(&mut random, page)));
        let (short, whole) = (row_of(&short, 3, bytes), row_of(&whole, 3, bytes));
        for j in 0..3 {
            assert!(short.parity(j) == whole.parity(j), "round {round}, {lengths:?} of {bytes} bytes");
            assert!(in_parts.parity(j) == whole.parity(j), "round {round} in parts");
        }
    }
}

#[test]
fn a_missing_column_is_one_of_zeros() {
    let mut random = Prng::new(5);
    for missing in 0..4 {
        let mut all = pages(&mut random, 4, 512);
        let mut row = RowParity::new(3, 512);
        for (column, page) in all.iter().enumerate() {
            if column == missing { row.push_missing() } else { row.push(page) }
        }
        all[missing].fill(0);
        assert!((0..3).all(|j| row.parity(j) == reference::parity(&all, j, 512)));
        assert_eq!(row.columns(), 4);
    }
}

#[test]
fn a_row_begins_anew_in_the_same_memory() {
    let mut random = Prng::new(6);
    let mut row = row_of(&pages(&mut random, 7, 2096), 2, 2096);
    let memory = row.memory_bytes();
    row.clear();
    assert_eq!((row.columns(), row.parity(1)), (0, vec![0; 2096].as_slice()));
    let next = pages(&mut random, 3, 2096);
    next.iter().for_each(|page| row.push(page));
    assert!(row.parity(1) == reference::parity(&next, 1, 2096));
    assert_eq!((row.memory_bytes(), memory), (memory, 2 * 2096));
}

#[test]
fn numbers_out_of_range_become_the_nearest() {
    assert_eq!(RowParity::new(0, 8).parity_pages(), 1);
    assert_eq!(RowParity::new(9, 8).parity_pages(), 3);
    assert_eq!(RowParity::new(1, 7).page_bytes(), 8);
    let mut empty = RowParity::new(3, 0);
    empty.push(&[]);
    assert_eq!((empty.columns(), empty.parity(2), empty.memory_bytes()), (1, [].as_slice(), 0));
}

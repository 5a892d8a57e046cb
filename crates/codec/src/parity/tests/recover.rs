//! Every choice of lost pages that can come back does, and no other.

use super::super::{PARITY_PAGES_MAX, RowParity, recover};
use super::{page, pages};
use alloc::vec::Vec;
use onode_base::Prng;

/// What is left of a row.
struct Remains<'a> {
    pages: &'a [Vec<u8>],
    row: &'a RowParity,
    lost: &'a [u32],
    /// Bit `j` says that parity page `j` is sound.
    sound: usize,
}

impl Remains<'_> {
    fn recovered(&self) -> Option<Vec<Vec<u8>>> {
        let mut found = RowParity::new(self.row.parity_pages(), self.row.page_bytes());
        for (column, page) in (0..).zip(self.pages) {
            if self.lost.contains(&column) { found.push_missing() } else { found.push(page) }
        }
        let stored = |j: usize| (self.sound >> j & 1 == 1).then(|| self.row.parity(j));
        let parities: Vec<_> = (0..self.row.parity_pages()).map(stored).collect();
        recover(&found, self.lost, &parities)
    }

    fn judge(&self) {
        let expected = (self.lost.len() <= self.sound.count_ones() as usize)
            .then(|| self.lost.iter().map(|&column| self.pages[column as usize].clone()).collect::<Vec<_>>());
        let columns = self.pages.len();
        assert!(self.recovered() == expected, "{:?} of {columns}, parities {:b}", self.lost, self.sound);
    }
}

/// All ascending choices of up to `most` numbers below `columns`.
fn choices(columns: u32, most: usize) -> Vec<Vec<u32>> {
    let mut all = alloc::vec![Vec::new()];
    let mut begin = 0;
    for _ in 0..most {
        let end = all.len();
        for at in begin..end {
            for column in all[at].last().map_or(0, |last| last + 1)..columns {
                let mut longer = all[at].clone();
                longer.push(column);
                all.push(longer);
            }
        }
        begin = end;
    }
    all
}

#[test]
fn choices_are_all_there_are() {
    assert_eq!(choices(5, 3).len(), 1 + 5 + 10 + 10);
    assert_eq!(choices(2, 3), [[].as_slice(), &[0], &[1], &[0, 1]]);
}

#[test]
fn every_choice_of_lost_pages_is_recovered_as_far_as_parities_reach() {
    let mut random = Prng::new(7);
    for columns in 1..=20 {
        let pages = pages(&mut random, columns, 18);
        for parity_pages in 1..=PARITY_PAGES_MAX {
            let mut row = RowParity::new(parity_pages, 18);
            pages.iter().for_each(|page| row.push(page));
            // One more than can come back, too: it is refused.
            for lost in choices(columns as u32, parity_pages + 1) {
                for sound in 0..1 << parity_pages {
                    Remains { pages: &pages, row: &row, lost: &lost, sound }.judge();
                }
            }
        }
    }
}

#[test]
fn rows_of_thousands_of_columns_are_recovered() {
    let mut random = Prng::new(8);
    // The last that is possible, and two more where cubes of factors are equal, 21845 apart.
    for (columns, lost) in [(65535, [0, 21845, 65534]), (43692, [1, 21846, 43691]), (300, [7, 8, 299])] {
        let pages = pages(&mut random, columns, 4);
        let mut row = RowParity::new(3, 4);
        pages.iter().for_each(|page| row.push(page));
        for sound in 0..8 {
            for lost in [&lost[..], &lost[..2], &lost[1..], &lost[..1]] {
                Remains { pages: &pages, row: &row, lost, sound }.judge();
            }
        }
    }
    let mut row = RowParity::new(1, 2);
    (0..65536).for_each(|_| row.push(&[1, 2]));
    assert_eq!(recover(&row, &[0], &[Some(&[0, 0])]), None);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut random = Prng::new(9);
    let mut row = RowParity::new(2, 8);
    (0..4).for_each(|_| row.push(&page(&mut random, 8)));
    let parities = [Some(row.parity(0)), Some(row.parity(1))];
    assert!(recover(&row, &[0, 3], &parities).is_some());
    assert!(recover(&row, &[], &[]).is_some_and(|pages| pages.is_empty()));
    for lost in [[3, 0], [1, 1], [1, 4]] {
        assert_eq!(recover(&row, &lost, &parities), None, "{lost:?}");
    }
    assert_eq!(recover(&row, &[0], &[Some(&[0; 7])]), None);
    assert_eq!(recover(&row, &[0], &[Some(&[0; 10])]), None);
    assert_eq!(recover(&row, &[0], &[]), None);
    // A parity page that the row has no number for.
    assert_eq!(recover(&row, &[0, 1, 2], &[parities[0], parities[1], Some(&[0; 8])]), None);
}

//! The running parities of a row.

use super::field::{Raw, symbols, symbols_mut, times_alpha, times_alpha_2};
use alloc::vec;
use alloc::vec::Vec;

/// The most parity pages of a row, and so the most pages that it can lose.
///
/// With three of them every choice of lost columns can be solved from every choice of as many
/// parity pages. The equations of parity pages `j` and columns with the distinct factors `x =
/// alpha^(n - 1 - c)` have the matrix of all `x^j`. Exponents 0, 1, 2 and 0, 1 make it a
/// Vandermonde matrix, and 1, 2 one whose columns are multiplied by `x`, which is not 0. Exponents
/// 0, 2 make it that of the squares, and in characteristic 2 the squares of distinct elements are
/// distinct: `x^2 + y^2 = (x + y)^2`. A fourth row breaks this: exponents 0, 3 fail wherever `x^3 =
/// y^3`, which has solutions, since 3 divides 65535.
pub const PARITY_PAGES_MAX: usize = 3;

/// The parity pages of a row of pages of which the columns up to now have come.
///
/// It costs `parity_pages` pages of memory, whatever the columns are, and each page is read once.
#[derive(Clone, Debug)]
pub struct RowParity {
    /// `pages[j]` is `P_j` of the columns up to now; those that the row does not have are empty.
    pages: [Vec<u8>; PARITY_PAGES_MAX],
    parity_pages: usize,
    columns: u32,
}

impl RowParity {
    /// A row without columns that will have `parity_pages` parity pages, `1..=PARITY_PAGES_MAX`, of
    /// `page_bytes` bytes each. Other numbers of parity pages become the nearest of these, and an
    /// odd number of bytes becomes the next even one.
    #[must_use]
    pub fn new(parity_pages: usize, page_bytes: usize) -> Self {
        let parity_pages = parity_pages.clamp(1, PARITY_PAGES_MAX);
        let bytes = page_bytes.saturating_add(page_bytes % 2);
        let page = |j: usize| if j < parity_pages { vec![0; bytes] } else { Vec::new() };
        Self { pages: core::array::from_fn(page), parity_pages, columns: 0 }
    }

    /// Takes the next column. A page shorter than the row's is as if zeros followed; bytes beyond
    /// the row's pages are a mistake of the caller and have no part in the parity.
    pub fn push(&mut self, page: &[u8]) {
        self.push_parts(&[page]);
    }

    /// Takes the next column, whose page lies in parts, such as data and spare area, one behind the
    /// other. Each part has an even number of bytes; an odd one is as if a zero followed.
    pub fn push_parts(&mut self, parts: &[&[u8]]) {
        let mut at = 0;
        for part in parts {
            at = self.fold(at, symbols(part));
            if let &[last] = part.as_chunks::<2>().1 {
                at = self.fold(at, &[[last, 0]]);
            }
        }
        // Zeros in the first column leave zeros.
        if self.columns > 0 {
            self.skip(at);
        }
        self.columns = self.columns.saturating_add(1);
    }

    /// Takes a column of zeros: one that is lost or was never written.
    pub fn push_missing(&mut self) {
        self.push_parts(&[]);
    }

    /// How many columns came since the row began.
    #[must_use]
    pub const fn columns(&self) -> u32 {
        self.columns
    }

    /// How many parity pages the row has, `1..=PARITY_PAGES_MAX`.
    #[must_use]
    pub const fn parity_pages(&self) -> usize {
        self.parity_pages
    }

    /// Bytes of each parity page, an even number.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.pages[0].len()
    }

    /// Parity page `j`, `0..parity_pages`, of the columns up to now; empty for any other.
    #[must_use]
    pub fn parity(&self, j: usize) -> &[u8] {
        self.pages.get(j).map_or(&[], Vec::as_slice)
    }

    /// Begins the next row, in the same memory.
    pub fn clear(&mut self) {
        for page in &mut self.pages {
            page.fill(0);
        }
        self.columns = 0;
    }

    /// Bytes of memory on the heap.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.pages.iter().map(Vec::capacity).sum()
    }

    /// Horner's step for symbols `at..` of the page: `P_j := alpha^j P_j + D`. Gives the symbol
    /// behind them.
    fn fold(&mut self, at: usize, data: &[Raw]) -> usize {
        let [first, second, third] = self.pages.each_mut().map(|page| symbols_mut(page));
        let end = at.saturating_add(data.len()).min(first.len());
        debug_assert!(at + data.len() <= end, "a page is longer than those of its row");
        let data = &data[..end.saturating_sub(at)];
        match self.parity_pages {
            1 => fold_one(data, &mut first[at..end]),
            2 => fold_two(data, &mut first[at..end], &mut second[at..end]),
            _ => fold_three(data, &mut first[at..end], &mut second[at..end], &mut third[at..end]),
        }
        end
    }

    /// Horner's step for zeros from symbol `at` to the end of the page.
    fn skip(&mut self, at: usize) {
        let [_, second, third] = self.pages.each_mut().map(|page| symbols_mut(page));
        for symbol in second.iter_mut().skip(at) {
            *symbol = times_alpha(u16::from_le_bytes(*symbol)).to_le_bytes();
        }
        for symbol in third.iter_mut().skip(at) {
            *symbol = times_alpha_2(u16::from_le_bytes(*symbol)).to_le_bytes();
        }
    }
}

// One function for each number of parity pages: slices that are parameters are known not to
// overlap, and a loop over them becomes vector instructions that read the data once.

fn fold_one(data: &[Raw], first: &mut [Raw]) {
    for (d, p0) in data.iter().zip(first) {
        *p0 = (u16::from_le_bytes(*p0) ^ u16::from_le_bytes(*d)).to_le_bytes();
    }
}

fn fold_two(data: &[Raw], first: &mut [Raw], second: &mut [Raw]) {
    for ((d, p0), p1) in data.iter().zip(first).zip(second) {
        let d = u16::from_le_bytes(*d);
        *p0 = (u16::from_le_bytes(*p0) ^ d).to_le_bytes();
        *p1 = (times_alpha(u16::from_le_bytes(*p1)) ^ d).to_le_bytes();
    }
}

fn fold_three(data: &[Raw], first: &mut [Raw], second: &mut [Raw], third: &mut [Raw]) {
    for (((d, p0), p1), p2) in data.iter().zip(first).zip(second).zip(third) {
        let d = u16::from_le_bytes(*d);
        *p0 = (u16::from_le_bytes(*p0) ^ d).to_le_bytes();
        *p1 = (times_alpha(u16::from_le_bytes(*p1)) ^ d).to_le_bytes();
        *p2 = (times_alpha_2(u16::from_le_bytes(*p2)) ^ d).to_le_bytes();
    }
}

//! Lost pages of a row from its parity pages.

use super::field::{ORDER, add_multiple, invert, multiply, power, symbols, symbols_mut};
use super::row::{PARITY_PAGES_MAX, RowParity};
use alloc::vec;
use alloc::vec::Vec;

type Matrix = [[u16; PARITY_PAGES_MAX]; PARITY_PAGES_MAX];

/// The lost data pages of a row, in the order of `lost`.
///
/// `found` has every column of the row: each sound page was pushed, and for each lost one
/// [`RowParity::push_missing`] was called. `lost` are the numbers of the lost columns, ascending.
/// `parities[j]` is the parity page `j` as it was stored, if it is sound; pages that `found` has no
/// number for are not looked at.
///
/// `None` if there are fewer sound parity pages than lost columns, if a parity page has not as many
/// bytes as the row's, if `lost` is not ascending or names a column that the row does not have, or
/// if the row has more than 65535 columns, from where on they are not told apart.
#[must_use]
pub fn recover(found: &RowParity, lost: &[u32], parities: &[Option<&[u8]>]) -> Option<Vec<Vec<u8>>> {
    let columns = found.columns();
    let is_sound = lost.is_sorted_by(|a, b| a < b) && lost.last().is_none_or(|&last| last < columns);
    if !is_sound || columns > ORDER {
        return None;
    }
    // The lowest parity pages are the cheapest: page 0 alone takes no multiplication.
    let sound = parities.iter().take(found.parity_pages()).enumerate();
    let sound: Vec<(usize, &[u8])> = sound.filter_map(|(j, page)| Some((j, (*page)?))).take(lost.len()).collect();
    if sound.len() < lost.len() || sound.iter().any(|(_, page)| page.len() != found.page_bytes()) {
        return None;
    }
    // What a parity page says beyond the found columns is the sum of the lost ones.
    let rest: Vec<Vec<u8>> = sound.iter().map(|&(j, page)| added(page, found.parity(j))).collect();
    let mut matrix = Matrix::default();
    for (row, (j, _)) in matrix.iter_mut().zip(&sound) {
        for (factor, column) in row.iter_mut().zip(lost) {
            *factor = power(power(2, columns - 1 - column), *j as u32);
        }
    }
    let inverse = inverted(matrix, lost.len())?;
    let page = |factors: &[u16; PARITY_PAGES_MAX]| {
        let mut page = vec![0; found.page_bytes()];
        for (rest, factor) in rest.iter().zip(factors) {
            add_multiple(symbols_mut(&mut page), symbols(rest), *factor);
        }
        page
    };
    Some(inverse.iter().take(lost.len()).map(page).collect())
}

fn added(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The inverse of the first `size` rows and columns by Gauss and Jordan; `None` if there is none,
/// which the choice of exponents rules out.
fn inverted(matrix: Matrix, size: usize) -> Option<Matrix> {
    let (mut left, mut right) = (matrix, Matrix::default());
    for (at, row) in right.iter_mut().enumerate() {
        row[at] = 1;
    }
    for at in 0..size {
        let pivot = (at..size).find(|&row| left[row][at] != 0)?;
        left.swap(at, pivot);
        right.swap(at, pivot);
        let scale = invert(left[at][at]);
        for side in [&mut left, &mut right] {
            side[at] = side[at].map(|one| multiply(one, scale));
        }
        for row in (0..size).filter(|&row| row != at) {
            let factor = left[row][at];
            for side in [&mut left, &mut right] {
                let pivot = side[at];
                for (one, pivot) in side[row].iter_mut().zip(pivot) {
                    *one ^= multiply(factor, pivot);
                }
            }
        }
    }
    Some(right)
}

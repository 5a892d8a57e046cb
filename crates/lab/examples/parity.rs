//! How fast parity pages and signatures are computed, and lost pages recovered: rows of 15 data
//! pages of 2 and 4 KiB in memory, beside a copy of the same bytes and their CRC-32C.
//!
//! `cargo run --release -p onode-lab --example parity [MIB]`

#![allow(clippy::disallowed_methods, reason = "it measures")]

use onode_base::Prng;
use onode_base::checksum::crc32c;
use onode_codec::parity::{PARITY_PAGES_MAX, RowParity, Signature, recover};
use std::hint::black_box;
use std::time::Instant;

const COLUMNS: usize = 15;

/// The quickest of so many measurements counts: the others were disturbed.
const ROUNDS: usize = 20;

/// Prints how many GB of data pages a second `work` takes, which goes through one row a call.
fn report(what: &str, rows: &[Vec<u8>], mut work: impl FnMut(&[u8])) {
    let bytes: usize = rows.iter().map(Vec::len).sum();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        rows.iter().for_each(|row| work(black_box(row)));
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("  {what:<34} {:6.2} GB/s", bytes as f64 / best / 1e9);
}

fn encode(row: &[u8], parity: &mut RowParity) {
    parity.clear();
    row.chunks_exact(parity.page_bytes()).for_each(|page| parity.push(page));
}

/// Takes a row without its first pages and gives these back, as a reader of a damaged row does.
fn lose(row: &[u8], lost: usize, stored: &RowParity) -> Vec<Vec<u8>> {
    let mut found = RowParity::new(stored.parity_pages(), stored.page_bytes());
    for (column, page) in row.chunks_exact(stored.page_bytes()).enumerate() {
        if column < lost { found.push_missing() } else { found.push(page) }
    }
    let columns: Vec<u32> = (0..lost as u32).collect();
    // The lowest parity page is lost as long as others are enough.
    let is_there = |j: usize| j > 0 || lost == stored.parity_pages();
    let parities: Vec<_> = (0..stored.parity_pages()).map(|j| is_there(j).then(|| stored.parity(j))).collect();
    recover(&found, &columns, &parities).expect("there are enough parity pages")
}

fn measure(page_bytes: usize, mib: usize) {
    println!("pages of {page_bytes} bytes, rows of {COLUMNS}:");
    let mut random = Prng::new(1);
    let row_bytes = COLUMNS * page_bytes;
    let mut rows = vec![vec![0; row_bytes]; (mib << 20).div_ceil(row_bytes)];
    rows.iter_mut().for_each(|row| random.fill(row));
    let mut copy = vec![0; row_bytes];
    report("copy", &rows, |row| {
        copy.copy_from_slice(row);
        black_box(&copy);
    });
    report("CRC-32C of each page", &rows, |row| {
        row.chunks_exact(page_bytes).for_each(|page| {
            black_box(crc32c(page));
        });
    });
    report("signature of each page", &rows, |row| {
        row.chunks_exact(page_bytes).for_each(|page| {
            black_box(Signature::of(page));
        });
    });
    for parity_pages in 1..=PARITY_PAGES_MAX {
        let mut parity = RowParity::new(parity_pages, page_bytes);
        report(&format!("encode, {parity_pages} parity pages"), &rows, |row| {
            encode(row, &mut parity);
            black_box(parity.parity(parity_pages - 1));
        });
    }
    let mut stored = RowParity::new(PARITY_PAGES_MAX, page_bytes);
    encode(&rows[0], &mut stored);
    for lost in 1..=PARITY_PAGES_MAX {
        let same = vec![rows[0].clone(); rows.len()];
        report(&format!("recover {lost} of {COLUMNS} pages"), &same, |row| {
            let pages = lose(row, lost, &stored);
            assert!(pages[lost - 1] == row[(lost - 1) * page_bytes..lost * page_bytes]);
        });
    }
}

fn main() {
    let mib = std::env::args().nth(1).and_then(|mib| mib.parse().ok()).unwrap_or(16);
    for page_bytes in [2048, 4096] {
        measure(page_bytes, mib);
    }
}

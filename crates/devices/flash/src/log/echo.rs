//! Echoes: a journal page with room left repeats the records of the pages before it.
//!
//! A synced commit seldom fills its page. The room costs nothing, and a mount that reads the last
//! page of a run has the records of all its pages: after a cut it reads one page in many. Where
//! pages are full for long, a page of its own repeats what many of them hold. An echo never reaches
//! past the start of its segment, its session or the newest checkpoint.
//!
//! It is a convenience: a mount that finds anything odd reads every page instead.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use onode_base::varint;

/// A page that may be repeated.
#[derive(Debug)]
struct RepeatablePage {
    records: Vec<u8>,
    /// Pages that a mount reads on its way back from this one.
    reads: u32,
}

impl RepeatablePage {
    /// Bytes that it takes in an echo.
    const fn bytes(&self) -> usize {
        self.records.len() + if self.records.len() < 128 { 1 } else { 3 }
    }
}

/// The records of the pages before the next one, youngest last.
#[derive(Debug, Default)]
pub struct Echoes {
    pages: VecDeque<RepeatablePage>,
    bytes: usize,
    /// Reads on the way back from the page before the oldest of them.
    reads_before: u32,
}

/// Not worth a page's checksum.
const LEAST_BYTES: usize = 8;

/// An echo gets a page of its own if that saves a mount so many reads.
const READS_SAVED: u32 = 24;

impl Echoes {
    /// Nothing before this can be repeated.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.bytes = 0;
        self.reads_before = 0;
    }

    /// A page with these records was programmed that repeats `repeated` pages. At most `limit`
    /// bytes are kept.
    pub fn push(&mut self, records: &[u8], repeated: usize, limit: usize) {
        let page = RepeatablePage { records: records.to_vec(), reads: 1 + self.reads_behind(repeated) };
        self.bytes += page.bytes();
        self.pages.push_back(page);
        while self.bytes > limit {
            let Some(gone) = self.pages.pop_front() else { break };
            self.bytes -= gone.bytes();
            self.reads_before = gone.reads;
        }
    }

    /// Pages of the journal that a mount reads on its way back from here.
    pub fn reads(&self) -> u32 {
        self.reads_behind(0)
    }

    /// Reads on the way back from the page before the youngest `count`.
    fn reads_behind(&self, count: usize) -> u32 {
        let before = self.pages.len().checked_sub(count + 1);
        before.map_or(self.reads_before, |before| self.pages[before].reads)
    }

    /// How many pages an echo in so much room repeats: those that make the way back the shortest.
    /// It may be better to stop at a page that repeats many.
    fn count_in(&self, room: usize) -> usize {
        let worth = room >= LEAST_BYTES || self.pages.back().is_some_and(|page| page.records.is_empty());
        let mut left = if worth { room } else { 0 };
        let fits = |page: &&RepeatablePage| {
            let fits = page.bytes() <= left;
            left = left.saturating_sub(page.bytes());
            fits
        };
        let most = self.pages.iter().rev().take_while(fits).count();
        (0..=most).rev().min_by_key(|&count| self.reads_behind(count)).unwrap_or(0)
    }

    /// The records of as many pages before the next one as fit `room`, youngest first, each with
    /// its length; and how many pages that are.
    pub fn encode(&self, room: usize) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let count = self.count_in(room);
        for page in self.pages.iter().rev().take(count) {
            varint::put_bytes(&mut out, &page.records);
        }
        (out, count)
    }

    /// Whether a page with nothing but an echo in `room` bytes is worth its program: after pages
    /// that have no room for echoes.
    pub fn want_a_page(&self, room: usize) -> bool {
        let reads = self.reads_behind(0);
        reads.saturating_sub(self.reads_before) >= READS_SAVED
            && reads.saturating_sub(self.reads_behind(self.count_in(room))) >= READS_SAVED
    }

    /// Memory held.
    pub fn memory_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.records.capacity()).sum::<usize>()
            + self.pages.capacity() * size_of::<RepeatablePage>()
    }
}

/// The records in an echo, youngest page first; `None` if it is malformed.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut pages = Vec::new();
    while !bytes.is_empty() {
        pages.push(varint::take_bytes(&mut bytes)?);
    }
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_youngest_pages_that_fit() {
        let mut echoes = Echoes::default();
        for page in 0..40u8 {
            echoes.push(&[page; 50], 0, 1000);
        }
        let (bytes, count) = echoes.encode(300);
        assert_eq!(decode(&bytes).unwrap(), [[39u8; 50], [38; 50], [37; 50], [36; 50], [35; 50]]);
        assert_eq!(count, 5);
        assert!(echoes.encode(5000).0.len() <= 1000);
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        echoes.clear();
        assert_eq!(echoes.encode(300), (Vec::new(), 0));
    }

    #[test]
    fn a_page_without_records_is_repeated_in_any_room() {
        let mut echoes = Echoes::default();
        echoes.push(&[1; 50], 0, 1000);
        assert_eq!(echoes.encode(4), (Vec::new(), 0));
        echoes.push(&[], 0, 1000);
        assert_eq!(echoes.encode(4), (alloc::vec![0], 1));
    }

    #[test]
    fn full_pages_get_an_echo_of_their_own() {
        let mut echoes = Echoes::default();
        for page in 0..READS_SAVED {
            assert!(!echoes.want_a_page(2000), "{page}");
            echoes.push(&[], 0, 2000);
            echoes.push(&[7; 40], 1, 2000);
        }
        assert!(echoes.want_a_page(2000));
        assert!(!echoes.want_a_page(500), "too few of them fit");
        let (_, count) = echoes.encode(2000);
        assert_eq!(count as u32, 2 * READS_SAVED);
        echoes.push(&[], count, 2000);
        assert!(!echoes.want_a_page(2000));
        // Pages that repeat the one before them need none.
        for _ in 0..500 {
            echoes.push(&[9; 40], 10, 2000);
        }
        assert!(!echoes.want_a_page(2000));
    }
}

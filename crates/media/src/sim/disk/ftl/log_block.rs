//! A layer that maps whole blocks and collects updates in a few log blocks (FAST, fully associative
//! sector translation).
//!
//! A block that is rewritten from its first page on in order goes to a log block of its own and
//! takes the old one's place when it is full: nothing is copied. All other updates go, whatever
//! they belong to, one after another into the remaining log blocks; when those are full the oldest
//! is emptied, and every block that it holds pages of is put together anew.

use super::{Translation, Work};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// Block mapping with log blocks.
pub struct LogBlock {
    pages_per_block: u64,
    /// Pages of each block of the host that were ever written; they lie in its data block or in a
    /// log.
    written: Vec<u64>,
    /// The block that is rewritten in order, and its pages so far.
    sequential: Option<(u64, u64)>,
    /// Updates, one list a log block, the oldest first. What was updated again since stays in its
    /// list.
    logs: VecDeque<Vec<u64>>,
    most_logs: usize,
    /// Where the newest version of a page is: the number of its log block, counted since the start.
    newest: BTreeMap<u64, u64>,
    first_log: u64,
}

impl LogBlock {
    /// A layer for `pages` of the host with `log_percent` of its blocks as log blocks.
    #[must_use]
    pub fn new(pages: u64, pages_per_block: u32, log_percent: u64) -> Self {
        let blocks = pages.div_ceil(u64::from(pages_per_block));
        Self {
            pages_per_block: u64::from(pages_per_block),
            written: alloc::vec![0; blocks as usize],
            sequential: None,
            logs: VecDeque::new(),
            most_logs: (blocks * log_percent / 100).max(2) as usize - 1,
            newest: BTreeMap::new(),
            first_log: 0,
        }
    }

    fn forget_updates(&mut self, block: u64) {
        let pages = block * self.pages_per_block..(block + 1) * self.pages_per_block;
        let gone: Vec<u64> = self.newest.range(pages).map(|(page, _)| *page).collect();
        for page in gone {
            self.newest.remove(&page);
        }
    }

    /// Puts a block together from wherever its pages are.
    fn merge(&mut self, block: u64) -> Work {
        self.forget_updates(block);
        let pages = self.written.get(block as usize).copied().unwrap_or(0);
        Work { programs: pages, asked: 0, erases: 1 }
    }

    /// Ends the block that is rewritten in order: the rest of it is copied behind what is there.
    fn end_sequential(&mut self) -> Work {
        let Some((block, count)) = self.sequential.take() else { return Work::default() };
        let written = self.written.get_mut(block as usize);
        let rest = written.map_or(0, |written| {
            *written = (*written).max(count);
            *written - count
        });
        self.forget_updates(block);
        // The block that it replaces.
        Work { programs: rest, asked: 0, erases: 1 }
    }

    fn empty_oldest(&mut self) -> Work {
        let Some(log) = self.logs.pop_front() else { return Work::default() };
        let number = self.first_log;
        self.first_log += 1;
        let live = log.into_iter().filter(|page| self.newest.get(page) == Some(&number));
        let blocks: BTreeSet<u64> = live.map(|page| page / self.pages_per_block).collect();
        let mut work = Work { programs: 0, asked: 0, erases: 1 };
        for block in blocks {
            work += self.merge(block);
        }
        work
    }

    fn update(&mut self, page: u64) -> Work {
        let mut work = Work::default();
        if self.logs.back().is_none_or(|log| log.len() as u64 == self.pages_per_block) {
            if self.logs.len() == self.most_logs {
                work += self.empty_oldest();
            }
            self.logs.push_back(Vec::new());
        }
        if let Some(log) = self.logs.back_mut() {
            log.push(page);
        }
        self.newest.insert(page, self.first_log + self.logs.len() as u64 - 1);
        work
    }
}

impl Translation for LogBlock {
    fn write(&mut self, page: u64) -> Work {
        let mut work = Work { programs: 1, asked: 1, erases: 0 };
        let (block, index) = (page / self.pages_per_block, page % self.pages_per_block);
        let Some(written) = self.written.get_mut(block as usize) else { return work };
        if self.sequential == Some((block, index)) {
            self.sequential = Some((block, index + 1));
        } else if index == *written && self.sequential.is_none_or(|(other, _)| other != block) {
            // Never written: it goes to its place.
            *written += 1;
            return work;
        } else if index == 0 {
            work += self.end_sequential();
            self.sequential = Some((block, 1));
        } else {
            if index > *written {
                // What lies between is as if written: the place of a page in its block is fixed.
                *written = index;
            }
            *written = (*written).max(index + 1);
            work += self.update(page);
        }
        if self.sequential == Some((block, self.pages_per_block)) {
            work += self.end_sequential();
        }
        work
    }

    /// Such layers know no discard.
    fn discard(&mut self, _page: u64) {}
}

//! A layer that maps every page by itself and cleans the block with the fewest live pages.
//!
//! Pages are dealt out over one open block a lane, so what was written together does not lie in one
//! block.

use super::{Translation, Work};
use alloc::vec::Vec;

const NOWHERE: u32 = u32::MAX;
/// Page mapping with greedy cleaning.
pub struct PageMap {
    pages_per_block: u32,
    /// Where each page of the host lies.
    place: Vec<u32>,
    /// The page of the host that lies at each place.
    owner: Vec<u32>,
    /// Live pages of each block.
    live: Vec<u32>,
    /// Blocks by their live pages; entries that are no longer true are skipped.
    by_live: Vec<Vec<u32>>,
    is_full: Vec<bool>,
    free: Vec<u32>,
    /// The open block of each lane and its pages so far.
    open: Vec<(u32, u32)>,
    lane: usize,
}

impl PageMap {
    /// A layer for `pages` of the host with `spare_percent` more of flash on `lanes`.
    #[must_use]
    pub fn new(pages: u64, pages_per_block: u32, spare_percent: u64, lanes: u32) -> Self {
        let lanes = lanes.max(1);
        let pages = u32::try_from(pages).unwrap_or(NOWHERE - 1);
        let flash = u64::from(pages) + u64::from(pages) * spare_percent / 100;
        let blocks = flash.div_ceil(u64::from(pages_per_block)) as usize + 2 * lanes as usize;
        let free = (lanes..blocks as u32).rev().collect();
        let open = (0..lanes).map(|lane| (lane, 0)).collect();
        Self {
            pages_per_block,
            place: alloc::vec![NOWHERE; pages as usize],
            owner: alloc::vec![NOWHERE; blocks * pages_per_block as usize],
            live: alloc::vec![0; blocks],
            by_live: alloc::vec![Vec::new(); pages_per_block as usize + 1],
            is_full: alloc::vec![false; blocks],
            free,
            open,
            lane: 0,
        }
    }

    fn seal(&mut self, block: u32) {
        self.is_full[block as usize] = true;
        self.by_live[self.live[block as usize] as usize].push(block);
    }

    fn unmap(&mut self, page: u32) {
        let at = core::mem::replace(&mut self.place[page as usize], NOWHERE);
        if at != NOWHERE {
            self.owner[at as usize] = NOWHERE;
            let block = at / self.pages_per_block;
            self.live[block as usize] -= 1;
            if self.is_full[block as usize] {
                self.by_live[self.live[block as usize] as usize].push(block);
            }
        }
    }

    fn map(&mut self, page: u32) {
        self.lane = (self.lane + 1) % self.open.len();
        let (mut block, mut next) = self.open[self.lane];
        if next == self.pages_per_block {
            self.seal(block);
            (block, next) = (self.free.pop().unwrap_or(block), 0);
        }
        self.open[self.lane] = (block, next + 1);
        let at = block * self.pages_per_block + next;
        self.place[page as usize] = at;
        self.owner[at as usize] = page;
        self.live[block as usize] += 1;
    }

    fn victim(&mut self) -> Option<u32> {
        for live in 0..self.pages_per_block {
            while let Some(block) = self.by_live[live as usize].pop() {
                if self.is_full[block as usize] && self.live[block as usize] == live {
                    return Some(block);
                }
            }
        }
        None
    }

    fn clean(&mut self) -> Work {
        let mut work = Work::default();
        // As many as cleaning itself may open at once.
        while self.free.len() < self.open.len() {
            let Some(victim) = self.victim() else { break };
            self.is_full[victim as usize] = false;
            let first = victim * self.pages_per_block;
            for at in first..first + self.pages_per_block {
                let page = self.owner[at as usize];
                if page != NOWHERE {
                    self.unmap(page);
                    self.map(page);
                    work.programs += 1;
                }
            }
            self.free.insert(0, victim);
            work.erases += 1;
        }
        work
    }
}

impl Translation for PageMap {
    fn write(&mut self, page: u64) -> Work {
        let mut work = Work { programs: 1, asked: 1, erases: 0 };
        let page = page as u32;
        if page as usize >= self.place.len() {
            return work;
        }
        self.unmap(page);
        work += self.clean();
        self.map(page);
        work
    }

    fn discard(&mut self, page: u64) {
        if (page as usize) < self.place.len() {
            self.unmap(page as u32);
        }
    }
}

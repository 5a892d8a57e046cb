//! The time of a solid-state disk: lanes of flash behind a translation layer.
//!
//! Pages are spread over lanes that work side by side; what the translation layer ([`Translation`])
//! copies and erases to make room takes time of the lanes as the pages of the host do. A read of
//! little is split over several lanes. There is no buffer that survives a power cut: a flush waits
//! until the lanes are idle.
//!
//! [`SsdOptions::iodrive`] is the disk of paper 4, Table 1, from the chips that the paper names: 25
//! lanes give the 760 MB/s of reads and 540 MB/s of writes measured there within 6 %
//! (`research/hybrid-peers.md`, section 3.1).

use super::ftl::{Translation, Work};
use super::model::DiskModel;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Reads of at most so many pages are split over [`SPLIT`] lanes.
const SMALL_PAGES: u64 = 4;
const SPLIT: u64 = 4;

/// The speed of a solid-state disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SsdOptions {
    /// Chips that work at the same time.
    pub lanes: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Nanoseconds until a chip has a page at hand.
    pub read_nanoseconds: u64,
    /// Nanoseconds to move a page between a chip and the disk's controller.
    pub transfer_nanoseconds: u64,
    /// Nanoseconds to program a page; its transfer is hidden behind the page before.
    pub program_nanoseconds: u64,
    /// Nanoseconds to erase a block.
    pub erase_nanoseconds: u64,
}

impl SsdOptions {
    /// Fusion-io ioDrive with single-level cells (K9KAG08U0M): pages of 4 KiB, blocks of 256 KiB.
    #[must_use]
    pub const fn iodrive() -> Self {
        Self {
            lanes: 25,
            page_bytes: 4096,
            pages_per_block: 64,
            read_nanoseconds: 25_000,
            transfer_nanoseconds: 102_400,
            program_nanoseconds: 200_000,
            erase_nanoseconds: 1_500_000,
        }
    }
}

/// The state of a solid-state disk.
pub struct Ssd {
    options: SsdOptions,
    layer: Box<dyn Translation>,
    busy_until: Vec<u64>,
    next_lane: usize,
    host_pages: u64,
    work: Work,
}

impl Ssd {
    /// A disk whose flash `layer` manages.
    #[must_use]
    pub fn new(options: SsdOptions, layer: Box<dyn Translation>) -> Self {
        let lanes = options.lanes.max(1) as usize;
        Self { options, layer, busy_until: alloc::vec![0; lanes], next_lane: 0, host_pages: 0, work: Work::default() }
    }

    /// Pages programmed for each page that the host wrote, in thousandths; 0 before the first.
    #[must_use]
    pub fn amplification_thousandths(&self) -> u64 {
        (self.work.programs * 1000).checked_div(self.host_pages).unwrap_or(0)
    }

    /// Occupies the next lane; when it began and when it is done.
    fn occupy(&mut self, now: u64, nanoseconds: u64) -> (u64, u64) {
        let lane = self.next_lane;
        self.next_lane = (lane + 1) % self.busy_until.len();
        let Some(busy_until) = self.busy_until.get_mut(lane) else { return (now, now) };
        let begin = now.max(*busy_until);
        *busy_until = begin + nanoseconds;
        (begin, *busy_until)
    }

    fn pages(&self, offset: u64, length: u64) -> core::ops::Range<u64> {
        offset / self.options.page_bytes..(offset + length).div_ceil(self.options.page_bytes)
    }
}

impl DiskModel for Ssd {
    fn read(&mut self, now: u64, offset: u64, length: u64) -> u64 {
        let pages = self.pages(offset, length);
        let count = pages.end - pages.start;
        let (pieces, transfer) = if count <= SMALL_PAGES {
            (count * SPLIT, self.options.transfer_nanoseconds / SPLIT)
        } else {
            (count, self.options.transfer_nanoseconds)
        };
        let each = self.options.read_nanoseconds + transfer;
        (0..pieces).map(|_| self.occupy(now, each).1).max().unwrap_or(now)
    }

    /// Taken when the lanes have begun to program its last page.
    fn write(&mut self, now: u64, offset: u64, length: u64) -> u64 {
        let mut taken = now;
        for page in self.pages(offset, length) {
            let work = self.layer.write(page);
            self.host_pages += 1;
            self.work += work;
            let copy =
                self.options.read_nanoseconds + self.options.transfer_nanoseconds + self.options.program_nanoseconds;
            for _ in 0..work.erases {
                taken = taken.max(self.occupy(now, self.options.erase_nanoseconds).0);
            }
            for _ in 0..work.copies() {
                taken = taken.max(self.occupy(now, copy).0);
            }
            taken = taken.max(self.occupy(now, self.options.program_nanoseconds).0);
        }
        taken
    }

    fn discard(&mut self, offset: u64, length: u64) {
        // Only what it covers whole.
        let page = self.options.page_bytes;
        for page in offset.div_ceil(page)..(offset + length) / page {
            self.layer.discard(page);
        }
    }

    fn flush(&mut self, now: u64) -> u64 {
        now.max(self.idle_at())
    }

    fn idle_at(&self) -> u64 {
        self.busy_until.iter().copied().max().unwrap_or(0)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        alloc::vec![
            ("pages written", self.host_pages),
            ("pages programmed", self.work.programs),
            ("blocks erased", self.work.erases),
        ]
    }
}

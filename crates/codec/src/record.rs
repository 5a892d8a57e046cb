//! The record: what the device remembers of one object and one piece of its pages.

use alloc::vec::Vec;

/// Pages of a piece. A record never reaches from one piece into the next.
pub const PIECE_PAGES: u64 = 256;

/// Place of a record in the order of all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Object id.
    pub object: u64,
    /// First page of the object that the record speaks of.
    pub page: u64,
}

/// Pages of an object that lie one after another on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First page in the object.
    pub page: u64,
    /// How many pages; at least one.
    pub pages: u32,
    /// First page on the medium. Any unit will do as long as consecutive pages have consecutive
    /// numbers.
    pub at: u64,
}

/// What belongs to an object once, whatever its size. Fields that a device does not use stay at
/// their default, and then cost nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Object id of the directory it was made in.
    pub parent: u64,
    /// Kind of object.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// Number that tells apart versions of the page at `home`.
    pub serial: u32,
    /// Page on the medium with all that is not here (names, attributes); `None` if there is none.
    pub home: Option<u64>,
    /// Size in bytes; `None` if only the page at `home` knows.
    pub size: Option<u64>,
    /// Time of the last change in a unit of the device's choice.
    pub time: u64,
    /// Anything else, stored as it is.
    pub extra: Vec<u8>,
}

/// The record of `object` for the pages from `page` to the end of the piece that `page` lies in, or
/// to where the next record of the object begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Object id.
    pub object: u64,
    /// First page it speaks of.
    pub page: u64,
    /// What belongs to the object once; usually in the record of page 0.
    pub head: Option<Head>,
    /// Where the pages lie, ascending. Pages in no run are holes. Runs that continue each other in
    /// the object and on the medium are one run.
    pub runs: Vec<Run>,
}

impl Run {
    /// The page of the object behind the last one.
    pub const fn end(&self) -> u64 {
        self.page.saturating_add(self.pages as u64)
    }

    /// The page of the medium behind the last one.
    pub const fn end_at(&self) -> u64 {
        self.at.saturating_add(self.pages as u64)
    }

    /// Whether `next` goes on where this one ends, in the object and on the medium.
    pub const fn continues_in(&self, next: &Self) -> bool {
        self.end() == next.page && self.end_at() == next.at
    }
}

impl Record {
    /// Its place in the order.
    pub const fn key(&self) -> Key {
        Key { object: self.object, page: self.page }
    }

    /// The page behind the piece that the record lies in.
    pub const fn piece_end(&self) -> u64 {
        (self.page / PIECE_PAGES).saturating_add(1).saturating_mul(PIECE_PAGES)
    }

    /// Where `page` of the object lies; `None` if it is a hole or of another record.
    pub fn lookup(&self, page: u64) -> Option<u64> {
        let after = self.runs.partition_point(|run| run.page <= page);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (page < run.end()).then(|| run.at + (page - run.page))
    }

    /// Pages that are mapped.
    pub fn mapped_pages(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.pages)).sum()
    }

    /// Whether the runs are as they have to be: ascending, inside the piece, not empty, joined,
    /// within 64 bits.
    pub fn is_sound(&self) -> bool {
        let mut end = self.page;
        let mut last: Option<&Run> = None;
        self.runs.iter().all(|run| {
            let sound = run.pages > 0
                && run.page >= end
                && run.end() <= self.piece_end()
                && run.at.checked_add(u64::from(run.pages)).is_some()
                && last.is_none_or(|last| !last.continues_in(run));
            end = run.end();
            last = Some(run);
            sound
        })
    }

    /// Cuts off what lies from `page` on and returns it as a record of its own. The head stays.
    pub fn cut(&mut self, page: u64) -> Self {
        let mut rest = Self { object: self.object, page, ..Self::default() };
        for run in &self.runs {
            if run.page >= page {
                rest.runs.push(*run);
            } else if run.end() > page {
                let kept = page - run.page;
                rest.runs.push(Run { page, pages: run.pages - kept as u32, at: run.at + kept });
            }
        }
        self.runs.retain_mut(|run| {
            run.pages = run.pages.min(u32::try_from(page.saturating_sub(run.page)).unwrap_or(u32::MAX));
            run.pages > 0
        });
        rest
    }
}

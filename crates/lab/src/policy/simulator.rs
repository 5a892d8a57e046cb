//! The simulator: pages without data on segments, driven by the device's own policies.
//!
//! It keeps what a device keeps - where each page lies, what lies where, and per segment how much
//! is alive, when it was opened and of what class it is - and nothing that a device could not know.
//! Time is the number of segments opened. It does not model metadata, checkpoints or crashes.

use super::placer::Placer;
use onode_flash::policy::{Candidate, Chooser, Placement, Resident, Stream, VictimPolicy, Wear, WearPolicy};

/// No page, no segment.
const NONE: u32 = u32::MAX;

/// The log that fills a worn segment with cold content.
const REST: usize = Placement::CLASSES_MAX;

/// The most segments whose content is put to rest at once.
const REST_SOURCES: usize = 4;

/// Size and rules of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub segments: u32,
    pub segment_pages: u32,
    /// Pages that users fill.
    pub pages: u32,
}

/// A log and the segment it fills.
#[derive(Clone, Copy, Debug)]
struct Open {
    segment: u32,
    filled: u32,
}

/// A segment as far as the choice of a victim goes; what else there is stands beside, so that the
/// search stays in the processor's nearest cache.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    live: u32,
    /// When it was opened.
    opened: u32,
    erases: u32,
    /// Filled, and thus a candidate.
    sealed: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub written: u64,
    pub moved: u64,
    /// Moved for the sake of wear; not in `moved`.
    pub levelled: u64,
    pub cleaned: u64,
}

pub(super) struct Simulator<P> {
    shape: Shape,
    placer: P,
    chooser: Chooser,
    wear: WearPolicy,
    /// Bits of a place that say which page of its segment it is; a shift is cheaper than a
    /// division.
    page_bits: u32,
    /// Place of each page: its segment, and the page of it in the last `page_bits`.
    place: Vec<u32>,
    /// The page that was written to each place; it is alive if its place is this one.
    page: Vec<u32>,
    segments: Vec<Segment>,
    class: Vec<u8>,
    free: Vec<u32>,
    open: [Open; REST + 1],
    now: u32,
    erased: u64,
    pub counts: Counts,
}

impl<P: Placer> Simulator<P> {
    pub(super) fn new(shape: Shape, placer: P, victim: VictimPolicy, wear: WearPolicy) -> Self {
        let segments = shape.segments as usize;
        let page_bits = shape.segment_pages.next_power_of_two().trailing_zeros();
        Self {
            page_bits,
            shape,
            placer,
            chooser: Chooser::new(victim, shape.segment_pages),
            wear,
            place: vec![NONE; shape.pages as usize],
            page: vec![NONE; segments << page_bits],
            segments: vec![Segment::default(); segments],
            class: vec![0; segments],
            free: (0..shape.segments).collect(),
            open: [Open { segment: NONE, filled: 0 }; REST + 1],
            now: 0,
            erased: 0,
            counts: Counts::default(),
        }
    }

    /// Segments that stay free for the cleaner to be able to go on: one for each log, and one more.
    pub(super) fn reserve(&self) -> usize {
        usize::from(self.placer.classes()) + 1
    }

    /// Writes every page once, in order.
    pub(super) fn fill(&mut self) {
        for page in 0..self.shape.pages {
            self.write(page, None);
        }
    }

    /// Does the writes `writes`, the first of which has the number `first`.
    pub(super) fn run(&mut self, writes: &[u32], first: usize) {
        for (at, &page) in (first..).zip(writes) {
            self.write(page, Some(at));
        }
    }

    #[inline]
    fn write(&mut self, page: u32, at: Option<usize>) {
        let old = self.place[page as usize];
        let overwritten = if old == NONE {
            None
        } else {
            let segment = (old >> self.page_bits) as usize;
            self.segments[segment].live -= 1;
            Some(self.resident(segment as u32))
        };
        let class = self.placer.written(page, at, overwritten);
        self.append(class, class.into(), page);
        self.counts.written += 1;
        while self.free.len() < self.reserve() {
            self.clean();
        }
    }

    /// Puts `page`, of class `class`, into the log `log`.
    #[inline]
    fn append(&mut self, class: u8, log: usize, page: u32) {
        if self.open[log].segment == NONE {
            self.open_segment(class, log);
        }
        let open = &mut self.open[log];
        let segment = open.segment as usize;
        let place = open.segment << self.page_bits | open.filled;
        open.filled += 1;
        self.page[place as usize] = page;
        self.place[page as usize] = place;
        self.segments[segment].live += 1;
        if open.filled == self.shape.segment_pages {
            self.segments[segment].sealed = true;
            open.segment = NONE;
        }
    }

    fn open_segment(&mut self, class: u8, log: usize) {
        let long_lived = self.placer.is_long_lived(class);
        let ranked = self.free.iter().enumerate();
        let best = ranked.min_by_key(|&(_, &one)| self.wear.rank_free(self.segments[one as usize].erases, long_lived));
        let (index, _) = best.expect("the cleaner keeps a segment free for each log");
        let segment = self.free.remove(index);
        self.start(segment, class, log);
    }

    fn start(&mut self, segment: u32, class: u8, log: usize) {
        let index = segment as usize;
        self.now += 1;
        let erases = self.segments[index].erases;
        self.segments[index] = Segment { live: 0, opened: self.now, erases, sealed: false };
        self.class[index] = class;
        self.open[log] = Open { segment, filled: 0 };
    }

    fn clean(&mut self) {
        let now = self.now;
        let candidates = (0..).zip(&self.segments).filter(|(_, one)| one.sealed).map(|(segment, one)| Candidate {
            segment,
            live_bytes: one.live,
            age: now.wrapping_sub(one.opened),
            erases: one.erases,
            stream: Stream::Data,
        });
        let victim = self.chooser.choose(candidates).expect("something is sealed when nothing is free").segment;
        let resident = self.resident(victim);
        self.placer.cleaned(resident);
        self.counts.moved += u64::from(self.segments[victim as usize].live);
        self.counts.cleaned += 1;
        self.move_all(victim, resident, false);
        self.erase(victim);
        let wear = Wear { erases: self.erased, segments: self.shape.segments };
        if self.wear.is_due(self.segments[victim as usize].erases, wear) {
            self.rest(victim, wear);
        } else {
            self.free.push(victim);
        }
    }

    fn resident(&self, segment: u32) -> Resident {
        let index = segment as usize;
        Resident { class: self.class[index], opened: self.now - self.segments[index].opened }
    }

    /// Gives the worn segment `worn`, which is erased, cold content to rest under. If the one
    /// before is not full yet, that goes first and `worn` is merely free.
    fn rest(&mut self, worn: u32, wear: Wear) {
        let mut waiting = Some(worn);
        for _ in 0..REST_SOURCES {
            let Some(cold) = self.coldest(wear) else { break };
            let resident = self.resident(cold);
            if self.open[REST].segment == NONE {
                let Some(worn) = waiting.take() else { break };
                let class = self.placer.moved_together(resident).unwrap_or(resident.class);
                self.start(worn, class, REST);
            }
            self.counts.levelled += u64::from(self.segments[cold as usize].live);
            self.move_all(cold, resident, true);
            self.erase(cold);
            self.free.push(cold);
        }
        self.free.extend(waiting);
    }

    /// The sealed segment with the coldest content on the least worn ground.
    fn coldest(&self, wear: Wear) -> Option<u32> {
        let sealed = (0..).zip(&self.segments).filter(|(_, one)| one.sealed);
        let ranked = sealed
            .filter_map(|(segment, one)| wear.rank_cold(one.erases, self.now - one.opened).map(|rank| (rank, segment)));
        ranked.max_by_key(|&(rank, one)| (rank, core::cmp::Reverse(one))).map(|(_, one)| one)
    }

    /// Moves everything alive off `segment`, into the worn segment that is open if `resting`.
    fn move_all(&mut self, segment: u32, resident: Resident, resting: bool) {
        let together = self.placer.moved_together(resident);
        let first = segment << self.page_bits;
        for place in first..first + self.shape.segment_pages {
            let page = self.page[place as usize];
            if self.place[page as usize] != place {
                continue;
            }
            let class = together.unwrap_or_else(|| self.placer.moved(page));
            let log = if resting && self.open[REST].segment != NONE { REST } else { class.into() };
            self.append(class, log, page);
        }
    }

    fn erase(&mut self, segment: u32) {
        let one = &mut self.segments[segment as usize];
        one.sealed = false;
        one.live = 0;
        one.erases += 1;
        self.erased += 1;
    }

    /// Times each segment was erased.
    pub(super) fn erases(&self) -> impl Iterator<Item = u32> {
        self.segments.iter().map(|one| one.erases)
    }
}

#[cfg(test)]
mod tests {
    use super::super::placer::Device;
    use super::*;

    #[test]
    fn every_page_stays_where_its_place_says_and_live_counts_add_up() {
        let shape = Shape { segments: 128, segment_pages: 15, pages: 1500 };
        let writes: Vec<u32> = (0..40_000_u32).map(|at| at.wrapping_mul(at ^ 0x9e37) % 1500).collect();
        for placement in Placement::ALL {
            let placer = Device::new(placement, shape.segments, None);
            let mut simulator = Simulator::new(shape, placer, VictimPolicy::FlashCostBenefit, WearPolicy::Static);
            simulator.fill();
            simulator.run(&writes, 0);
            let mut live = vec![0; shape.segments as usize];
            for (page, &place) in (0..).zip(&simulator.place) {
                assert_eq!(simulator.page[place as usize], page, "{placement:?}");
                live[(place >> simulator.page_bits) as usize] += 1;
            }
            assert!(live.iter().zip(&simulator.segments).all(|(live, one)| *live == one.live), "{placement:?}");
            assert!(simulator.free.len() >= simulator.reserve(), "{placement:?}");
            assert_eq!(simulator.counts.written, 41_500);
        }
    }
}

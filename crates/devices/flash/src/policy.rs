//! Policies as pure functions: which stream bytes go to, and which segment the cleaner takes.
//!
//! They see numbers and return numbers; they read nothing and change nothing. Later policies
//! (`split+atime`, age chains, hint classes) are further arms here.

use onode_object::Hints;

/// A log that fills its own segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stream {
    /// Commit records with small contents and tails.
    Journal = 0,
    /// Whole pages of content.
    Data = 1,
    /// What the cleaner moved: it has survived once and will probably survive longer.
    Cold = 2,
    /// Tree nodes and the segment table.
    Index = 3,
}

impl Stream {
    /// All streams in order of their number.
    pub const ALL: [Self; 4] = [Self::Journal, Self::Data, Self::Cold, Self::Index];

    /// The stream a byte stands for.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Journal,
            1 => Self::Data,
            2 => Self::Cold,
            3 => Self::Index,
            _ => return None,
        })
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Data => "data",
            Self::Cold => "cold",
            Self::Index => "index",
        }
    }
}

/// How much of a write of `length` bytes goes to [`Stream::Data`] as whole pages; the rest is packed
/// into the journal page that carries the commit record.
///
/// This is the *split* policy of paper 1 (section IV) with one change: the tail of a write, which
/// would leave a page half empty, travels with the record. So a synced write of n bytes programs
/// about (n + record) / page pages, the least a page medium allows, and no data page has padding.
#[must_use]
pub const fn whole_page_bytes(_hints: &Hints, length: usize, payload_bytes: usize) -> usize {
    length - length % payload_bytes
}

/// Which segment the cleaner takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimPolicy {
    /// The one with the least live bytes.
    Greedy,
    /// The best benefit / cost = age * (1 - u) / (1 + u), u being the live share (Rosenblum, Ousterhout).
    #[default]
    CostBenefit,
    /// The one sealed longest ago.
    Fifo,
}

/// A segment as the victim policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which one.
    pub segment: u32,
    /// Bytes that would have to be moved.
    pub live_bytes: u32,
    /// Bytes it can hold.
    pub capacity_bytes: u32,
    /// How many segments were opened since it was.
    pub age: u32,
}

impl VictimPolicy {
    /// The value of cleaning `candidate`; the highest wins, the lower segment number breaks ties.
    #[must_use]
    pub fn score(self, candidate: &Candidate) -> u64 {
        let live = u64::from(candidate.live_bytes.min(candidate.capacity_bytes));
        let capacity = u64::from(candidate.capacity_bytes.max(1));
        let free = capacity - live;
        match self {
            Self::Greedy => free,
            Self::CostBenefit => (u64::from(candidate.age) + 1) * (free * 65536 / (capacity + live)),
            Self::Fifo => u64::from(candidate.age),
        }
    }

    /// The best of `candidates`. Segments that would give back less than 1/64 of their size are taken
    /// only if there is nothing else.
    #[must_use]
    pub fn choose(self, candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
        candidates.max_by_key(|one| {
            let useful = one.live_bytes <= one.capacity_bytes - one.capacity_bytes / 64;
            (useful, self.score(one), core::cmp::Reverse(one.segment))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(segment: u32, live_bytes: u32, age: u32) -> Candidate {
        Candidate { segment, live_bytes, capacity_bytes: 1000, age }
    }

    #[test]
    fn greedy_takes_the_emptiest_and_fifo_the_oldest() {
        let all = [candidate(0, 500, 9), candidate(1, 100, 1), candidate(2, 900, 20)];
        assert_eq!(VictimPolicy::Greedy.choose(all.into_iter()).map(|c| c.segment), Some(1));
        assert_eq!(VictimPolicy::Fifo.choose(all.into_iter()).map(|c| c.segment), Some(2));
        assert_eq!(VictimPolicy::Greedy.choose([].into_iter()), None);
    }

    #[test]
    fn cost_benefit_prefers_old_segments_at_equal_fill_and_avoids_full_ones() {
        let all = [candidate(0, 500, 2), candidate(1, 500, 8), candidate(2, 999, 1_000_000)];
        assert_eq!(VictimPolicy::CostBenefit.choose(all.into_iter()).map(|c| c.segment), Some(1));
    }

    #[test]
    fn only_whole_pages_leave_the_journal() {
        let hints = Hints::default();
        assert_eq!(whole_page_bytes(&hints, 5000, 2048), 4096);
        assert_eq!(whole_page_bytes(&hints, 2047, 2048), 0);
    }
}

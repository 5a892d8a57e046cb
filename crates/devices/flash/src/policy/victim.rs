//! Victim policies: which segment the cleaner takes.
//!
//! Each is a score that multiplies a weight of the live share with powers of the age, so that
//! judging a segment takes two multiplications and a table look-up. Segments that would give back
//! less than 1/64 of their size score nothing: they are taken only if there is nothing else.

use super::Stream;

/// Which segment the cleaner takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VictimPolicy {
    /// The one with the least live bytes.
    Greedy,
    /// Paper 1, sections IV and V.B: the emptiest of the segments that are below the threshold of
    /// their type; without any, of all. Of segments about as full, one of access times goes before
    /// one of content, and that before one of metadata, whose live bytes will soon be dead without
    /// being moved.
    Thresholds(Thresholds),
    /// The best benefit / cost = age * (1 - u) / (1 + u), u being the live share: a segment is read
    /// whole and what is alive is written (Rosenblum and Ousterhout).
    #[default]
    CostBenefit,
    /// The same for flash, where only what is alive is read: age * (1 - u) / 2u (Kawaguchi and
    /// others).
    FlashCostBenefit,
    /// That divided by the erases so far (cost-age-times of Chiang and others).
    CostAgeTimes,
    /// The emptiest of `count` candidates drawn at random.
    Choices {
        /// How many are drawn, at most [`VictimPolicy::CHOICES_MAX`].
        count: u8,
        /// Where the randomness comes from.
        seed: u64,
    },
    /// The one opened longest ago.
    Fifo,
}

/// The most live bytes that a victim of each type may have, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Of content.
    pub data: u8,
    /// Of journal and index.
    pub metadata: u8,
}

impl Default for Thresholds {
    /// Those of the paper's evaluation.
    fn default() -> Self {
        Self { data: 80, metadata: 60 }
    }
}

/// A segment as the victim policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which one.
    pub segment: u32,
    /// Bytes that would have to be moved, as a segment with the most parity would hold them.
    pub live_bytes: u32,
    /// How many segments were opened since it was.
    pub age: u32,
    /// Times it was erased.
    pub erases: u32,
    /// What it holds.
    pub stream: Stream,
}

impl VictimPolicy {
    /// The most candidates drawn at random.
    pub const CHOICES_MAX: u8 = 32;

    /// One of each kind, with usual figures.
    pub const ALL: [Self; 7] = [
        Self::Greedy,
        Self::Thresholds(Thresholds { data: 80, metadata: 60 }),
        Self::CostBenefit,
        Self::FlashCostBenefit,
        Self::CostAgeTimes,
        Self::Choices { count: 10, seed: 1 },
        Self::Fifo,
    ];

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Thresholds(_) => "thresholds",
            Self::CostBenefit => "cost-benefit",
            Self::FlashCostBenefit => "flash-cost-benefit",
            Self::CostAgeTimes => "cost-age-times",
            Self::Choices { .. } => "d-choices",
            Self::Fifo => "fifo",
        }
    }

    /// The policy called `name`, with usual figures.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The number that stands for it on the medium.
    #[must_use]
    pub fn byte(self) -> u8 {
        let same = |one: &Self| core::mem::discriminant(one) == core::mem::discriminant(&self);
        Self::ALL.iter().position(same).unwrap_or(0) as u8
    }

    /// The policy a byte on the medium stands for, with usual figures.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// The best of `candidates`, which hold `capacity_bytes` each; among equals the first.
    #[must_use]
    pub fn choose(self, capacity_bytes: u32, candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
        Chooser::new(self, capacity_bytes).choose(candidates)
    }
}

/// Live shares that are told apart.
const SHARES: usize = 256;

/// So many of them are about as full, for the thresholds.
const SIMILAR_SHARES: u64 = 16;

/// The threshold of segments that may always be cleaned.
const ANY_PERCENT: u8 = 100;

/// A victim policy with its table of weights, for whoever chooses often.
#[derive(Clone, Debug)]
pub struct Chooser {
    policy: VictimPolicy,
    weights: [u32; SHARES + 1],
    capacity_bytes: u32,
    /// Shares of a segment per byte, times 2^32: judging takes no division.
    scale: u64,
    /// Draws so far.
    draws: u64,
}

impl Chooser {
    /// A chooser that follows `policy` among segments that hold `capacity_bytes` each.
    #[must_use]
    pub fn new(policy: VictimPolicy, capacity_bytes: u32) -> Self {
        let mut weights = [0; SHARES + 1];
        for (live, weight) in (0..).zip(&mut weights[..=SHARES - SHARES / 64]) {
            let free = SHARES as u32 - live;
            *weight = match policy {
                VictimPolicy::Fifo => 1,
                VictimPolicy::CostBenefit => free * 65536 / (live + SHARES as u32),
                VictimPolicy::FlashCostBenefit | VictimPolicy::CostAgeTimes => free * 65536 / (live + LEAST_COST),
                VictimPolicy::Greedy | VictimPolicy::Thresholds(_) | VictimPolicy::Choices { .. } => free,
            };
        }
        let capacity_bytes = capacity_bytes.max(1);
        let scale = ((SHARES as u64) << 32).div_ceil(u64::from(capacity_bytes));
        Self { policy, weights, capacity_bytes, scale, draws: 0 }
    }

    /// The policy followed.
    #[must_use]
    pub const fn policy(&self) -> VictimPolicy {
        self.policy
    }

    /// The value of cleaning `candidate`; the highest wins.
    #[inline]
    #[must_use]
    pub fn score(&self, candidate: &Candidate) -> u64 {
        match self.policy {
            VictimPolicy::Greedy | VictimPolicy::Choices { .. } => self.weight(candidate),
            VictimPolicy::CostBenefit | VictimPolicy::FlashCostBenefit | VictimPolicy::Fifo => self.aged(candidate),
            VictimPolicy::CostAgeTimes => self.aged(candidate) / (u64::from(candidate.erases) + 1),
            VictimPolicy::Thresholds(thresholds) => {
                let (percent, priority) = match candidate.stream {
                    Stream::Atime => (ANY_PERCENT, 2),
                    Stream::Journal | Stream::Index => (thresholds.metadata, 0),
                    _ => (thresholds.data, 1),
                };
                let is_below = self.share_of(candidate) * 100 <= usize::from(percent) * SHARES;
                let weight = self.weight(candidate);
                (u64::from(is_below) << 48) + ((weight / SIMILAR_SHARES) << 32) + (priority << 16) + weight
            }
        }
    }

    /// The best of `candidates`; among equals the first.
    #[inline]
    #[must_use]
    pub fn choose(&mut self, candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
        // The usual policies have a loop of their own: the cleaner of a full device asks all the
        // time.
        match self.policy {
            VictimPolicy::Choices { count, seed } => {
                self.draws += 1;
                self.choose_drawn(usize::from(count), mix(seed ^ mix(self.draws)), candidates)
            }
            VictimPolicy::Greedy => highest(candidates, |one| self.weight(one)),
            VictimPolicy::CostBenefit | VictimPolicy::FlashCostBenefit | VictimPolicy::Fifo => {
                highest(candidates, |one| self.aged(one))
            }
            VictimPolicy::CostAgeTimes | VictimPolicy::Thresholds(_) => highest(candidates, |one| self.score(one)),
        }
    }

    #[inline]
    fn weight(&self, candidate: &Candidate) -> u64 {
        u64::from(self.weights[self.share_of(candidate)])
    }

    #[inline]
    fn aged(&self, candidate: &Candidate) -> u64 {
        // Two factors below 2^32.
        u64::from(candidate.age.saturating_add(1)).wrapping_mul(self.weight(candidate))
    }

    /// The live share of a candidate in [`SHARES`] parts, rounded up so that nothing alive counts
    /// as dead.
    #[inline]
    fn share_of(&self, candidate: &Candidate) -> usize {
        // The scale is rounded up by less than one in 2^32; taking it down by one gives no segment
        // a share too many, and below the capacity the product stays below SHARES * 2^32.
        let live = u64::from(candidate.live_bytes.min(self.capacity_bytes));
        (live.wrapping_mul(self.scale.wrapping_sub(1)).wrapping_add(0xffff_ffff) >> 32).min(SHARES as u64) as usize
    }

    /// Each candidate draws a lot; the `count` lowest are compared.
    fn choose_drawn(&self, count: usize, key: u64, candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
        let mut drawn: [Option<(u64, Candidate)>; VictimPolicy::CHOICES_MAX as usize] = [None; _];
        let drawn = &mut drawn[..count.clamp(1, usize::from(VictimPolicy::CHOICES_MAX))];
        for candidate in candidates {
            let mut entry = Some((mix(key ^ u64::from(candidate.segment)), candidate));
            for place in drawn.iter_mut() {
                let Some((lot, _)) = entry else { break };
                if place.is_none_or(|(other, _)| lot < other) {
                    core::mem::swap(place, &mut entry);
                }
            }
        }
        let ranked = drawn.iter().flatten().map(|(_, candidate)| (self.score(candidate), candidate));
        ranked.max_by_key(|(score, one)| (*score, core::cmp::Reverse(one.segment))).map(|(_, one)| *one)
    }
}

#[inline]
fn highest(candidates: impl Iterator<Item = Candidate>, score: impl Fn(&Candidate) -> u64) -> Option<Candidate> {
    let mut best: Option<(u64, Candidate)> = None;
    for candidate in candidates {
        let score = score(&candidate);
        if best.as_ref().is_none_or(|(highest, _)| score > *highest) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// What even an empty segment costs, in shares: an erase and a little bookkeeping. Measured:
/// without it cost-benefit takes young segments that would still empty themselves.
const LEAST_COST: u32 = 26;

/// The output function of splitmix64: every bit of the result depends on every bit of `word`.
const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests;

//! Wear policies: which free segment is filled next, and when cold content has to move.
//!
//! *Dynamic* levelling chooses among free segments only, so what never changes keeps its segments
//! young for ever. *Static* levelling also moves such content into the most worn segments, where it
//! gives them rest. It does so only when a segment has run ahead of the mean, so that level wear
//! costs no moves.

/// How wear is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WearPolicy {
    /// Not at all: free segments are filled in turn.
    Off,
    /// Among the free segments: long-lived content goes to the most worn, everything else to the
    /// least.
    #[default]
    Dynamic,
    /// The same, and cold content is moved into worn segments.
    Static,
}

impl WearPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Dynamic, Self::Static];

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Dynamic => "dynamic",
            Self::Static => "static",
        }
    }

    /// The policy called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// How good a free segment erased `erases` times is for new content; the lowest wins, among
    /// equals the one that has been free for longest.
    #[inline]
    #[must_use]
    pub const fn rank_free(self, erases: u32, long_lived: bool) -> u32 {
        match self {
            Self::Off => 0,
            Self::Dynamic | Self::Static => {
                if long_lived {
                    u32::MAX - erases
                } else {
                    erases
                }
            }
        }
    }

    /// Whether a free segment erased `erases` times has to rest under cold content.
    #[must_use]
    pub const fn is_due(self, erases: u32, wear: Wear) -> bool {
        matches!(self, Self::Static) && erases > wear.limit()
    }
}

/// Erases of all segments together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Their sum.
    pub erases: u64,
    /// Number of segments.
    pub segments: u32,
}

impl Wear {
    /// Erases of a segment on average.
    #[must_use]
    pub const fn mean(self) -> u32 {
        let segments = if self.segments == 0 { 1 } else { self.segments };
        (self.erases / segments as u64) as u32
    }

    /// Erases beyond which a segment has run ahead: an eighth above the mean, and at least two.
    #[must_use]
    pub const fn limit(self) -> u32 {
        let mean = self.mean();
        mean.saturating_add(if mean < 16 { 2 } else { mean / 8 })
    }

    /// How well a sealed segment suits as the source of cold content for a worn one; the highest
    /// wins. It must be less worn than the mean, so that the exchange brings the two together.
    #[must_use]
    pub const fn rank_cold(self, erases: u32, age: u32) -> Option<u64> {
        let mean = self.mean();
        if erases >= mean {
            return None;
        }
        Some((mean - erases) as u64 * (age as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_segments_are_ranked_by_wear_both_ways() {
        assert_eq!(WearPolicy::Off.rank_free(5, false), WearPolicy::Off.rank_free(9, true));
        assert!(WearPolicy::Dynamic.rank_free(5, false) < WearPolicy::Dynamic.rank_free(9, false));
        assert!(WearPolicy::Dynamic.rank_free(9, true) < WearPolicy::Dynamic.rank_free(5, true));
    }

    #[test]
    fn only_static_levelling_moves_and_only_what_ran_ahead() {
        let wear = Wear { erases: 3200, segments: 100 };
        assert_eq!((wear.mean(), wear.limit()), (32, 36));
        assert!(WearPolicy::Static.is_due(37, wear));
        assert!(!WearPolicy::Static.is_due(36, wear));
        assert!(!WearPolicy::Dynamic.is_due(1000, wear));
        assert_eq!(wear.rank_cold(32, 1_000_000), None);
        assert!(wear.rank_cold(10, 50) > wear.rank_cold(20, 50));
        assert_eq!(Wear::default().mean(), 0);
    }
}

//! One segment: what it is used for, how full and how worn it is.
//!
//! It is a record and guards nothing; [`SegmentTable`](super::SegmentTable) counts what changes.

use crate::medium::format::NO_SUMMARY;
use crate::policy::Stream;

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SegmentState {
    /// Nothing on it is needed, and was not at the last checkpoint either.
    Free = 0,
    /// Nothing on it is needed, but the checkpoint before the newest may still refer to it.
    Held = 1,
    /// Being filled, or reserved as the next journal segment.
    Open = 3,
    /// Written.
    Full = 4,
    /// Retired: an erase block of it is bad.
    Bad = 5,
    /// Written up to a page that could not be programmed, its `summary_page`: retired once nothing
    /// on it is needed any more.
    Failing = 6,
}

impl SegmentState {
    /// The state a byte stands for.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Free,
            1 => Self::Held,
            3 => Self::Open,
            4 => Self::Full,
            5 => Self::Bad,
            6 => Self::Failing,
            _ => return None,
        })
    }

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Open => "open",
            Self::Full => "full",
            Self::Bad => "bad",
            Self::Failing => "failing",
        }
    }
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its use.
    pub state: SegmentState,
    /// The stream that fills or filled it.
    pub stream: Stream,
    /// Bytes that are referred to.
    pub live_bytes: u32,
    /// Times erased.
    pub erases: u32,
    /// Sequence number of its present life.
    pub sequence: u32,
    /// Page at which its summary starts, [`NO_SUMMARY`] if there is none.
    pub summary_page: u16,
}

impl Segment {
    /// One that was never used.
    pub const NEW: Self = Self {
        state: SegmentState::Free,
        stream: Stream::Data,
        live_bytes: 0,
        erases: 0,
        sequence: 0,
        summary_page: NO_SUMMARY,
    };

    /// Whether it holds anything that somebody may read, if a replay starts in the journal segment
    /// `journal_sequence`.
    pub const fn is_needed(&self, journal_sequence: u32) -> bool {
        match self.state {
            SegmentState::Open => true,
            SegmentState::Full | SegmentState::Failing => self.live_bytes > 0 || self.in_replay(journal_sequence),
            _ => false,
        }
    }

    /// Whether a replay that starts in the journal segment `journal_sequence` reads this segment.
    pub const fn in_replay(&self, journal_sequence: u32) -> bool {
        matches!(self.stream, Stream::Journal) && self.sequence >= journal_sequence
    }

    pub(super) const fn erases_of_sound(&self) -> u64 {
        if matches!(self.state, SegmentState::Bad) { 0 } else { self.erases as u64 }
    }

    pub(super) const fn index_bytes(&self) -> u64 {
        if matches!(self.stream, Stream::Index) { self.live_bytes as u64 } else { 0 }
    }

    pub(super) const fn is_dead(&self, journal_sequence: u32) -> bool {
        matches!(self.state, SegmentState::Full) && self.live_bytes == 0 && !self.in_replay(journal_sequence)
    }
}

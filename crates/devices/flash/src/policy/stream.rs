//! Streams: the logs that fill segments of their own, and what of a write goes to which.
//!
//! The numbers are the bytes on the medium (`docs/format/flash.md`) and never change their meaning.

use super::Placement;
use onode_object::Hints;

/// A log that fills its own segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stream {
    /// Commit records with small contents and tails.
    Journal = 0,
    /// Whole pages of content: the first class of every placement.
    Data = 1,
    /// What the cleaner moved, where that is one class: it has survived once and will probably
    /// survive longer.
    Cold = 2,
    /// Tree nodes and the segment table.
    Index = 3,
    /// Content of the second class of a placement with more than two.
    Class1 = 4,
    /// Content of the third class.
    Class2 = 5,
    /// Content of the fourth class.
    Class3 = 6,
    /// Content of the fifth class.
    Class4 = 7,
    /// Content of the sixth class.
    Class5 = 8,
    /// Access times.
    Atime = 9,
    /// Content that wishes no parity, where objects choose their parity and it usually has some.
    Parity0 = 10,
    /// Content that wishes one page of parity in each row, where another number is usual.
    Parity1 = 11,
    /// Content that wishes two.
    Parity2 = 12,
    /// Content that wishes three.
    Parity3 = 13,
}

impl Stream {
    /// All streams in order of their number.
    pub const ALL: [Self; 14] = [
        Self::Journal,
        Self::Data,
        Self::Cold,
        Self::Index,
        Self::Class1,
        Self::Class2,
        Self::Class3,
        Self::Class4,
        Self::Class5,
        Self::Atime,
        Self::Parity0,
        Self::Parity1,
        Self::Parity2,
        Self::Parity3,
    ];

    /// Those that hold whole pages of content.
    pub const CONTENT: [Self; 11] = [
        Self::Data,
        Self::Cold,
        Self::Class1,
        Self::Class2,
        Self::Class3,
        Self::Class4,
        Self::Class5,
        Self::Parity0,
        Self::Parity1,
        Self::Parity2,
        Self::Parity3,
    ];

    /// The stream a byte stands for.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Journal,
            1 => Self::Data,
            2 => Self::Cold,
            3 => Self::Index,
            4 => Self::Class1,
            5 => Self::Class2,
            6 => Self::Class3,
            7 => Self::Class4,
            8 => Self::Class5,
            9 => Self::Atime,
            10 => Self::Parity0,
            11 => Self::Parity1,
            12 => Self::Parity2,
            13 => Self::Parity3,
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
            Self::Class1 => "class-1",
            Self::Class2 => "class-2",
            Self::Class3 => "class-3",
            Self::Class4 => "class-4",
            Self::Class5 => "class-5",
            Self::Atime => "atime",
            Self::Parity0 => "parity-0",
            Self::Parity1 => "parity-1",
            Self::Parity2 => "parity-2",
            Self::Parity3 => "parity-3",
        }
    }

    /// Whether it holds whole pages of content.
    #[must_use]
    pub const fn is_content(self) -> bool {
        !matches!(self, Self::Journal | Self::Index | Self::Atime)
    }

    /// The stream of content that wishes so many pages of parity, where another number is usual.
    #[must_use]
    pub const fn of_parity(wished: u8) -> Self {
        match wished {
            0 => Self::Parity0,
            1 => Self::Parity1,
            2 => Self::Parity2,
            _ => Self::Parity3,
        }
    }

    /// How many pages of parity the content of this stream wishes, if that is what it is for.
    #[must_use]
    pub const fn wished_parity(self) -> Option<u8> {
        match self {
            Self::Parity0 => Some(0),
            Self::Parity1 => Some(1),
            Self::Parity2 => Some(2),
            Self::Parity3 => Some(3),
            _ => None,
        }
    }

    /// Whether volumes with it can be used by programs that know only the first four.
    #[must_use]
    pub const fn is_basic(self) -> bool {
        (self as u8) < Self::Class1 as u8
    }

    /// The stream for `class` of `placement`.
    #[must_use]
    pub const fn of_class(placement: Placement, class: u8) -> Self {
        match (placement, class) {
            (Placement::Combined, _) => Self::Journal,
            (_, 0) => Self::Data,
            (Placement::UserCleaner, _) => Self::Cold,
            (_, 1) => Self::Class1,
            (_, 2) => Self::Class2,
            (_, 3) => Self::Class3,
            (_, 4) => Self::Class4,
            _ => Self::Class5,
        }
    }

    /// The stream for tree nodes and the segment table, except at an unmount.
    #[must_use]
    pub const fn of_index(placement: Placement) -> Self {
        match placement {
            Placement::Combined => Self::Journal,
            _ => Self::Index,
        }
    }

    /// The stream for content that is to give worn segments rest. No class of `placement` goes
    /// there: what never changes would be moved again with everything that it shares a segment
    /// with.
    #[must_use]
    pub const fn resting(placement: Placement) -> Self {
        if matches!(placement, Placement::UserCleaner) { Self::Class1 } else { Self::Cold }
    }

    /// The class that content of this stream has under `placement`, whatever placement put it
    /// there. Packed contents lie in the journal; they are as short-lived as the first class until
    /// they prove otherwise.
    #[must_use]
    pub const fn class(self, placement: Placement) -> u8 {
        let class = match self {
            Self::Journal
            | Self::Data
            | Self::Index
            | Self::Atime
            | Self::Parity0
            | Self::Parity1
            | Self::Parity2
            | Self::Parity3 => 0,
            Self::Cold => match placement {
                Placement::UserCleaner | Placement::AgeChain => 1,
                Placement::SepBit => 2,
                _ => 3,
            },
            Self::Class1 => 1,
            Self::Class2 => 2,
            Self::Class3 => 3,
            Self::Class4 => 4,
            Self::Class5 => 5,
        };
        let last = placement.classes() - 1;
        if class < last { class } else { last }
    }
}

/// How much of a write of `length` bytes goes to [`Stream::Data`] as whole pages; the rest is
/// packed into the journal page that carries the commit record.
///
/// This is the *split* policy of paper 1 (section IV) with one change: the tail of a write, which
/// would leave a page half empty, travels with the record. So a synced write of n bytes programs
/// about (n + record) / page pages, the least a page medium allows, and no data page has padding.
#[must_use]
pub const fn whole_page_bytes(_hints: &Hints, length: usize, payload_bytes: usize) -> usize {
    length - length % payload_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_streams_are_one_to_one() {
        for stream in Stream::ALL {
            assert_eq!(Stream::from_byte(stream as u8), Some(stream));
        }
        assert_eq!(Stream::from_byte(14), None);
    }

    #[test]
    fn classes_and_streams_are_one_to_one_within_a_placement() {
        for placement in Placement::ALL {
            for class in 0..placement.classes() {
                let stream = Stream::of_class(placement, class);
                assert_eq!(stream.class(placement), class, "{placement:?}");
                assert_eq!(stream.is_content(), placement != Placement::Combined);
                assert!(stream.is_basic() || placement.classes() > 2);
            }
            for stream in Stream::ALL {
                assert!(stream.class(placement) < placement.classes());
            }
            let resting = Stream::resting(placement);
            assert!((0..placement.classes()).all(|class| Stream::of_class(placement, class) != resting));
        }
    }

    #[test]
    fn only_whole_pages_leave_the_journal() {
        let hints = Hints::default();
        assert_eq!(whole_page_bytes(&hints, 5000, 2048), 4096);
        assert_eq!(whole_page_bytes(&hints, 2047, 2048), 0);
    }
}

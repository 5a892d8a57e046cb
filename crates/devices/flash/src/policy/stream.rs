//! Streams: the logs that fill segments of their own, and what of a write goes to which.
//!
//! The numbers are the bytes on the medium (`docs/format/flash.md`) and never change their meaning.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_streams_are_one_to_one() {
        for stream in Stream::ALL {
            assert_eq!(Stream::from_byte(stream as u8), Some(stream));
        }
        assert_eq!(Stream::from_byte(4), None);
    }

    #[test]
    fn only_whole_pages_leave_the_journal() {
        let hints = Hints::default();
        assert_eq!(whole_page_bytes(&hints, 5000, 2048), 4096);
        assert_eq!(whole_page_bytes(&hints, 2047, 2048), 0);
    }
}

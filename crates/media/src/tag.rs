//! What an access to a medium is for, so that an evaluation is a counter and not a patch.

/// The subsystem that asks (paper 1, section V: page I/Os for each subsystem).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum IoTag {
    /// Content of objects.
    Data = 0,
    /// Commit records with onodes, attributes and small content.
    Journal = 1,
    /// Nodes of the index trees.
    Index = 2,
    /// Access times.
    Atime = 3,
    /// Parity.
    Parity = 4,
    /// Segment summaries and the segment table.
    Summary = 5,
    /// Content moved by the cleaner.
    Cleaning = 6,
    /// Superblocks and checkpoint anchors.
    Anchor = 7,
    /// Reads of mount and recovery.
    Recovery = 8,
    /// Reads of check and scrub.
    Check = 9,
}

impl IoTag {
    /// All tags in order of their number.
    pub const ALL: [Self; 10] = [
        Self::Data,
        Self::Journal,
        Self::Index,
        Self::Atime,
        Self::Parity,
        Self::Summary,
        Self::Cleaning,
        Self::Anchor,
        Self::Recovery,
        Self::Check,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Journal => "journal",
            Self::Index => "index",
            Self::Atime => "atime",
            Self::Parity => "parity",
            Self::Summary => "summary",
            Self::Cleaning => "cleaning",
            Self::Anchor => "anchor",
            Self::Recovery => "recovery",
            Self::Check => "check",
        }
    }
}

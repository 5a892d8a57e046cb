//! What the core speaks of with the fast disk: pieces of content, and reasons why one is not
//! copied.

use onode_object::{Placement, Target};

/// Content in a row of blocks of the big disk, as one extent names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first block on the big disk.
    pub block: u64,
    /// The checkpoint at which its blocks were allocated: together with them it names the content.
    pub born: u64,
    /// How many blocks, at most [`Piece::MOST_BLOCKS`].
    pub blocks: u32,
    /// The object.
    pub object: u64,
    /// Where the piece begins in the object, in blocks.
    pub index: u64,
    /// The hint `placement_class` of the object.
    pub class: u16,
}

impl Piece {
    /// The longest piece.
    pub const MOST_BLOCKS: u32 = 256;

    /// A node of the tree. Its checksum, with a bit that no checkpoint's number has, is what it was
    /// born as: who wants a node knows no more of it.
    #[must_use]
    pub const fn of_node(block: u64, crc: u32) -> Self {
        Self { block, born: 1 << 63 | crc as u64, blocks: 1, object: 0, index: block, class: 0 }
    }

    /// The block behind the last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.block.saturating_add(self.blocks as u64)
    }

    /// The same in pieces of [`MOST_BLOCKS`](Self::MOST_BLOCKS) and a rest.
    pub fn parts(&self) -> impl Iterator<Item = Self> + use<> {
        let whole = *self;
        (0..whole.blocks).step_by(Self::MOST_BLOCKS as usize).map(move |skip| Self {
            block: whole.block + u64::from(skip),
            index: whole.index + u64::from(skip),
            blocks: (whole.blocks - skip).min(Self::MOST_BLOCKS),
            ..whole
        })
    }

    pub(super) const fn placement(&self) -> Placement {
        Placement::from_class(self.class)
    }

    /// Where its placement wants it, among so many sections.
    pub(super) fn wanted(&self, sections: usize) -> Wanted {
        match self.placement().target {
            Target::Bypass => Wanted::Nowhere,
            Target::Section(number) if usize::from(number) < sections => Wanted::In(usize::from(number)),
            // Also of a section that was given up since.
            Target::Section(_) | Target::Device => Wanted::Anywhere,
        }
    }
}

/// Where a placement wants content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It bypasses the fast disk.
    Nowhere,
    /// In the section of that number.
    In(usize),
    /// In whichever section suits it.
    Anywhere,
}

/// Why content is not copied to the fast disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its placement says so.
    Bypass = 0,
    /// It is part of a long sequential read.
    Sequential = 1,
    /// It was asked for the first time within the window.
    FirstHit = 2,
    /// What may be written today is written.
    Budget = 3,
    /// There is no room, and nothing that could go.
    Full = 4,
    /// It would fill too much of its section.
    TooLarge = 5,
    /// Pinned content fills what may be pinned.
    Pinned = 6,
    /// There is no fast disk.
    Away = 7,
    /// What it would drive out is asked for more often.
    Colder = 8,
    /// It is there, or on its way.
    Held = 9,
    /// Reads copy nothing.
    Unasked = 10,
}

/// What came of content that was offered to the fast disk.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// All of it has a copy now.
    Taken,
    /// None of it is copied, for this reason.
    Refused(Refusal),
}

impl Offered {
    /// Whether it has a copy now.
    #[must_use]
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Taken)
    }
}

impl Refusal {
    /// All of them, by their number.
    pub const ALL: [Self; 11] = [
        Self::Bypass,
        Self::Sequential,
        Self::FirstHit,
        Self::Budget,
        Self::Full,
        Self::TooLarge,
        Self::Pinned,
        Self::Away,
        Self::Colder,
        Self::Held,
        Self::Unasked,
    ];

    /// The name in counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Sequential => "sequential",
            Self::FirstHit => "first_hit",
            Self::Budget => "budget",
            Self::Full => "full",
            Self::TooLarge => "too_large",
            Self::Pinned => "pinned",
            Self::Away => "away",
            Self::Colder => "colder",
            Self::Held => "held",
            Self::Unasked => "unasked",
        }
    }

    /// A sentence for people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Bypass => "its placement bypasses the fast disk",
            Self::Sequential => "it was read as part of a long sequential read",
            Self::FirstHit => "it was not asked for often enough of late",
            Self::Budget => "the fast disk has taken what it may take today",
            Self::Full => "its section has no room, and nothing in it can go",
            Self::TooLarge => "it would fill more than a quarter of its section",
            Self::Pinned => "pinned content fills half of its section",
            Self::Away => "there is no fast disk",
            Self::Colder => "what it would drive out is asked for more often",
            Self::Held => "it is there",
            Self::Unasked => "reads copy nothing under this mount (fast-admit=0)",
        }
    }

    /// Whether trying again can only help after something else has changed.
    #[must_use]
    pub const fn is_hopeless(self) -> bool {
        match self {
            Self::Bypass | Self::Full | Self::TooLarge | Self::Pinned | Self::Away | Self::Held | Self::Unasked => true,
            Self::Sequential | Self::FirstHit | Self::Budget | Self::Colder => false,
        }
    }
}

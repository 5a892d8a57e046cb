//! What a check can find, as data: what, where, expected, found.

use alloc::string::String;
use core::fmt;
use core::ops::Range;
use onode_object::ObjectId;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is lost and nothing will be: a copy stands in, or a later write heals it.
    Warning,
    /// Something is lost or wrong; the rest of the volume can be read.
    Error,
    /// The volume cannot be mounted.
    Fatal,
}

impl Severity {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])+ $name:ident = $text:literal,)+) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind {
            $($(#[$doc])+ $name,)+
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

kinds! {
    /// The medium itself failed.
    MediumFailed = "the medium fails",
    /// There is no readable superblock.
    NoSuperblock = "no readable superblock",
    /// A page of the superblock area is neither erased nor a superblock.
    SuperblockUnreadable = "unreadable superblock",
    /// A superblock is sound but its fields contradict each other or the medium.
    SuperblockMalformed = "malformed superblock",
    /// Generations do not ascend in writing order, or an earlier superblock knows of later things.
    SuperblockOrder = "superblocks out of order",
    /// The volume has a format or a feature that this code does not know.
    FormatUnknown = "unknown format",
    /// The volume was made for a medium of another shape.
    GeometryMismatch = "medium of another shape",
    /// A piece of the segment table cannot be read.
    TableUnreadable = "unreadable segment table",
    /// An entry of the segment table makes no sense.
    TableMalformed = "malformed segment table",
    /// The journal's segments are not what the segment table says of them.
    JournalReservation = "journal segment not reserved",
    /// A segment without use is referred to.
    SegmentNotInUse = "segment referred to but not in use",
    /// Something lies in a segment of a stream that cannot hold it.
    StreamWrong = "wrong stream",
    /// The table's live bytes of a segment differ from what refers to it.
    LiveBytesWrong = "wrong live bytes",
    /// A page of the index is damaged; its copy behind the superblock stands in until the next
    /// change.
    PageRestored = "damaged page with a copy",
    /// A page is damaged; the parity of its row has what lay there.
    PageRebuilt = "damaged page with parity",
    /// A page of parity cannot be read, or does not agree with the pages that it covers.
    ParityDamaged = "damaged parity",
    /// A page has the right checksum, but signature and parity say that it is another.
    SignatureWrong = "wrong signature",
    /// A tree node cannot be read, or is not the one its parent names.
    NodeUnreadable = "unreadable tree node",
    /// A tree node's bytes are no node of its level.
    NodeMalformed = "malformed tree node",
    /// A tree node has keys outside the range that its parent gives it.
    NodeRange = "tree node out of range",
    /// A tree node is larger than nodes may be.
    NodeOversized = "oversized tree node",
    /// An entry's key is of no known kind, or its object id is none.
    KeyUnknown = "unknown key",
    /// An object has attributes or extents but no onode.
    OnodeMissing = "missing onode",
    /// An onode's bytes make no sense.
    OnodeMalformed = "malformed onode",
    /// An object's id was never handed out.
    IdTooHigh = "object id never handed out",
    /// An attribute is longer than attributes may be.
    AttributeOversized = "oversized attribute",
    /// An extent's bytes make no sense, or it lies outside the medium.
    ExtentMalformed = "malformed extent",
    /// Two extents hold the same bytes of an object.
    ExtentOverlap = "overlapping extents",
    /// An extent goes beyond the object's size.
    ExtentBeyondSize = "extent beyond the size",
    /// An onode's allocated bytes are not the sum of its extents.
    AllocatedWrong = "wrong allocated bytes",
    /// Two things lie in the same place.
    PlaceShared = "place used twice",
    /// A segment summary cannot be read.
    SummaryUnreadable = "unreadable segment summary",
    /// Something lies in a segment that the segment's summary does not name.
    SummaryIncomplete = "incomplete segment summary",
    /// The number of objects is wrong.
    ObjectCountWrong = "wrong number of objects",
    /// The number of extents is wrong.
    ExtentCountWrong = "wrong number of extents",
    /// A journal page is damaged and the journal goes on behind it.
    JournalDamaged = "damaged journal",
    /// The medium's note of what was durable last is damaged.
    WatermarkDamaged = "damaged note of what was durable",
    /// A journal record makes no sense or cannot have happened.
    JournalRecordWrong = "impossible journal record",
    /// Content of an object cannot be read.
    ContentUnreadable = "unreadable content",
}

/// Where something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The volume as a whole.
    Volume,
    /// A page of the superblock area.
    Superblock {
        /// Erase block.
        block: u32,
        /// Page of the block.
        page: u32,
    },
    /// A segment.
    Segment {
        /// Which one.
        segment: u32,
    },
    /// A page of a segment.
    Page {
        /// The segment.
        segment: u32,
        /// The page, counted in writing order.
        page: u32,
    },
    /// A piece of the segment table.
    TablePiece {
        /// Which one.
        piece: u32,
    },
    /// A tree node.
    Node {
        /// Payload address.
        location: u64,
        /// Level; leaves have 0.
        level: u8,
    },
    /// An entry of the tree.
    Entry {
        /// Object id.
        object: u64,
        /// Kind of the key.
        kind: u16,
        /// Index of the key.
        index: u64,
    },
    /// A run of bytes.
    Bytes {
        /// Payload address.
        location: u64,
        /// How many.
        length: u64,
    },
    /// A commit in the journal.
    Commit {
        /// Its number.
        transaction: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume => f.write_str("volume"),
            Self::Superblock { block, page } => write!(f, "superblock block {block} page {page}"),
            Self::Segment { segment } => write!(f, "segment {segment}"),
            Self::Page { segment, page } => write!(f, "segment {segment} page {page}"),
            Self::TablePiece { piece } => write!(f, "segment table piece {piece}"),
            Self::Node { location, level } => write!(f, "tree node of level {level} at {location}"),
            Self::Entry { object, kind, index } => write!(f, "entry {object}/{kind:#x}/{index}"),
            Self::Bytes { location, length } => write!(f, "{length} bytes at {location}"),
            Self::Commit { transaction } => write!(f, "commit {transaction}"),
        }
    }
}

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub kind: FindingKind,
    /// Where.
    pub place: Place,
    /// The object concerned, if it is one.
    pub object: Option<ObjectId>,
    /// The bytes of the object concerned, if it is some of them.
    pub range: Option<Range<u64>>,
    /// What must be there; may be empty.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Finding {
    /// A finding of `kind` at `place`.
    pub(crate) fn new(severity: Severity, kind: FindingKind, place: Place) -> Self {
        Self { severity, kind, place, object: None, range: None, expected: String::new(), found: String::new() }
    }

    /// With the object concerned.
    pub(crate) fn of(self, object: u64) -> Self {
        Self { object: Some(ObjectId(object)), ..self }
    }

    /// With the bytes of the object concerned.
    pub(crate) fn bytes(self, range: Range<u64>) -> Self {
        Self { range: Some(range), ..self }
    }

    /// With what must be there.
    pub(crate) fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: expected.into(), ..self }
    }

    /// With what is there.
    pub(crate) fn found(self, found: impl Into<String>) -> Self {
        Self { found: found.into(), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity.name(), self.place, self.kind.name())?;
        if let Some(object) = self.object {
            write!(f, ", {object}")?;
        }
        if let Some(range) = &self.range {
            write!(f, " bytes {}..{}", range.start, range.end)?;
        }
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        if !self.found.is_empty() {
            write!(f, "; found {}", self.found)?;
        }
        Ok(())
    }
}

//! Hints: advice about an object that may change cost and placement, never results.

use crate::id::ObjectId;

/// What the bytes of an object are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// File content.
    Data = 1,
    /// A directory: almost only attributes.
    Directory = 2,
    /// The target of a symbolic link.
    SymbolicLink = 3,
    /// A device node, FIFO or socket: only an inode.
    Special = 4,
    /// The volume's own bookkeeping.
    Volume = 5,
    /// A block of memory without a name (paper 2).
    Memory = 6,
}

/// How long the content is expected to live unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lifetime {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// Seconds: temporary files, journals.
    Short = 1,
    /// Minutes to days.
    Medium = 2,
    /// Until it is deleted on purpose.
    Long = 3,
}

impl Lifetime {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Short, Self::Medium, Self::Long];

    /// The word for it in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Short => "short",
            Self::Medium => "medium",
            Self::Long => "long",
        }
    }

    /// What a word stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// How often the content is expected to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Temperature {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// Rarely.
    Cold = 1,
    /// Now and then.
    Warm = 2,
    /// All the time.
    Hot = 3,
}

impl Temperature {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Cold, Self::Warm, Self::Hot];

    /// The word for it in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Hot => "hot",
        }
    }

    /// What a word stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Whether to compress the content, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Compression {
    /// As whoever opened the device wants it; asked by that one: if the first bytes shrink.
    #[default]
    Auto = 0,
    /// Never: it is known not to shrink.
    Never = 1,
    /// In little time (LZ4).
    Fast = 2,
    /// To few bytes (Zstandard).
    Small = 3,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Never, Self::Fast, Self::Small, Self::Auto];

    /// The word for it in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "none",
            Self::Fast => "fast",
            Self::Small => "small",
        }
    }

    /// What a word stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Advice about one object (paper 1, section III.C). Hostile or wrong hints never change results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hints {
    /// What the bytes are.
    pub kind: ObjectKind,
    /// Expected size in bytes; 0 if unknown.
    pub expected_size: u64,
    /// Expected lifetime of the content.
    pub lifetime: Lifetime,
    /// Expected frequency of use.
    pub temperature: Temperature,
    /// An object that is used together with this one: the parent directory.
    pub locality: Option<ObjectId>,
    /// Keep the inode inside the onode (paper 1, section IV).
    pub embed: bool,
    /// Whether to compress.
    pub compression: Compression,
    /// Pages of parity in each group of pages; 0 leaves it to the device,
    /// [`NO_PARITY`](Self::NO_PARITY) wishes none.
    pub parity_pages: u8,
    /// The number of the key that is needed beside that of an encrypted volume; 0 for none. There
    /// an object keeps the one that it was made with, and is not made if that is not unlocked;
    /// elsewhere it means nothing.
    pub encryption_key: u32,
    /// Section or tier to place the object in; 0 leaves it to the device.
    pub placement_class: u16,
}

/// How many pages of parity objects may choose for each group of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParityChoice {
    /// The most, which all have that is not an object's own content.
    pub most: u8,
    /// For objects that wish nothing.
    pub usual: u8,
}

impl Hints {
    /// That no pages of parity are wished, whatever is usual.
    pub const NO_PARITY: u8 = u8::MAX;
}

macro_rules! from_byte {
    ($type:ident { $($name:ident = $value:literal),* }) => {
        impl $type {
            /// The value a byte stands for; `None` if this version does not know it.
            #[must_use]
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($value => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

from_byte!(ObjectKind {
    Unknown = 0, Data = 1, Directory = 2, SymbolicLink = 3, Special = 4, Volume = 5, Memory = 6
});
from_byte!(Lifetime { Unknown = 0, Short = 1, Medium = 2, Long = 3 });
from_byte!(Temperature { Unknown = 0, Cold = 1, Warm = 2, Hot = 3 });
from_byte!(Compression { Auto = 0, Never = 1, Fast = 2, Small = 3 });

//! Placement policies by name: into which class of content each write goes.
//!
//! A class is a log that fills segments of its own; pages that probably die together lie together.
//! What the classes mean is up to [`Classifier`](super::Classifier); this file only names them.

/// A way to divide content into classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Placement {
    /// One log for everything, metadata too (paper 1, section IV).
    Combined = 0,
    /// Metadata apart from content (paper 1).
    Split = 1,
    /// Access times in a log of their own as well (paper 1).
    SplitAtime = 2,
    /// What users wrote apart from what the cleaner moved.
    UserCleaner = 3,
    /// Each move brings a page one class further on, so that a class says how many cleanings its
    /// pages outlived (after MiDA).
    AgeChain = 4,
    /// User writes by what the version before lived, moved pages by their age, both against the
    /// mean life of short-lived segments (after SepBIT).
    SepBit = 5,
    /// The same with three classes each and steps of eight: best without hints.
    #[default]
    Lifespan = 6,
    /// The lifetime that the host expects, carried on through the cleaner; without a hint, what the
    /// version before lived.
    Hints = 7,
}

impl Placement {
    /// All of them in order of their number.
    pub const ALL: [Self; 8] = [
        Self::Combined,
        Self::Split,
        Self::SplitAtime,
        Self::UserCleaner,
        Self::AgeChain,
        Self::SepBit,
        Self::Lifespan,
        Self::Hints,
    ];

    /// The most classes that any of them has.
    pub const CLASSES_MAX: usize = 6;

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Split => "split",
            Self::SplitAtime => "split+atime",
            Self::UserCleaner => "user-cleaner",
            Self::AgeChain => "age-chain",
            Self::SepBit => "sepbit",
            Self::Lifespan => "lifespan",
            Self::Hints => "hints",
        }
    }

    /// The placement called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The placement a byte on the medium stands for.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Classes of content it has; at most [`Self::CLASSES_MAX`].
    #[must_use]
    pub const fn classes(self) -> u8 {
        match self {
            Self::Combined | Self::Split | Self::SplitAtime => 1,
            Self::UserCleaner => 2,
            Self::AgeChain | Self::SepBit | Self::Lifespan | Self::Hints => 6,
        }
    }

    /// Whether the cleaner moves content to the first class, where user writes go.
    #[must_use]
    pub const fn moves_to_data(self) -> bool {
        matches!(self, Self::Combined | Self::Split | Self::SplitAtime | Self::Hints)
    }

    /// Whether the class of a write depends on what it replaces.
    #[must_use]
    pub const fn asks_the_past(self) -> bool {
        matches!(self, Self::SepBit | Self::Lifespan | Self::Hints)
    }

    /// Whether the content of `class` is expected to stay for long: what suits worn segments.
    #[must_use]
    pub const fn is_long_lived(self, class: u8) -> bool {
        match self {
            Self::Combined | Self::Split | Self::SplitAtime => false,
            Self::UserCleaner => class == 1,
            Self::AgeChain | Self::SepBit | Self::Lifespan => class == 5,
            Self::Hints => class >= 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_are_one_to_one() {
        for (number, one) in Placement::ALL.into_iter().enumerate() {
            assert_eq!(Placement::from_name(one.name()), Some(one));
            assert_eq!(Placement::from_byte(number as u8), Some(one));
            assert!(usize::from(one.classes()) <= Placement::CLASSES_MAX);
        }
        assert_eq!(Placement::from_name("random"), None);
        assert_eq!(Placement::from_byte(8), None);
    }
}

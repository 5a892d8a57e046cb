//! Which logs must have a commit before it returns.

use onode_object::Acknowledge;

/// Which logs must have a commit before it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The big disk's.
    pub big: bool,
    /// The fast disk's.
    pub fast: bool,
    /// One of them.
    pub either: bool,
}

impl Need {
    /// Both.
    pub const ALL: Self = Self { big: true, fast: true, either: false };

    /// What both ask for.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { big: self.big || other.big, fast: self.fast || other.fast, either: self.either || other.either }
    }

    /// Whether anybody waits.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.big || self.fast || self.either
    }

    /// Adds what a class asks for.
    pub const fn add(&mut self, acknowledge: Acknowledge) {
        match acknowledge {
            Acknowledge::Safe | Acknowledge::Volume => (self.big, self.fast) = (true, true),
            Acknowledge::Either => self.either = true,
            Acknowledge::Big => self.big = true,
        }
    }
}

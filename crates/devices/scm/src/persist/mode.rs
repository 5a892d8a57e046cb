//! Consistency modes: what content is worth to whoever wrote it. Names, sizes and all that a
//! transaction does stay all or nothing in each of them.

/// What a device promises for content.
///
/// The list is closed: whoever judges what a cut may have taken has to know every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As in the memory: a process that ends loses nothing, a power cut may take everything.
    /// Nothing is flushed.
    Mem,
    /// Content is flushed by the next durable commit or sync, all else by each commit.
    Meta,
    /// Content that is overwritten is flushed where it lies and torn at 8 bytes; all else is as in
    /// `Atomic`.
    Sync,
    /// Content changes with its transaction or not at all.
    #[default]
    Atomic,
}

impl Mode {
    /// All of them, with what each is called.
    pub const ALL: [(&'static str, Self); 4] =
        [("mem", Self::Mem), ("meta", Self::Meta), ("sync", Self::Sync), ("atomic", Self::Atomic)];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Whether content may be overwritten where it lies.
    #[must_use]
    pub const fn overwrites(self) -> bool {
        !matches!(self, Self::Atomic)
    }

    /// Whether a record vouches for content that was flushed before it: of new content in the modes
    /// that flush that, and of content that had been durable and was moved in all that flush
    /// anything.
    pub(crate) const fn vouches(self) -> bool {
        !matches!(self, Self::Mem)
    }

    /// Whether new content is flushed at once.
    pub(crate) const fn flushes(self) -> bool {
        matches!(self, Self::Sync | Self::Atomic)
    }
}

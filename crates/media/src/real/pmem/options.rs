//! How a file is opened as memory.

/// What is to be at the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Something that is there.
    #[default]
    Existing,
    /// Something that is there, for reading: stores are seen by this process only, and fences fail.
    ReadOnly,
    /// A new file of so many bytes.
    New(u64),
    /// A file that is there, as long as it is, or a new one or an empty one of so many bytes.
    ExistingOrNew(u64),
}

/// Whether lines are flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flushing {
    /// Where the medium needs it.
    #[default]
    Detect,
    /// On files in memory, too: to measure what it costs.
    Always,
    /// Not before the memory is closed: a power cut may take everything, the end of a process
    /// nothing.
    AtTheEnd,
}

/// Options of a [`MappedPmem`](super::MappedPmem).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedOptions {
    /// What is to be at the path.
    pub opening: Opening,
    /// Whether lines are flushed.
    pub flushing: Flushing,
    /// Let others in who also share, one after the other ([`let_in`](super::MappedPmem::let_in));
    /// otherwise the file has one user.
    pub shared: bool,
    /// Bytes of address space to reserve: the most that the memory can grow to. Less is taken if
    /// the host refuses.
    pub reserve: u64,
    /// A file that is opened for reading and ends within a line has the rest of that as zeros;
    /// otherwise it is no memory.
    pub complete: bool,
}

impl Default for MappedOptions {
    fn default() -> Self {
        Self {
            opening: Opening::Existing,
            flushing: Flushing::Detect,
            shared: false,
            reserve: 1 << 40,
            complete: false,
        }
    }
}

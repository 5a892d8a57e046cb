//! An entry of the chunk table: what one piece of the area is, in 8 bytes that one store changes.
//!
//! The area is tiled by pieces of two to the order chunks, each at a multiple of its size. The
//! entry of a piece is that of its first chunk; the entries of its other chunks mean nothing and
//! are always `Free`. So a store to one entry is all that it takes to make a piece something else,
//! to cut it into pieces that were written before, or to merge them.

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Free.
    Free,
    /// One chunk of blocks of one class.
    Small,
    /// The first piece of a block of whole chunks.
    Head,
    /// A further piece of the block whose head comes before it.
    Further,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(pub(super) u64);

const STATE_MASK: u64 = 0b111;
const ORDER_SHIFT: u32 = 3;
const ORDER_MASK: u64 = 0b11_1111;
const PUBLISHED: u64 = 1 << 9;
const CACHED: u64 = 1 << 10;
const LEASE_SHIFT: u32 = 11;
const LEASE_MASK: u64 = 0x7ff;
const VALUE_SHIFT: u32 = 22;

impl Entry {
    const fn new(state: u64, lease: u16, value: u64) -> Self {
        Self(state | (lease as u64 & LEASE_MASK) << LEASE_SHIFT | value << VALUE_SHIFT)
    }

    /// A free piece.
    pub(super) const fn free() -> Self {
        Self(0)
    }

    /// A chunk of blocks.
    pub(super) const fn small(class: usize, lease: u16) -> Self {
        Self::new(1, lease, class as u64)
    }

    /// The head of a block of `chunks`; a block of the device itself is published from the first.
    pub(super) const fn head(chunks: u64, lease: u16) -> Self {
        Self::new(2, lease, chunks).with_published(lease == 0)
    }

    /// A piece `distance` chunks behind the head of its block.
    pub(super) const fn further(distance: u64) -> Self {
        Self::new(3, 0, distance)
    }

    /// What it is; `None` if no allocator wrote this.
    #[inline]
    pub(super) const fn state(self) -> Option<State> {
        match self.0 & STATE_MASK {
            0 => Some(State::Free),
            1 => Some(State::Small),
            2 => Some(State::Head),
            3 => Some(State::Further),
            _ => None,
        }
    }

    pub(super) fn is(self, state: State) -> bool {
        self.state() == Some(state)
    }

    /// State, lease, publication and rest in a cache: what tells a thread whether a block is one
    /// for its cache.
    #[inline]
    pub(super) const fn key(self) -> u64 {
        self.0 & (STATE_MASK | PUBLISHED | CACHED | LEASE_MASK << LEASE_SHIFT)
    }

    /// Logarithm of the chunks of the piece.
    pub(super) const fn order(self) -> u32 {
        (self.0 >> ORDER_SHIFT & ORDER_MASK) as u32
    }

    /// Chunks of the piece.
    pub(super) const fn chunks(self) -> u64 {
        1 << self.order()
    }

    pub(super) const fn with_order(self, order: u32) -> Self {
        Self(self.0 & !(ORDER_MASK << ORDER_SHIFT) | (order as u64 & ORDER_MASK) << ORDER_SHIFT)
    }

    /// Whether a block of whole chunks belongs to something durable.
    pub(super) const fn published(self) -> bool {
        self.0 & PUBLISHED != 0
    }

    pub(super) const fn with_published(self, published: bool) -> Self {
        Self(if published { self.0 | PUBLISHED } else { self.0 & !PUBLISHED })
    }

    /// Whether a block of whole chunks rests in the cache of a thread: allocated, but nobody's.
    #[inline]
    pub(super) const fn cached(self) -> bool {
        self.0 & CACHED != 0
    }

    #[inline]
    pub(super) const fn with_cached(self, cached: bool) -> Self {
        Self(if cached { self.0 | CACHED } else { self.0 & !CACHED })
    }

    /// Whose volatile blocks these are; 0 is the device itself.
    #[inline]
    pub(super) const fn lease(self) -> u16 {
        (self.0 >> LEASE_SHIFT & LEASE_MASK) as u16
    }

    pub(super) const fn with_lease(self, lease: u16) -> Self {
        Self(self.0 & !(LEASE_MASK << LEASE_SHIFT) | (lease as u64 & LEASE_MASK) << LEASE_SHIFT)
    }

    /// The class of a small chunk, the chunks of a block, the distance to the head.
    #[inline]
    pub(super) const fn value(self) -> u64 {
        self.0 >> VALUE_SHIFT
    }

    pub(super) const fn with_value(self, value: u64) -> Self {
        Self(self.0 & ((1 << VALUE_SHIFT) - 1) | value << VALUE_SHIFT)
    }
}

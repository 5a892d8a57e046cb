//! Replacement: which content leaves the fast disk first.
//!
//! Policies are pure: they know keys and sizes, no disk, and no clock but a counter of requests
//! that is handed in. The owner asks for victims until there is room; a policy never refuses to
//! name one while it holds anything.
//!
//! [`PolicyKind::MultiQueue`] is what paper 4 describes (section 3.5), with what it leaves out
//! filled in: a level for each doubling of the references, and a lifetime after which an entry
//! sinks a level. [`PolicyKind::default`] is the best of those measured by
//! [`measure`](measure::measure).

mod arc;
mod lists;
mod lru;
pub mod measure;
mod multi_queue;
pub(crate) mod queue;
mod s3_fifo;
pub mod streams;
mod tiny_lfu;
mod two_queue;

use alloc::boxed::Box;

/// What is kept and in which order it goes.
pub trait Policy: Send {
    /// Whether `key` is kept.
    fn contains(&self, key: u64) -> bool;

    /// The sizes of everything kept together.
    fn used(&self) -> u64;

    /// `key` was asked for and is kept; does nothing if it is not.
    fn hit(&mut self, key: u64, now: u64);

    /// `key` was asked for and is not kept: is it worth keeping, if room must be made for it?
    fn missed(&mut self, key: u64, size: u64, now: u64) -> bool {
        let _ = (key, size, now);
        true
    }

    /// Keeps `key`, in place of what it was kept as before.
    fn insert(&mut self, key: u64, size: u64, now: u64);

    /// Gives up what should go first, and says what that was. `None` only if nothing is kept.
    fn victim(&mut self, now: u64) -> Option<u64>;

    /// `key` is gone for other reasons than want of room; nothing is remembered of it.
    fn remove(&mut self, key: u64);

    /// Whether `key` is among what would be kept the longest.
    fn is_hot(&self, key: u64) -> bool;
}

/// The policies that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// Least recently used.
    Lru,
    /// 2Q: a queue for what was used once, one for what was used again (Johnson and Shasha).
    TwoQueue,
    /// Adaptive replacement: as 2Q, with a border that moves to where misses are (Megiddo and
    /// Modha).
    Arc,
    /// Three queues of first in, first out (Yang and others).
    S3Fifo,
    /// Levels by the logarithm of references, with ageing: paper 4.
    MultiQueue,
    /// Estimated frequency decides between what comes and what would go (Einziger, Friedman and
    /// Manes).
    #[default]
    TinyLfu,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Lru, Self::TwoQueue, Self::Arc, Self::S3Fifo, Self::MultiQueue, Self::TinyLfu];

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::TwoQueue => "2q",
            Self::Arc => "arc",
            Self::S3Fifo => "s3-fifo",
            Self::MultiQueue => "multi-queue",
            Self::TinyLfu => "tiny-lfu",
        }
    }

    /// The policy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// An empty one for content of `capacity` in all.
    #[must_use]
    pub fn build(self, capacity: u64) -> Box<dyn Policy> {
        match self {
            Self::Lru => Box::new(lru::Lru::new()),
            Self::TwoQueue => Box::new(two_queue::TwoQueue::new(capacity)),
            Self::Arc => Box::new(arc::Arc::new(capacity)),
            Self::S3Fifo => Box::new(s3_fifo::S3Fifo::new(capacity)),
            Self::MultiQueue => Box::new(multi_queue::MultiQueue::new(capacity)),
            Self::TinyLfu => Box::new(tiny_lfu::TinyLfu::new(capacity)),
        }
    }
}

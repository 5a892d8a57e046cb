//! Which content leaves a fast disk first: the policy of the product beside others, that of paper 4
//! among them.
//!
//! [`PolicyKind::MultiQueue`] is what paper 4 describes (section 3.5), with what it leaves out
//! filled in: a level for each doubling of the references, and a lifetime after which an entry
//! sinks a level. [`PolicyKind::default`] is what a fast disk has, the best of those measured by
//! [`measure`](measure::measure).

mod arc;
mod lru;
pub mod measure;
mod multi_queue;
mod s3_fifo;
pub mod streams;
mod two_queue;

use onode_tier::policy::{Policy, usual};

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
            Self::TinyLfu => usual(capacity),
        }
    }
}

//! The device of storage-class memory: a file and a memory block are the same object (paper 2).
//!
//! The log of items (`log`) is the only durable truth. Where blocks lie free ([`allocator`]) and what belongs to which
//! object (`tree`) is kept beside it in the same memory, but nothing of that is ever flushed: a recovery makes it anew
//! from the log, so a crash leaks nothing and an allocation costs no flush. A commit is one record and one fence.
#![deny(unsafe_code)]

pub mod allocator;
mod batch;
mod change;
mod cleaner;
mod commit;
mod core;
mod device;
mod doubt;
mod errors;
mod extents;
mod finger;
mod format;
mod gather;
mod health;
mod held;
mod item;
mod known;
mod log;
mod loss;
mod lost;
mod mapping;
mod mark;
mod mode;
mod node;
mod open;
mod promise;
mod ranges;
mod recover;
mod resolve;
mod room;
mod scan;
mod scratch;
mod search;
mod share;
mod shared;
mod slot;
mod stack;
mod superblocks;
mod tree;
mod turn;

pub use device::{FormatOptions, MountOptions, ScmDevice};
pub use format::{FORMAT_VERSION, SMALLEST_BYTES};
pub use mode::Mode;
pub use ranges::Ranges;
pub use superblocks::{LostDevice, find_device};

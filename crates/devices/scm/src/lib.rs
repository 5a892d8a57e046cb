//! The device of storage-class memory: a file and a memory block are the same object (paper 2).
//!
//! The log of items is the only durable truth. Where blocks lie free and what belongs to which
//! object is kept beside it in the same memory, but nothing of that is ever flushed: a recovery
//! makes it anew from the log, so a crash leaks nothing and an allocation costs no flush. A commit
//! is one record and one fence.
//!
//! | folder | what it holds |
//! |---|---|
//! | `device` | the object interface, how a device is opened, its health |
//! | `core` | the parts behind one lock, and what is true of all of them |
//! | `share` | the processes that use one device: whose turn it is, what they tell each other |
//! | `recover` | log -> index and blocks, after whatever happened; what is missing is a loss that is told |
//! | `commit` | transaction -> record; content in place, objects as memory, slots |
//! | `log` | segments, records, items, the mark, the cleaner |
//! | `index` | the tree in the memory from keys to blocks |
//! | `space` | the allocator, blocks that wait, what can be promised |
//! | `medium` | bytes on the memory, superblocks |
#![deny(unsafe_code)]

mod commit;
mod core;
mod device;
mod index;
mod log;
mod medium;
mod recover;
mod share;
mod space;

pub use commit::mode::Mode;
pub use device::ranges::Ranges;
pub use device::{FormatOptions, MountOptions, ScmDevice};
pub use medium::format::{FORMAT_VERSION, SMALLEST_BYTES};
pub use medium::superblocks::{LostDevice, find_device};
pub use space::allocator;

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
//! | `core` | the parts behind one lock; transactions over all of them |
//! | `share` | the processes that use one device: their lock, what they tell each other |
//! | `recover` | log -> index and blocks, after whatever happened; what is missing is a loss that is told |
//! | `commit` | transaction -> record; content, blocks that become content, slots |
//! | `clean` | what the oldest segment of the log still says is said again, then the segment is free |
//! | `persist` | what is written when: fences, superblocks, what may be reused or overwritten |
//! | `index` | the tree in the memory from keys to blocks |
//! | `log` | segments, records, items, the mark, room that is kept |
//! | `space` | the allocator, deferred frees, what can be promised |
//! | `medium` | bytes on the memory, superblocks |
//!
//! Parts know each other downward only: what a lower one must tell an upper one it returns.
#![deny(unsafe_code)]

mod clean;
mod commit;
mod core;
mod device;
mod index;
mod log;
mod medium;
mod persist;
mod recover;
mod share;
mod space;

pub use device::ScmDevice;
pub use device::options::{FormatOptions, MountOptions};
pub use device::ranges::Ranges;
pub use medium::format::{FORMAT_VERSION, SMALLEST_BYTES};
pub use medium::superblocks::{LostDevice, find_device, is_exclusive};
pub use persist::mode::Mode;
pub use space::allocator;

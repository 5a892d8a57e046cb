//! What several object devices are built of.
//!
//! - [`Key`]: where an entry stands in the index of a device, in one order for all of them.
//! - [`Copies`]: several copies of a superblock, of which the newest sound one counts.
//! - [`Latch`]: whether a mounted volume may be changed, and why not.
//!
//! What devices do not share stands in them: their trees, allocators and cleaners follow the
//! physics of their media (`docs/design.md`, "The engine").
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod copies;
pub mod key;
pub mod latch;

pub use copies::{Copies, Fault, Numbered};
pub use key::Key;
pub use latch::Latch;

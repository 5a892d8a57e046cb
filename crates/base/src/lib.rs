//! Ground floor of Onode: what every other crate stands on.
//!
//! Time, randomness, checksums, locks, eviction policies, sizes in words and the one table that
//! turns an error kind into an errno. Nothing here knows an object, a medium or a file.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod checksum;
pub mod clock;
pub mod error;
pub mod evict;
pub mod planted;
pub mod prng;
pub mod size;
pub mod sync;
pub mod varint;

pub use clock::{Clock, Timestamp};
pub use error::ErrorKind;
pub use prng::Prng;

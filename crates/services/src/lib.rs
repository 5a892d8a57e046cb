//! Services over any object device: an object device that wraps an object device.
//!
//! [`Compressed`] keeps content in fewer bytes. It knows objects and chunks of their content, and
//! neither a medium nor a file; the wrapped device sees ordinary objects, so no format below
//! changes. Nothing here reads a clock, draws a random number or starts a thread.
#![forbid(unsafe_code)]

mod chunk;
mod compressed;
mod extents;
mod life;
mod map;
mod policy;
mod powers;
mod ranges;
mod read;
mod shards;
mod translate;
mod turn;
mod why;

pub use compressed::Compressed;

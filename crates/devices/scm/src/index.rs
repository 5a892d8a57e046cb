//! Where things are: a B+tree in the memory from keys to words, and what is kept of it for the next
//! look.
//!
//! Nothing of it is durable: a recovery makes it anew from the log.

pub mod extents;
pub mod finger;
pub mod known;
pub mod node;
pub mod tree;

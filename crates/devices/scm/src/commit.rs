//! A transaction in the making, from its mutations to its record.
//!
//! It works on the index and on what is written when, and on nothing else: the loop that seeks
//! space for it and tries again is in [`core::commit`](crate::core::commit).

pub mod blocks;
pub mod change;
pub mod content;
pub mod gather;
pub mod lists;
pub mod record;
pub mod slot;

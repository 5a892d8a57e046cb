//! Commits and what makes them durable: compact records, group commit, checkpoints, access times.
//! The commit itself is in [`crate::core`].

pub mod access;
pub mod checkpoint;
pub mod compact;
pub mod sync;

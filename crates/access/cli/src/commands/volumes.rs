//! Whole volumes: making, naming, enlarging, verifying, repairing and showing their structures.

pub mod check;
pub mod clone;
pub mod dump;
pub mod info;
pub mod key;
pub mod label;
pub mod mkfs;
pub mod pool;
pub mod repair;
pub mod resize;
pub mod scrub;
pub mod snapshot;
pub mod spaces;

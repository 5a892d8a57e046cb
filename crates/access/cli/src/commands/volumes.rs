//! Whole volumes: making, naming, tuning, enlarging, verifying, repairing; their structures.

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
pub mod tune;

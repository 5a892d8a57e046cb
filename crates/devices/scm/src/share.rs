//! Several processes on one device: the lock, and what its holders tell each other.

pub mod process_lock;
pub mod words;

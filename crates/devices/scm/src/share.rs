//! Several processes and threads on one device: the lock, reads that go on without it, and what its
//! holders tell each other.

pub mod process_lock;
pub mod readers;
pub mod words;

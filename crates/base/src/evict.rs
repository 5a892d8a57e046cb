//! Eviction policies: pure bookkeeping over keys and bytes, shared by every cache.

pub mod lru;

pub use lru::Lru;

//! The device of storage-class memory: a file and a memory block are the same object (paper 2).
//!
//! The log of items (`log`) is the only durable truth. Where blocks lie free (`allocator`) and what belongs to which
//! object (the index) is kept beside it in the same memory, but nothing of that is ever flushed: a
//! recovery makes it anew from the log, so a crash leaks nothing and an allocation costs no flush.
#![deny(unsafe_code)]

pub mod allocator;

//! The allocator against a model of intervals, against bad numbers, and against death at every
//! store.

mod concurrency;
mod death;
mod interleavings;
mod memory;
mod misuse;
mod model;

//! Where memory is free and what waits to be: blocks of the allocator, blocks that a durable state
//! still refers to, what can be promised of the rest.
//!
//! Nothing of it is durable: a recovery makes it anew from the log.

pub mod allocator;
pub mod held;
pub mod promise;
pub mod stack;

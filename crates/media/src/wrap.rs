//! Decorators over any [`Nand`](crate::Nand): each adds one thing and passes the rest through.
//!
//! Only [`Trace`] gives out the shared part of its medium, whose reads and flushes it does not
//! record; the others see every request, so all of them go through the owner.

pub mod count;
pub mod fault;
pub mod latency;
#[cfg(test)]
mod tests;
pub mod trace;

pub use count::Counting;
pub use fault::{FaultHandle, Faulty};
pub use latency::Latency;
pub use trace::{Trace, TraceLog};

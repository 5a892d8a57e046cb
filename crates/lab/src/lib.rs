//! The lab: what a workload costs on a device, counted in page operations and virtual time.
//!
//! A [`Stream`](stream::Operation) of file operations, read from a trace or made by a seeded
//! generator, runs through the host file system on a device in this process ([`replay`]); the
//! outcome is a [`Report`]. Everything follows from the stream and the options: the clock is the
//! device's own virtual time, so two runs give the same report down to the last digit, `cpu_s`
//! alone excepted.
//!
//! [`policy`] is the page-level simulator of placement, victim and wear policies.
//!
//! [`scm`] measures memory blocks on storage-class memory beside the allocators of others.
//!
//! [`tier`] runs files on a fast and a big disk beside recorded requests of other file systems.
//!
//! [`codec`] measures what metadata takes in a small persistent RAM.
//!
//! A run measures and judges nothing; [`figures`] sets what was measured beside the figures to
//! reach. Figures of others stand in `docs/benchmarks.md`.
#![forbid(unsafe_code)]

mod bench;
mod chip;
pub mod codec;
pub mod figures;
mod groups;
pub mod policy;
mod replay;
mod report;
pub mod scm;
pub mod stream;
pub mod tier;

pub use bench::{Caches, Durability};
pub use replay::{Settings, replay};
pub use report::{Latency, Nand, Report, WearSpread};
pub use stream::trace::operations_of;

//! Simulated media: deterministic, in memory, with virtual time, wear, bit errors and power cuts.
//!
//! A whole run follows from the geometry, the options and the calls; no clock and no randomness
//! come from outside.

pub mod cut;
pub mod nand;
pub mod timing;

pub use cut::{Damage, MediaOperation, Prefix};
pub use nand::{BitErrors, FactoryBad, Later, SimNand, SimOptions, WeakBlock};
pub use timing::{ChipClock, LatencyTable};

//! Simulated media: deterministic, in memory, with virtual time, wear, bit errors and power cuts.
//!
//! A whole run follows from the geometry, the options and the calls; no clock and no randomness
//! come from outside.

pub mod cut;
pub mod disk;
pub mod nand;
pub mod pmem;
pub mod recorded;
pub mod timing;

pub use cut::{Damage, MediaOperation, Prefix};
pub use disk::cache::{Cached, PendingWrite};
pub use disk::log::{DiskEvent, DiskLog, DiskOperation};
pub use disk::model::{DiskModel, Instant};
pub use disk::{HostClock, SimDisk};
pub use nand::{BitErrors, FactoryBad, Later, SimNand, SimOptions, WeakBlock};
pub use pmem::SimPmem;
pub use pmem::counters::PmemCounters;
pub use pmem::crash::{Event, Fate, Moment, Survival, UnfencedLine};
pub use pmem::options::{PmemLatency, PmemOptions};
pub use recorded::{NandRecording, RecordedNand};
pub use timing::{ChipClock, LatencyTable};

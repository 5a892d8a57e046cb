//! From the disks to a mounted volume: which log counts, what is missing, what is dropped by
//! consent.

pub mod join;
pub mod mount;
pub mod recovery;
pub mod salvage;
pub mod salvaged;

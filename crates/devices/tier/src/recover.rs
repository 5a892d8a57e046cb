//! From the disks to a mounted volume: which log counts, what is missing, what is dropped by
//! consent.

pub mod consent;
pub mod join;
pub mod mount;
pub mod salvage;
pub mod salvaged;

//! From the flash to a mounted volume: the newest checkpoint, and what the journal says since.

pub mod gather;
pub mod mount;
pub mod replay;

//! What lies on the memory: structures, superblocks, words of slots, what processes share, and
//! errors of the medium as errors of the object interface.

pub mod errors;
pub mod format;
pub mod shared_area;
pub mod slot;
pub mod superblocks;

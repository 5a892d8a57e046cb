//! What lies on the memory: structures, superblocks, errors of the medium as errors of the object
//! interface.

pub mod errors;
pub mod format;
pub mod superblocks;

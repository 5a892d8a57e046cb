//! The bytes of files: the write-clustering cache, write-back, direct writes, sizes, files as memory.

pub mod cluster;
pub mod data;
pub mod direct;
pub mod memory;
pub mod size;
pub mod write_back;

//! Names: directories and their entries, paths, and every call that makes, moves or takes away one.

pub mod cache;
#[cfg(test)]
mod collision_tests;
pub mod directory;
pub mod entry;
pub mod keys;
pub mod namespace;
pub mod path;
pub mod rename;
pub mod slots;

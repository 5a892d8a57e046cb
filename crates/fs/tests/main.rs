//! The tests of the file system: one program, so that what they share is compiled and linked once.

mod attributes;
mod basics;
mod check;
mod common;
mod directories;
mod hints;
mod model;
mod orphans;
mod paths;
mod placement;
mod promises;
mod quota;
mod scrub;
mod threads;

//! Volumes on two disks: sections of the fast one, and disks that are replaced.

pub mod divide;
pub mod place;
pub mod promote;
pub mod replace;
pub mod target;

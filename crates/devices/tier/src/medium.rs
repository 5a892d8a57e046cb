//! What lies on the disks: where things are, superblocks and their copies, numbers, errors of
//! media.

pub mod anchors;
pub mod bitmap_areas;
pub mod bytes;
pub mod errors;
pub mod layout;
pub mod superblock;

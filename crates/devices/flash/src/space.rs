//! Segments: which are free, held or pinned, what lies in them, and whether there is room.

pub mod heavy_hitters;
pub mod items;
pub mod pins;
pub mod room;
pub mod segments;

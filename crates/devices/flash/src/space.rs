//! Segments: which are free, held or pinned, what lies in them, and whether there is room.

pub mod costliest;
pub mod items;
pub mod pins;
pub mod placing;
pub mod room;
pub mod segments;
pub mod stall;
pub mod tight;

//! Codecs that the device does not use, for comparison: the records, coders and hybrid coding of
//! paper 3 as the paper has them, and a table of erase blocks.

pub mod blocks;
pub mod bytewise;
pub mod cmfs;

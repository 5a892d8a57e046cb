//! Where things are: the copy-on-write tree, its nodes and values, and how nodes get into memory.

pub mod ahead;
pub mod node;
pub mod onode;
pub mod tree;

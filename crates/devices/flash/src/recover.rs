//! What a mount finds behind the newest checkpoint: the journal, and what is left to be done.

pub mod replay;
pub mod scan;

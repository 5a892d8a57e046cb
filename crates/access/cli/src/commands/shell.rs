//! What belongs to the shell: completions, manual pages, the command of the lab.

pub mod completions;
pub mod lab;
pub mod man;

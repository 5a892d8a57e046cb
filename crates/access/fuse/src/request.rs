//! One request: what the kernel asks for in the words of the file system, and its answer.

pub mod answer;
pub mod commands;
pub mod content;
pub mod convert;
pub mod counts;
pub mod credentials;
pub mod directory;
pub mod faces;
pub mod page_cache;
pub mod patience;
pub mod place;
pub mod reply;
pub mod set_id;
pub mod snapshots;

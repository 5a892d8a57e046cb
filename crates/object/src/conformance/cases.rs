//! The cases, by what they are about.

pub mod access_times;
pub mod atomic;
pub mod attributes;
pub mod content;
pub mod durable;
pub mod full;
pub mod hints;
pub mod listing;
pub mod moves;
pub mod objects;
pub mod sizes;
pub mod space;
pub mod versions;

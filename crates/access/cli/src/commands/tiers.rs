//! Sections of the fast disk of a volume on two.

pub mod divide;
pub mod place;
pub mod promote;
pub mod target;

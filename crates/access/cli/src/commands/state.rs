//! How a volume is and what it does now.

pub mod ask;
pub mod health;
pub mod list;
pub mod map;
pub mod silent;
pub mod stat;
pub mod top;
pub mod why;

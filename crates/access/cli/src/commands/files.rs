//! Files of a volume; but for `compress`, `set` and `get-hints` of one that is not mounted.

pub mod assignment;
pub mod change;
pub mod compress;
pub mod copy;
pub mod cp;
pub mod get;
pub mod get_hints;
pub mod look;
pub mod ls;
pub mod mkdir;
pub mod put;
pub mod rm;
pub mod set;

//! Files of a volume; but for `compress` of one that is not mounted.

pub mod change;
pub mod compress;
pub mod copy;
pub mod cp;
pub mod get;
pub mod look;
pub mod ls;
pub mod mkdir;
pub mod put;
pub mod rm;

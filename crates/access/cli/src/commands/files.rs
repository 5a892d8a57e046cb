//! Files of an image that is not mounted.

pub mod copy;
pub mod cp;
pub mod get;
pub mod ls;
pub mod mkdir;
pub mod put;
pub mod rm;

//! From a spec to a device: media are opened, made or filled again, and what is missing or does not
//! belong is refused with advice. The only place of the product that names every device.

pub mod access;
pub mod device;
pub mod distinct;
#[cfg(any(feature = "flash", feature = "scm", feature = "tier"))]
mod failure;
#[cfg(feature = "flash")]
pub mod flash;
mod kind;
pub mod medium;
pub mod missing;
#[cfg(any(feature = "flash", feature = "tier"))]
mod place;
#[cfg(feature = "pool")]
pub mod pool;
#[cfg(any(feature = "flash", feature = "scm", feature = "tier"))]
mod replace;
#[cfg(feature = "scm")]
pub mod scm;
#[cfg(feature = "tier")]
pub(crate) mod tier;

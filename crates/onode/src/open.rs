//! From a spec to a device: media are opened, made or filled again, and what is missing or does not
//! belong is refused with advice. The only place of the product that names every device.

pub mod access;
pub mod beside;
pub mod device;
pub mod distinct;
pub mod flash;
pub mod medium;
pub mod memory;
pub mod missing;
pub mod nand;
pub mod raw;
pub mod region;
pub mod replace;
pub mod spaces;
pub mod tiers;

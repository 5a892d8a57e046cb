//! What lies on the flash: pages and how they are read and programmed, superblocks, the division of
//! the chip, errors.

pub mod errors;
pub mod format;
pub mod layout;
pub mod page;
pub mod pages;
pub mod ring;
pub mod saved;
pub mod store;

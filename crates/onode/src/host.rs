//! What only the computer itself can give: random numbers here, time, memory and what lies on its
//! files below.

pub mod budget;
pub mod clock;
#[cfg(any(feature = "flash", feature = "tier"))]
pub mod devices;
#[cfg(any(feature = "flash", feature = "tier"))]
pub mod signature;

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes from the system's source of randomness, for unique numbers and secrets.
///
/// # Errors
/// If the system offers none.
pub fn random_bytes<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; BYTES];
    let read = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::host_file("read random numbers from", source, &error))?;
    Ok(bytes)
}

//! What only the computer itself can give: random numbers here, time, memory and what lies on its
//! files below.

pub mod budget;
pub mod clock;
#[cfg(any(feature = "flash", feature = "tier"))]
pub mod devices;
#[cfg(any(feature = "flash", feature = "tier"))]
pub mod signature;

use crate::error::{Error, Result};
use onode_base::Prng;
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

/// Bytes that follow from a number alone, others for each purpose. Whoever knows it knows them.
pub(crate) fn derived(number: [u8; 16], purpose: u8) -> [u8; 16] {
    let mut bytes = number;
    for round in 0..2u64 {
        let [low, high] = [0, 8].map(|at| {
            let mut half = [0; 8];
            half.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(half)
        });
        Prng::new(low ^ high.rotate_left(32) ^ u64::from(purpose) << 8 ^ round).fill(&mut bytes[8..]);
        bytes.rotate_left(8);
    }
    bytes
}

//! What only the computer itself can give: random numbers here, time, memory and what lies on its
//! files below.

pub mod budget;
pub mod clock;
#[cfg(any(feature = "flash", feature = "tier"))]
pub mod devices;
#[cfg(any(feature = "flash", feature = "tier"))]
pub mod signature;

use crate::error::{Class, Error, Result};
use onode_base::Prng;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes from the kernel's source of randomness, for unique numbers and secrets. It takes no file,
/// so a root directory without `/dev` will do.
///
/// # Errors
/// If the kernel offers none.
pub fn random_bytes<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let mut done = 0;
    while done < BYTES {
        match getrandom(&mut bytes[done..], GetRandomFlags::empty()) {
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::new(Class::General, "cannot read random numbers", error.to_string())),
        }
    }
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

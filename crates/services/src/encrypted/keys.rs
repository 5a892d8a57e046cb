//! Keys as such: that of a volume, what a mount draws others from, how one follows from another.
//!
//! A mount has a number of its own, its epoch, which is on the medium before anything is sealed; a
//! nonce is the epoch and a counter. So no cut of power lets a nonce return. The data keys of
//! objects come from a secret of the mount that is stored nowhere: once the head of an object is
//! gone nobody can make its key again, whoever has the master key.

use crate::encrypted::cipher::KEY_BYTES;
use blake2::Blake2bMac;
use blake2::digest::consts::U32;
use blake2::digest::{FixedOutput, KeyInit, Update};
use onode_object::{Error, ErrorKind, Result};
use std::fmt;
use zeroize::Zeroizing;

/// Epochs and counters have this many bits.
pub(super) const HALF_BITS: u32 = 48;

/// A key, wiped from memory when it is dropped.
pub(crate) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The key that all of a volume hangs from. Nothing prints it.
#[derive(Clone)]
pub struct MasterKey(Key);

impl MasterKey {
    /// A key of random bytes.
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// What a mount seals with: its number, and random bytes that nobody keeps.
#[derive(Clone)]
pub struct Session {
    /// Greater than that of every mount before; 0 for one that changes nothing.
    epoch: u64,
    secret: Key,
}

impl Session {
    /// The same as the mount of this number.
    pub(super) fn in_epoch(self, epoch: u64) -> Self {
        Self { epoch, ..self }
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }

    /// The next mount of a volume draws its data keys from these random bytes.
    #[must_use]
    pub fn new(secret: [u8; KEY_BYTES]) -> Self {
        Self { epoch: 0, secret: Zeroizing::new(secret) }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session {{ epoch: {}, .. }}", self.epoch)
    }
}

/// BLAKE2b with a key, over some parts.
pub(crate) fn keyed_hash(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    // The key of BLAKE2b has at most 64 bytes; all keys here have 32.
    let mut mac = Blake2bMac::<U32>::new_from_slice(&key[..key.len().min(64)]).unwrap_or_else(|_| unreachable!());
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize_fixed().into()
}

/// A key from a key: BLAKE2b with the one as key, over what the other is for.
pub(crate) fn derive(key: &[u8], purpose: &[u8]) -> Key {
    Zeroizing::new(keyed_hash(key, &[purpose]))
}

/// The epoch after one that is stored.
///
/// # Errors
/// `ReadOnly` once all 2^48 are used up.
pub(super) fn next_epoch(epoch: u64) -> Result<u64> {
    let next = epoch.saturating_add(1);
    if next >> HALF_BITS != 0 {
        let why = "the volume was mounted as often as its nonces allow: copy its files to a new one";
        return Err(Error::new(ErrorKind::ReadOnly, why));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_end() {
        assert_eq!(next_epoch(0), Ok(1));
        assert!(next_epoch((1 << HALF_BITS) - 2).is_ok() && next_epoch((1 << HALF_BITS) - 1).is_err());
        assert!(next_epoch(u64::MAX).is_err());
    }

    #[test]
    fn nothing_prints_a_key() {
        let text = format!("{:?} {:?}", MasterKey::new([0xab; 32]), Session::new([0xcd; 32]));
        assert_eq!(text, "MasterKey(..) Session { epoch: 0, .. }");
    }
}

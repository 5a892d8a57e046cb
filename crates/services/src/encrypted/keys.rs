//! The keys of an open volume, all from its master key, and the nonces of one mount.
//!
//! A mount has a number of its own, its epoch, which is on the medium before anything is sealed; a
//! nonce is the epoch and a counter. So no cut of power lets a nonce return. The data keys of
//! objects come from a secret of the mount that is stored nowhere: once the head of an object is
//! gone nobody can make its key again, whoever has the master key.

use crate::encrypted::cipher::{Cipher, KEY_BYTES, NONCE_BYTES, Nonce};
use blake2::Blake2bMac;
use blake2::digest::consts::U32;
use blake2::digest::{FixedOutput, KeyInit, Update};
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, ErrorKind, Result};
use siphasher::sip::SipHasher13;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// Epochs and counters have this many bits.
const HALF_BITS: u32 = 48;

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

/// The keys of an open volume.
pub(super) struct Keys {
    /// For attributes: names, inodes, and all that a host keeps of objects.
    attributes: Cipher,
    /// For heads, which hold the size and the data key of an object.
    heads: Cipher,
    places: SipHasher13,
    session: Session,
    counter: AtomicU64,
}

impl Keys {
    pub(super) fn new(master: &MasterKey, session: Session) -> Self {
        let of = |purpose: &[u8]| derive(master.bytes(), purpose);
        let places: [u8; 16] = of(b"onode 1 places")[..16].try_into().unwrap_or_default();
        Self {
            attributes: Cipher::new(&of(b"onode 1 attributes")),
            heads: Cipher::new(&of(b"onode 1 heads")),
            places: SipHasher13::new_with_key(&places),
            session,
            counter: AtomicU64::new(0),
        }
    }

    pub(super) const fn attributes(&self) -> &Cipher {
        &self.attributes
    }

    pub(super) const fn heads(&self) -> &Cipher {
        &self.heads
    }

    /// Where what is left of a long attribute has its place.
    pub(super) fn place(&self, kind: u8, index: u64) -> u64 {
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&index.to_le_bytes());
        self.places.hash(&bytes)
    }

    /// A nonce that was never used.
    ///
    /// # Errors
    /// `ReadOnly` if the mount changes nothing, or has used all that it has.
    pub(super) fn nonce(&self) -> Result<Nonce> {
        if self.session.epoch == 0 {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume was opened for reading"));
        }
        let step = if is_planted(Bug::EncryptedNonceTwice) { 0 } else { 1 };
        let number = self.counter.fetch_add(step, Ordering::Relaxed);
        if number >> HALF_BITS != 0 {
            return Err(Error::new(ErrorKind::ReadOnly, "this mount has used all its nonces: mount the volume again"));
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce[..6].copy_from_slice(&self.session.epoch.to_le_bytes()[..6]);
        nonce[6..].copy_from_slice(&number.to_le_bytes()[..6]);
        Ok(nonce)
    }

    /// A data key for an object.
    ///
    /// # Errors
    /// As [`nonce`](Self::nonce).
    pub(super) fn data_key(&self) -> Result<Key> {
        Ok(derive(&*self.session.secret, &self.nonce()?))
    }
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
    use std::collections::BTreeSet;

    fn keys(epoch: u64) -> Keys {
        Keys::new(&MasterKey::new([1; 32]), Session::new([2; 32]).in_epoch(epoch))
    }

    #[test]
    fn no_nonce_comes_twice_in_any_mount() {
        let mut seen = BTreeSet::new();
        for epoch in [1, 2, 255, 256, 1 << 40] {
            let keys = keys(epoch);
            assert!((0..1000).all(|_| seen.insert(keys.nonce().expect("there are more"))));
        }
        assert_eq!(keys(0).nonce().map_err(|error| error.kind), Err(ErrorKind::ReadOnly));
        let last = keys(1);
        last.counter.store((1 << HALF_BITS) - 1, Ordering::Relaxed);
        assert!(last.nonce().is_ok() && last.nonce().is_err());
    }

    #[test]
    fn data_keys_differ_and_do_not_follow_from_the_master_key() {
        let one = keys(1);
        let (first, second) = (one.data_key().expect("a key"), one.data_key().expect("a key"));
        assert_ne!(*first, *second);
        let other = Keys::new(&MasterKey::new([1; 32]), Session::new([3; 32]).in_epoch(1));
        assert_ne!(*first, *other.data_key().expect("a key"));
    }

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

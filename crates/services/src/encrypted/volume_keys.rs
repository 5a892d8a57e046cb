//! What an open volume seals with: keys from its master key, and the nonces of one mount.

use crate::encrypted::cipher::{Cipher, NONCE_BYTES, Nonce};
use crate::encrypted::directories::unlocked::Unlocked;
use crate::encrypted::keys::{HALF_BITS, Key, MasterKey, Session, derive};
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, ErrorKind, Result};
use siphasher::sip::SipHasher13;
use std::sync::atomic::{AtomicU64, Ordering};

/// The keys of an open volume.
pub(super) struct Keys {
    /// For attributes: names, inodes, and all that a host keeps of objects.
    attributes: Cipher,
    /// For heads, which hold the size and the data key of an object.
    heads: Cipher,
    places: SipHasher13,
    directories: Unlocked,
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
            directories: Unlocked::default(),
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

    /// The keys of directories that are unlocked.
    pub(super) const fn directories(&self) -> &Unlocked {
        &self.directories
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
        if self.session.epoch() == 0 {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume was opened for reading"));
        }
        let step = if is_planted(Bug::EncryptedNonceTwice) { 0 } else { 1 };
        let number = self.counter.fetch_add(step, Ordering::Relaxed);
        if number >> HALF_BITS != 0 {
            return Err(Error::new(ErrorKind::ReadOnly, "this mount has used all its nonces: mount the volume again"));
        }
        let mut nonce = [0; NONCE_BYTES];
        nonce[..6].copy_from_slice(&self.session.epoch().to_le_bytes()[..6]);
        nonce[6..].copy_from_slice(&number.to_le_bytes()[..6]);
        Ok(nonce)
    }

    /// A data key for an object.
    ///
    /// # Errors
    /// As [`nonce`](Self::nonce).
    pub(super) fn data_key(&self) -> Result<Key> {
        Ok(derive(self.session.secret(), &self.nonce()?))
    }
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
}

//! The data key of an object, wrapped by the key of its directory.

use crate::encrypted::cipher::{Cipher, Context, KEY_BYTES, Nonce, OVERHEAD_BYTES, What};
use crate::encrypted::keys::Key;
use onode_object::ObjectId;
use zeroize::Zeroizing;

/// Bytes of a wrapped data key.
const WRAPPED_BYTES: usize = KEY_BYTES + OVERHEAD_BYTES;

/// The data key of an object as the key of its directory has wrapped it.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::encrypted) struct Wrapped {
    number: u32,
    bytes: [u8; WRAPPED_BYTES],
}

impl Wrapped {
    /// Wraps one.
    pub(in crate::encrypted) fn new(object: ObjectId, number: u32, cipher: &Cipher, nonce: &Nonce, key: &Key) -> Self {
        let value = cipher.seal_value(nonce, &Self::context(object, number), &**key);
        Self { number, bytes: value.try_into().unwrap_or([0; WRAPPED_BYTES]) }
    }

    /// What is stored, and what follows it.
    pub(in crate::encrypted) fn parse(number: u32, stored: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, rest) = stored.split_first_chunk()?;
        Some((Self { number, bytes: *bytes }, rest))
    }

    /// The number of the key of the directory.
    pub(in crate::encrypted) const fn number(&self) -> u32 {
        self.number
    }

    /// As it is stored.
    pub(in crate::encrypted) const fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The data key; `None` if this is not what was wrapped.
    pub(in crate::encrypted) fn open(&self, object: ObjectId, cipher: &Cipher) -> Option<Key> {
        let plain = cipher.open_value(&Self::context(object, self.number), &self.bytes).map(Zeroizing::new)?;
        plain.as_slice().try_into().ok().map(Zeroizing::new)
    }

    fn context(object: ObjectId, number: u32) -> Context {
        Context::new(What::Wrapped, object, u64::from(number))
    }
}

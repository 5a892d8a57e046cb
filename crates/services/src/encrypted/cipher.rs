//! Authenticated encryption: AES-256-GCM-SIV (RFC 8452) of a kept library.
//!
//! A nonce is used once; should one ever be used twice with a key, this cipher shows whether two
//! plaintexts are the same and nothing else. Every message is bound to the place it belongs to by
//! its context, so what was moved elsewhere on the medium does not open.

use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::{AeadInOut, Aes256GcmSiv, Key, KeyInit};
use onode_base::planted::{Bug, is_planted};
use onode_object::ObjectId;

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;
/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = 16;
/// By how much a sealed value is longer than what it holds.
pub(crate) const OVERHEAD_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// A number that no key seals with twice.
pub(crate) type Nonce = [u8; NONCE_BYTES];
/// What shows that a message is unchanged.
pub(crate) type Tag = [u8; TAG_BYTES];

/// What a message is.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Head = 1,
    Group = 2,
    Holes = 3,
    Inline = 4,
    Block = 5,
    Attribute = 6,
    Slot = 7,
    Sum = 8,
    Wrapped = 9,
}

/// The place that a message is bound to.
pub(crate) struct Context([u8; 18]);

impl Context {
    /// The part `index` of an object that is of this sort.
    pub(crate) fn new(what: What, object: ObjectId, index: u64) -> Self {
        Self::of_kind(what, object, 0, index)
    }

    /// An attribute of an object.
    pub(crate) fn of_kind(what: What, object: ObjectId, kind: u8, index: u64) -> Self {
        let mut bytes = [0; 18];
        let index = if is_planted(Bug::EncryptedPlaceIgnored) { 0 } else { index };
        bytes[0] = what as u8;
        bytes[1] = kind;
        bytes[2..10].copy_from_slice(&object.0.to_le_bytes());
        bytes[10..].copy_from_slice(&index.to_le_bytes());
        Self(bytes)
    }
}

/// A key, ready for use. It is wiped from memory when it is dropped.
pub(crate) struct Cipher(Aes256GcmSiv);

impl Cipher {
    pub(crate) fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(Aes256GcmSiv::new(&Key::<Aes256GcmSiv>::from(*key)))
    }

    /// Encrypts bytes where they are.
    pub(crate) fn seal(&self, nonce: &Nonce, context: &Context, bytes: &mut [u8]) -> Tag {
        let sealed = self.0.encrypt_inout_detached(&(*nonce).into(), &context.0, InOutBuf::from(bytes));
        // It fails only past 64 GiB, and nothing here is longer than a block.
        sealed.map_or([0; TAG_BYTES], Into::into)
    }

    /// Decrypts bytes where they are. They mean nothing if it says no: they are not what was
    /// sealed.
    #[must_use]
    pub(crate) fn open(&self, nonce: &Nonce, context: &Context, bytes: &mut [u8], tag: &Tag) -> bool {
        let nonce = (*nonce).into();
        self.0.decrypt_inout_detached(&nonce, &context.0, InOutBuf::from(bytes), &(*tag).into()).is_ok()
    }

    /// A value with its nonce before it and its tag behind it.
    pub(crate) fn seal_value(&self, nonce: &Nonce, context: &Context, plain: &[u8]) -> Vec<u8> {
        let mut value = Vec::with_capacity(plain.len() + OVERHEAD_BYTES);
        value.extend_from_slice(nonce);
        value.extend_from_slice(plain);
        let tag = self.seal(nonce, context, &mut value[NONCE_BYTES..]);
        value.extend_from_slice(&tag);
        value
    }

    /// What a sealed value holds; `None` if it is not what was sealed.
    pub(crate) fn open_value(&self, context: &Context, value: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = value.split_first_chunk()?;
        let (sealed, tag) = rest.split_last_chunk()?;
        let mut plain = sealed.to_vec();
        self.open(nonce, context, &mut plain, tag).then_some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8452, appendix C.2: the case of eight bytes without a context is not ours to make, since
    /// a context has always eighteen; so the library is asked.
    #[test]
    fn the_library_is_the_cipher_of_the_rfc() {
        let mut key = [0; 32];
        key[0] = 1;
        let mut nonce = [0; 12];
        nonce[0] = 3;
        let mut bytes = [1, 0, 0, 0, 0, 0, 0, 0];
        let cipher = Cipher::new(&key);
        let tag = cipher.0.encrypt_inout_detached(&nonce.into(), &[], InOutBuf::from(&mut bytes[..])).expect("short");
        assert_eq!(bytes, [0xc2, 0xef, 0x32, 0x8e, 0x5c, 0x71, 0xc8, 0x3b]);
        let expected = [0x84, 0x31, 0x22, 0x13, 0x0f, 0x73, 0x64, 0xb7, 0x61, 0xe0, 0xb9, 0x74, 0x27, 0xe3, 0xdf, 0x28];
        assert_eq!(Tag::from(tag), expected);
    }

    #[test]
    fn what_was_changed_or_moved_does_not_open() {
        let cipher = Cipher::new(&[7; 32]);
        let here = || Context::new(What::Group, ObjectId(5), 9);
        let value = cipher.seal_value(&[1; 12], &here(), b"content");
        assert_eq!(cipher.open_value(&here(), &value).as_deref(), Some(&b"content"[..]));
        for bit in 0..value.len() * 8 {
            let mut changed = value.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(cipher.open_value(&here(), &changed), None, "bit {bit}");
        }
        for length in 0..value.len() {
            assert_eq!(cipher.open_value(&here(), &value[..length]), None, "{length} bytes");
        }
        let elsewhere = [
            Context::new(What::Group, ObjectId(6), 9),
            Context::new(What::Group, ObjectId(5), 8),
            Context::new(What::Holes, ObjectId(5), 9),
            Context::of_kind(What::Group, ObjectId(5), 1, 9),
        ];
        assert!(elsewhere.iter().all(|context| cipher.open_value(context, &value).is_none()));
        assert_eq!(Cipher::new(&[8; 32]).open_value(&here(), &value), None);
    }
}

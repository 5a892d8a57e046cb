//! Attributes of the host, each sealed by itself: names, inodes, and whatever else it keeps.
//!
//! A value is longer when it is sealed. What is too long for an attribute then has its last bytes
//! in a second one, whose place follows from the key of the first.

use crate::encrypted::Encrypted;
use crate::encrypted::cipher::{Cipher, Context, OVERHEAD_BYTES, What};
use crate::encrypted::directories::AttributeSeal;
use crate::encrypted::map::{Begun, is_ours, rest_key};
use crate::plan::{UNUSED, empty_punches, punches_for};
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::KEY_BYTES;
use onode_object::{
    AttributeKey, AttributeKind, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result, Transaction,
};

const MAX: usize = Transaction::MAX_ATTRIBUTE_BYTES;
/// How often both parts of a long value are read, if somebody changes them in between.
const TRIES: usize = 8;

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// What sets an attribute. On a full device one may take the place of another (N7): what
    /// it is longer by when it is sealed is paid for by punches of nothing, if `is_frugal`.
    pub(super) fn set_attribute(
        &self,
        object: ObjectId,
        key: AttributeKey,
        value: &[u8],
        begun: &Begun,
        is_frugal: bool,
    ) -> Result<Vec<Mutation>> {
        let mut mutations = Vec::with_capacity(1);
        let context = Context::of_kind(What::Attribute, object, key.kind.0, key.index);
        let seal = self.attribute_seal(object, key.kind, begun)?;
        let mut sealed = self.cipher_of(&seal).seal_value(&self.keys().nonce()?, &context, value);
        let rest = sealed.split_off(sealed.len().min(MAX));
        if is_frugal && !is_planted(Bug::EncryptedDebtForgotten) {
            let before = match self.inner().attribute(object, key) {
                Err(error) if error.kind == ErrorKind::NotFound => None,
                before => before?,
            };
            let is_new_rest = !rest.is_empty() && before.as_ref().is_none_or(|before| before.len() < MAX);
            let of_new = if before.is_none() { OVERHEAD_BYTES as i64 } else { 0 };
            let of_rest = if is_new_rest { KEY_BYTES } else { 0 };
            mutations.extend(empty_punches(object, punches_for(of_new + of_rest)));
        }
        let is_full = sealed.len() == MAX;
        mutations.push(Mutation::SetAttribute { object, key, value: sealed });
        if is_full && !(rest.is_empty() && is_planted(Bug::EncryptedPartStays)) {
            let place = rest_key(self.keys().place(key.kind.0, key.index));
            mutations.push(if rest.is_empty() {
                Mutation::RemoveAttribute { object, key: place }
            } else {
                Mutation::SetAttribute { object, key: place, value: rest }
            });
        }
        Ok(mutations)
    }

    /// What removes an attribute. What a long one had besides stays until the object goes, or
    /// until another long value takes its place.
    pub(super) fn remove_attribute(object: ObjectId, key: AttributeKey) -> Mutation {
        Mutation::RemoveAttribute { object, key: if is_ours(key) { UNUSED } else { key } }
    }

    /// An attribute of the host.
    pub(super) fn open_attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        for _ in 0..TRIES {
            // Whether it is there is nobody's to know without the key either.
            let seal = self.attribute_seal(object, key.kind, &Begun::new())?;
            let Some(value) = self.inner().attribute(object, key)? else { return Ok(None) };
            if let Some(plain) = self.opened(object, key, value, &seal)? {
                return Ok(Some(plain));
            }
        }
        Err(lost(object, key))
    }

    /// The value of an attribute that was just read; `None` if it is not what was sealed.
    fn opened(
        &self,
        object: ObjectId,
        key: AttributeKey,
        mut value: Vec<u8>,
        seal: &AttributeSeal,
    ) -> Result<Option<Vec<u8>>> {
        if value.len() == MAX {
            let rest = self.inner().attribute(object, rest_key(self.keys().place(key.kind.0, key.index)))?;
            value.extend(rest.unwrap_or_default());
        }
        let context = Context::of_kind(What::Attribute, object, key.kind.0, key.index);
        Ok(self.cipher_of(seal).open_value(&context, &value))
    }

    fn cipher_of<'a>(&'a self, seal: &'a AttributeSeal) -> &'a Cipher {
        match seal {
            AttributeSeal::Volume => self.keys().attributes(),
            AttributeSeal::Data(key) => &key.cipher,
        }
    }

    /// Attributes that were just read, without those of this service.
    pub(super) fn open_attributes(
        &self,
        object: ObjectId,
        found: Vec<(AttributeKey, Vec<u8>)>,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let mut all = Vec::with_capacity(found.len());
        // They come in the order of their kinds.
        let mut last: Option<(AttributeKind, AttributeSeal)> = None;
        for (key, value) in found.into_iter().filter(|(key, _)| !is_ours(*key)) {
            let seal = match last.take().filter(|(kind, _)| *kind == key.kind) {
                Some((_, seal)) => seal,
                None => self.attribute_seal(object, key.kind, &Begun::new())?,
            };
            let opened = self.opened(object, key, value, &seal)?;
            last = Some((key.kind, seal));
            match opened {
                Some(plain) => all.push((key, plain)),
                // Somebody may have changed it since; if nobody did it is damage.
                None => all.extend(self.open_attribute(object, key)?.map(|plain| (key, plain))),
            }
        }
        Ok(all)
    }
}

fn lost(object: ObjectId, key: AttributeKey) -> Error {
    let AttributeKey { kind, index } = key;
    Error::of(ErrorKind::Corrupt, object, format!("its attribute {}:{index:#x} is not what was sealed", kind.0))
}

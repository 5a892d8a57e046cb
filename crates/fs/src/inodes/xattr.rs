//! Extended attributes: each in a slot of its own, large values in an object of their own.
//!
//! A value object is made, replaced and removed in the transaction that changes the slot, so there
//! is never one without a slot nor a slot without its object.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::acl;
use crate::inodes::inode::Inode;
use crate::limits::SET_GROUP;
use crate::names::slots::{Slot, Slots};
use crate::state::State;
use crate::types::{Caller, InodeNumber, XattrFlags};
use crate::volume::hints::{self, Hint};
use onode_base::{ErrorKind, varint};
use onode_object::{AttributeKey, AttributeKind, Hints, ObjectDevice, ObjectId, Transaction};

/// Longest name of an extended attribute in bytes.
pub const XATTR_NAME_BYTES_MAX: usize = 255;
/// Largest value of an extended attribute in bytes.
pub const XATTR_VALUE_BYTES_MAX: usize = 65_536;

const NAMESPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
const CAPABILITIES: &[u8] = b"security.capability";
const SLOTS_AT_ONCE: usize = 64;

const INLINE: u8 = 1;
const OBJECT: u8 = 2;

/// Where the value of an extended attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Inline(&'a [u8]),
    Object { object: ObjectId, size: u64 },
}

/// One extended attribute as it is stored in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Xattr<'a> {
    pub name: &'a [u8],
    pub value: Value<'a>,
}

impl<'a> Xattr<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![if matches!(self.value, Value::Inline(_)) { INLINE } else { OBJECT }];
        varint::put_bytes(&mut out, self.name);
        match self.value {
            Value::Inline(value) => out.extend_from_slice(value),
            Value::Object { object, size } => {
                varint::put(&mut out, object.0);
                varint::put(&mut out, size);
            }
        }
        out
    }

    /// The attribute of a slot's payload; `None` if the payload is damaged.
    pub(crate) fn decode(payload: &'a [u8]) -> Option<Self> {
        let (&head, mut rest) = payload.split_first()?;
        let name =
            varint::take_bytes(&mut rest).filter(|name| !name.is_empty() && name.len() <= XATTR_NAME_BYTES_MAX)?;
        let value = match head {
            INLINE => Value::Inline(rest),
            OBJECT => {
                let value =
                    Value::Object { object: ObjectId(varint::take(&mut rest)?), size: varint::take(&mut rest)? };
                if !rest.is_empty() {
                    return None;
                }
                value
            }
            _ => return None,
        };
        Some(Self { name, value })
    }

    fn is_stored_as(payload: &[u8], name: &[u8]) -> bool {
        Xattr::decode(payload).is_some_and(|xattr| xattr.name == name)
    }
}

/// The objects that hold large values of an object's extended attributes.
pub(crate) fn value_objects(device: &dyn ObjectDevice, object: ObjectId) -> Result<Vec<ObjectId>> {
    let slots = Slots { device, object, kind: AttributeKind::XATTR };
    let mut found = Vec::new();
    let mut from = 0;
    loop {
        let batch = slots.list(from, SLOTS_AT_ONCE)?;
        let Some(last) = batch.last() else { return Ok(found) };
        from = last.index + 1;
        found.extend(batch.iter().filter_map(|slot| match Xattr::decode(&slot.payload)?.value {
            Value::Object { object, .. } => Some(object),
            Value::Inline(_) => None,
        }));
    }
}

impl FileSystem {
    /// The value of an extended attribute.
    ///
    /// # Errors
    /// `NoAttribute`; `NotSupported` for a namespace there is not; the device's errors.
    pub fn get_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<Vec<u8>> {
        if let Some(value) = self.hidden_xattr(number, name) {
            return value;
        }
        check_name(name)?;
        self.xattr(&mut self.lock(), number, name)?.ok_or_else(|| ErrorKind::NoAttribute.into())
    }

    /// The names of all extended attributes, each followed by a zero byte.
    ///
    /// # Errors
    /// `Stale`; the device's errors.
    pub fn list_xattrs(&self, number: InodeNumber) -> Result<Vec<u8>> {
        let state = &mut *self.lock();
        let node = self.node(state, number)?;
        let mut names = Vec::new();
        if node.removed || !node.inode.has_xattrs {
            return Ok(names);
        }
        let mut from = 0;
        loop {
            let batch = self.slots(number, AttributeKind::XATTR).list(from, SLOTS_AT_ONCE)?;
            let Some(last) = batch.last() else { return Ok(names) };
            from = last.index + 1;
            for slot in &batch {
                if let Some(xattr) = Xattr::decode(&slot.payload) {
                    names.extend_from_slice(xattr.name);
                    names.push(0);
                }
            }
        }
    }

    /// Sets an extended attribute. An access ACL changes the mode too.
    ///
    /// # Errors
    /// `Exists`, `NoAttribute` as `flags` say; `TooLarge`, `Range` for value and name; `Invalid`
    /// for a malformed ACL; `AccessDenied` for a default ACL on what is no directory;
    /// `NotSupported`.
    pub fn set_xattr(
        &self,
        caller: &Caller,
        number: InodeNumber,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<()> {
        if let Some(set) = self.set_hidden_xattr(caller, number, name, value) {
            return set;
        }
        self.check_writable()?;
        check_name(name)?;
        hints::check_ours(name)?;
        if value.len() > XATTR_VALUE_BYTES_MAX {
            return Err(Error::of(ErrorKind::TooLarge, number, "value of an extended attribute"));
        }
        let state = &mut *self.lock();
        let mut inode = self.live_inode(state, number)?;
        let exists = self.find_xattr(state, number, name)?.is_some();
        match flags {
            XattrFlags::Create if exists => return Err(ErrorKind::Exists.into()),
            XattrFlags::Replace if !exists => return Err(ErrorKind::NoAttribute.into()),
            XattrFlags::Any | XattrFlags::Create | XattrFlags::Replace => {}
        }
        let set = match name {
            acl::ACCESS => acl::set_access(value, &mut inode),
            acl::DEFAULT if !inode.is_directory() => return Err(ErrorKind::AccessDenied.into()),
            acl::DEFAULT => acl::set_default(value),
            _ => acl::Set::Keep,
        };
        if name == acl::ACCESS && !caller.may_set_group_bit(inode.gid) {
            inode.permissions &= !SET_GROUP;
        }
        let mut transaction = Transaction::new();
        match set {
            acl::Set::Malformed => return Err(Error::of(ErrorKind::Invalid, number, "malformed ACL")),
            acl::Set::Remove => self.take_xattr(state, number, name, &mut transaction)?,
            acl::Set::Keep => {
                inode.has_xattrs = true;
                self.put_xattr(state, number, name, value, &mut transaction)?;
            }
        }
        self.commit_with_inode(state, number, inode, transaction)
    }

    /// Removes an extended attribute; a hint is then as if nobody had given it.
    ///
    /// # Errors
    /// `NoAttribute`; as [`set_xattr`](Self::set_xattr).
    pub fn remove_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<()> {
        if let Some(hint) = Hint::of_attribute(name) {
            return self.remove_hint_xattr(number, hint);
        }
        self.check_writable()?;
        check_name(name)?;
        let state = &mut *self.lock();
        let inode = self.live_inode(state, number)?;
        if self.find_xattr(state, number, name)?.is_none() {
            return Err(ErrorKind::NoAttribute.into());
        }
        let mut transaction = Transaction::new();
        self.take_xattr(state, number, name, &mut transaction)?;
        self.commit_with_inode(state, number, inode, transaction)
    }

    /// Takes the capabilities of a program away, as every write does, whoever makes it. For those
    /// to whom the kernel leaves that.
    ///
    /// # Errors
    /// As [`remove_xattr`](Self::remove_xattr).
    pub fn drop_capabilities(&self, number: InodeNumber) -> Result<()> {
        if !self.node(&mut self.lock(), number)?.inode.has_xattrs {
            return Ok(());
        }
        match self.remove_xattr(number, CAPABILITIES) {
            Err(error) if error.kind == ErrorKind::NoAttribute => Ok(()),
            other => other,
        }
    }

    fn live_inode(&self, state: &mut State, number: InodeNumber) -> Result<Inode> {
        let node = self.node(state, number)?;
        if node.removed {
            return Err(Error::of(ErrorKind::Stale, number, "the file is gone"));
        }
        Ok(node.inode)
    }

    fn commit_with_inode(
        &self,
        state: &mut State,
        number: InodeNumber,
        mut inode: Inode,
        mut transaction: Transaction,
    ) -> Result<()> {
        inode.changed = self.now();
        self.inodes.store(&mut transaction, number.object(), &inode);
        self.commit(state, transaction)?;
        self.set_inode(state, number, inode);
        state.statistics.changes += 1;
        Ok(())
    }

    fn find_xattr(&self, state: &mut State, number: InodeNumber, name: &[u8]) -> Result<Option<Slot>> {
        let node = self.node(state, number)?;
        if node.removed || !node.inode.has_xattrs {
            return Ok(None);
        }
        let slots = self.slots(number, AttributeKind::XATTR);
        slots.find(self.hash.home(name), |payload| Xattr::is_stored_as(payload, name))
    }

    /// The value of an extended attribute, if there is one.
    pub(crate) fn xattr(&self, state: &mut State, number: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(slot) = self.find_xattr(state, number, name)? else { return Ok(None) };
        match Xattr::decode(&slot.payload).map(|xattr| xattr.value) {
            Some(Value::Inline(value)) => Ok(Some(value.to_vec())),
            Some(Value::Object { object, size }) if size <= XATTR_VALUE_BYTES_MAX as u64 => {
                let mut value = vec![0; size as usize];
                if self.device.read(object, 0, &mut value)? != value.len() {
                    return Err(Error::of(ErrorKind::Corrupt, number, "the value of an extended attribute is cut"));
                }
                Ok(Some(value))
            }
            Some(Value::Object { .. }) | None => {
                Err(Error::of(ErrorKind::Corrupt, number, "an extended attribute is damaged; run fsck"))
            }
        }
    }

    /// The default ACL of a directory.
    pub(crate) fn default_acl(&self, state: &mut State, directory: InodeNumber) -> Result<Option<Vec<u8>>> {
        self.xattr(state, directory, acl::DEFAULT)
    }

    /// Adds setting an attribute to the transaction.
    pub(crate) fn put_xattr(
        &self,
        state: &mut State,
        number: InodeNumber,
        name: &[u8],
        value: &[u8],
        transaction: &mut Transaction,
    ) -> Result<()> {
        let mut payload = Xattr { name, value: Value::Inline(value) }.encode();
        if payload.len() > Transaction::MAX_ATTRIBUTE_BYTES {
            let object = self.new_number(state)?.object();
            let hints = Hints { locality: Some(number.object()), ..Hints::default() };
            transaction.create(object, hints).write(object, 0, value.to_vec());
            payload = Xattr { name, value: Value::Object { object, size: value.len() as u64 } }.encode();
        }
        let slots = self.slots(number, AttributeKind::XATTR);
        match self.find_xattr(state, number, name)? {
            Some(old) => {
                remove_value_object(&old, transaction);
                slots.replace(transaction, &old, &payload);
            }
            None => {
                slots.insert(transaction, self.hash.home(name), &payload, None)?;
            }
        }
        Ok(())
    }

    /// Adds removing an attribute, if there is one.
    fn take_xattr(
        &self,
        state: &mut State,
        number: InodeNumber,
        name: &[u8],
        transaction: &mut Transaction,
    ) -> Result<()> {
        if let Some(old) = self.find_xattr(state, number, name)? {
            remove_value_object(&old, transaction);
            self.slots(number, AttributeKind::XATTR).remove(transaction, &old);
        }
        Ok(())
    }

    /// Adds the attributes an object starts with. The device does not know the object yet, so their
    /// slots are worked out here.
    pub(crate) fn put_first_xattrs(
        &self,
        state: &mut State,
        transaction: &mut Transaction,
        number: InodeNumber,
        attributes: &[(&'static [u8], Vec<u8>)],
    ) -> Result<()> {
        let mut payloads = Vec::new();
        for (name, value) in attributes {
            let mut payload = Xattr { name, value: Value::Inline(value) }.encode();
            if payload.len() > Transaction::MAX_ATTRIBUTE_BYTES {
                let object = self.new_number(state)?.object();
                let hints = Hints { locality: Some(number.object()), ..Hints::default() };
                transaction.create(object, hints).write(object, 0, value.clone());
                payload = Xattr { name, value: Value::Object { object, size: value.len() as u64 } }.encode();
            }
            payloads.push((self.hash.home(name), payload));
        }
        for (index, bytes) in crate::names::slots::place(payloads) {
            transaction.set_attribute(number.object(), AttributeKey::new(AttributeKind::XATTR, index), bytes);
        }
        Ok(())
    }
}

fn remove_value_object(slot: &Slot, transaction: &mut Transaction) {
    if let Some(Xattr { value: Value::Object { object, .. }, .. }) = Xattr::decode(&slot.payload) {
        transaction.remove(object);
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > XATTR_NAME_BYTES_MAX {
        return Err(Error::new(ErrorKind::Range, "name of an extended attribute"));
    }
    if NAMESPACES.contains(&name) {
        return Err(Error::new(ErrorKind::Invalid, "a namespace is no name of an extended attribute"));
    }
    let in_namespace = |prefix: &[u8]| name.starts_with(prefix);
    if name == acl::ACCESS || name == acl::DEFAULT || NAMESPACES.iter().any(|prefix| in_namespace(prefix)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotSupported, "extended attributes begin with user., trusted. or security."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_attributes_come_back_and_damage_is_refused() {
        for value in
            [Value::Inline(b""), Value::Inline(b"x"), Value::Object { object: ObjectId(1 << 50), size: 70_000 }]
        {
            let xattr = Xattr { name: b"user.a", value };
            assert_eq!(Xattr::decode(&xattr.encode()), Some(xattr));
        }
        assert_eq!(Xattr::decode(&[3, 1, b'a']), None);
        assert_eq!(Xattr::decode(&[1, 0]), None);
        assert_eq!(Xattr::decode(&[2, 1, b'a', 5, 5, 5]), None);
    }
}

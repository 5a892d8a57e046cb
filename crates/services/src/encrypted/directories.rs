//! Keys of directories: what is made in such a directory needs a key of its own beside that of the
//! volume.
//!
//! A key of a directory has a number, which the hints of objects carry from a directory to what is
//! made in it. It wraps the data keys of these objects and nothing else, so content and names,
//! which data keys seal, are out of reach while it is locked. Inodes, extended attributes and sizes
//! are sealed with the key of the volume: whoever has only that one can list such a directory from
//! outside, rename and remove it, but neither see a name in it nor a byte.

mod power;
pub(super) mod stored;
pub(super) mod unlocked;
mod verbs;
pub(super) mod wrapped;

pub use power::{DirectoryKey, DirectoryKeys, NewSlot};

use crate::encrypted::Encrypted;
use crate::encrypted::directories::wrapped::Wrapped;
use crate::encrypted::map::{Begun, DataKey, Head};
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKind, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};
use std::sync::Arc;

/// Whether an attribute of that kind is sealed with the data key of an object that belongs to a
/// directory with a key. What tells of the object as a whole is not: it can be looked at, renamed
/// and removed without that key.
pub(super) const fn is_kept_from_volume(kind: AttributeKind) -> bool {
    !matches!(kind, AttributeKind::INODE | AttributeKind::XATTR)
}

/// What seals an attribute.
pub(super) enum AttributeSeal {
    /// A key of the volume.
    Volume,
    /// The data key of its object.
    Data(Arc<DataKey>),
}

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// Whether an object may belong to a directory with a key.
    pub(super) fn has_directories(&self) -> bool {
        self.keys().directories().is_used() || self.is_shared()
    }

    /// What seals attributes of that kind of an object, if it is there.
    ///
    /// # Errors
    /// `KeyNeeded` if the key of its directory is locked; those of the device.
    pub(super) fn attribute_seal(&self, object: ObjectId, kind: AttributeKind, begun: &Begun) -> Result<AttributeSeal> {
        let is_kept = is_kept_from_volume(kind) && !is_planted(Bug::DirectoryNamesOpen);
        if !is_kept || !self.has_directories() {
            return Ok(AttributeSeal::Volume);
        }
        let head = match begun.get(&object) {
            Some(head) => Some(head.clone()),
            None => match self.head(object) {
                Err(error) if error.kind == ErrorKind::NotFound => None,
                head => head?,
            },
        };
        match head {
            Some(head) if head.directory_key() != 0 => Ok(AttributeSeal::Data(Arc::clone(head.key(object)?))),
            _ => Ok(AttributeSeal::Volume),
        }
    }

    /// The head of an object that from now on belongs to a directory with this key.
    ///
    /// # Errors
    /// `KeyNeeded` if there is no such key, or it is locked.
    pub(super) fn begin_head(&self, object: ObjectId, number: u32) -> Result<Head> {
        let cipher = self.keys().directories().cipher(number).ok_or_else(|| {
            let why = format!("key {number} of its directory is locked, or the volume has no such key");
            Error::of(ErrorKind::KeyNeeded, object, why)
        })?;
        let key = self.keys().data_key()?;
        if is_planted(Bug::DirectoryKeyUnwrapped) {
            return Ok(Head::new(DataKey::new(key)));
        }
        let wrapped = Wrapped::new(object, number, &cipher, &self.keys().nonce()?, &key);
        Ok(Head::of_directory(DataKey::new(key), wrapped))
    }

    /// What hints of an object that is there become: the key of its directory is more than advice,
    /// and an object keeps it. One without content and names can get one, with a head that begins
    /// then.
    ///
    /// # Errors
    /// `Invalid` if it has content, or another key; as [`begin_head`](Self::begin_head).
    pub(super) fn with_directory_key(&self, mut mutation: Mutation, begun: &mut Begun) -> Result<Mutation> {
        let Mutation::SetHints { object, hints } = &mut mutation else { return Ok(mutation) };
        let (object, wanted) = (*object, hints.encryption_key);
        if wanted == 0 && !self.has_directories() {
            return Ok(mutation);
        }
        let head = match begun.get(&object) {
            Some(head) => Some(head.clone()),
            None => match self.head(object) {
                // The device says so itself.
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(mutation),
                head => head?,
            },
        };
        match head.map(|head| head.directory_key()) {
            Some(number) if number == wanted || wanted == 0 => hints.encryption_key = number,
            None if wanted == 0 => {}
            None => _ = begun.insert(object, self.begin_head(object, wanted)?),
            Some(0) => {
                let why = "what has content already cannot get the key of a directory: copy it into that directory";
                return Err(Error::of(ErrorKind::Invalid, object, why));
            }
            Some(number) => {
                let why = format!("it has key {number} of its directory, and keeps it");
                return Err(Error::of(ErrorKind::Invalid, object, why));
            }
        }
        Ok(mutation)
    }
}

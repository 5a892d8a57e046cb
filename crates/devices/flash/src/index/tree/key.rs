//! Keys of the tree: object, kind, index.

use onode_object::{AttributeKey, AttributeKind, ObjectId};

/// A key. Ordered by object first, so that all of an object lies together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Object id.
    pub object: u64,
    /// [`Key::ONODE`], [`Key::ATTRIBUTE`] + attribute kind, or [`Key::EXTENT`].
    pub kind: u16,
    /// Attribute index, or offset of an extent in the object.
    pub index: u64,
}

impl Key {
    /// The least key.
    pub const MIN: Self = Self { object: 0, kind: 0, index: 0 };
    /// Kind of the onode.
    pub const ONODE: u16 = 0;
    /// Kind of the attribute of kind 0.
    pub const ATTRIBUTE: u16 = 0x100;
    /// Kind of extents.
    pub const EXTENT: u16 = 0x200;

    /// The key of an object's onode.
    pub const fn onode(object: ObjectId) -> Self {
        Self { object: object.0, kind: Self::ONODE, index: 0 }
    }

    /// The key of an attribute.
    pub const fn attribute(object: ObjectId, key: AttributeKey) -> Self {
        Self { object: object.0, kind: Self::ATTRIBUTE + key.kind.0 as u16, index: key.index }
    }

    /// The key of the extent that starts at `offset`.
    pub const fn extent(object: ObjectId, offset: u64) -> Self {
        Self { object: object.0, kind: Self::EXTENT, index: offset }
    }

    /// The attribute that this key stands for, if it does.
    pub fn as_attribute(&self) -> Option<AttributeKey> {
        let kind = self.kind.checked_sub(Self::ATTRIBUTE)?;
        Some(AttributeKey { kind: AttributeKind(u8::try_from(kind).ok()?), index: self.index })
    }
}

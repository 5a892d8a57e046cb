//! Keys of an index: object, kind of entry, index.
//!
//! What it keeps true: all entries of an object lie together, its onode before everything else,
//! then its small content, its attributes in the order of their keys, and its extents in the order
//! of their offsets. The numbers of the kinds stand on media: they never change.

use onode_object::{AttributeKey, AttributeKind, ObjectId};

/// Where an entry stands. The derived order is that of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Object id.
    pub object: u64,
    /// [`Key::ONODE`], [`Key::INLINE`], [`Key::ATTRIBUTE`] + attribute kind, or [`Key::EXTENT`].
    pub kind: u16,
    /// Attribute index, or offset of an extent in the object, in the unit of the device.
    pub index: u64,
}

impl Key {
    /// The least key.
    pub const MIN: Self = Self { object: 0, kind: 0, index: 0 };
    /// Kind of the onode.
    pub const ONODE: u16 = 0;
    /// Kind of the content of a small object, where that is an entry of its own.
    pub const INLINE: u16 = 1;
    /// Kind of the attribute of kind 0.
    pub const ATTRIBUTE: u16 = 0x100;
    /// Kind of extents.
    pub const EXTENT: u16 = 0x200;

    /// The key of an object's onode.
    #[must_use]
    pub const fn onode(object: ObjectId) -> Self {
        Self { object: object.0, kind: Self::ONODE, index: 0 }
    }

    /// The key of the content of a small object.
    #[must_use]
    pub const fn inline(object: ObjectId) -> Self {
        Self { object: object.0, kind: Self::INLINE, index: 0 }
    }

    /// The key of an attribute.
    #[must_use]
    pub const fn attribute(object: ObjectId, key: AttributeKey) -> Self {
        Self { object: object.0, kind: Self::ATTRIBUTE + key.kind.0 as u16, index: key.index }
    }

    /// The key of the extent that starts at `offset`.
    #[must_use]
    pub const fn extent(object: ObjectId, offset: u64) -> Self {
        Self { object: object.0, kind: Self::EXTENT, index: offset }
    }

    /// The next key; `None` if there is none.
    #[must_use]
    pub const fn successor(&self) -> Option<Self> {
        let Self { object, kind, index } = *self;
        if let Some(index) = index.checked_add(1) {
            return Some(Self { object, kind, index });
        }
        match (kind.checked_add(1), object.checked_add(1)) {
            (Some(kind), _) => Some(Self { object, kind, index: 0 }),
            (None, Some(object)) => Some(Self { object, ..Self::MIN }),
            (None, None) => None,
        }
    }

    /// Whether it is that of an extent.
    #[must_use]
    pub const fn is_extent(&self) -> bool {
        self.kind == Self::EXTENT
    }

    /// The attribute that this key stands for, if it does.
    #[must_use]
    pub fn as_attribute(&self) -> Option<AttributeKey> {
        let kind = self.kind.checked_sub(Self::ATTRIBUTE)?;
        Some(AttributeKey { kind: AttributeKind(u8::try_from(kind).ok()?), index: self.index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_an_object_lie_together_in_the_order_of_their_kinds() {
        let (one, two) = (ObjectId(1), ObjectId(2));
        let attribute = |kind, index| Key::attribute(one, AttributeKey::new(AttributeKind(kind), index));
        let keys = [
            Key::MIN,
            Key::onode(one),
            Key::inline(one),
            attribute(0, 0),
            attribute(0, u64::MAX),
            attribute(255, 7),
            Key::extent(one, 0),
            Key::extent(one, 1),
            Key::onode(two),
        ];
        assert!(keys.is_sorted());
    }

    #[test]
    fn an_attribute_key_comes_back_and_others_are_none() {
        let key = AttributeKey::new(AttributeKind(255), 9);
        assert_eq!(Key::attribute(ObjectId(3), key).as_attribute(), Some(key));
        for other in [Key::onode(ObjectId(3)), Key::inline(ObjectId(3)), Key::extent(ObjectId(3), 4)] {
            assert_eq!(other.as_attribute(), None);
        }
    }
}

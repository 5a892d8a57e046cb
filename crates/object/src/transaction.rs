//! Transactions: the only way anything changes.

use crate::hints::Hints;
use crate::id::{AttributeKey, ObjectId};
use alloc::vec::Vec;
use core::ops::Range;

/// One change to one object. Mutations of a transaction apply in order.
///
/// The list is closed: a device that does not know a change must not compile, let alone skip it.
///
/// The same list is what a device logs and replays: a live commit and a recovery run one `apply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Makes an empty object. Fails with `Exists` if there is one, with `Invalid` for id 0 and for
    /// ids that neither are below [`ObjectId::FIRST_FREE`] nor came from `reserve_ids`.
    Create {
        /// The new object.
        object: ObjectId,
        /// Advice about it.
        hints: Hints,
    },
    /// Removes an object with all its bytes and attributes. Fails with `NotFound`.
    Remove {
        /// The object.
        object: ObjectId,
    },
    /// Puts `data` at `offset`; the object grows if needed, a gap reads as zeros.
    Write {
        /// The object.
        object: ObjectId,
        /// First byte.
        offset: u64,
        /// The bytes; may be empty, which changes nothing.
        data: Vec<u8>,
    },
    /// Sets the size. What lies beyond is gone; a grown part reads as zeros.
    Truncate {
        /// The object.
        object: ObjectId,
        /// The new size in bytes, at most 2^63 - 1.
        size: u64,
    },
    /// Makes `length` bytes from `offset` a hole that reads as zeros. The size stays; what lies
    /// beyond the size is ignored.
    Punch {
        /// The object.
        object: ObjectId,
        /// First byte.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// Gives the bytes of `object` in `offset..offset + length`, as far as it has so many, to
    /// another object at the same offsets, without a copy. What that held there is gone, and holes
    /// move, too; it grows to the end of the range if it is smaller. `object` reads zeros there and
    /// keeps its size. Hints, attributes and access times stay.
    ///
    /// Only an object and its versions, or two of these, can do that: who looks for content that
    /// was once written to an object finds it among them. Fails with `NotFound` if one of both is
    /// missing, with `Invalid` if they are the same or no relatives, or if the range does not fit
    /// [`move_unit`](crate::ObjectDevice::move_unit). A device may refuse with `NoSpace` to move
    /// content in very many pieces at once; in parts it goes.
    Move {
        /// The object that has the bytes now.
        object: ObjectId,
        /// First byte.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// The object that gets them.
        to: ObjectId,
    },
    /// Sets an attribute, which holds at most [`Transaction::MAX_ATTRIBUTE_BYTES`].
    SetAttribute {
        /// The object.
        object: ObjectId,
        /// Which attribute.
        key: AttributeKey,
        /// Its value.
        value: Vec<u8>,
    },
    /// Removes an attribute; it is no error if there is none.
    RemoveAttribute {
        /// The object.
        object: ObjectId,
        /// Which attribute.
        key: AttributeKey,
    },
    /// Replaces the hints.
    SetHints {
        /// The object.
        object: ObjectId,
        /// The new advice.
        hints: Hints,
    },
    /// Says when the object was last read, and nothing else of it changes. What a crash leaves of
    /// it is promised less than of any other change: [`Durability`](crate::Durability).
    SetAccessTime {
        /// The object.
        object: ObjectId,
        /// A time as the host counts it; 0 for none.
        time: u64,
    },
}

impl Mutation {
    /// The object that changes; of a [`Move`](Self::Move) the one that gives its bytes.
    #[must_use]
    pub const fn object(&self) -> ObjectId {
        match self {
            Self::Create { object, .. }
            | Self::Remove { object }
            | Self::Write { object, .. }
            | Self::Truncate { object, .. }
            | Self::Punch { object, .. }
            | Self::Move { object, .. }
            | Self::SetAttribute { object, .. }
            | Self::RemoveAttribute { object, .. }
            | Self::SetHints { object, .. }
            | Self::SetAccessTime { object, .. } => *object,
        }
    }

    /// The same, to be replaced: a device may know objects by other ids within.
    pub const fn object_mut(&mut self) -> &mut ObjectId {
        match self {
            Self::Create { object, .. }
            | Self::Remove { object }
            | Self::Write { object, .. }
            | Self::Truncate { object, .. }
            | Self::Punch { object, .. }
            | Self::Move { object, .. }
            | Self::SetAttribute { object, .. }
            | Self::RemoveAttribute { object, .. }
            | Self::SetHints { object, .. }
            | Self::SetAccessTime { object, .. } => object,
        }
    }

    /// The object that gets the bytes of a [`Move`](Self::Move), which changes as well.
    #[must_use]
    pub const fn receiver(&self) -> Option<ObjectId> {
        match self {
            Self::Move { to, .. } => Some(*to),
            _ => None,
        }
    }

    /// All objects that change: one, or the two of a [`Move`](Self::Move).
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + use<> {
        core::iter::once(self.object()).chain(self.receiver())
    }

    /// Whether it changes `object`.
    #[must_use]
    pub fn changes(&self, object: ObjectId) -> bool {
        self.objects().any(|one| one == object)
    }
}

/// A list of changes to any number of objects that happens wholly or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The changes, in order.
    pub mutations: Vec<Mutation>,
}

impl Transaction {
    /// Most bytes an attribute's value may have.
    pub const MAX_ATTRIBUTE_BYTES: usize = 600;
    /// Largest size of an object in bytes.
    pub const MAX_OBJECT_BYTES: u64 = i64::MAX as u64;

    /// A transaction that changes nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { mutations: Vec::new() }
    }

    /// Adds [`Mutation::Create`].
    pub fn create(&mut self, object: ObjectId, hints: Hints) -> &mut Self {
        self.push(Mutation::Create { object, hints })
    }

    /// Adds [`Mutation::Remove`].
    pub fn remove(&mut self, object: ObjectId) -> &mut Self {
        self.push(Mutation::Remove { object })
    }

    /// Adds [`Mutation::Write`].
    pub fn write(&mut self, object: ObjectId, offset: u64, data: Vec<u8>) -> &mut Self {
        self.push(Mutation::Write { object, offset, data })
    }

    /// Adds [`Mutation::Truncate`].
    pub fn truncate(&mut self, object: ObjectId, size: u64) -> &mut Self {
        self.push(Mutation::Truncate { object, size })
    }

    /// Adds [`Mutation::Punch`].
    pub fn punch(&mut self, object: ObjectId, offset: u64, length: u64) -> &mut Self {
        self.push(Mutation::Punch { object, offset, length })
    }

    /// Adds [`Mutation::Move`] of the bytes in `range` of `object`.
    pub fn move_content(&mut self, object: ObjectId, range: Range<u64>, to: ObjectId) -> &mut Self {
        let length = range.end.saturating_sub(range.start);
        self.push(Mutation::Move { object, offset: range.start, length, to })
    }

    /// Adds [`Mutation::SetAttribute`].
    pub fn set_attribute(&mut self, object: ObjectId, key: AttributeKey, value: Vec<u8>) -> &mut Self {
        self.push(Mutation::SetAttribute { object, key, value })
    }

    /// Adds [`Mutation::RemoveAttribute`].
    pub fn remove_attribute(&mut self, object: ObjectId, key: AttributeKey) -> &mut Self {
        self.push(Mutation::RemoveAttribute { object, key })
    }

    /// Adds [`Mutation::SetHints`].
    pub fn set_hints(&mut self, object: ObjectId, hints: Hints) -> &mut Self {
        self.push(Mutation::SetHints { object, hints })
    }

    /// Adds [`Mutation::SetAccessTime`].
    pub fn set_access_time(&mut self, object: ObjectId, time: u64) -> &mut Self {
        self.push(Mutation::SetAccessTime { object, time })
    }

    fn push(&mut self, mutation: Mutation) -> &mut Self {
        self.mutations.push(mutation);
        self
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }
}

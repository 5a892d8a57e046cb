//! What a view has changed of one object.

use crate::staged::content::Content;
use onode_object::{AttributeKey, Hints, Mutation, ObjectId};
use std::collections::BTreeMap;

/// What an attribute costs in memory besides its value.
pub(crate) const ENTRY_BYTES: usize = 64;

/// Whether there is the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// As on the base, with changes.
    Changed,
    /// The view made it; the base has none of that number, or one that the view removed.
    Made,
    /// The view removed it.
    Gone,
}

/// The changes.
#[derive(Debug)]
pub(crate) struct Shadow {
    pub(crate) standing: Standing,
    /// The base has an object of this number, which goes before this one is made.
    pub(crate) replaces: bool,
    /// Content, if that was changed.
    pub(crate) content: Option<Content>,
    /// Attributes that were set or removed.
    pub(crate) attributes: BTreeMap<AttributeKey, Option<Vec<u8>>>,
    pub(crate) hints: Option<Hints>,
    pub(crate) accessed: Option<u64>,
    /// Bytes of attributes with what they cost in memory.
    attribute_bytes: usize,
}

impl Shadow {
    /// Of an object that the base has.
    pub(crate) const fn changed() -> Self {
        Self {
            standing: Standing::Changed,
            replaces: false,
            content: None,
            attributes: BTreeMap::new(),
            hints: None,
            accessed: None,
            attribute_bytes: 0,
        }
    }

    /// Of one that stands so, of which nothing else is said yet.
    pub(crate) fn of(standing: Standing) -> Self {
        Self { standing, ..Self::changed() }
    }

    fn made(hints: Hints, replaces: bool) -> Self {
        let content = Some(Content::of(0));
        Self { standing: Standing::Made, replaces, content, hints: Some(hints), ..Self::changed() }
    }

    fn gone(replaces: bool) -> Self {
        Self { standing: Standing::Gone, replaces, ..Self::changed() }
    }

    /// Whether attributes, hints and content of the base still count.
    pub(crate) fn shows_base(&self) -> bool {
        self.standing == Standing::Changed
    }

    /// Memory that everything but content takes.
    pub(crate) const fn entry_bytes(&self) -> usize {
        ENTRY_BYTES + self.attribute_bytes
    }

    /// Bytes of content in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.pieces.bytes())
    }

    fn set(&mut self, key: AttributeKey, value: Option<Vec<u8>>) {
        let cost = |value: &Option<Vec<u8>>| ENTRY_BYTES + value.as_ref().map_or(0, Vec::len);
        self.attribute_bytes += cost(&value);
        if let Some(before) = self.attributes.insert(key, value) {
            self.attribute_bytes -= cost(&before);
        }
    }

    fn unset(&mut self, key: AttributeKey) {
        if let Some(before) = self.attributes.remove(&key) {
            self.attribute_bytes -= ENTRY_BYTES + before.map_or(0, |value| value.len());
        }
    }

    /// Applies a change that was found valid; what hidden objects have to do for it is added to
    /// `work`. `size` is that of the object on the base.
    pub(crate) fn apply(&mut self, mutation: Mutation, size: impl FnOnce() -> u64, work: &mut Vec<Mutation>) {
        match mutation {
            Mutation::Create { hints, .. } => *self = Self::made(hints, self.replaces),
            Mutation::Remove { .. } => {
                let hidden = self.content.as_ref().and_then(|content| content.hidden);
                work.extend(hidden.map(|hidden| Mutation::Remove { object: hidden.object }));
                *self = Self::gone(self.replaces || self.shows_base());
            }
            Mutation::Write { offset, data, .. } => self.content(size).write(offset, &data),
            Mutation::Truncate { size: to, .. } => work.extend(self.content(size).truncate(to)),
            Mutation::Punch { offset, length, .. } => work.extend(self.content(size).punch(offset, length)),
            // It was refused before.
            Mutation::Move { .. } => {}
            Mutation::SetAttribute { key, value, .. } => self.set(key, Some(value)),
            // Of an object of the view's own there is nothing behind it to be hidden.
            Mutation::RemoveAttribute { key, .. } if self.standing == Standing::Made => self.unset(key),
            Mutation::RemoveAttribute { key, .. } => self.set(key, None),
            Mutation::SetHints { hints, .. } => self.hints = Some(hints),
            Mutation::SetAccessTime { time, .. } => self.accessed = Some(time),
        }
    }

    fn content(&mut self, size: impl FnOnce() -> u64) -> &mut Content {
        self.content.get_or_insert_with(|| Content::of(size()))
    }

    /// Whether it says anything at all: what was made and removed again does not.
    pub(crate) const fn is_nothing(&self) -> bool {
        matches!(self.standing, Standing::Gone) && !self.replaces
    }
}

/// All of them.
pub(crate) type Shadows = BTreeMap<ObjectId, Shadow>;

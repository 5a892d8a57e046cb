//! What a view has looked at, and when for the first time.
//!
//! Values of inodes and limits are kept as they were then: who changes one bases that on what it
//! saw, and two changes of one directory are put together from what both of them began with.

use onode_object::{AttributeKey, AttributeKind, ObjectId};
use std::collections::BTreeMap;

/// More is not noted: what is not counts as touched when the view was begun.
const TOUCHES_MAX: usize = 1 << 20;

/// One object.
#[derive(Debug)]
struct Touch {
    since: u64,
    /// Since when its bytes were looked at.
    content: Option<u64>,
    attributes: BTreeMap<AttributeKey, Seen>,
}

/// One attribute.
#[derive(Debug)]
struct Seen {
    since: u64,
    /// What it was, of those that may be put together with the changes of others.
    value: Option<Vec<u8>>,
}

/// All that a view has looked at.
#[derive(Debug)]
pub(crate) struct Touched {
    begun: u64,
    count: usize,
    objects: BTreeMap<ObjectId, Touch>,
}

/// Whether what an attribute was is to be kept.
pub(crate) fn is_kept(key: AttributeKey) -> bool {
    [AttributeKind::INODE, AttributeKind::QUOTA].contains(&key.kind)
}

impl Touched {
    /// Nothing yet, in a view that is begun when the count of changes is that.
    pub(crate) const fn new(begun: u64) -> Self {
        Self { begun, count: 0, objects: BTreeMap::new() }
    }

    fn touch(&mut self, object: ObjectId, now: u64) -> Option<&mut Touch> {
        if self.count >= TOUCHES_MAX && !self.objects.contains_key(&object) {
            return None;
        }
        let count = &mut self.count;
        Some(self.objects.entry(object).or_insert_with(|| {
            *count += 1;
            Touch { since: now, content: None, attributes: BTreeMap::new() }
        }))
    }

    /// The object is looked at.
    pub(crate) fn object(&mut self, object: ObjectId, now: u64) {
        self.touch(object, now);
    }

    /// Its bytes are. Whoever looks at them, or writes them after a while, goes by what was seen of
    /// the object before: so they count from then on.
    pub(crate) fn content(&mut self, object: ObjectId, now: u64) {
        if let Some(touch) = self.touch(object, now) {
            touch.content.get_or_insert(touch.since);
        }
    }

    /// An attribute is.
    pub(crate) fn attribute(&mut self, object: ObjectId, key: AttributeKey, now: u64) {
        let is_full = self.count >= TOUCHES_MAX;
        let Some(touch) = self.touch(object, now) else { return };
        if !is_full && !touch.attributes.contains_key(&key) {
            touch.attributes.insert(key, Seen { since: now, value: None });
            self.count += 1;
        }
    }

    /// What an attribute was, of one that was touched and is kept.
    pub(crate) fn keep(&mut self, object: ObjectId, key: AttributeKey, value: &[u8]) {
        let seen = self.objects.get_mut(&object).and_then(|touch| touch.attributes.get_mut(&key));
        if let Some(seen) = seen {
            seen.value.get_or_insert_with(|| value.to_vec());
        }
    }

    /// What an attribute was when it was first looked at, if that was kept.
    pub(crate) fn kept(&self, object: ObjectId, key: AttributeKey) -> Option<&[u8]> {
        self.objects.get(&object)?.attributes.get(&key)?.value.as_deref()
    }

    /// The count of changes when the view was begun.
    pub(crate) const fn begun(&self) -> u64 {
        self.begun
    }

    /// Since when an object is known.
    pub(crate) fn since(&self, object: ObjectId) -> u64 {
        self.objects.get(&object).map_or(self.begun, |touch| touch.since)
    }

    /// Since when its bytes are known.
    pub(crate) fn content_since(&self, object: ObjectId) -> u64 {
        self.objects.get(&object).and_then(|touch| touch.content).unwrap_or(self.begun)
    }

    /// Since when an attribute is known.
    pub(crate) fn attribute_since(&self, object: ObjectId, key: AttributeKey) -> u64 {
        let touch = self.objects.get(&object);
        touch.and_then(|touch| touch.attributes.get(&key)).map_or(self.begun, |seen| seen.since)
    }

    /// Objects whose bytes were looked at, and since when.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (ObjectId, u64)> + '_ {
        self.objects.iter().filter_map(|(object, touch)| Some((*object, touch.content?)))
    }
}

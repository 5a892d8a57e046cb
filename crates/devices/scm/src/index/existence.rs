//! The existence cache: which objects are there, answered without a look into the tree.
//!
//! Whether an object exists is mostly asked of one that is about to be made, with an id above all
//! so far, or was just made, and of the directory that it is in. What it says is always so; of an
//! object that it does not know it says nothing.

use crate::medium::slot::is_version;
use core::cell::Cell;
use onode_object::ObjectId;

/// An id above those of all objects but versions, and two objects that were found.
#[derive(Debug)]
pub(crate) struct ExistenceCache {
    end: Cell<u64>,
    /// The one asked for last first; 0, which no object is, for none.
    found: [Cell<u64>; 2],
}

impl ExistenceCache {
    /// Nothing but that no object but a version has the id `end` or a higher one.
    pub(crate) const fn below(end: u64) -> Self {
        Self { end: Cell::new(end), found: [const { Cell::new(0) }; 2] }
    }

    /// An object may be made now.
    pub(crate) fn note_created(&self, object: ObjectId) {
        // Ids of versions are not handed out one after the other.
        if !is_version(object.0) {
            self.end.set(self.end.get().max(object.0.saturating_add(1)));
        }
    }

    /// An object may be gone now.
    pub(crate) fn note_removed(&self, object: ObjectId) {
        let [last, before] = &self.found;
        if last.get() == object.0 {
            last.set(before.replace(0));
        } else if before.get() == object.0 {
            before.set(0);
        }
    }

    /// An object is there.
    pub(crate) fn note_found(&self, object: ObjectId) {
        let [last, before] = &self.found;
        if last.get() != object.0 {
            before.set(last.replace(object.0));
        }
    }

    /// Whether there is an object of this id; what the cache does not know it asks `look`.
    #[inline]
    pub(crate) fn exists(&self, object: ObjectId, look: impl FnOnce() -> bool) -> bool {
        let is_known = object.0 != 0 && self.found.iter().any(|found| found.get() == object.0);
        let exists = is_known || (is_version(object.0) || object.0 < self.end.get()) && look();
        if exists {
            self.note_found(object);
        }
        exists
    }
}

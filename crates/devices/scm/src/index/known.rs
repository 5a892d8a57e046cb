//! What is known of objects without a look into the index.
//!
//! Whether an object exists is mostly asked of one that is about to be made, with an id above all
//! so far, or was just made, and of the directory that it is in.

use crate::core::Core;
use crate::index::node::Key;
use core::cell::Cell;
use onode_media::Pmem;
use onode_object::ObjectId;

/// An id above those of all objects, and two objects that were found.
#[derive(Debug)]
pub(crate) struct Known {
    end: Cell<u64>,
    /// The one asked for last first; 0, which no object is, for none.
    found: [Cell<u64>; 2],
}

impl Known {
    /// Nothing but that no object has the id `end` or a higher one.
    pub(crate) const fn below(end: u64) -> Self {
        Self { end: Cell::new(end), found: [const { Cell::new(0) }; 2] }
    }

    /// An object may be made now.
    pub(crate) fn note_created(&self, object: ObjectId) {
        self.end.set(self.end.get().max(object.0.saturating_add(1)));
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
}

impl<P: Pmem> Core<P> {
    /// Whether there is an object of this id.
    pub(crate) fn exists(&self, object: ObjectId) -> bool {
        let Known { end, found } = &self.known;
        let is_known = object.0 != 0 && found.iter().any(|found| found.get() == object.0);
        let is_there = || object.0 < end.get() && self.tree.get(&*self.memory, Key::onode(object)).is_some();
        let exists = is_known || is_there();
        if exists {
            self.known.note_found(object);
        }
        exists
    }
}

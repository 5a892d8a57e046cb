//! What a transaction does with whole blocks besides its mutations: a block becomes an object's
//! content, or memory again, without a copy.

use crate::commit::change::Change;
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::powers::Content;
use onode_object::{Error, ObjectId, Result};

/// What is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockChanges<'a> {
    /// Blocks that become the content of objects.
    pub published: &'a [Content],
    /// The object whose block is memory afterwards.
    pub withdrawn: Option<ObjectId>,
    /// The object that gets a table of slots, if it has none, and a slot that gets a page.
    pub slots: Option<(ObjectId, Option<u64>)>,
    /// The object whose content is moved to one block.
    pub gathered: Option<ObjectId>,
}

impl BlockChanges<'_> {
    /// Whether there is nothing to do.
    pub(crate) const fn is_empty(&self) -> bool {
        self.published.is_empty() && self.slots.is_none() && self.gathered.is_none()
    }
}

impl<P: Pmem> Change<'_, P> {
    /// Gives an object that has no content yet a block of memory as content.
    pub(crate) fn adopt(&mut self, content: &Content) -> Result<()> {
        let Content { object, address, bytes, .. } = *content;
        let length = self.store.space().check_unowned(content)?;
        if self.size(object)? > 0 || self.extent_at(object, 0)?.is_some() {
            return Err(Error::of(ErrorKind::Invalid, object, "it has content"));
        }
        self.map(object, 0, address, length)?;
        self.set_size(object, bytes)
    }
}

//! Objects as memory: a block becomes an object's content, and back, without a copy.

use crate::commit::change::Change;
use crate::commit::mode::Mode;
use crate::core::{Blocks as Members, Core};
use crate::device::ScmDevice;
use crate::index::node::{Key, Value};
use crate::medium::errors::no_space;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::powers::{Content, MapObjects, Placed};
use onode_object::{Durability, Error, ObjectId, Result, Transaction};

/// What a transaction does with blocks besides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocks<'a> {
    /// Blocks that become the content of objects.
    pub published: &'a [Content],
    /// The object whose block is memory afterwards.
    pub withdrawn: Option<ObjectId>,
    /// The object that gets a table of slots, if it has none, and a slot that gets a page.
    pub slots: Option<(ObjectId, Option<u64>)>,
    /// The object whose content is moved to one block.
    pub gathered: Option<ObjectId>,
}

impl Blocks<'_> {
    /// Whether there is nothing to do.
    pub(crate) const fn is_empty(&self) -> bool {
        self.published.is_empty() && self.slots.is_none() && self.gathered.is_none()
    }
}

impl<P: Pmem> Change<'_, P> {
    /// Gives an object that has no content yet a block of memory as content.
    pub(crate) fn adopt(&mut self, content: &Content) -> Result<()> {
        let Content { object, address, bytes, .. } = *content;
        let length = self.core.check_unowned(content)?;
        if self.size(object)? > 0 || self.extent_at(object, 0)?.is_some() {
            return Err(Error::of(ErrorKind::Invalid, object, "it has content"));
        }
        self.map(object, 0, address, length)?;
        self.set_size(object, bytes)
    }
}

impl<P: Pmem> Core<P> {
    /// That a block is one, and no object's; its length.
    pub(crate) fn check_unowned(&self, content: &Content) -> Result<u64> {
        let Content { object, address, bytes, .. } = *content;
        let invalid = |what: &str| Error::of(ErrorKind::Invalid, object, format!("block at {address}: {what}"));
        let (start, length) = self.blocks.block_of(address).ok_or_else(|| invalid("there is none"))?;
        if start != address || bytes > length {
            return Err(invalid(&format!("the block there begins at {start} and has {length} bytes")));
        }
        if self.blocks.is_published(address) != Ok(false) {
            return Err(invalid("it belongs to an object"));
        }
        Ok(length)
    }

    /// The one block that an object is, if it is one.
    pub(crate) fn whole_block(&self, object: ObjectId) -> Result<Content> {
        let (onode, allocated) = self.onode(object)?;
        match self.extent_at(object, 0) {
            Some(extent) if extent.offset == 0 && extent.length == allocated && extent.length >= onode.size => {
                Ok(Content { object, address: extent.address, bytes: onode.size, is_durable: true })
            }
            _ => Err(Error::of(ErrorKind::Invalid, object, "it is not one block of memory")),
        }
    }

    /// Makes the content of blocks durable before anything says that it is some object's.
    pub(crate) fn flush_blocks(&mut self, contents: &[Content]) -> Result<()> {
        // Not vouched for by a checksum: a program may go on storing through its pointer, and that
        // must not cost the file.
        for content in contents.iter().filter(|content| !content.is_durable && content.bytes > 0) {
            let end = content.address.checked_add(content.bytes);
            let inside = end.is_some_and(|end| end <= self.memory.length());
            match self.mode {
                Mode::Meta if inside => self.flush_later(content.address, content.bytes),
                Mode::Sync | Mode::Atomic if inside && !is_planted(Bug::ScmPublishNotFlushed) => {
                    self.memory.flush(content.address, content.bytes);
                }
                Mode::Mem | Mode::Meta | Mode::Sync | Mode::Atomic => {}
            }
        }
        let flushes = self.mode.flushes();
        if flushes && contents.iter().any(|content| !content.is_durable) && !is_planted(Bug::ScmPublishNotFenced) {
            self.fence()?;
        }
        Ok(())
    }

    /// The same bytes in a block of this process: the object's own is a small one among those of
    /// another process, whose death would free it.
    fn withdraw_copy(&mut self, members: &Members<P>, transaction: &Transaction, content: &Content) -> Result<Content> {
        let mut bytes = vec![0; content.bytes as usize];
        self.memory.read(content.address, &mut bytes);
        let address = members.allocate(content.bytes.max(1)).ok_or_else(|| no_space("no room for the block"))?;
        if let Err(error) = self.commit(transaction, Durability::Durable) {
            members.release(address, content.bytes.max(1));
            return Err(error);
        }
        self.memory.write(address, &bytes);
        Ok(Content { address, ..*content })
    }
}

impl<P: Pmem> MapObjects for ScmDevice<P> {
    fn publish(&self, transaction: Transaction, contents: &[Content], durability: Durability) -> Result<()> {
        let blocks = Blocks { published: contents, ..Blocks::default() };
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        core.flush_blocks(contents)?;
        core.commit_with(&transaction, durability, blocks)?;
        let kept = if is_planted(Bug::ScmPublishLeased) { contents.len() } else { 0 };
        for content in &contents[kept..] {
            // It was asked before whether it can.
            let _ = core.blocks.publish(content.address);
        }
        Ok(())
    }

    fn withdraw(&self, transaction: Transaction, object: ObjectId) -> Result<Content> {
        let members = &self.turn.members;
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        let content = core.whole_block(object)?;
        if members.can_unpublish(content.address) == Ok(false) {
            return core.withdraw_copy(members, &transaction, &content);
        }
        let blocks = Blocks { withdrawn: Some(object), ..Blocks::default() };
        let buffered = is_planted(Bug::ScmWithdrawBuffered);
        core.commit_with(&transaction, if buffered { Durability::Buffered } else { Durability::Durable }, blocks)?;
        // Programs store there as they like.
        core.settle(content.address, content.bytes)?;
        let _ = members.unpublish(content.address);
        Ok(content)
    }

    fn gather(&self, object: ObjectId) -> Result<()> {
        self.gather_object(object)
    }

    fn whole(&self, object: ObjectId, length: u64) -> Option<u64> {
        let core = self.lock_sound().ok()?;
        let Value(address, bytes) = core.tree.get(&*core.memory, Key::extent(object, 0))?;
        (bytes >= length && self.check_memory().is_ok()).then_some(address)
    }

    fn make_slots(&self, object: ObjectId) -> Result<()> {
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        core.make_slots(object, None)
    }

    fn fill_slot(&self, content: &Content, slot: u64) -> Result<()> {
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        match core.unshared().fill_at_once(content, slot) {
            None => core.fill_slot(content, slot),
            Some(Err(error)) if error.kind != ErrorKind::Invalid => Err(core.fail(error)),
            Some(done) => done,
        }
    }

    fn take_slot(&self, object: ObjectId, slot: u64) -> Result<Content> {
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        core.take_slot(&self.turn.members, object, slot)
    }

    fn slot(&self, object: ObjectId, slot: u64) -> Option<(u64, u64)> {
        self.lock_sound().ok()?.slot(object, slot)
    }

    fn look(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        self.memory.read(address, buffer);
        self.check_memory()
    }

    fn overwrites(&self) -> bool {
        self.mode.overwrites()
    }

    fn overwrite(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let mut core = self.lock_sound()?;
        if core.overwrites_at_once(address, bytes.len() as u64) {
            core.unshared().counters.bytes_written += bytes.len() as u64;
            core.memory.write(address, bytes);
            return self.check_memory();
        }
        core.overwrite(address, bytes)
    }

    fn placement(&self, object: ObjectId) -> Result<Vec<Placed>> {
        let mut core = self.lock_sound()?;
        let (onode, _) = core.onode(object)?;
        let mut parts: Vec<Placed> = Vec::new();
        let mut at = 0;
        while let Some(extent) = core.extent_at(object, at).filter(|extent| extent.offset < onode.size) {
            let length = extent.end().min(onode.size) - extent.offset;
            parts.push(Placed { offset: extent.offset, address: extent.address, length });
            at = extent.end();
        }
        // Who asks may store there: no checksum of the last records may count on these bytes.
        for part in &parts {
            if core.read_only.is_none() {
                core.settle(part.address, part.length)?;
            }
        }
        self.believe(Ok(parts))
    }
}

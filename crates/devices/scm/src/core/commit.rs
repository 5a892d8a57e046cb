//! Transactions of a device: tried, given space, tried again, or refused.
//!
//! A transaction changes the index at once and becomes durable with its record; one that is refused
//! leaves neither. Space is sought only for a transaction that has found none, and one that never
//! needs space finds some.

use crate::commit::blocks::BlockChanges;
use crate::commit::change::Change;
use crate::commit::slot::{Slots, check_slot, has_slot, invalid, word_at};
use crate::core::Core;
use crate::index::Index;
use crate::medium::errors::no_space;
use crate::medium::slot::{is_table, is_version};
use crate::space::Blocks;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::powers::Content;
use onode_object::validate::{self, Admission, Stored};
use onode_object::{AttributeKey, Durability, Mutation, ObjectId, Result, Transaction};

/// How often a transaction for which there is no room has space gathered for it.
const MOST_ATTEMPTS: u32 = 3;

impl<P: Pmem> Core<P> {
    /// Does the whole transaction or nothing.
    pub(crate) fn commit(&mut self, transaction: &Transaction, durability: Durability) -> Result<()> {
        self.commit_with(transaction, durability, BlockChanges::default())
    }

    /// The same with blocks that become content or memory by it.
    pub(crate) fn commit_with(
        &mut self,
        transaction: &Transaction,
        durability: Durability,
        blocks: BlockChanges<'_>,
    ) -> Result<()> {
        self.check(transaction)?;
        if transaction.is_empty() && blocks.is_empty() {
            if durability == Durability::Durable && self.store.has_unsynced() {
                self.store.sync()?;
            }
            return Ok(());
        }
        let is_new_version = |one: &Mutation| matches!(one, Mutation::Create { object, .. } if is_version(object.0));
        if transaction.mutations.iter().any(is_new_version) {
            self.store.announce_versions()?;
        }
        self.with_room_for(transaction, |core, must_fit| core.attempt(transaction, durability, must_fit, blocks))
    }

    /// As [`ObjectDevice::check_commit`](onode_object::ObjectDevice::check_commit): the transaction
    /// is done and taken back before its record is written, and content that it brings has then
    /// been in memory that is free.
    pub(crate) fn check_commit(&mut self, transaction: &Transaction) -> Result<()> {
        self.check(transaction)?;
        if transaction.is_empty() {
            return Ok(());
        }
        self.with_room_for(transaction, |core, must_fit| core.attempt_in_vain(transaction, must_fit))
    }

    fn check(&self, transaction: &Transaction) -> Result<()> {
        self.store.latch().check()?;
        let mut exists = |object: ObjectId| Ok(!is_table(object.0) && self.index.exists(object));
        let admission = Admission { next_id: ObjectId(self.store.next_id()), move_unit: None };
        validate::validate(transaction, admission, &mut exists)
    }

    /// Attempts it, which is told whether it must fit, and gathers space and attempts it again as
    /// long as it finds none.
    fn with_room_for(
        &mut self,
        transaction: &Transaction,
        mut attempt: impl FnMut(&mut Self, bool) -> Result<()>,
    ) -> Result<()> {
        self.cleaner.shorten_log(&self.index, &mut self.store)?;
        let mut attempts = 0;
        let mut must_fit = false;
        loop {
            match attempt(self, must_fit) {
                // Whether it may be refused at all is asked only now: most transactions find room.
                Err(error)
                    if error.kind == ErrorKind::NoSpace
                        && !must_fit
                        && validate::never_needs_space(transaction, &mut Lookup(&self.index))?
                        && !is_planted(Bug::FullScmUnlinkRefused) =>
                {
                    must_fit = true;
                    self.cleaner.shorten_log(&self.index, &mut self.store)?;
                    self.cleaner.fill_store(&self.index, &mut self.store)?;
                }
                Err(error)
                    if error.kind == ErrorKind::NoSpace
                        && attempts < MOST_ATTEMPTS
                        && self.cleaner.gain_space(&self.index, &mut self.store, transaction)? =>
                {
                    attempts += 1;
                }
                done => return done,
            }
        }
    }

    fn attempt(
        &mut self,
        transaction: &Transaction,
        durability: Durability,
        must_fit: bool,
        blocks: BlockChanges<'_>,
    ) -> Result<()> {
        self.store.make_ready()?;
        let lists = self.lists.take().unwrap_or_default();
        let mut change = Change::new(&mut self.index, &mut self.store, lists);
        let checked = match change.prepare(transaction, must_fit, blocks) {
            Ok(checked) => checked,
            Err(error) => match change.undo() {
                Ok(lists) => {
                    self.lists = Some(lists);
                    return Err(error);
                }
                // The index in memory is not what the log says any more; a mount makes it anew.
                Err(_) => return Err(self.store.fail(error)),
            },
        };
        self.lists = Some(change.record(checked, durability)?);
        Ok(())
    }

    fn attempt_in_vain(&mut self, transaction: &Transaction, must_fit: bool) -> Result<()> {
        self.store.make_ready()?;
        let lists = self.lists.take().unwrap_or_default();
        let mut change = Change::new(&mut self.index, &mut self.store, lists);
        let prepared = change.prepare(transaction, must_fit, BlockChanges::default());
        match change.undo() {
            Ok(lists) => self.lists = Some(lists),
            Err(error) => return Err(self.store.fail(error)),
        }
        prepared.map(|_| ())
    }

    /// Moves the content of an object to one block, if it is not in one.
    pub(crate) fn gather(&mut self, object: ObjectId) -> Result<()> {
        self.store.latch().check()?;
        if self.index.whole_block(object).is_ok() {
            return Ok(());
        }
        // Whoever asked stores there next: the old blocks may not come back.
        let blocks = BlockChanges { gathered: Some(object), ..BlockChanges::default() };
        self.commit_with(&Transaction::new(), Durability::Durable, blocks)
    }

    /// Has blocks become the content of objects.
    pub(crate) fn publish(
        &mut self,
        transaction: &Transaction,
        contents: &[Content],
        durability: Durability,
    ) -> Result<()> {
        self.store.latch().check()?;
        self.store.flush_blocks(contents)?;
        let blocks = BlockChanges { published: contents, ..BlockChanges::default() };
        self.commit_with(transaction, durability, blocks)?;
        let kept = if is_planted(Bug::ScmPublishLeased) { contents.len() } else { 0 };
        for content in &contents[kept..] {
            // It was asked before whether it can.
            let _ = self.store.blocks().publish(content.address);
        }
        Ok(())
    }

    /// Has the block of an object become memory, of the process that `members` is.
    pub(crate) fn withdraw(
        &mut self,
        members: &Blocks<P>,
        transaction: &Transaction,
        object: ObjectId,
    ) -> Result<Content> {
        self.store.latch().check()?;
        let content = self.index.whole_block(object)?;
        if members.can_unpublish(content.address) == Ok(false) {
            return self.withdraw_copy(members, transaction, &content);
        }
        let blocks = BlockChanges { withdrawn: Some(object), ..BlockChanges::default() };
        let buffered = is_planted(Bug::ScmWithdrawBuffered);
        self.commit_with(transaction, if buffered { Durability::Buffered } else { Durability::Durable }, blocks)?;
        // Programs store there as they like.
        self.store.allow_change(content.address, content.bytes)?;
        let _ = members.unpublish(content.address);
        Ok(content)
    }

    /// The same bytes in a block of this process: the object's own is a small one among those of
    /// another process, whose death would free it.
    fn withdraw_copy(&mut self, members: &Blocks<P>, transaction: &Transaction, content: &Content) -> Result<Content> {
        let mut bytes = vec![0; content.bytes as usize];
        self.store.memory().read(content.address, &mut bytes);
        let address = members.allocate(content.bytes.max(1)).ok_or_else(|| no_space("no room for the block"))?;
        if let Err(error) = self.commit(transaction, Durability::Durable) {
            members.release(address, content.bytes.max(1));
            return Err(error);
        }
        self.store.memory().write(address, &bytes);
        Ok(Content { address, ..*content })
    }

    /// Makes the table of an object, if it has none, and the page of a slot.
    pub(crate) fn make_slots(&mut self, object: ObjectId, slot: Option<u64>) -> Result<()> {
        self.store.latch().check()?;
        if has_slot(&self.index, object, slot) {
            return Ok(());
        }
        self.store.announce_slots()?;
        let blocks = BlockChanges { slots: Some((object, slot)), ..BlockChanges::default() };
        self.commit_with(&Transaction::new(), Durability::Durable, blocks)
    }

    /// Has a slot hold a block of memory, in place of what it held, which is free then.
    pub(crate) fn fill_slot(&mut self, content: &Content, slot: u64) -> Result<()> {
        check_slot(content, slot)?;
        let object = content.object;
        let at = match word_at(&self.index, object, slot) {
            Some(at) => at,
            None => {
                self.make_slots(object, Some(slot))?;
                word_at(&self.index, object, slot).ok_or_else(|| invalid(object, slot, "it has no page"))?
            }
        };
        self.slots().fill(content, slot, at)
    }

    /// The slots.
    pub(crate) const fn slots(&mut self) -> Slots<'_, P> {
        Slots::new(&self.index, &mut self.store)
    }
}

/// The device as it is asked for what is stored.
struct Lookup<'a, P: Pmem>(&'a Index<P>);

impl<P: Pmem> Stored for Lookup<'_, P> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        self.0.find_attribute(object, key).map(|value| value.map(|value| value.len()))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let Some(onode) = self.0.find_onode(object)? else { return Ok(None) };
        let mut at = 0;
        while at < onode.size {
            match self.0.extent_at(object, at).filter(|extent| extent.offset <= at) {
                Some(extent) => at = extent.end(),
                None => return Ok(None),
            }
        }
        Ok(Some(onode.size))
    }
}

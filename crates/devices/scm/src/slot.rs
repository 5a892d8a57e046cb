//! Slots: places of an object where a block begins, each filled, replaced and emptied by one record.
//!
//! A program that keeps many blocks needs no file for each. The object is as large as its last slot from the first day
//! on, so a change of one says nothing but where that block lies: one line of the log and one fence.

use crate::change::Change;
use crate::core::Core;
use crate::item::Item;
use crate::node::{Key, Value};
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::powers::Content;
use onode_object::{Error, ObjectId, Result};

/// What a slot, which is an object and an offset, is to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// This block of memory.
    Filled(Content, u64),
    /// Nothing: the block that was there is memory again.
    Emptied(ObjectId, u64),
    /// Nothing: the block that was there is free.
    Freed(ObjectId, u64),
}

impl<P: Pmem> Core<P> {
    /// Address and length of the block in a slot.
    pub(crate) fn slot(&self, object: ObjectId, offset: u64) -> Result<(u64, u64)> {
        match self.tree.get(&*self.memory, Key::extent(object, offset)) {
            Some(Value(address, length)) => Ok((address, length)),
            None => Err(Error::of(ErrorKind::Invalid, object, format!("no block begins at byte {offset}"))),
        }
    }
}

impl<P: Pmem> Change<'_, P> {
    pub(crate) fn change_slot(&mut self, slot: Slot) -> Result<()> {
        match slot {
            Slot::Filled(content, offset) => self.fill_slot(&content, offset),
            Slot::Emptied(object, offset) => self.empty_slot(object, offset).map(drop),
            Slot::Freed(object, offset) => {
                let (address, length) = self.empty_slot(object, offset)?;
                self.give_up(address, length, false);
                Ok(())
            }
        }
    }

    fn fill_slot(&mut self, content: &Content, offset: u64) -> Result<()> {
        let Content { object, address, bytes, .. } = *content;
        let length = self.check_unowned(content)?;
        let end = offset.checked_add(length).filter(|_| bytes > 0);
        let invalid = |what: &str| Error::of(ErrorKind::Invalid, object, format!("a block at byte {offset}: {what}"));
        let end = end.ok_or_else(|| invalid("no block lies there"))?;
        if self.size(object)? < end {
            return Err(invalid("the object is not as large"));
        }
        if self.core.extent_at(object, offset).is_some_and(|extent| extent.offset == offset) {
            let (address, length) = self.empty_slot(object, offset)?;
            self.give_up(address, length, false);
        }
        if self.core.extent_at(object, offset).is_some_and(|extent| extent.offset < end) {
            return Err(invalid("another block lies there"));
        }
        self.map(object, offset, address, length)
    }

    fn empty_slot(&mut self, object: ObjectId, offset: u64) -> Result<(u64, u64)> {
        let (address, length) = self.core.slot(object, offset)?;
        self.unmap(object, offset)?;
        self.lists.batch.push(&Item::NoExtent { object, offset, length });
        self.shrinks = true;
        Ok((address, length))
    }
}

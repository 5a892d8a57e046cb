//! Objects as memory: a block becomes an object's content, and back, without a copy.
//!
//! Whatever a program may store to afterwards, no recovery verifies.

use crate::commit::slot::block_in;
use crate::device::ScmDevice;
use crate::index::node::{Key, Value};
use crate::medium::slot::{inner_transaction, outer_error};
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::powers::{Content, MapObjects, Placed};
use onode_object::{Durability, ObjectId, Result, Transaction};

impl<P: Pmem> MapObjects for ScmDevice<P> {
    fn publish(&self, transaction: Transaction, contents: &[Content], durability: Durability) -> Result<()> {
        let transaction = inner_transaction(transaction);
        self.lock_sound()?.publish(&transaction, contents, durability).map_err(outer_error)
    }

    fn withdraw(&self, transaction: Transaction, object: ObjectId) -> Result<Content> {
        let transaction = inner_transaction(transaction);
        self.lock_sound()?.withdraw(self.lock.members(), &transaction, object).map_err(outer_error)
    }

    fn gather(&self, object: ObjectId) -> Result<()> {
        self.lock_sound()?.gather(object)
    }

    fn whole(&self, object: ObjectId, length: u64) -> Option<u64> {
        let core = self.lock_sound().ok()?;
        let Value(address, bytes) = core.index().get(Key::extent(object, 0))?;
        (bytes >= length && self.check_memory().is_ok()).then_some(address)
    }

    fn make_slots(&self, object: ObjectId) -> Result<()> {
        self.lock_sound()?.make_slots(object, None)
    }

    fn fill_slot(&self, content: &Content, slot: u64) -> Result<()> {
        let mut core = self.lock_sound()?;
        core.store().latch().check()?;
        match core.unshared().slots().fill_at_once(content, slot) {
            None => core.fill_slot(content, slot),
            Some(Err(error)) if error.kind != ErrorKind::Invalid => Err(core.store_mut().fail(error)),
            Some(done) => done,
        }
    }

    fn take_slot(&self, object: ObjectId, slot: u64) -> Result<Content> {
        let mut core = self.lock_sound()?;
        core.store().latch().check()?;
        core.slots().take(self.lock.members(), object, slot)
    }

    fn slot(&self, object: ObjectId, slot: u64) -> Option<(u64, u64)> {
        let core = self.lock_sound().ok()?;
        block_in(core.index(), core.store(), object, slot)
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
        if core.store().overwrites_at_once(address, bytes.len() as u64) {
            core.unshared_content().store_mut().overwrite_at_once(address, bytes);
            return self.check_memory();
        }
        core.store_mut().overwrite(address, bytes)
    }

    fn placement(&self, object: ObjectId) -> Result<Vec<Placed>> {
        let mut core = self.lock_sound()?;
        let (onode, _) = core.index().onode(object)?;
        let mut parts: Vec<Placed> = Vec::new();
        let mut at = 0;
        while let Some(extent) = core.index().extent_at(object, at).filter(|extent| extent.offset < onode.size) {
            let length = extent.end().min(onode.size) - extent.offset;
            parts.push(Placed { offset: extent.offset, address: extent.address, length });
            at = extent.end();
        }
        // Who asks may store there: no checksum of the last records may count on these bytes.
        for part in &parts {
            if core.store().latch().why().is_none() {
                core.store_mut().allow_change(part.address, part.length)?;
            }
        }
        self.believe(Ok(parts))
    }
}

//! Packing: neighbours that are about to be written anyway move together, so that a checkpoint
//! programs fewer pages and a byte of cache holds more of the index.
//!
//! Only nodes that changed are touched; nothing is read and no clean node becomes dirty.

use super::{Child, Tree};
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Tree {
    /// Packs all changed nodes below `slot`, the lowest first.
    pub(super) fn pack_below(&mut self, slot: usize) -> Result<()> {
        if self.slot(slot)?.level() > 1 {
            for index in 0..self.slot(slot)?.len() {
                if let Child::Dirty(child) = Child::decode(self.slot(slot)?.value(index))? {
                    self.pack_below(child)?;
                }
            }
        }
        let mut index = 0;
        while index + 1 < self.slot(slot)?.len() && self.slot(slot)?.level() > 0 {
            if !self.pack_pair(slot, index)? {
                index += 1;
            }
        }
        Ok(())
    }

    /// Fills child `index` of `slot` from the one after it; true if that one is gone.
    fn pack_pair(&mut self, slot: usize, index: usize) -> Result<bool> {
        // Room is left for what will change next; else the node would be split again at once.
        let fill = self.node_bytes - self.node_bytes / 16;
        let parent = self.slot(slot)?;
        let (left, right) = (Child::decode(parent.value(index))?, Child::decode(parent.value(index + 1))?);
        let (Child::Dirty(left), Child::Dirty(right)) = (left, right) else { return Ok(false) };
        let (held, more) = (self.slot(left)?.encoded_bytes(), self.slot(right)?.encoded_bytes());
        let room = fill.saturating_sub(held);
        if more <= room {
            let right = self.take_slot(right)?;
            self.slot_mut(left)?.append(&right);
            self.slot_mut(slot)?.remove_at(index + 1);
            return Ok(true);
        }
        if room < self.node_bytes / 8 || self.slot(right)?.len() < 2 {
            return Ok(false);
        }
        let rest = self.slot_mut(right)?.split_after(room);
        let front = core::mem::replace(self.slot_mut(right)?, rest);
        if held + front.encoded_bytes() <= self.node_bytes {
            self.slot_mut(left)?.append(&front);
            if let Some(first) = self.slot(right)?.first_key()
                && !is_planted(Bug::PackedKeyKept)
            {
                self.slot_mut(slot)?.replace_key(index + 1, first);
            }
        } else {
            // Its first entry is a large one.
            let rest = core::mem::replace(self.slot_mut(right)?, front);
            self.slot_mut(right)?.append(&rest);
        }
        Ok(false)
    }
}

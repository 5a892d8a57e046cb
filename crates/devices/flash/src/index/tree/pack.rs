//! Packing: neighbours that are about to be written anyway move together, so that a checkpoint
//! programs fewer pages and a byte of cache holds more of the index.
//!
//! Only nodes that changed are touched; nothing is read and no clean node becomes dirty.

use super::{DirtyChild, Tree};
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Tree {
    /// Packs all changed nodes below `slot`, the lowest first.
    pub(super) fn pack_below(&mut self, slot: usize) -> Result<()> {
        let level = self.slot(slot)?.level();
        let mut children = if level > 0 { self.dirty_children(slot)? } else { Vec::new() };
        if level > 1 {
            for child in &children {
                self.pack_below(child.slot)?;
            }
        }
        let mut at = 0;
        while let [left, right, ..] = children[at..] {
            if right.index == left.index + 1 && self.pack_pair(slot, left, right)? {
                children.remove(at + 1);
                children[at + 1..].iter_mut().for_each(|child| child.index -= 1);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Fills the child `left` of `slot` from `right`, the one after it; true if that one is gone.
    fn pack_pair(&mut self, slot: usize, left: DirtyChild, right: DirtyChild) -> Result<bool> {
        // Room is left for what will change next; else the node would be split again at once.
        let fill = self.node_bytes - self.node_bytes / 16;
        let (index, left, right) = (right.index, left.slot, right.slot);
        let (held, more) = (self.slot(left)?.encoded_bytes(), self.slot(right)?.encoded_bytes());
        let room = fill.saturating_sub(held);
        if more <= room {
            let right = self.take_slot(right)?;
            self.slot_mut(left)?.append(&right);
            self.slot_mut(slot)?.remove_at(index);
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
                self.slot_mut(slot)?.replace_key(index, first);
            }
        } else {
            // Its first entry is a large one.
            let rest = core::mem::replace(self.slot_mut(right)?, front);
            self.slot_mut(right)?.append(&rest);
        }
        Ok(false)
    }
}

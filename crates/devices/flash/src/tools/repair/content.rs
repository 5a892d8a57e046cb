//! Giving up content that cannot be read any more: its ranges become holes.

use super::Action;
use crate::core::Core;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// Objects looked at between two looks into the index.
const OBJECTS_A_STEP: usize = 64;

impl Core {
    /// Makes holes of all content that is damaged. Memory only.
    pub(super) fn drop_content(&mut self, actions: &mut Vec<Action>) -> Result<()> {
        let mut from = ObjectId(0);
        loop {
            let objects = self.list(from, OBJECTS_A_STEP)?;
            let Some(last) = objects.last() else { return Ok(()) };
            from = ObjectId(last.0 + 1);
            for object in objects {
                while self.drop_content_of(object, actions)? {}
            }
        }
    }

    /// One pass over an object; whether there may be more, because one run of damage is found in
    /// each stretch.
    fn drop_content_of(&mut self, object: ObjectId, actions: &mut Vec<Action>) -> Result<bool> {
        let mut damage = Vec::new();
        self.verify(object, &mut damage)?;
        let mut dropped = false;
        for range in damage.into_iter().filter_map(|error| error.range) {
            let mut onode = self.require(object)?;
            let freed = self.unplace(object, range.start, range.end)?;
            onode.allocated = onode.allocated.saturating_sub(freed);
            self.set_onode(object, &onode)?;
            if freed > 0 {
                actions.push(Action::ContentDropped { object, range });
                dropped = true;
            }
        }
        Ok(dropped)
    }
}

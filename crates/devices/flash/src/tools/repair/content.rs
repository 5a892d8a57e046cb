//! Giving up content that cannot be read any more: its ranges become holes.

use super::Action;
use crate::index::Index;
use crate::log::Log;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// Objects looked at between two looks into the index.
const OBJECTS_A_STEP: usize = 64;

/// Makes holes of all content that is damaged. Memory only.
pub(super) fn drop_content(index: &mut Index, log: &mut Log, actions: &mut Vec<Action>) -> Result<()> {
    let mut from = ObjectId(0);
    loop {
        let objects = index.list(log, from, OBJECTS_A_STEP)?;
        let Some(last) = objects.last() else { return Ok(()) };
        from = ObjectId(last.0 + 1);
        for object in objects {
            while drop_content_of(index, log, object, actions)? {}
        }
    }
}

/// One pass over an object; whether there may be more, because one run of damage is found in
/// each stretch.
fn drop_content_of(index: &mut Index, log: &mut Log, object: ObjectId, actions: &mut Vec<Action>) -> Result<bool> {
    let mut damage = Vec::new();
    index.verify(log, &[object], &mut damage)?;
    let mut dropped = false;
    for range in damage.into_iter().filter_map(|error| error.range) {
        let mut onode = index.require(log, object)?;
        let freed = index.unplace(log, object, range.clone())?;
        onode.allocated = onode.allocated.saturating_sub(freed);
        index.set_onode(log, object, &onode)?;
        if freed > 0 {
            actions.push(Action::ContentDropped { object, range });
            dropped = true;
        }
    }
    Ok(dropped)
}

//! An object and its versions: content moves among them without being written again, so what was
//! written to one of them may belong to any other.

use crate::index::Index;
use crate::log::Log;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// Ids asked for at a time.
const IDS_AT_ONCE: usize = 64;

/// The relatives of `object`: its other versions that there are, and what it is a version of.
pub fn relatives(index: &mut Index, log: &mut Log, object: ObjectId) -> Result<Vec<ObjectId>> {
    let origin = object.origin();
    let mut all = Vec::new();
    if origin != object {
        all.push(origin);
    }
    let ends = (origin.version(0), origin.version(ObjectId::LAST_GENERATION));
    let (Some(mut from), Some(last)) = ends else { return Ok(all) };
    loop {
        let found = index.list(log, from, IDS_AT_ONCE)?;
        all.extend(found.iter().copied().filter(|one| *one <= last && *one != object));
        match found.last() {
            Some(end) if *end < last => from = ObjectId(end.0 + 1),
            _ => return Ok(all),
        }
    }
}

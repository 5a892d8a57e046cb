//! Objects that two states have with different keys of directories.
//!
//! An object keeps its key as long as it is there, so no change of its hints leads it from one
//! state to the other: it has to go and come anew.

use crate::snapshots::{Snapshot, Span, Versioned};
use crate::stream::stat;
use onode_object::{AttributeKey, AttributeKind, Hints, ObjectDevice, ObjectId, Result};
use std::sync::Arc;

/// The objects that have another key now than a snapshot shows, with the hints that it shows. `now`
/// and `to` show the two states, with all services that stand on the device.
///
/// # Errors
/// `KeyNeeded` if a key is locked that an object of the snapshot has, and not the one of now;
/// `Corrupt`; those of the devices.
pub fn rekeyed(
    versioned: &Versioned<dyn ObjectDevice>,
    now: &dyn ObjectDevice,
    to: (&Snapshot, Arc<dyn ObjectDevice>),
) -> Result<Vec<(ObjectId, Hints)>> {
    let (snapshot, to) = to;
    let mut others = Vec::new();
    if !now.has_directory_keys() {
        return Ok(others);
    }
    let span = Span::new(snapshot, None)?;
    for object in versioned.changed_objects(&span)?.into_iter().filter(|object| !span.is_later(*object)) {
        let Some(wanted) = stat(to.as_ref(), object)? else { continue };
        let there = stat(now, object)?;
        if there.as_ref().is_some_and(|there| there.hints.encryption_key == wanted.hints.encryption_key) {
            continue;
        }
        if wanted.hints.encryption_key != 0 {
            // An object without a name or content in it is made with the key all the same.
            to.attribute(object, AttributeKey::new(AttributeKind::ENTRY, 0))?;
        }
        if there.is_some() {
            others.push((object, wanted.hints));
        }
    }
    Ok(others)
}

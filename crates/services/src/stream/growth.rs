//! What going back to a snapshot takes of the space of a device, before anything is changed.

use crate::snapshots::{Snapshot, Span, Versioned};
use crate::stream::{Differences, stat};
use onode_object::{Mutation, ObjectDevice, ObjectId, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What changes of one object.
struct ObjectGrowth {
    object: ObjectId,
    /// Bytes that are written.
    written: u64,
    is_removed: bool,
}

/// Adds up what is written and what is given back.
struct Growth<'a> {
    now: &'a dyn ObjectDevice,
    to: Arc<dyn ObjectDevice>,
    /// What later snapshots keep of what there is now; `None`: there are none.
    kept: Option<(Span, BTreeSet<ObjectId>)>,
    takes: u64,
    gives: u64,
}

/// Bytes by which what a device stores grows at least when it goes back to a snapshot: what that
/// shows and the device no longer has comes a second time, and what is given up for it gives its
/// space back unless a later snapshot shows it, too. `now` and `to` show the two states, with all
/// services that stand on the device. Everything that has changed is read.
///
/// # Errors
/// `Corrupt`; those of the devices.
pub fn growth_of_going_back(
    versioned: &Arc<Versioned<dyn ObjectDevice>>,
    now: &Arc<dyn ObjectDevice>,
    to: (&Snapshot, Arc<dyn ObjectDevice>),
) -> Result<u64> {
    let latest = versioned.snapshots().pop().filter(|latest| latest.generation > to.0.generation);
    let kept = match latest {
        None => None,
        Some(latest) => {
            let span = Span::new(&latest, None)?;
            Some((span, versioned.changed_objects(&span)?))
        }
    };
    let mut growth = Growth { now: now.as_ref(), to: Arc::clone(&to.1), kept, takes: 0, gives: 0 };
    let mut differences = Differences::back(versioned, Arc::clone(now), to)?;
    let mut touched: Option<ObjectGrowth> = None;
    loop {
        let batch = differences.next_batch()?;
        if batch.is_empty() {
            break;
        }
        for mutation in batch {
            let object = mutation.object();
            if touched.as_ref().is_none_or(|one| one.object != object)
                && let Some(ended) = touched.replace(ObjectGrowth { object, written: 0, is_removed: false })
            {
                growth.add(&ended)?;
            }
            let Some(one) = touched.as_mut() else { continue };
            match mutation {
                Mutation::Write { data, .. } => one.written += data.len() as u64,
                Mutation::Remove { .. } => one.is_removed = true,
                _ => {}
            }
        }
    }
    touched.map_or(Ok(()), |ended| growth.add(&ended))?;
    Ok(growth.takes.saturating_sub(growth.gives))
}

impl Growth<'_> {
    fn add(&mut self, touched: &ObjectGrowth) -> Result<()> {
        let before = stat(self.now, touched.object)?;
        let after = stat(self.to.as_ref(), touched.object)?;
        // What is written may be stored in fewer bytes.
        self.takes += after.as_ref().map_or(0, |after| touched.written.min(after.allocated));
        let Some(before) = before.filter(|_| !self.is_kept(touched.object)) else { return Ok(()) };
        let size = after.map_or(0, |after| after.size);
        let replaced = touched.written + before.size.saturating_sub(size);
        self.gives += if touched.is_removed { before.allocated } else { before.allocated.min(replaced) };
        Ok(())
    }

    /// Whether a later snapshot shows all of an object as it is now.
    fn is_kept(&self, object: ObjectId) -> bool {
        self.kept.as_ref().is_some_and(|(span, changed)| !span.is_later(object) && !changed.contains(&object))
    }
}

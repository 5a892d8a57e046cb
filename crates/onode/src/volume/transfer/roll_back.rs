//! Going back: a volume gets the state of one of its snapshots again.

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, Users, volume_error};
use crate::spec::Spec;
use crate::volume::layers::{Layers, Opening};
use crate::volume::snapshots::Snapshots;
use crate::volume::transfer::{Progress, check_room, lead_back, received, settings_of};
use onode_object::Compression;
use onode_services::Received;

/// What going back to a snapshot took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// Changes of objects; 0 if the volume was at that state already.
    pub changes: u64,
}

/// Gives a volume that nobody has mounted the state of one of its snapshots. Snapshots stay, also
/// those that were taken later; so do the volume's number and its label. If power fails meanwhile
/// the next mount ends it.
///
/// # Errors
/// `NotFound`; `VolumeFull` if there is no room for it; `Usage` for a volume that has no snapshots,
/// or a snapshot without a number; as [`Volume::open`](crate::Volume::open).
pub fn roll_back(spec: &Spec, name: &str, progress: &mut Progress<'_>) -> Result<RolledBack> {
    let what = || format!("cannot go back to the snapshot `{name}` of {spec}");
    let access = Access::CHANGE;
    let opening = Opening { access, users: Users::Alone, compression: Compression::Never, may_lose: false };
    let mut layers = Layers::open(spec, opening)?;
    let device = layers.settled(spec, false)?;
    let done = (|| {
        let states = layers.states.clone().ok_or_else(|| Snapshots::lacking(spec, what()))?;
        let snapshot = states.named(name).ok_or_else(|| {
            Error::new(Class::NotFound, what(), "there is no snapshot of that name")
                .hint(format!("`onode snapshot list {spec}` shows those that there are"))
        })?;
        let id = snapshot.id.ok_or_else(|| {
            Error::new(Class::Usage, what(), "it was taken by an earlier version and has no number")
                .hint(format!("copy files out of it: onode get {spec}@{name} PATH ."))
        })?;
        let own = settings_of(spec, device.as_ref())?;
        // What was begun before and did not come to its end is ended, whatever it takes.
        if received::of(spec, &layers)?.is_none_or(|said| !matches!(said, Received::Part { .. })) {
            check_room(&states, &device, &snapshot)?;
        }
        let part = Received::Part { to: id, base: Some(id) };
        part.note(layers.bare.as_ref()).map_err(|error| volume_error(what(), &error))?;
        let changes = lead_back(&states, &device, &snapshot, &own, progress)?;
        received::forget(spec, &layers)?;
        Ok(RolledBack { changes })
    })();
    let closed = device.close().map_err(|error| volume_error(format!("cannot close {spec}"), &error));
    let done = done?;
    closed?;
    Ok(done)
}

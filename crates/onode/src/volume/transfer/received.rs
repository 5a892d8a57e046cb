//! Volumes that got the state of another one, or a part of it: who opens one hears of that.

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::layers::Layers;
use crate::volume::transfer::{lead_back, settings_of};
use crate::volume::{MountOptions, Volume};
use onode_object::{Durability, ObjectDevice, Transaction};
use onode_services::{Received, Snapshot, SnapshotId};
use std::sync::Arc;

/// What a volume says of streams.
pub(in crate::volume) fn of(spec: &Spec, layers: &Layers) -> Result<Option<Received>> {
    Received::load(layers.bare.as_ref()).map_err(|error| volume_error(format!("cannot open {spec}"), &error))
}

/// The snapshot with which the stream began that is there in part, if it can be gone back to.
pub(super) fn base_of(layers: &Layers, base: Option<SnapshotId>) -> Option<Snapshot> {
    layers.states.as_ref()?.identified(base?)
}

/// The snapshot to which the volume has yet to go back, if its files are there in part only.
pub(crate) fn returns_to(layers: &Layers) -> Option<Snapshot> {
    // Who may change the volume has heard before of what cannot be read.
    match Received::load(layers.bare.as_ref()) {
        Ok(Some(Received::Part { base, .. })) => base_of(layers, base),
        _ => None,
    }
}

/// Nothing is noted any more of streams.
pub(super) fn forget(spec: &Spec, layers: &Layers) -> Result<()> {
    let done = layers.bare.commit(Transaction { mutations: Received::forgotten() }, Durability::Durable);
    done.map_err(|error| volume_error(format!("cannot open {spec}"), &error))
}

/// Refuses a volume that has only a part of a stream.
pub(crate) fn refuse_part(spec: &Spec, layers: &Layers) -> Result<()> {
    match of(spec, layers)? {
        Some(Received::Part { base, .. }) => {
            let refused = part(spec, base_of(layers, base).as_ref());
            // Nothing was changed: it is left as it was found.
            let _ = layers.bare.close();
            Err(refused)
        }
        _ => Ok(()),
    }
}

fn part(spec: &Spec, base: Option<&Snapshot>) -> Error {
    let what = format!("cannot open {spec}");
    let why = "a stream was received, or a snapshot gone back to, and that did not come to its end";
    let hint = match base {
        Some(base) => format!(
            "`{spec}@{}` shows it as it was before; `onode receive` with the same stream ends it, \
             `onode snapshot rollback {spec} {}` takes it back",
            base.name, base.name
        ),
        None => format!("end it with `onode receive {spec}` and the same stream, or make the volume anew with mkfs"),
    };
    Error::new(Class::Damaged, what, why).hint(hint)
}

/// Before files are used: a stream that did not come to its end is taken back, where there is a
/// snapshot of before.
pub(crate) fn settle(spec: &Spec, layers: &mut Layers, options: &mut MountOptions) -> Result<()> {
    if options.read_only {
        return refuse_part(spec, layers);
    }
    match of(spec, layers)? {
        None => Ok(()),
        // What changes from here on is no longer what was received.
        Some(Received::All(_)) => forget(spec, layers),
        Some(Received::Part { base, .. }) => {
            let Some(base) = base_of(layers, base) else { return refuse_part(spec, layers) };
            take_back(spec, layers, &base)?;
            let note = "a stream was received, or a snapshot gone back to, and that did not come to its end";
            layers.notes.push(format!("{note}: the files are those of the snapshot `{}`", base.name));
            Ok(())
        }
    }
}

impl Volume {
    /// Opens a volume for the sake of its size, its snapshots and its clones. So is one whose files
    /// are there in part only, because a stream or a way back to a snapshot did not come to its
    /// end, maybe for want of room, which this can make: its files are not to be looked at.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_for_states(spec: &Spec, options: MountOptions) -> Result<Self> {
        Self::opened(spec, options, |spec, layers, options| match of(spec, layers)? {
            Some(Received::Part { base, .. }) if base_of(layers, base).is_some() => {
                options.read_only = true;
                Ok(())
            }
            _ => settle(spec, layers, options),
        })
    }
}

/// Leads a volume that is partly in another state back to a snapshot.
pub(super) fn take_back(spec: &Spec, layers: &mut Layers, base: &Snapshot) -> Result<()> {
    let device: Arc<dyn ObjectDevice> = layers.settled(spec, false)?;
    let Some(states) = layers.states.clone() else { return Ok(()) };
    let own = settings_of(spec, device.as_ref())?;
    lead_back(&states, &device, base, &own, &mut |_| Ok(()))?;
    forget(spec, layers)
}

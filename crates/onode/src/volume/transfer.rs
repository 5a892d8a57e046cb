//! States of volumes: sent as a stream, received on another volume, gone back to.
//!
//! What is sent is what a snapshot shows, or what differs between two; what a volume is on
//! (devices, compression, keys, its unique number and its label) stays its own.

pub mod receive;
pub mod received;
pub mod roll_back;
pub mod send;

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::Volume;
use crate::volume::layers::States;
use onode_base::ErrorKind;
use onode_base::size::human_size;
use onode_fs::volume::VolumeInfo;
use onode_object::{Durability, Mutation, ObjectDevice, ObjectId, Transaction};
use onode_services::{Applied, Differences, Snapshot, growth_of_going_back, rekeyed};
use std::sync::Arc;

/// The settings of a volume, some of which stay its own when it gets the state of another one.
fn settings_of(spec: &Spec, device: &dyn ObjectDevice) -> Result<VolumeInfo> {
    VolumeInfo::load(device).map_err(|error| Volume::error(format!("cannot open {spec}"), &error))
}

/// Hears how far something is, in mutations or bytes; an error ends it.
pub type Progress<'a> = dyn FnMut(u64) -> Result<()> + 'a;

/// Whether a volume has just the state that one of its snapshots shows, but for what stays its
/// `own`.
fn is_at(states: &States, device: &Arc<dyn ObjectDevice>, snapshot: &Snapshot, own: &VolumeInfo) -> Result<bool> {
    let shown = states.shown(snapshot)?;
    let what = || format!("cannot compare the snapshot `{}` with what there is now", snapshot.name);
    let failed = |error: onode_object::Error| volume_error(what(), &error);
    let mut differences =
        Differences::back(&states.versioned, Arc::clone(device), (snapshot, shown)).map_err(failed)?;
    loop {
        let batch = differences.next_batch().map_err(failed)?;
        if batch.is_empty() {
            return Ok(true);
        }
        for mutation in batch.into_iter().filter(|one| !is_no_change(one)) {
            let Some(mutation) = own.keep_own(mutation).map_err(failed)? else { continue };
            if !is_there(device.as_ref(), &mutation).map_err(failed)? {
                return Ok(false);
            }
        }
    }
}

/// Whether an attribute has the value already that it is to get.
fn is_there(device: &dyn ObjectDevice, mutation: &Mutation) -> onode_object::Result<bool> {
    match mutation {
        Mutation::SetAttribute { object, key, value } => Ok(device.attribute(*object, *key)?.as_ref() == Some(value)),
        _ => Ok(false),
    }
}

/// When something was read changes no state.
const fn is_no_change(mutation: &Mutation) -> bool {
    matches!(mutation, Mutation::SetAccessTime { .. })
}

const ROOM_FOR_BOTH: &str = "what changed since the snapshot needs room twice; until there is, the files are there in \
    part, and nobody can use them: delete other snapshots or clones, or make the volume larger with `onode resize`, \
    and go back again";

/// Refuses to lead a volume back to a snapshot that does not fit beside what later snapshots keep,
/// or without the keys of directories that it takes, before anything is changed.
fn check_room(states: &States, device: &Arc<dyn ObjectDevice>, snapshot: &Snapshot) -> Result<()> {
    let what = || format!("cannot go back to the snapshot `{}`", snapshot.name);
    let failed = |error: onode_object::Error| volume_error(what(), &error);
    let room = states.versioned.room();
    let space = device.space();
    // Whatever the snapshot shows fits: nothing is read for that, unless a key may be needed.
    if room >= space.total.saturating_sub(space.available) && !device.has_directory_keys() {
        return Ok(());
    }
    rekeyed(&states.versioned, device.as_ref(), (snapshot, states.shown(snapshot)?)).map_err(failed)?;
    let growth =
        growth_of_going_back(&states.versioned, device, (snapshot, states.shown(snapshot)?)).map_err(failed)?;
    if growth <= room {
        return Ok(());
    }
    let why = format!(
        "what changed since needs {} a second time, beside what later snapshots keep, and there is room for {}",
        human_size(growth),
        human_size(room)
    );
    Err(Error::new(Class::VolumeFull, what(), why).hint(
        "nothing was changed: delete later snapshots or clones, or make the volume larger with `onode resize`, and go \
         back then",
    ))
}

/// Leads a volume back to a snapshot; how many changes that took.
fn lead_back(
    states: &States,
    device: &Arc<dyn ObjectDevice>,
    snapshot: &Snapshot,
    own: &VolumeInfo,
    progress: &mut Progress<'_>,
) -> Result<u64> {
    let what = || format!("cannot go back to the snapshot `{}`", snapshot.name);
    let failed = |error: onode_object::Error| {
        let told = volume_error(what(), &error);
        if error.kind == ErrorKind::NoSpace { told.hint(ROOM_FOR_BOTH) } else { told }
    };
    let shown = states.shown(snapshot)?;
    // What has another key goes first, so that all of it is told; if power fails, it is next time.
    let others = rekeyed(&states.versioned, device.as_ref(), (snapshot, Arc::clone(&shown))).map_err(failed)?;
    for (object, hints) in others {
        let mut transaction = Transaction::new();
        transaction.remove(object).create(object, hints);
        device.commit(transaction, Durability::Buffered).map_err(failed)?;
    }
    let mut differences =
        Differences::back(&states.versioned, Arc::clone(device), (snapshot, shown)).map_err(failed)?;
    let keep = |mutation| own.keep_own(mutation);
    let mut applied = Applied::new(Arc::clone(device), ObjectId(0), &keep).map_err(failed)?;
    let mut count = 0;
    loop {
        let batch = differences.next_batch().map_err(failed)?;
        if batch.is_empty() {
            break;
        }
        count += batch.iter().filter(|one| !is_no_change(one)).count() as u64;
        applied.apply(batch).map_err(failed)?;
        progress(count)?;
    }
    applied.finish().map_err(failed)?;
    Ok(count)
}

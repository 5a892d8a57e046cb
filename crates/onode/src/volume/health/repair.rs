//! Repair of a medium: whatever would refuse the volume is asked before anything is changed.
//!
//! A repair works below the services of a volume: it needs no key, and sees no pool. What it drops
//! is gone all the same, and who is refused afterwards never hears which files that concerns.

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::{Access, Users};
use crate::open::device;
use crate::open::medium::MediumRepaired;
use crate::spec::Spec;
use crate::volume::layers::{Layers, Opening};
use crate::volume::snapshots::lost;
use crate::volume::transfer::received;
use onode_object::Compression;

/// Repairs the medium of `spec`. With `drop_damaged` also what cannot be read any more is dropped
/// from the index, and snapshots and clones that lost something by that are given up; without it
/// nothing is lost that can still be read. With `accept_loss` the repair goes on without what is
/// missing, also where damage hides whether the volume is encrypted or a member of a pool.
///
/// # Errors
/// As [`Volume::open`](crate::Volume::open): `Key` without a key that opens it, `Usage` for a
/// member of a pool. `Damaged` if more would have to be dropped than allowed, `Loss` if something
/// is missing or unknown. Nothing was changed then.
pub fn repair_medium(spec: &Spec, drop_damaged: bool, accept_loss: bool) -> Result<MediumRepaired> {
    match look(spec, accept_loss) {
        Ok(layers) => received::refuse_part(spec, &layers)?,
        // Without leave to drop, a repair loses nothing, and can make good what hides the answer.
        Err(error) if is_hidden(spec, &error) && (accept_loss || !drop_damaged) => {}
        Err(error) if is_hidden(spec, &error) => return Err(unknown(spec, &error)),
        Err(error) => return Err(error),
    }
    lost::repair(spec, Access { accept_loss, drop_damaged, ..Access::CHANGE })
}

/// Opens the volume as it will be opened after the repair, changing nothing.
fn look(spec: &Spec, accept_loss: bool) -> Result<Layers> {
    // What is missing of the medium is what the repair is for.
    let access = Access { accept_loss: true, ..Access::LOOK };
    let opened = device::open(spec, access, Users::Alone, random_bytes()?)?;
    device::refuse_hidden_member(spec, &*opened.device)?;
    let access = Access { accept_loss, ..Access::LOOK };
    let how = Opening { access, users: Users::Alone, compression: Compression::Never, may_lose: accept_loss };
    let mut layers = Layers::over(spec, opened, how)?;
    received::of(spec, &layers)?;
    layers.settled(spec, accept_loss)?;
    Ok(layers)
}

/// Whether an error says that damage hides what the volume is. A state that is not the noted one is
/// told as damage, too, and is an answer.
fn is_hidden(spec: &Spec, error: &Error) -> bool {
    matches!(error.class, Class::Damaged | Class::Loss) && !expects_anchor(spec)
}

#[cfg(feature = "encryption")]
fn expects_anchor(spec: &Spec) -> bool {
    crate::volume::keys::expects_anchor(spec)
}

#[cfg(not(feature = "encryption"))]
const fn expects_anchor(_: &Spec) -> bool {
    false
}

fn unknown(spec: &Spec, error: &Error) -> Error {
    let why = format!("damage hides whether it is encrypted, or a member of a pool: {}", error.why);
    Error::new(Class::Loss, format!("cannot repair {spec}"), why).hint(
        "nothing was changed: copy the image first; then --accept-loss drops what is damaged all the same. Give the \
         key of an encrypted volume; a member of a pool gets everything from the others when it is made anew",
    )
}

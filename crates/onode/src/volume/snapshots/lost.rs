//! Repairing a medium, and what snapshots and clones lost by that.

use crate::error::{Error, Result};
use crate::host::random_bytes;
use crate::open::access::{Access, Opened, Users};
use crate::open::device;
use crate::open::medium::MediumRepaired;
use crate::spec::Spec;
use crate::volume::layers::{Opening, through_sums};
use onode_object::{Compression, ObjectDevice, ObjectId};
use onode_services::{Dropped, Versioned};

/// Repairs the medium of `spec` as far as `access` allows. Snapshots and clones that lost something
/// of what is dropped are given up. Nobody is asked whether that may be.
///
/// # Errors
/// `Damaged` if more would have to be dropped than allowed, `Loss` if something is missing; nothing
/// was changed then.
pub(crate) fn repair(spec: &Spec, access: Access) -> Result<MediumRepaired> {
    let mut dropped = Dropped::default();
    let mut done = device::repair(spec, access, &mut dropped)?;
    if !dropped.is_empty() {
        // What was dropped is gone, whatever comes of this.
        match settle(spec, Access { accept_loss: true, ..Access::CHANGE }, &dropped) {
            Ok(told) => done.actions.extend(told),
            Err(error) => done.actions.push(format!(
                "snapshots and clones may show what never was in them, and could not be looked at: {}; delete them",
                error.why
            )),
        }
    }
    Ok(done)
}

/// Gives up what snapshots and clones lost; returns what is to be told of that.
fn settle(spec: &Spec, access: Access, dropped: &Dropped) -> Result<Vec<String>> {
    let how = Opening { access, users: Users::Alone, compression: Compression::Never, may_lose: true };
    let Opened { device: bare, .. } = device::open(spec, access, Users::Alone, random_bytes()?)?;
    // Who has sums has to hear what goes.
    let device = match bare.stat(ObjectId::AUTHENTICATED) {
        Ok(_) => through_sums(spec, bare, how)?,
        Err(_) => bare,
    };
    let failed = |error: &onode_object::Error| Error::device(format!("cannot repair {spec}"), error);
    let told = Versioned::settle_dropped(&device, dropped).map_err(|error| failed(&error));
    device.close().map_err(|error| failed(&error))?;
    told
}

//! From specs to devices: the one place that names every device.

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, NewVolume, Opened, Users};
use crate::open::distinct::check_distinct;
use crate::open::kind::DeviceKind;
use crate::open::medium::{MediumRepaired, MediumReport, lives_in_memory};
use crate::open::missing::refuse_missing_devices;
use crate::spec::Spec;
use crate::spec::ram::Ram;
use onode_object::RamDevice;
use std::sync::Arc;

/// The device of a spec, as one of its kind.
fn kind_of(spec: &Spec) -> &dyn DeviceKind {
    match spec {
        #[cfg(feature = "flash")]
        Spec::Flash(flash) => flash,
        #[cfg(feature = "scm")]
        Spec::Scm(memory) => memory,
        #[cfg(feature = "tier")]
        Spec::Tier(tiers) => tiers,
        Spec::Ram(ram) => ram,
    }
}

/// Opens the device of a spec, and what lies beside it on the same medium. One in memory is empty.
pub(crate) fn open(spec: &Spec, access: Access, users: Users, uuid: [u8; 16]) -> Result<Opened> {
    check_distinct("open", spec)?;
    let kind = kind_of(spec);
    access.check_settings(spec, kind.settings())?;
    kind.open(spec, access, users, uuid)
}

/// Makes the image of a spec and lets `new` put the first content on it.
pub(crate) fn create(spec: &Spec, new: NewVolume<'_>) -> Result<()> {
    check_distinct("make", spec)?;
    refuse_missing_devices(&format!("cannot make {spec}"), spec)?;
    if spec.image_path().is_none() {
        return Err(Error::new(Class::Usage, format!("cannot make {spec}"), "it lives in memory only")
            .hint("it is made when it is used: just mount it"));
    }
    kind_of(spec).create(spec, new)
}

/// Checks the medium of `spec` on its own, without what a mount keeps of it; changes nothing.
/// `progress` hears of what is done and of how much there is.
///
/// # Errors
/// If the medium cannot be opened. What is wrong on it is no error but a finding.
pub fn check_medium(spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    kind_of(spec).check(spec, progress)
}

/// Repairs the medium of `spec`. With `drop_damaged` also what cannot be read any more is dropped
/// from the index; without it nothing is lost that can still be read. With `accept_loss` the repair
/// goes on without what is missing.
///
/// # Errors
/// `Damaged` if more would have to be dropped than allowed, `Loss` if something is missing; nothing
/// was changed then.
pub fn repair_medium(spec: &Spec, drop_damaged: bool, accept_loss: bool) -> Result<MediumRepaired> {
    kind_of(spec).repair(spec, Access { accept_loss, drop_damaged, ..Access::CHANGE })
}

/// Objects without a medium: there is nothing to make, and nothing to look into.
impl DeviceKind for Ram {
    fn open(&self, _: &Spec, _: Access, _: Users, _: [u8; 16]) -> Result<Opened> {
        Ok(Opened { device: Arc::new(RamDevice::new(self.size)), faces: Vec::new(), notes: Vec::new() })
    }

    fn create(&self, spec: &Spec, _: NewVolume<'_>) -> Result<()> {
        Err(lives_in_memory(spec))
    }

    fn check(&self, spec: &Spec, _: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
        Err(lives_in_memory(spec))
    }

    fn repair(&self, spec: &Spec, _: Access) -> Result<MediumRepaired> {
        Err(lives_in_memory(spec))
    }
}

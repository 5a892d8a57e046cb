//! What the facade does with a device of one kind.
//!
//! Each kind that a build has answers in a module of its own.

use crate::error::Result;
use crate::open::access::{Access, NewVolume, Opened, Users};
use crate::open::medium::{MediumRepaired, MediumReport};
use crate::spec::Spec;
use onode_services::Dropped;

/// A kind of device; `spec` is the whole spec, for messages.
pub(crate) trait DeviceKind {
    /// Opens the device, and what lies beside it on the same medium. One in memory is made on the
    /// spot, with `uuid`, and is empty.
    fn open(&self, spec: &Spec, access: Access, users: Users, uuid: [u8; 16]) -> Result<Opened>;

    /// The names of the [settings](onode_object::Settings) that the device heeds.
    fn settings(&self) -> &[&str] {
        &[]
    }

    /// Makes the image or writes to the device.
    fn create(&self, spec: &Spec, new: NewVolume<'_>) -> Result<()>;

    /// Checks the medium and changes nothing. `progress` hears of what is done and of how much
    /// there is.
    fn check(&self, spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport>;

    /// Repairs the medium as far as `access` allows. What goes of objects is noted in `dropped`, if
    /// the kind of device loses some as it repairs.
    fn repair(&self, spec: &Spec, access: Access, dropped: &mut Dropped) -> Result<MediumRepaired>;
}

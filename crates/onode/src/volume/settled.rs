//! Volumes of a build without transactions: one on which a committed transaction is not in place is
//! refused.

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use onode_object::{AttributeKey, ObjectDevice, ObjectId};

/// Refuses a volume on which a transaction is under way.
pub(super) fn refuse_unsettled(spec: &Spec, device: &dyn ObjectDevice) -> Result<()> {
    // Whatever else is wrong with it is told by who uses it.
    let Ok(Some(_)) = device.attribute(ObjectId::STAGED, AttributeKey::STAGED_STATE) else { return Ok(()) };
    let why = "this build of Onode has no transactions: one is not in place on this volume";
    Err(Error::new(Class::Usage, format!("cannot open {spec}"), why)
        .hint("enable the feature `transactions` of the crate `onode`"))
}

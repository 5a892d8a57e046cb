//! From specs to devices.

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use onode_object::{ObjectDevice, RamDevice};
use std::sync::Arc;

/// Opens the device of a spec.
pub(crate) fn open(spec: &Spec, _read_only: bool) -> Result<Arc<dyn ObjectDevice>> {
    match spec {
        Spec::Ram { size } => Ok(Arc::new(RamDevice::new(*size))),
        Spec::Flash { .. } => Err(no_flash(spec)),
    }
}

/// Makes the image of a spec and lets `fill` put the first content on it.
pub(crate) fn create(spec: &Spec, _replace: bool, _fill: impl FnOnce(&dyn ObjectDevice) -> Result<()>) -> Result<()> {
    Err(no_flash(spec))
}

fn no_flash(spec: &Spec) -> Error {
    Error::new(Class::Usage, format!("cannot use {spec}"), "this build has no flash device")
}
